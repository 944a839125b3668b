import {
  createExecutionContext,
  createMessageBatch,
  getQueueResult,
  runInDurableObject,
} from 'cloudflare:test'
import { env, exports } from 'cloudflare:workers'
import { afterEach, describe, expect, test, vi } from 'vitest'
import { get, rpc, start, until, untilEnded } from './client'
import { decideFates, deliveries, type Delivery, hold } from './deliveries'
import { callbackUrls, runs } from './tools/queue-tools'
import { longhaul } from './worker'

afterEach(() => decideFates())

describe('when the first delivery of every message is lost', () => {
  test('every task still ends, however it goes through the queues', async () => {
    decideFates(loseFirst())
    const chores = await start('chores', { steps: 4, ms: 400 })
    const nap = await start('nap', { ms: 2_500 })
    const asking = await start('ask')
    const calling = await start('call_me')
    const secondTry = await start('second_try')

    await until(asking, ['input_required'])
    await answer(asking, { sure: { action: 'accept', content: { confirm: true } } })
    await call(calling, { said: 'Hello.' })

    expect(textOf(await untilEnded(chores))).toBe('4 chores done.')
    expect(textOf(await untilEnded(nap))).toBe('Slept well.')
    expect(textOf(await untilEnded(asking))).toBe('{"action":"accept","content":{"confirm":true}}')
    expect(textOf(await untilEnded(calling))).toBe('Hello.')
    expect(textOf(await untilEnded(secondTry))).toBe('Done.')
  })
})

describe('when every message comes three times', () => {
  test('every step is run and recorded once', async () => {
    decideFates(() => 'thrice')
    const chores = await start('chores', { steps: 4, ms: 400 })
    const nap = await start('nap', { ms: 2_500 })
    expect(textOf(await untilEnded(chores))).toBe('4 chores done.')
    expect(textOf(await untilEnded(nap))).toBe('Slept well.')

    const names = ['chore 1', 'chore 2', 'chore 3', 'chore 4']
    expect(await journalOf(chores)).toEqual(names)
    expect(names.map((name) => runs.get(`${chores} ${name}`))).toEqual([1, 1, 1, 1])
    expect(await journalOf(nap)).toEqual(['lie down', 'nap', 'get up'])
    expect(['lie down', 'get up'].map((name) => runs.get(`${nap} ${name}`))).toEqual([1, 1])
  })

  test('a late one does not wake a task that sleeps', async () => {
    const nap = await start('nap', { ms: 4_000 })
    await vi.waitUntil(async () => (await stored(nap)).phase === 'waiting')
    const asleep = await stored(nap)
    for (const queue of ['longhaul-work', 'longhaul-slow']) {
      for (let n = 0; n <= asleep.dispatch + 1; n++) await deliver(queue, { taskId: nap, n })
    }
    expect(await stored(nap)).toEqual(asleep)
    expect(runs.get(`${nap} run`)).toBe(1)
    expect(textOf(await untilEnded(nap))).toBe('Slept well.')
    expect(runs.get(`${nap} get up`)).toBe(1)
  })

  test('one that comes after the end changes nothing', async () => {
    const chores = await start('chores', { steps: 1, ms: 0 })
    const ended = await untilEnded(chores)
    await deliver('longhaul-work', { taskId: chores, n: (await stored(chores)).dispatch })
    expect(await get(chores)).toEqual(ended)
    expect(runs.get(`${chores} chore 1`)).toBe(1)
  })
})

describe('when the queue is slower than the time after which a message is taken for lost', () => {
  test('no task sends more than a few messages', async () => {
    // Nothing moves for ten times that time.
    const release = hold()
    const tasks = await Promise.all(Array.from({ length: 30 }, () => start('chores', { steps: 1, ms: 0 })))
    await pause(5_000)
    release()
    for (const task of tasks) expect(textOf(await untilEnded(task))).toBe('1 chores done.')
    await pause(1_500)
    expect(Math.max(...tasks.map((task) => deliveredTo(task).length))).toBeLessThanOrEqual(3)
  })
})

describe('what nobody can carry out', () => {
  test('a tool that always throws fails its task, and is left alone after that', async () => {
    const task = await start('poison')
    expect(await untilEnded(task)).toMatchObject({
      status: 'failed',
      error: { code: -32603, message: 'It never works.' },
    })
    await pause(1_500)
    expect(runs.get(`${task} run`)).toBe(3)
    expect(deliveredTo(task).map(({ n }) => n)).toEqual([1, 2, 3])
  })

  test('an unreadable message is dropped, and the queue goes on', async () => {
    const before = deliveries.length
    // Not a message of ours: that is what is tried.
    await env.WORK_QUEUE.send({ something: 'else' } as never)
    await vi.waitUntil(() => deliveries.length > before)
    const chores = await start('chores', { steps: 1, ms: 0 })
    expect(await untilEnded(chores)).toMatchObject({ status: 'completed' })
    await pause(1_500)
    expect(deliveries.slice(before).filter(({ taskId }) => taskId === '')).toHaveLength(1)
  })

  test('a message of a task that never was is dropped, and nothing is created for it', async () => {
    for (const queue of ['longhaul-work', 'longhaul-slow', 'longhaul-dead']) {
      await deliver(queue, { taskId: 'tsk_nobody', n: 1 })
    }
    expect(await tablesOf('tsk_nobody')).toEqual([])
  })

  test('a message that is refused until it is a dead letter fails its task', async () => {
    const refused: string[] = []
    decideFates(({ queue, taskId }) =>
      refused.includes(taskId) && !queue.endsWith('-dead') ? 'refuse' : 'deliver',
    )
    const task = await start('nap', { ms: 3_000 })
    await vi.waitUntil(async () => (await stored(task)).phase === 'waiting')
    refused.push(task)
    expect(await untilEnded(task)).toMatchObject({ status: 'failed', error: { code: -32603 } })
    expect(deliveredTo(task).some(({ queue }) => queue === 'longhaul-dead')).toBe(true)
  })

  test('a dead letter does nothing to a task that has gone on without it', async () => {
    const nap = await start('nap', { ms: 3_000 })
    const chores = await start('chores', { steps: 2, ms: 500 })
    await vi.waitUntil(async () => (await stored(chores)).phase === 'running')
    await bury(chores)
    await vi.waitUntil(async () => (await stored(nap)).phase === 'waiting')
    await bury(nap)
    expect(await untilEnded(chores)).toMatchObject({ status: 'completed' })

    // The next dispatch is on its way: a dead letter of the one before says nothing.
    const release = hold()
    await vi.waitUntil(async () => (await stored(nap)).phase === 'queued', { timeout: 10_000 })
    await deliver('longhaul-dead', { taskId: nap, n: (await stored(nap)).dispatch - 1 })
    release()
    expect(await untilEnded(nap)).toMatchObject({ status: 'completed' })
  })
})

/** The first message of each dispatch, whatever its queue. */
function loseFirst() {
  const seen = new Set<string>()
  return ({ taskId, n }: Delivery) => {
    const dispatch = `${taskId} ${n}`
    if (seen.has(dispatch)) return 'deliver'
    seen.add(dispatch)
    return 'lose'
  }
}

function deliveredTo(task: string): Delivery[] {
  return deliveries.filter(({ taskId }) => taskId === task)
}

/** Brings the Worker a message of the test's own making, and sees it acknowledged. */
async function deliver(queue: string, body: { taskId: string; n: number }): Promise<void> {
  const message = { id: crypto.randomUUID(), timestamp: new Date(), attempts: 1, body }
  const batch = createMessageBatch(queue, [message])
  const context = createExecutionContext()
  await longhaul.queue(batch, env, context)
  expect((await getQueueResult(batch, context)).explicitAcks).toEqual([message.id])
}

async function bury(taskId: string): Promise<void> {
  await deliver('longhaul-dead', { taskId, n: (await stored(taskId)).dispatch })
}

async function stored(taskId: string) {
  return runInDurableObject(env.TASKS.getByName(taskId), (_, { storage }) =>
    storage.sql
      .exec<{ phase: string; dispatch: number; status: string }>('SELECT phase, dispatch, status FROM task')
      .one(),
  )
}

async function journalOf(taskId: string): Promise<string[]> {
  return runInDurableObject(env.TASKS.getByName(taskId), (_, { storage }) =>
    storage.sql
      .exec<{ name: string }>('SELECT name FROM journal ORDER BY seq')
      .toArray()
      .map(({ name }) => name),
  )
}

async function tablesOf(taskId: string): Promise<string[]> {
  return runInDurableObject(env.TASKS.getByName(taskId), (_, { storage }) =>
    storage.sql
      .exec<{ name: string }>('SELECT name FROM sqlite_master')
      .toArray()
      .map(({ name }) => name),
  )
}

async function answer(taskId: string, inputResponses: Record<string, unknown>): Promise<void> {
  await rpc('tasks/update', { taskId, inputResponses })
}

async function call(taskId: string, payload: unknown): Promise<void> {
  const url = await vi.waitUntil(() => callbackUrls.get(taskId), { timeout: 10_000 })
  const response = await exports.default.fetch(
    new Request(url, {
      method: 'POST',
      headers: { 'content-type': 'application/json' },
      body: JSON.stringify(payload),
    }),
  )
  expect(response.status).toBe(204)
}

function textOf(task: { result?: { content: { text: string }[] } }): string | undefined {
  return task.result?.content[0]?.text
}

function pause(ms: number): Promise<void> {
  return new Promise((resolve) => {
    setTimeout(resolve, ms)
  })
}
