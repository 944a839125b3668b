/** The end of the time-to-live: the work stops, whoever listens is told, and nothing is left. */
import { evictDurableObject, runDurableObjectAlarm, runInDurableObject } from 'cloudflare:test'
import { expect, test, vi } from 'vitest'
import { GLOBEX, get, rpc, start, untilEnded } from './client'
import { command, held, type Instance, mint } from './held'
import { left, NOTHING, object, stub, untilWaiting } from './inside'
import { script } from './tools/scripted'

/** Nothing is left of the object when its tables are gone. */
const untilGone = (taskId: string) =>
  vi.waitUntil(async () => (await left(taskId)).tables.length === 0, { timeout: 10_000 })

/** The time of a task is over, and its alarm late. */
async function overdue(taskId: string) {
  await runInDurableObject(stub(taskId), (_, { storage }) => {
    storage.sql.exec('UPDATE task SET created_at = 1')
  })
  await evictDurableObject(stub(taskId))
}

/** A listener inside, as the Worker's own feeds are. */
async function listen(taskId: string) {
  const heard: Record<string, unknown>[] = []
  let closed: number | undefined
  const { webSocket } = await stub(taskId).fetch('https://task/feed', {
    headers: { upgrade: 'websocket', 'x-longhaul-tenant': 'acme' },
  })
  webSocket?.addEventListener('message', ({ data }) => heard.push(JSON.parse(String(data))))
  webSocket?.addEventListener('close', ({ code }) => {
    closed = code
    webSocket.close()
  })
  webSocket?.accept()
  return { heard, closed: () => closed }
}

const answersOf = (taskId: string, options?: { key?: string }) =>
  Promise.all(
    [
      ['tasks/get', { taskId }],
      ['tasks/cancel', { taskId }],
      ['tasks/update', { taskId, inputResponses: { a: { action: 'accept' } } }],
    ].map(async ([method, params]) => {
      const { status, body } = await rpc(method as string, params as Record<string, unknown>, options)
      const { id: _, ...rest } = body
      return { status, rest }
    }),
  )

const UNKNOWN = { status: 200, rest: { jsonrpc: '2.0', error: { code: -32602, message: 'Task not found.' } } }

test('a task that waits past its time fails, tells its listeners, and leaves nothing', async () => {
  const taskId = await start(
    'scripted_brief',
    script(async ({ step }) => {
      await step.do('one', () => 1)
      await step.sleep('long', '1 hour')
      return 'never'
    }),
  )
  const listener = await listen(taskId)
  await untilWaiting(taskId)
  await untilGone(taskId)
  await vi.waitUntil(() => listener.closed() !== undefined)

  const last = listener.heard.at(-1)
  expect(last).toMatchObject({
    taskId,
    status: 'failed',
    ttlMs: 2_000,
    error: { code: -32603, message: 'The task did not finish within its time-to-live of 2000 ms.' },
  })
  expect(listener.heard.filter(({ status }) => status !== 'working')).toHaveLength(1)
  expect(listener.closed()).toBe(1000)
  expect(await left(taskId)).toEqual(NOTHING)
  expect(await answersOf(taskId)).toEqual([UNKNOWN, UNKNOWN, UNKNOWN])
  // Asking has brought nothing back.
  expect(await left(taskId)).toEqual(NOTHING)
})

test('a running tool is stopped, and nothing it writes afterwards brings the task back', async () => {
  const after: string[] = []
  let stopped: unknown
  const taskId = await start(
    'scripted_brief',
    script(async ({ step, signal }) => {
      await step.do('long', async ({ signal: own }) => {
        await scheduler.wait(15_000, { signal: own }).catch(() => undefined)
        stopped = signal.reason
      })
      after.push('next step')
      return 'never'
    }),
  )
  await vi.waitUntil(() => stopped !== undefined, { timeout: 12_000 })
  expect(String(stopped)).toContain('LeaseLostError')
  await scheduler.wait(200)
  expect(after).toEqual([])
  expect(await left(taskId)).toEqual(NOTHING)
})

test('every late call of a run is refused and leaves nothing', async () => {
  const taskId = await held(script(async () => 'never'))
  await object(taskId).record('mine', { kind: 'step', name: 'a', state: 'done' })
  await overdue(taskId)
  await runDurableObjectAlarm(stub(taskId))
  expect(await left(taskId)).toEqual(NOTHING)
  const task = object(taskId)
  expect(await task.beat('mine', { message: 'late' })).toEqual({ lost: true })
  expect(await task.record('mine', { kind: 'step', name: 'b', state: 'done' })).toEqual({ lost: true })
  expect(await task.settle('mine', { status: 'completed', result: { content: [] } })).toEqual({ lost: true })
  expect(await task.throwError('mine', { code: 1, message: 'late' }, false)).toEqual({ lost: true })
  expect(await left(taskId)).toEqual(NOTHING)
})

test('a late alarm changes nothing: the time is checked by whoever asks', async () => {
  const taskId = await held(script(async () => 'never'))
  await overdue(taskId)
  expect(await answersOf(taskId)).toEqual([UNKNOWN, UNKNOWN, UNKNOWN])
  expect(await object(taskId).beat('mine')).toEqual({ lost: true })
  expect(await object(taskId).claim(1, 'other')).toEqual({ ok: false, reason: 'unknown' })
  // The alarm was long overdue; being asked set it again.
  await untilGone(taskId)
  expect(await left(taskId)).toEqual(NOTHING)
})

test('a task that finishes late in its time keeps its result as long as promised', async () => {
  const taskId = await start(
    'scripted_kept',
    script(async () => 'kept'),
  )
  const task = await untilEnded(taskId)
  expect(task.ttlMs).toBeGreaterThanOrEqual(3_600_000)
  await scheduler.wait(Math.max(0, Date.parse(task.createdAt) + 2_100 - Date.now()))
  await evictDurableObject(stub(taskId))
  expect(await get(taskId)).toEqual(task)
  const { alarm } = await left(taskId)
  expect(alarm).toBeLessThanOrEqual(Date.parse(task.createdAt) + task.ttlMs)
})

test('the retention of a finished task ends, and leaves nothing', async () => {
  const taskId = await start(
    'scripted_brief',
    script(async () => 'soon gone'),
  )
  expect((await untilEnded(taskId)).status).toBe('completed')
  await untilGone(taskId)
  expect(await left(taskId)).toEqual(NOTHING)
  expect(await answersOf(taskId)).toEqual([UNKNOWN, UNKNOWN, UNKNOWN])
})

test('the sockets of listeners that hibernate are told all the same', async () => {
  const taskId = await held(script(async () => 'never'))
  const listener = await listen(taskId)
  await runInDurableObject(stub(taskId), (_, { storage }) => {
    storage.sql.exec('UPDATE task SET created_at = 1')
  })
  await evictDurableObject(stub(taskId), { webSockets: 'hibernate' })
  await runDurableObjectAlarm(stub(taskId))
  await vi.waitUntil(() => listener.closed() !== undefined)
  expect(listener.heard.at(-1)).toMatchObject({ status: 'failed' })
  expect(await left(taskId)).toEqual(NOTHING)
})

test('an id that was never created answers as such to every call, and leaves nothing behind', async () => {
  const taskId = await mint()
  expect(await answersOf(taskId)).toEqual([UNKNOWN, UNKNOWN, UNKNOWN])
  const task = object(taskId)
  expect(await task.read('acme')).toBeNull()
  expect(await task.poll('acme')).toBeNull()
  expect(await task.update('acme', { a: 1 })).toBe(false)
  expect(await task.cancel('acme')).toBe(false)
  expect(await task.leash('acme', 1)).toBe(false)
  expect(await task.report('e', { message: 'x' })).toEqual({ ok: false, reason: 'unknown' })
  expect(await task.question('q')).toEqual({ state: 'unknown' })
  const answer = { response: { action: 'accept' }, by: { via: 'link', at: 1 }, nonce: 'n' } as const
  expect(await task.answer('q', answer)).toEqual({ accepted: false, question: { state: 'unknown' } })
  expect(await task.deliver('e', {})).toEqual({ ok: false, reason: 'unknown' })
  expect(await task.claim(1, 'mine')).toEqual({ ok: false, reason: 'unknown' })
  expect(await task.beat('mine')).toEqual({ lost: true })
  expect(await task.record('mine', { kind: 'sleep', name: 's', at: 1 })).toEqual({ lost: true })
  expect(await task.ask('mine', [])).toEqual({ lost: true })
  expect(await task.askAgain('mine', 'q', 'p')).toEqual({ lost: true })
  expect(await task.suspend('mine', [])).toEqual({ lost: true })
  expect(await task.proceed('mine')).toEqual({ lost: true })
  expect(await task.throwError('mine', { code: 1, message: 'x' }, true)).toEqual({ lost: true })
  expect(await task.settle('mine', { status: 'completed', result: {} })).toEqual({ lost: true })
  expect(await task.stop('mine')).toEqual({ lost: true })
  expect(await task.deadLetter(1, 'x')).toBe(false)
  const socket = await stub(taskId).fetch('https://task/feed', {
    headers: { upgrade: 'websocket', 'x-longhaul-tenant': 'acme' },
  })
  expect(socket.status).toBe(404)
  await runInDurableObject(stub(taskId), (instance: DurableObject) => instance.alarm?.())
  expect(await left(taskId)).toEqual(NOTHING)
})

test('a creation that cannot be stored leaves nothing', async () => {
  const taskId = await mint()
  await runInDurableObject(stub(taskId), async (instance: Instance) => {
    const unstorable = command(taskId, {}, { input: undefined as never })
    await expect(instance.create(unstorable)).rejects.toThrow()
  })
  expect((await left(taskId)).tables).toEqual([])
  expect(await answersOf(taskId)).toEqual([UNKNOWN, UNKNOWN, UNKNOWN])
})

test('expiry does not tell a stranger more than it tells the owner', async () => {
  const taskId = await held(script(async () => 'never'))
  const before = await answersOf(taskId, { key: GLOBEX })
  await overdue(taskId)
  expect(await answersOf(taskId, { key: GLOBEX })).toEqual(before)
  expect(before).toEqual([UNKNOWN, UNKNOWN, UNKNOWN])
})
