/** `tasks/update`: every answer on its own, whatever else comes with it. */
import { evictDurableObject } from 'cloudflare:test'
import { expect, test, vi } from 'vitest'
import { z } from 'zod'
import { get, rpc, start, until, untilEnded } from './client'
import { journal, row, stub, untilWaiting } from './inside'
import { script } from './tools/scripted'

const confirm = z.object({ confirm: z.boolean() })
const accept = (content: unknown) => ({ action: 'accept', content })

/** Acknowledged, whatever is in it. */
async function update(taskId: string, inputResponses: unknown, more: Record<string, unknown> = {}) {
  const { status, body } = await rpc('tasks/update', { taskId, inputResponses, ...more })
  expect(status).toBe(200)
  expect(body.result, JSON.stringify(body)).toEqual({ resultType: 'complete', _meta: expect.anything() })
}

async function asking(...names: string[]) {
  let runs = 0
  const taskId = await start(
    'scripted',
    script(async ({ step }) => {
      runs++
      const answers = await Promise.all(
        names.map((name) => step.elicit(name, { message: `${name}?`, schema: confirm })),
      )
      return JSON.stringify(answers)
    }),
  )
  await until(taskId, ['input_required'])
  await untilWaiting(taskId)
  return { taskId, runs: () => runs }
}

const open = async (taskId: string) => Object.keys((await get(taskId)).inputRequests ?? {})
const answers = async (taskId: string) => JSON.parse((await untilEnded(taskId)).result.content[0].text)

test('a partial answer is taken, and its key is gone at once', async () => {
  const { taskId, runs } = await asking('a', 'b')
  const before = await get(taskId)
  await update(taskId, { a: accept({ confirm: true }) })
  const after = await get(taskId)
  expect(after.status).toBe('input_required')
  expect(after.inputRequests).toEqual({ b: before.inputRequests.b })
  expect(runs()).toBe(1)
  await update(taskId, { b: accept({ confirm: false }) })
  expect(await answers(taskId)).toEqual([accept({ confirm: true }), accept({ confirm: false })])
})

test('the same answer twice counts once, and a different second one not at all', async () => {
  const { taskId } = await asking('a', 'b')
  await Promise.all([
    update(taskId, { a: accept({ confirm: true }) }),
    update(taskId, { a: accept({ confirm: true }) }),
  ])
  await update(taskId, { a: { action: 'decline' } })
  expect(await open(taskId)).toEqual(['b'])
  await update(taskId, { b: accept({ confirm: true }) })
  expect(await answers(taskId)).toEqual(Array(2).fill(accept({ confirm: true })))
})

test.each([
  ['an unknown key', { nobody: { action: 'accept' } }],
  ['an unknown key with any value', { nobody: 7, 'a~1': null, __proto__x: [] }],
  ['the name of something every object has', { constructor: {}, toString: accept({}), hasOwnProperty: 1 }],
  ['nothing', {}],
])('%s is acknowledged and changes nothing', async (_, responses) => {
  const { taskId } = await asking('a')
  const before = [await get(taskId), await row(taskId), await journal(taskId)]
  await update(taskId, responses)
  expect([await get(taskId), await row(taskId), await journal(taskId)]).toEqual(before)
})

test('extra properties do no harm, at any level', async () => {
  const { taskId } = await asking('a')
  await update(
    taskId,
    { a: { action: 'accept', content: { confirm: true, more: 'x' }, extra: 1 }, other: {} },
    { unexpected: [1] },
  )
  expect(await answers(taskId)).toEqual([accept({ confirm: true })])
})

test.each([
  ['a decline', { action: 'decline' }, { action: 'decline' }],
  ['a cancel', { action: 'cancel' }, { action: 'cancel' }],
  ['a decline with content', { action: 'decline', content: { confirm: true } }, { action: 'decline' }],
])('%s is an answer', async (_, response, heard) => {
  const { taskId } = await asking('a')
  await update(taskId, { a: response })
  expect(await answers(taskId)).toEqual([heard])
})

test.each([
  ['of the wrong type', accept({ confirm: 'yes' }), 'confirm'],
  ['without a required property', accept({}), 'confirm'],
  ['without content', { action: 'accept' }, 'confirm'],
  ['without an action', { content: { confirm: true } }, 'action'],
  ['with an unknown action', { action: 'perhaps' }, 'action'],
  ['that is null', null, 'expected object'],
  ['that is a list', [accept({ confirm: true })], 'expected object'],
  ['that is too large', accept({ confirm: true, x: 'x'.repeat(128_000) }), 'at most 128000'],
])(
  'an answer %s is acknowledged, and its question put again under a new key',
  async (_, response, problem) => {
    const { taskId } = await asking('a', 'b')
    const before = await get(taskId)
    await update(taskId, { a: response, b: accept({ confirm: true }) })
    const task = await get(taskId)
    // The good answer counted.
    expect(Object.keys(task.inputRequests)).toEqual(['a~2'])
    const { message, ...rest } = task.inputRequests['a~2'].params
    const { message: original, ...same } = before.inputRequests.a.params
    expect(rest).toEqual(same)
    expect(message).toContain(original)
    expect(message).toContain(problem)
    expect(message.length).toBeLessThan(1_000)
    // Whoever answers the old key answers nothing.
    await update(taskId, { a: accept({ confirm: false }) })
    expect(await open(taskId)).toEqual(['a~2'])
    await update(taskId, { 'a~2': accept({ confirm: true }) })
    expect(await answers(taskId)).toEqual(Array(2).fill(accept({ confirm: true })))
  },
)

test('keys are never used again, and after three answers that do not fit the question counts as cancelled', async () => {
  const { taskId } = await asking('a')
  const seen: string[] = []
  for (let i = 0; i < 3; i++) {
    const [key = ''] = await open(taskId)
    seen.push(key)
    const { message } = (await get(taskId)).inputRequests[key].params
    // What was wrong is said once, however often it was.
    expect(message.match(/did not fit/g) ?? []).toHaveLength(i === 0 ? 0 : 1)
    await evictDurableObject(stub(taskId))
    await update(taskId, { [key]: accept({ confirm: i }) })
  }
  expect(seen).toEqual(['a', 'a~2', 'a~3'])
  expect(await answers(taskId)).toEqual([{ action: 'cancel' }])
})

test('an answer to a finished task is acknowledged and changes nothing', async () => {
  const { taskId } = await asking('a')
  await update(taskId, { a: accept({ confirm: true }) })
  const task = await untilEnded(taskId)
  await update(taskId, { a: { action: 'decline' }, 'a~2': {} })
  expect(await get(taskId)).toEqual(task)
})

test('answers that race each other each count once', async () => {
  const names = Array.from({ length: 12 }, (_, i) => `q${i}`)
  const { taskId, runs } = await asking(...names)
  await Promise.all(names.map((name, i) => update(taskId, { [name]: accept({ confirm: i % 2 === 0 }) })))
  expect(await answers(taskId)).toEqual(names.map((_, i) => accept({ confirm: i % 2 === 0 })))
  expect(runs()).toBe(2)
})

test('an answer that comes while the run is still at work is picked up when it waits', async () => {
  const gate = { open: false }
  const taskId = await start(
    'scripted',
    script(async ({ step }) => {
      const [answer] = await Promise.all([
        step.elicit('a', { message: 'a?', schema: confirm }),
        step.do('busy', async () => {
          while (!gate.open) await scheduler.wait(10)
        }),
      ])
      return JSON.stringify([answer])
    }),
  )
  await until(taskId, ['input_required'])
  await update(taskId, { a: accept({ confirm: true }) })
  await vi.waitUntil(async () => (await get(taskId)).status === 'working')
  gate.open = true
  expect(await answers(taskId)).toEqual([accept({ confirm: true })])
})

test.each([
  ['inputResponses is missing', undefined],
  ['inputResponses is a list', []],
  ['inputResponses is text', 'a'],
  ['inputResponses is null', null],
])('when %s the request is refused with -32602', async (_, inputResponses) => {
  const { taskId } = await asking('a')
  const { status, body } = await rpc('tasks/update', {
    taskId,
    ...(inputResponses !== undefined && { inputResponses }),
  })
  expect(status).toBe(200)
  expect(body.error.code).toBe(-32602)
  expect(body.error.message).toContain('inputResponses')
})
