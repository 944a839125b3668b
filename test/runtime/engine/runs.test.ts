/** Slices, retries, takeovers: what becomes of a task when runs end early. */
import {
  abortAllDurableObjects,
  evictDurableObject,
  runDurableObjectAlarm,
  runInDurableObject,
} from 'cloudflare:test'
import { env } from 'cloudflare:workers'
import { expect, test, vi } from 'vitest'
import { NonRetryableError, ProtocolError } from '../../../src/index'
import { Lease } from '../../../src/run/lease'
import { Steps } from '../../../src/run/step'
import { get, start, untilEnded } from '../client'
import { held } from '../held'
import { journal, letTimePass, object, row, stub, untilWaiting } from '../inside'
import { script, whenever } from '../tools/scripted'

const text = (task: { result: { content: { text: string }[] } }) => task.result.content[0]?.text

/** The machine of the run that holds the task has gone. */
async function lapse(taskId: string) {
  await runInDurableObject(stub(taskId), (_, { storage }) => {
    storage.sql.exec('UPDATE task SET lease_until = 1')
  })
  await evictDurableObject(stub(taskId))
  await runDurableObjectAlarm(stub(taskId))
}

// ---------------------------------------------------------------- slices

test('a tool longer than its slice goes on in others, on the slow queue, and does nothing twice', async () => {
  const ran: number[] = []
  let runs = 0
  const taskId = await start(
    'scripted',
    script(async ({ step }) => {
      runs++
      for (let i = 1; i <= 12; i++) {
        await step.do(`part ${i}`, async () => {
          await scheduler.wait(150)
          ran.push(i)
        })
      }
      return 'done'
    }),
  )
  expect((await untilEnded(taskId)).status).toBe('completed')
  expect(ran).toEqual([1, 2, 3, 4, 5, 6, 7, 8, 9, 10, 11, 12])
  expect(runs).toBe(2)
  expect(await row(taskId)).toMatchObject({ dispatch: 2, queue: 'slow' })
})

test('a slice always gets something recorded, even when replaying has taken all its time', async () => {
  const taskId = await held(script(async () => 'never'))
  const lease = new Lease(() => object(taskId), taskId, 'mine', false)
  const steps = new Steps({
    lease,
    journal: [{ kind: 'sleep', name: 'over', at: 1 }],
    lineage: taskId,
    capabilities: {},
    sliceEndsAt: 1,
    callbackUrl: async () => '',
    answerUrl: async () => '',
  })
  await steps.sleep('over', 1)
  expect(await steps.do('one', () => 1)).toBe(1)
  const second = vi.fn(() => 2)
  void steps.do('two', second)
  await steps.allParked
  expect(steps.yielding).toBe(true)
  expect(second).not.toHaveBeenCalled()
  expect((await journal(taskId)).map(({ name }) => name)).toEqual(['one'])
})

// ---------------------------------------------------------------- errors

test('a tool that throws is run again by the retry policy, and completes', async () => {
  const attempts: number[] = []
  const taskId = await start(
    'scripted',
    script(async ({ task }) => {
      attempts.push(task.attempt)
      if (attempts.length < 3) throw new Error('bad luck')
      return 'third time lucky'
    }),
  )
  expect(text(await untilEnded(taskId))).toBe('third time lucky')
  expect(attempts).toEqual([0, 1, 2])
})

test.each([
  ['after awaiting', async () => Promise.reject(new Error('always'))],
  [
    'before its first await',
    () => {
      throw new Error('always')
    },
  ],
])('a tool that always throws ends as failed, and no message of it is left: %s', async (_, run) => {
  let runs = 0
  const taskId = await start(
    'scripted',
    script((): Promise<string> => {
      runs++
      return run()
    }),
  )
  const task = await untilEnded(taskId)
  expect(task).toMatchObject({ status: 'failed', error: { code: -32603, message: 'always' } })
  expect(runs).toBe(3)
  const { dispatch } = await row(taskId)
  await scheduler.wait(700)
  expect(runs).toBe(3)
  expect((await row(taskId))['dispatch']).toBe(dispatch)
})

test('progress starts the count of attempts anew', async () => {
  const attempts: number[] = []
  const taskId = await start(
    'scripted',
    script(async ({ step, task }) => {
      attempts.push(task.attempt)
      const before = attempts.length
      // Two failures, a step, two more failures: with a limit of two, all is well.
      if (before <= 2) throw new Error('before')
      await step.do('progress', () => 1)
      if (before <= 4) throw new Error('after')
      return 'done'
    }),
  )
  expect((await untilEnded(taskId)).status).toBe('completed')
  expect(attempts).toEqual([0, 1, 2, 1, 2].slice(0, attempts.length))
  expect(attempts).toHaveLength(5)
})

test('an error that retrying cannot help is not retried', async () => {
  let runs = 0
  const taskId = await start(
    'scripted',
    script(async () => {
      runs++
      throw new NonRetryableError('hopeless')
    }),
  )
  expect(await untilEnded(taskId)).toMatchObject({ status: 'failed', error: { message: 'hopeless' } })
  expect(runs).toBe(1)
})

test('a protocol error fails the task with its own code and data', async () => {
  const taskId = await start(
    'scripted',
    script(async () => {
      throw new ProtocolError(-32042, 'Not today', { until: 'tomorrow' })
    }),
  )
  expect(await untilEnded(taskId)).toMatchObject({
    status: 'failed',
    statusMessage: 'Not today',
    error: { code: -32042, message: 'Not today', data: { until: 'tomorrow' } },
  })
})

test('an error text of a megabyte and data that are no JSON do not stop a task from failing', async () => {
  const cyclic: Record<string, unknown> = {}
  cyclic['self'] = cyclic
  const [long, odd] = await Promise.all([
    start(
      'scripted',
      script(async () => {
        throw new NonRetryableError('é'.repeat(1_000_000))
      }),
    ),
    start(
      'scripted',
      script(async () => {
        throw new ProtocolError(-32042, 'Odd', cyclic)
      }),
    ),
  ])
  expect((await untilEnded(long)).error.message.length).toBeLessThan(3_000)
  expect((await untilEnded(odd)).error).toEqual({ code: -32042, message: 'Odd' })
})

// ---------------------------------------------------------------- results

test('a tool error is a result: the task is completed', async () => {
  const taskId = await start(
    'scripted',
    script(async () => ({ content: [{ type: 'text', text: 'could not' }], isError: true })),
  )
  expect(await untilEnded(taskId)).toMatchObject({
    status: 'completed',
    result: { resultType: 'complete', isError: true, content: [{ type: 'text', text: 'could not' }] },
  })
})

test('structured content that does not fit the output schema fails the task before it is stored', async () => {
  const bad = await start(
    'scripted_output',
    script(async () => ({ content: [], structuredContent: { sum: 'four' } })),
  )
  const good = await start(
    'scripted_output',
    script(async () => ({ content: [], structuredContent: { sum: 4 } })),
  )
  const missing = await start(
    'scripted_output',
    script(async () => 'just text'),
  )
  const refused = await start(
    'scripted_output',
    script(async () => ({ content: [], isError: true })),
  )
  expect((await untilEnded(bad)).error.message).toContain('does not fit its output schema: sum')
  expect((await untilEnded(good)).result.structuredContent).toEqual({ sum: 4 })
  expect((await untilEnded(missing)).status).toBe('failed')
  expect((await untilEnded(refused)).status).toBe('completed')
})

test.each([
  ['nothing', undefined],
  ['no content', { structuredContent: {} }],
  ['a cycle', { content: [], cycle: cycle() }],
  ['a big integer', { content: [], _meta: { n: 1n } }],
])('a tool that returns %s fails its task with a sentence', async (_, output) => {
  let runs = 0
  const taskId = await start(
    'scripted',
    script(async () => {
      runs++
      return output as never
    }),
  )
  const task = await untilEnded(taskId)
  expect(task.status).toBe('failed')
  expect(task.error.message).toMatch(/returned (no result|a result that is not JSON)/)
  expect(runs).toBe(1)
})

/** Text whose surrogate pairs fall on every chunk boundary, whatever the alignment. */
const pairs = (units: number) => `x${'🦆'.repeat(units / 2)}`

test('a result of several megabytes is kept outside of the object and read back whole', async () => {
  const large = pairs(1_500_000)
  const taskId = await start(
    'scripted',
    script(async () => large),
  )
  const task = await untilEnded(taskId)
  expect(task.status).toBe('completed')
  expect(text(task) === large).toBe(true)
  const stored = await env.RESULTS?.list({ prefix: `results/${taskId}/` })
  expect(stored?.objects).toHaveLength(1)
})

test('where there is no bucket the object stores it in pieces', async () => {
  const large = pairs(1_500_000)
  const taskId = await held(script(async () => 'never'))
  const result = { content: [{ type: 'text', text: large }], resultType: 'complete' }
  await object(taskId).settle('mine', { status: 'completed', result })
  expect(text(await get(taskId)) === large).toBe(true)
  const chunks = (await journal(taskId)).filter(({ kind }) => kind === 'output')
  expect(chunks.length).toBeGreaterThan(2)
  await evictDurableObject(stub(taskId))
  expect(text(await get(taskId)) === large).toBe(true)
})

test('a result that is full of quotes still fits into rows', async () => {
  const quotes = '"\\'.repeat(120_000)
  const taskId = await start(
    'scripted',
    script(async () => quotes),
  )
  expect(text(await untilEnded(taskId)) === quotes).toBe(true)
  const sizes = await runInDurableObject(stub(taskId), (_, { storage }) =>
    storage.sql
      .exec(
        'SELECT length(CAST(outcome AS BLOB)) AS bytes FROM task UNION SELECT length(CAST(data AS BLOB)) FROM journal',
      )
      .toArray()
      .map(({ bytes }) => Number(bytes)),
  )
  // What the real platform allows in a row.
  expect(Math.max(...sizes)).toBeLessThan(2_000_000)
})

test('a result past the maximum fails the task with a sentence that says what to do', async () => {
  const taskId = await start(
    'scripted',
    script(async () => 'x'.repeat(9 * 1024 * 1024)),
  )
  const task = await untilEnded(taskId)
  expect(task.status).toBe('failed')
  expect(task.error.message).toMatch(
    /^The result of scripted is \d+ bytes; this server keeps at most 8388608\. Return/,
  )
})

test('large arguments reach the tool as they were sent', async () => {
  const large = pairs(1_200_000)
  let arrived: string | undefined
  const args = script(async ({ input }) => {
    arrived = input.large
    return 'done'
  })
  const taskId = await start('scripted', { ...args, large })
  expect((await untilEnded(taskId)).status).toBe('completed')
  expect(arrived === large).toBe(true)
  const chunks = (await journal(taskId)).filter(({ kind }) => kind === 'input')
  expect(chunks.length).toBeGreaterThan(2)
})

// ---------------------------------------------------------------- leases

test('a lease that lapses is taken over, and every late write of the old run is refused', async () => {
  const taskId = await held(
    script(async ({ step }) => {
      await step.sleep('long', '1 hour')
      return 'by the second run'
    }),
  )
  const task = object(taskId)
  expect(await task.beat('mine')).toEqual({ lost: false, cancelRequested: false })
  await task.record('mine', { kind: 'sleep', name: 'long', at: Date.now() + 3_600_000 })
  await lapse(taskId)
  await untilWaiting(taskId)
  expect(await row(taskId)).toMatchObject({ dispatch: 2, attempts: 1 })

  const result = { content: [] }
  const error = { code: -32603, message: 'late' }
  const late = [
    task.beat('mine', { message: 'late' }),
    task.record('mine', { kind: 'step', name: 'late', state: 'done' }),
    task.ask('mine', [{ name: 'late', request: { method: 'roots/list' }, at: null }]),
    task.askAgain('mine', 'late', 'late'),
    task.suspend('mine', ['long']),
    task.proceed('mine'),
    task.throwError('mine', error, true),
    task.settle('mine', { status: 'completed', result }),
    task.settle('mine', { status: 'failed', error }),
    task.stop('mine'),
  ]
  for (const reply of await Promise.all(late)) expect(reply).toEqual({ lost: true })
  expect(await task.claim(1, 'mine')).toEqual({ ok: false, reason: 'stale' })
  expect(await task.claim(2, 'mine')).toEqual({ ok: false, reason: 'phase' })
  expect(await task.deadLetter(1, 'late')).toBe(false)
  expect(await task.deadLetter(2, 'not queued')).toBe(false)
  expect((await journal(taskId)).map(({ name }) => name)).toEqual(['long'])

  await letTimePass(taskId)
  expect(text(await untilEnded(taskId))).toBe('by the second run')
})

test('a run that disappears without a trace too often fails its task', async () => {
  const taskId = await held(script(async () => 'never'))
  await runInDurableObject(stub(taskId), (_, { storage }) => {
    storage.sql.exec('UPDATE task SET attempts = 2')
  })
  await lapse(taskId)
  expect(await get(taskId)).toMatchObject({
    status: 'failed',
    error: { code: -32603, message: 'The run stopped without a word too often.' },
  })
})

test('heartbeats keep a lease alive without writing, past the time it was granted for', async () => {
  const taskId = await held(script(async () => 'taken over'))
  const lease = new Lease(() => object(taskId), taskId, 'mine', false)
  const beating = lease.keep(Date.now() + 60_000)
  await scheduler.wait(4_500)
  expect(lease.lost).toBe(false)
  expect(await row(taskId)).toMatchObject({ dispatch: 1, phase: 'running' })
  lease.end()
  await beating
  await object(taskId).settle('mine', { status: 'completed', result: { content: [] } })
})

test('a run that takes too long gives its task up', async () => {
  const taskId = await held(script(async () => 'taken over'))
  const lease = new Lease(() => object(taskId), taskId, 'mine', false)
  const beating = lease.keep(Date.now() + 500)
  await lease.whenLost
  await beating
  expect(lease.lost).toBe(true)
  expect(lease.signal.aborted).toBe(true)
  expect(() => lease.checkCancelled()).toThrow('Another run has taken over.')
})

test('losing the lease ends a run that was cancelled before', async () => {
  const taskId = await held(script(async () => 'taken over'))
  const lease = new Lease(() => object(taskId), taskId, 'mine', false)
  await object(taskId).cancel('acme')
  await lease.write((task, token) => task.beat(token))
  expect(lease.cancelled).toBe(true)
  await object(taskId).stop('mine')
  await expect(lease.write((task, token) => task.beat(token))).rejects.toThrow('taken over')
  await lease.whenLost
})

// ---------------------------------------------------------------- restarts of the object

test('an object that is evicted or restarted between calls loses nothing', async () => {
  let go = false
  const taskId = await start(
    'scripted',
    script(async ({ step }) => {
      await step.do('first', () => 1)
      await step.status('Between')
      await step.do('wait', () => whenever(() => go))
      await step.sleep('long', '1 hour')
      return 'done'
    }),
  )
  await vi.waitUntil(async () => (await get(taskId)).statusMessage === 'Between')
  await evictDurableObject(stub(taskId))
  expect((await get(taskId)).status).toBe('working')
  // The run says it again with its next sign of life.
  await vi.waitUntil(async () => (await get(taskId)).statusMessage === 'Between', { timeout: 3_000 })
  await abortAllDurableObjects()
  go = true
  await untilWaiting(taskId)
  await evictDurableObject(stub(taskId))
  const before = await get(taskId)
  await evictDurableObject(stub(taskId))
  expect(await get(taskId)).toEqual(before)
  await letTimePass(taskId)
  const after = await untilEnded(taskId)
  await evictDurableObject(stub(taskId))
  expect(await get(taskId)).toEqual(after)
})

test('an alarm that got lost is set again by the first call that follows', async () => {
  const taskId = await start(
    'scripted',
    script(async ({ step }) => {
      await step.sleep('long', '1 hour')
      return 'done'
    }),
  )
  await untilWaiting(taskId)
  await runInDurableObject(stub(taskId), async (_, { storage }) => {
    storage.sql.exec('UPDATE task SET wake_at = 1, alarm_at = 1')
    storage.sql.exec('UPDATE journal SET at = 1')
    await storage.deleteAlarm()
  })
  await evictDurableObject(stub(taskId))
  expect((await untilEnded(taskId)).status).toBe('completed')
})

test('a second delivery of a call finds its own traces', async () => {
  const taskId = await held(script(async () => 'never'))
  const task = object(taskId)
  expect(await task.claim(1, 'mine')).toMatchObject({ ok: true })
  await task.record('mine', { kind: 'step', name: 'a', state: 'done', value: 1 })
  await task.record('mine', { kind: 'step', name: 'a', state: 'done', value: 2 })
  const question = { name: 'q', request: { method: 'roots/list' }, at: null }
  await task.ask('mine', [question])
  await task.ask('mine', [question])
  expect(await row(taskId)).toMatchObject({ open_questions: 1 })
  expect((await journal(taskId)).map(({ name, data }) => [name, JSON.parse(data as string)])).toEqual([
    ['a', { value: 1 }],
    ['q', { key: 'q', tries: 1, request: { method: 'roots/list' } }],
  ])
  await task.settle('mine', { status: 'completed', result: { content: [] } })
  await task.settle('mine', { status: 'completed', result: { content: [{}] } })
  expect((await get(taskId)).result).toEqual({ content: [] })
})

function cycle(): object {
  const self: Record<string, unknown> = {}
  self['self'] = self
  return self
}
