/** What ends a run and brings the next one: time, answers, events. */
import { exports } from 'cloudflare:workers'
import { expect, test, vi } from 'vitest'
import { z } from 'zod'
import { get, rpc, start, TASKS, until, untilEnded } from '../client'
import { journal, letTimePass, row, untilWaiting } from '../inside'
import { script, whenever } from '../tools/scripted'

const confirm = z.object({ confirm: z.boolean() })
const accept = (content: Record<string, unknown>) => ({ action: 'accept', content })
const update = (taskId: string, inputResponses: Record<string, unknown>) =>
  rpc('tasks/update', { taskId, inputResponses })
const text = (task: { result: { content: { text: string }[] } }) => task.result.content[0]?.text

test('a short sleep stays in the run', async () => {
  let runs = 0
  const slept: number[] = []
  const taskId = await start(
    'scripted',
    script(async ({ step }) => {
      runs++
      const before = Date.now()
      await step.sleep('short', 200)
      slept.push(Date.now() - before)
      return 'done'
    }),
  )
  expect((await untilEnded(taskId)).status).toBe('completed')
  expect(runs).toBe(1)
  expect(slept[0]).toBeGreaterThanOrEqual(199)
})

test('a long sleep ends the run; the task stays `working` and holds no consumer', async () => {
  const taskId = await start(
    'scripted',
    script(async ({ step }) => {
      await step.sleep('long', '1 hour')
      return 'done'
    }),
  )
  await untilWaiting(taskId)
  expect(await get(taskId)).toMatchObject({ status: 'working' })
  expect(await row(taskId)).toMatchObject({ phase: 'waiting', token: null, lease_until: null })
  await letTimePass(taskId)
  expect((await untilEnded(taskId)).status).toBe('completed')
})

test('the time of a sleep is fixed when it begins, whatever happens to the runs', async () => {
  const taskId = await start(
    'scripted',
    script(async ({ step }) => {
      await Promise.all([
        step.sleep('long', '1 hour'),
        step.elicit('sure', { message: 'Sure?', schema: confirm }),
      ])
      return 'done'
    }),
  )
  await until(taskId, ['input_required'])
  await untilWaiting(taskId)
  const [before] = await journal(taskId)
  await update(taskId, { sure: accept({ confirm: true }) })
  await vi.waitUntil(async () => (await row(taskId))['dispatch'] === 2)
  await untilWaiting(taskId)
  expect((await journal(taskId))[0]).toEqual(before)
})

test('several questions at once are visible together, answered one by one, and bring one run', async () => {
  let runs = 0
  const taskId = await start(
    'scripted',
    script(async ({ step }) => {
      runs++
      const answers = await Promise.all([
        step.elicit('first', { message: 'First?', schema: confirm }),
        step.elicit('second', { message: 'Second?', schema: confirm }),
        step.elicit('third', { message: 'Third?', schema: confirm }),
      ])
      return JSON.stringify(answers.map((answer) => answer.action))
    }),
  )
  const asked = await until(taskId, ['input_required'])
  expect(Object.keys(asked.inputRequests)).toEqual(['first', 'second', 'third'])
  await untilWaiting(taskId)

  await update(taskId, { second: accept({ confirm: true }) })
  const partly = await get(taskId)
  expect(partly.status).toBe('input_required')
  expect(Object.keys(partly.inputRequests)).toEqual(['first', 'third'])
  await update(taskId, { first: { action: 'decline' } })
  expect((await get(taskId)).status).toBe('input_required')
  expect(runs).toBe(1)

  await update(taskId, { third: { action: 'cancel' } })
  expect(text(await untilEnded(taskId))).toBe('["decline","accept","cancel"]')
  expect(runs).toBe(2)
})

test('a question goes out in the form of the protocol: flat, with primitives only', async () => {
  const schema = z.object({
    name: z.string().min(1).describe('Your name'),
    size: z.enum(['S', 'M']).default('M'),
    count: z.number().int().optional(),
  })
  const taskId = await start(
    'scripted',
    script(async ({ step }) => JSON.stringify(await step.elicit('who', { message: 'Who?', schema }))),
  )
  const { inputRequests } = await until(taskId, ['input_required'])
  expect(inputRequests.who).toMatchObject({
    method: 'elicitation/create',
    params: { mode: 'form', message: 'Who?', requestedSchema: { type: 'object', required: ['name'] } },
  })
  const { requestedSchema } = inputRequests.who.params
  expect(Object.keys(requestedSchema).toSorted()).toEqual(['properties', 'required', 'type'])
  await update(taskId, { who: accept({ name: 'Ada' }) })
  expect(text(await untilEnded(taskId))).toBe(
    JSON.stringify({ action: 'accept', content: { name: 'Ada', size: 'M' } }),
  )
})

test('a form that the wire cannot express fails the task at once', async () => {
  let runs = 0
  const taskId = await start(
    'scripted',
    script(async ({ step }) => {
      runs++
      const schema = z.object({ nested: z.object({ deep: z.string() }) })
      return JSON.stringify(await step.elicit('who', { message: 'Who?', schema }))
    }),
  )
  expect((await untilEnded(taskId)).status).toBe('failed')
  expect(runs).toBe(1)
})

test('a question that nobody answers in its time counts as cancelled', async () => {
  const taskId = await start(
    'scripted',
    script(async ({ step }) =>
      JSON.stringify(await step.elicit('sure', { message: 'Sure?', schema: confirm, timeout: '1 hour' })),
    ),
  )
  await until(taskId, ['input_required'])
  await letTimePass(taskId)
  expect(text(await untilEnded(taskId))).toBe('{"action":"cancel"}')
})

test('one of two questions timing out leaves the other open', async () => {
  const taskId = await start(
    'scripted',
    script(async ({ step }) => {
      const answers = await Promise.all([
        step.elicit('hasty', { message: 'Now?', schema: confirm, timeout: '1 hour' }),
        step.elicit('patient', { message: 'Later?', schema: confirm }),
      ])
      return JSON.stringify(answers.map((answer) => answer.action))
    }),
  )
  await until(taskId, ['input_required'])
  await letTimePass(taskId)
  await vi.waitUntil(async () => Object.keys((await get(taskId)).inputRequests ?? {}).length === 1)
  expect((await get(taskId)).inputRequests).toHaveProperty('patient')
  await update(taskId, { patient: accept({ confirm: true }) })
  expect(text(await untilEnded(taskId))).toBe('["cancel","accept"]')
})

test('an answer that only the own schema of the tool refuses is asked again, with what was wrong', async () => {
  const even = z.object({ n: z.number() }).refine(({ n }) => n % 2 === 0, 'must be even')
  const taskId = await start(
    'scripted',
    script(async ({ step }) =>
      JSON.stringify(await step.elicit('even', { message: 'Even?', schema: even, timeout: '1 hour' })),
    ),
  )
  await until(taskId, ['input_required'])
  await untilWaiting(taskId)
  const { wake_at } = await row(taskId)
  await update(taskId, { even: accept({ n: 3 }) })
  const again = await vi.waitUntil(async () => {
    const task = await get(taskId)
    return task.inputRequests?.['even~2'] ? task : undefined
  })
  expect(Object.keys(again.inputRequests)).toEqual(['even~2'])
  expect(again.inputRequests['even~2'].params.message).toContain('must be even')
  // Its time-out is still that of the question.
  await untilWaiting(taskId)
  expect(await row(taskId)).toMatchObject({ wake_at })
  await update(taskId, { 'even~2': accept({ n: 4 }) })
  expect(text(await untilEnded(taskId))).toBe('{"action":"accept","content":{"n":4}}')
})

test('after three answers that only the tool refuses the question counts as cancelled', async () => {
  const never = z.object({ n: z.number() }).refine(() => false, 'never right')
  const taskId = await start(
    'scripted',
    script(async ({ step }) => JSON.stringify(await step.elicit('n', { message: 'N?', schema: never }))),
  )
  for (const key of ['n', 'n~2', 'n~3']) {
    await vi.waitUntil(async () => (await get(taskId)).inputRequests?.[key])
    await update(taskId, { [key]: accept({ n: 1 }) })
  }
  expect(text(await untilEnded(taskId))).toBe('{"action":"cancel"}')
})

test('sampling and roots are asked as the protocol names them, and resolve with what the client sent', async () => {
  const taskId = await start(
    'scripted',
    script(async ({ step }) => {
      const results = await Promise.all([
        step.request('think', {
          method: 'sampling/createMessage',
          params: { messages: [{ role: 'user', content: { type: 'text', text: 'hi' } }], maxTokens: 9 },
        }),
        step.request('where', { method: 'roots/list' }),
      ])
      return JSON.stringify(results)
    }),
  )
  const { inputRequests } = await until(taskId, ['input_required'])
  expect(inputRequests).toEqual({
    think: {
      method: 'sampling/createMessage',
      params: { messages: [{ role: 'user', content: { type: 'text', text: 'hi' } }], maxTokens: 9 },
    },
    where: { method: 'roots/list' },
  })
  const think = {
    role: 'assistant',
    content: { type: 'text', text: 'ho' },
    model: 'm',
    stopReason: 'endTurn',
  }
  const where = { roots: [{ uri: 'file:///home' }] }
  await update(taskId, { think, where })
  expect(text(await untilEnded(taskId))).toBe(JSON.stringify([think, where]))
})

test('a request whose time is over rejects inside the tool', async () => {
  const taskId = await start(
    'scripted',
    script(async ({ step }) => {
      const roots = await step
        .request('where', { method: 'roots/list', timeout: '1 hour' })
        .catch((error: unknown) => String(error))
      return JSON.stringify(roots)
    }),
  )
  await until(taskId, ['input_required'])
  await letTimePass(taskId)
  expect(text(await untilEnded(taskId))).toContain('Step \\"where\\" failed')
})

test.each([
  [
    'elicitation',
    'elicitation/create',
    { message: 'x', requestedSchema: { type: 'object', properties: {} } },
  ],
  [
    'elicitation.url',
    'elicitation/create',
    { mode: 'url', message: 'x', url: 'https://x.test', elicitationId: '1' },
  ],
  ['sampling', 'sampling/createMessage', { messages: [], maxTokens: 1 }],
  ['roots', 'roots/list', undefined],
])('what the client did not declare cannot be asked: %s', async (ask, method, params) => {
  const taskId = await start(
    'scripted',
    script(async ({ step }) => {
      const asked = step.request('ask', params === undefined ? { method } : { method, params })
      return asked.then(
        () => 'asked',
        (error: unknown) => String(error),
      )
    }),
    { capabilities: TASKS },
  )
  const task = await untilEnded(taskId)
  expect(text(task)).toContain(`The client did not declare ${ask}`)
})

test('what no client can be asked at all fails with a sentence', async () => {
  const taskId = await start(
    'scripted',
    script(async ({ step }) => JSON.stringify(await step.request('odd', { method: 'tools/list' }))),
  )
  expect((await untilEnded(taskId)).error.message).toContain('tools/list is not a request')
})

// ---------------------------------------------------------------- events

const deliver = (url: string, body: unknown) =>
  exports.default.fetch(
    new Request(url, {
      method: 'POST',
      headers: { 'content-type': 'application/json' },
      body: typeof body === 'string' ? body : JSON.stringify(body),
    }),
  )

async function waitForBuild(timeout: 'none' | '1 hour' = 'none', schema = z.object({ passed: z.boolean() })) {
  const started: string[] = []
  const taskId = await start(
    'scripted',
    script(async ({ step }) => {
      const build = await step.waitForEvent('build', {
        schema,
        ...(timeout !== 'none' && { timeout }),
        async start({ callbackUrl }) {
          started.push(callbackUrl)
        },
      })
      return JSON.stringify(build)
    }),
  )
  await untilWaiting(taskId)
  return { taskId, started, url: started[0] ?? '' }
}

test('a task waits for an event: the work is started once, the callback wakes it, its payload arrives', async () => {
  const { taskId, started, url } = await waitForBuild()
  expect(new URL(url).origin).toBe('http://localhost')
  expect((await deliver(url, { passed: true, extra: 1 })).status).toBe(204)
  expect(text(await untilEnded(taskId))).toBe('{"received":true,"payload":{"passed":true}}')
  expect(started).toHaveLength(1)
})

test('a callback may come twice; the first counts', async () => {
  const { taskId, url } = await waitForBuild()
  const answers = await Promise.all([deliver(url, { passed: true }), deliver(url, { passed: false })])
  expect(answers.map(({ status }) => status)).toEqual([204, 204])
  expect(text(await untilEnded(taskId))).toContain('true,"payload":{"passed":true}')
  // Also after the end: whoever repeats a call wants to know what became of the first.
  expect((await deliver(url, { passed: true })).status).toBe(204)
})

test('an event that comes while its start is still running is not lost', async () => {
  let delivered = 0
  const taskId = await start(
    'scripted',
    script(async ({ step }) => {
      const build = await step.waitForEvent('build', {
        async start({ callbackUrl }) {
          delivered = (await deliver(callbackUrl, {})).status
        },
      })
      return JSON.stringify(build)
    }),
  )
  expect(text(await untilEnded(taskId))).toBe('{"received":true,"payload":{}}')
  expect(delivered).toBe(204)
})

test('a payload that does not fit is refused at the door and the task waits on', async () => {
  const { taskId, url } = await waitForBuild()
  const refused = await deliver(url, { passed: 'yes' })
  expect(refused.status).toBe(422)
  expect(await refused.json()).toEqual({ error: expect.stringContaining('passed') })
  expect((await deliver(url, { passed: true, log: 'x'.repeat(128_000) })).status).toBe(413)
  expect((await deliver(url, '{"passed":')).status).toBe(400)
  expect((await deliver(url, [true])).status).toBe(422)
  expect((await get(taskId)).status).toBe('working')
  expect((await deliver(url, { passed: false })).status).toBe(204)
  expect(text(await untilEnded(taskId))).toContain('"passed":false')
})

test('a callback address is worth nothing for another task, or when it was touched', async () => {
  const one = await waitForBuild()
  const other = await waitForBuild()
  const foreign = other.url.replace(other.taskId, one.taskId)
  expect((await deliver(foreign, { passed: true })).status).toBe(404)
  const touched = one.url.slice(0, -1) + (one.url.endsWith('A') ? 'B' : 'A')
  expect((await deliver(touched, { passed: true })).status).toBe(404)
  expect((await deliver(`${one.url.slice(0, one.url.lastIndexOf('/'))}/x`, {})).status).toBe(404)
  expect((await get(one.taskId)).status).toBe('working')
})

test('an event that does not come in its time resolves as such, and comes too late afterwards', async () => {
  const { taskId, url } = await waitForBuild('1 hour')
  await letTimePass(taskId)
  expect(text(await untilEnded(taskId))).toBe('{"received":false,"reason":"timeout"}')
  expect((await deliver(url, { passed: true })).status).toBe(410)
})

// ---------------------------------------------------------------- status

test('status is visible in the middle of a step', async () => {
  let go = false
  const taskId = await start(
    'scripted',
    script(async ({ step }) => {
      await step.do('long', async () => {
        await step.status({ message: 'Half-way', done: 1, total: 2 })
        await whenever(() => go)
      })
      return 'done'
    }),
  )
  await vi.waitUntil(async () => (await get(taskId)).statusMessage === 'Half-way (1/2)', { timeout: 3_000 })
  expect((await get(taskId)).status).toBe('working')
  go = true
  await untilEnded(taskId)
})

test('status texts in quick succession are told as one, and the last one stays', async () => {
  const taskId = await start(
    'scripted',
    script(async ({ step }) => {
      for (let i = 1; i <= 200; i++) await step.status(`Number ${i}`)
      return 'done'
    }),
  )
  const task = await untilEnded(taskId)
  expect(task.statusMessage).toBe('Number 200')
  const { gaps } = await row(taskId)
  // Far fewer changes than texts reached the object.
  expect(JSON.parse(gaps as string).length).toBeLessThan(9)
})

test('a replay does not show the status texts of its past again', async () => {
  const seen = new Set<string>()
  let go = false
  const taskId = await start(
    'scripted',
    script(async ({ step }) => {
      await step.status('One')
      await step.do('one', () => 1)
      await step.status('Two')
      await step.sleep('long', '1 hour')
      await scheduler.wait(300)
      await step.status('Three')
      await step.do('wait', () => whenever(() => go))
      return 'done'
    }),
  )
  await vi.waitUntil(async () => (await get(taskId)).statusMessage === 'Two')
  await letTimePass(taskId)
  await vi.waitUntil(async () => {
    const { statusMessage } = await get(taskId)
    seen.add(statusMessage)
    return statusMessage === 'Three'
  })
  go = true
  expect([...seen]).toEqual(['Two', 'Three'])
  await untilEnded(taskId)
})

test('showing status in one branch does not end a run in which another branch waits', async () => {
  const taskId = await start(
    'scripted',
    script(async ({ step }) => {
      const chatty = async () => {
        for (let i = 1; i <= 5; i++) {
          await step.do(`part ${i}`, () => i)
          await step.status(`Part ${i}`)
          await step.sleep(`breath ${i}`, 60)
        }
      }
      await Promise.all([step.sleep('long', '1 hour'), chatty()])
      return 'done'
    }),
  )
  await vi.waitUntil(async () => (await journal(taskId)).some(({ name }) => name === 'breath 5'), {
    timeout: 5_000,
  })
  expect(await row(taskId)).toMatchObject({ dispatch: 1 })
})
