/** Calls of the 2025 revisions that ask for no task: they wait, and their streams can be resumed. */
import { env } from 'cloudflare:workers'
import { evictDurableObject, runDurableObjectAlarm, runInDurableObject } from 'cloudflare:test'
import { beforeAll, expect, test, vi } from 'vitest'
import { GLOBEX, post } from '../client'
import { Events } from '../events'
import { LegacyClient, RELATED, YES } from './client'

let client: LegacyClient
beforeAll(async () => {
  client = await LegacyClient.connect()
})

/** A call that streams. */
const call = (name: string, args: Record<string, unknown> = {}, meta?: Record<string, unknown>) =>
  client.stream('tools/call', { name, arguments: args, ...(meta && { _meta: meta }) })

const resume = async (eventId: string, by = client) => {
  const response = await by.resume(eventId)
  expect(response.headers.get('content-type')).toBe('text/event-stream')
  return new Events(response)
}

/** What an event id says, without its signature. */
function cursorIn(eventId: string) {
  const [body = ''] = eventId.split('.')
  return JSON.parse(atob(body.replaceAll('-', '+').replaceAll('_', '/')))
}

const columnOf = (taskId: string, column: 'leash_at' | 'status') =>
  runInDurableObject(
    env.TASKS.getByName(taskId),
    (_, { storage }) => storage.sql.exec('SELECT leash_at, status FROM task').one()[column],
  )

test('a quick call is answered plainly', async () => {
  const response = await client.send('tools/call', { name: 'greet', arguments: { name: 'Ada' } })
  const body: { result: unknown } = await response.json()
  expect(body.result).toEqual({ content: [{ type: 'text', text: 'Hello, Ada!' }] })
})

test('a longer one is a stream, primed so that it can be resumed, with growing progress', async () => {
  const events = await call('count', { to: 3 }, { progressToken: 'p' })
  const messages = await events.all()
  expect(events.retry).toBe(1_000)
  expect(new Set(events.ids).size).toBe(events.ids.length)
  // One for the priming event, and one for each message.
  expect(events.ids.length).toBe(messages.length + 1)
  const final = messages.pop()
  expect(final.result.content[0].text).toBe('Counted to 3.')
  const values = messages.map(({ params }) => params.progress)
  expect(messages.every(({ params }) => params.progressToken === 'p')).toBe(true)
  expect(values.length).toBeGreaterThan(0)
  expect(values.every((value, i) => i === 0 || value > values[i - 1])).toBe(true)
})

test('clients of 2025-06-18 are not sent events without data', async () => {
  const older = await LegacyClient.connect({ revision: '2025-06-18' })
  const events = await older.stream('tools/call', { name: 'count', arguments: { to: 4 } })
  const messages = await events.all()
  expect(messages.at(-1).result.content[0].text).toBe('Counted to 4.')
  expect(events.ids.length).toBe(messages.length)
})

test('a question comes on the stream of the call, which names no task', async () => {
  const events = await call('ask')
  const question = await events.next()
  expect(question).toMatchObject({ method: 'elicitation/create', params: { message: 'Sure?' } })
  expect(question.params._meta?.[RELATED]).toBeUndefined()
  expect(await client.answer(question, YES)).toBe(202)
  const final = (await events.all()).at(-1)
  expect(final.result.content[0].text).toBe(JSON.stringify(YES))
})

test('a stream that was cut off is resumed, and answers the first request', async () => {
  const response = await client.post({
    jsonrpc: '2.0',
    id: 'first',
    method: 'tools/call',
    params: { name: 'count', arguments: { to: 6 }, _meta: { progressToken: 1 } },
  })
  const events = new Events(response)
  const before = await events.next()
  await events.cancel()
  const resumed = await resume(String(events.ids.at(-1)))
  const messages = await resumed.all()
  const final = messages.pop()
  expect(final).toMatchObject({ id: 'first', result: { content: [{ text: 'Counted to 6.' }] } })
  const values = [before, ...messages].map(({ params }) => params.progress)
  expect(values.every((value, i) => i === 0 || value > values[i - 1])).toBe(true)
})

test('a stream can be resumed after the end, and not after it was answered', async () => {
  const events = await call('count', { to: 3 })
  await events.all()
  const [primed = '', last = ''] = [events.ids[0], events.ids.at(-1)]
  const again = await resume(primed)
  expect((await again.all()).at(-1).result.content[0].text).toBe('Counted to 3.')
  expect((await client.resume(last)).status).toBe(405)
})

test('a question that was received is not repeated when the stream is resumed', async () => {
  const events = await call('ask')
  const question = await events.next()
  await events.cancel()
  const resumed = await resume(String(events.ids.at(-1)))
  await client.answer(question, YES)
  const messages = await resumed.all()
  expect(messages.map(({ method }) => method)).not.toContain('elicitation/create')
  expect(messages.at(-1).result.content[0].text).toBe(JSON.stringify(YES))
})

test('one that was lost on the way is', async () => {
  const events = await call('ask')
  await events.next()
  await events.cancel()
  const [primed = ''] = events.ids
  const resumed = await resume(primed)
  const question = await resumed.next()
  expect(question).toMatchObject({ method: 'elicitation/create' })
  await client.answer(question, YES)
  expect((await resumed.all()).at(-1).result.content[0].text).toBe(JSON.stringify(YES))
})

test('a stream that is resumed while it is still open goes on in one place', async () => {
  const events = await call('ask')
  const question = await events.next()
  const resumed = await resume(String(events.ids.at(-1)))
  expect(await events.all()).toEqual([])
  await client.answer(question, YES)
  expect((await resumed.all()).at(-1).result.content[0].text).toBe(JSON.stringify(YES))
})

test('a stream waiting for the result of a task is resumed like any other', async () => {
  const { taskId } = await client.start('count', { to: 5 })
  const events = await client.stream('tasks/result', { taskId })
  await events.next()
  await events.cancel()
  const resumed = await resume(String(events.ids.at(-1)))
  expect((await resumed.all()).at(-1).result).toMatchObject({
    content: [{ text: 'Counted to 5.' }],
    _meta: { [RELATED]: { taskId } },
  })
})

test('event ids that are damaged or of another tenant resume nothing', async () => {
  const events = await call('count', { to: 3 })
  await events.all()
  const [primed = ''] = events.ids
  expect((await client.resume(`${primed.slice(0, -2)}xx`)).status).toBe(400)
  expect((await client.resume('7')).status).toBe(400)
  const stranger = await LegacyClient.connect({ key: GLOBEX })
  expect((await stranger.resume(primed)).status).toBe(400)
})

test('the notification that a request is cancelled does not cancel the task', async () => {
  const events = await call('count', { to: 5 }, { progressToken: 1 })
  await events.next()
  const { status } = await client.post({
    jsonrpc: '2.0',
    method: 'notifications/cancelled',
    params: { requestId: 1, reason: 'timeout' },
  })
  expect(status).toBe(202)
  expect((await events.all()).at(-1).result.content[0].text).toBe('Counted to 5.')
})

test('work goes on for a client that can come back', async () => {
  const events = await call('ask')
  await events.next()
  const { taskId } = cursorIn(String(events.ids[0]))
  await events.cancel()
  await vi.waitUntil(async () => (await columnOf(taskId, 'leash_at')) === null)
  await scheduler.wait(300)
  expect(await columnOf(taskId, 'leash_at')).toBeNull()
})

test('and is on a leash for one that cannot, extended as long as it waits', async () => {
  const body = {
    jsonrpc: '2.0',
    id: 1,
    method: 'tools/call',
    params: { name: 'ask_in_time', arguments: { tag: 'leash' } },
  }
  const gone = new AbortController()
  const answer = client.post(body, { accept: 'application/json' }, gone.signal).catch(() => undefined)
  const taskId = await vi.waitUntil(() => startedAs('leash'), { timeout: 10_000 })
  await vi.waitUntil(async () => (await columnOf(taskId, 'status')) === 'input_required')
  await ring(taskId)
  expect(await columnOf(taskId, 'status')).toBe('input_required')
  expect(await columnOf(taskId, 'leash_at')).toBeGreaterThan(Date.now())
  gone.abort()
  await answer
  await vi.waitUntil(async () => (await listeners(taskId)) === 0)
  // Its going starts a minute anew, which may be noted between one ring and the next.
  await vi.waitUntil(
    async () => {
      await ring(taskId)
      return (await columnOf(taskId, 'status')) === 'cancelled'
    },
    { timeout: 5_000, interval: 200 },
  )
})

test('an expired session cannot be told from a damaged one, and a stream is not resumed with it', async () => {
  const events = await call('count', { to: 3 })
  await events.all()
  const response = await client.resume(String(events.ids[0]))
  expect(response.status).toBe(200)
  await response.body?.cancel()
  client.headers['mcp-session-id'] = 'nonsense'
  const refused = await client.resume(String(events.ids[0]))
  expect(refused.status).toBe(404)
  client = await LegacyClient.connect()
})

test('the door to all this is the key, not the session', async () => {
  const { authorization: _, ...headers } = client.headers
  const response = await post({ jsonrpc: '2.0', id: 1, method: 'tools/list', params: {} }, headers)
  expect(response.status).toBe(401)
})

/** The task of a call that was tagged, once it has started. */
async function startedAs(tag: string): Promise<string | undefined> {
  const row = await env.DB.prepare('SELECT task FROM started WHERE tag = ?')
    .bind(tag)
    .first<{ task: string }>()
    .catch(() => null)
  return row?.task
}

function listeners(taskId: string): Promise<number> {
  return runInDurableObject(
    env.TASKS.getByName(taskId),
    (_, ctx) => ctx.getWebSockets().filter(({ readyState }) => readyState === WebSocket.OPEN).length,
  )
}

/** Lets the leash run out, and the alarm ring. */
async function ring(taskId: string): Promise<void> {
  const stub = env.TASKS.getByName(taskId)
  await runInDurableObject(stub, (_, { storage }) => {
    storage.sql.exec('UPDATE task SET leash_at = 1')
  })
  // So that the object reads what was written behind its back.
  await evictDurableObject(stub, { webSockets: 'hibernate' })
  expect(await runDurableObjectAlarm(stub)).toBe(true)
}
