/** Push as plain clients see it, well-behaved and otherwise, over real connections. */
import { afterAll, beforeAll, expect, test, vi } from 'vitest'
import { counted, Door, type Message, Stream, textOf } from '../support/listeners'
import { ALL_CAPABILITIES, headersOf, McpClient } from '../support/mcp'
import { Server } from '../support/server'

const ACME = 'acme-key-acme-key'
/** May have one event stream open. */
const NARROW = 'narrow-key-narrow-key'
const KEEPALIVE_MS = 200
const SUBSCRIPTION = 'io.modelcontextprotocol/subscriptionId'
const bearer = (key: string) => ({ authorization: `Bearer ${key}` })

let server: Server
let client: McpClient

beforeAll(async () => {
  server = await Server.start({
    config: 'test/e2e/clients/wrangler.toml',
    vars: {
      SIGNING_KEYS: '1:signing-key-of-the-push-tests',
      API_KEYS: JSON.stringify({ acme: ACME, narrow: NARROW }),
      TENANT_LIMITS: JSON.stringify({ narrow: { subscriptions: 1 } }),
      SSE_KEEPALIVE_MS: KEEPALIVE_MS,
      BLOCK_FOR_MS: 10_000,
      TASK_LEASE_MS: 4_000,
      TASK_RESEND_MS: 1_000,
    },
  })
  client = new McpClient(server.url, { key: ACME })
})
afterAll(() => server?.stop())

interface Options {
  readonly key?: string
  readonly capabilities?: object
  readonly meta?: object
}

/** A request of revision 2026-07-28 whose answer is read as it comes. */
function open(
  method: string,
  params: Record<string, unknown>,
  { key = ACME, capabilities = ALL_CAPABILITIES, meta = {} }: Options = {},
): Promise<Stream> {
  const _meta = {
    'io.modelcontextprotocol/protocolVersion': '2026-07-28',
    'io.modelcontextprotocol/clientCapabilities': capabilities,
    ...meta,
  }
  return Stream.open(server.url, headersOf(method, params, key), {
    jsonrpc: '2.0',
    id: 1,
    method,
    params: { ...params, _meta },
  })
}

const listen = (taskIds: string[], key?: string) =>
  open('subscriptions/listen', { notifications: { taskIds } }, { ...(key !== undefined && { key }) })

const isAcknowledgement = (message: Message) => message.method === 'notifications/subscriptions/acknowledged'

test('a WebSocket is acknowledged, greeted, told every change forwards, and closed normally', async () => {
  const taskId = await client.start('count', { to: 5, pauseMs: 300 })
  const door = await Door.open(server.url, taskId, bearer(ACME))
  expect(await door.untilClosed()).toBe(1000)
  const [acknowledgement, ...notes] = door.messages
  expect(isAcknowledgement(acknowledgement)).toBe(true)
  expect(
    notes.every(({ method, params }) => method === 'notifications/tasks' && params.taskId === taskId),
  ).toBe(true)
  expect(new Set(counted(notes)).size).toBeGreaterThan(2)
  expect(counted(notes)).toEqual(counted(notes).toSorted((a, b) => a - b))
  expect(notes.at(-1).params).toMatchObject({
    status: 'completed',
    result: { structuredContent: { counted: 5 } },
  })
})

test('on one WebSocket a task is read, answered and cancelled, and a ping is answered', async () => {
  const asking = await client.start('confirm', { what: 'do it' })
  const door = await Door.open(server.url, asking, bearer(ACME))
  await door.next(({ params }) => params?.status === 'input_required')
  door.socket.send('ping')
  await door.next((message) => message === 'pong')
  expect(await door.ask('tasks/get', { taskId: asking })).toMatchObject({ status: 'input_required' })
  const inputResponses = { sure: { action: 'accept', content: { confirm: true } } }
  expect(await door.ask('tasks/update', { taskId: asking, inputResponses })).toEqual({
    resultType: 'complete',
  })
  expect(await door.untilClosed()).toBe(1000)
  expect(door.messages.at(-1).params.result.content[0].text).toBe('Did do it.')

  const long = await client.start('count', { to: 500, pauseMs: 100 })
  const other = await Door.open(server.url, long, bearer(ACME))
  expect(await other.ask('tasks/cancel', { taskId: long })).toEqual({ resultType: 'complete' })
  expect(await other.untilClosed()).toBe(1000)
  expect(other.messages.some(({ params }) => params?.status === 'cancelled')).toBe(true)
})

test('an EventSource parser reads a listen stream: acknowledgement, changes, keepalives, final response', async () => {
  const taskId = await client.start('count', { to: 4, pauseMs: 500 })
  const stream = await listen([taskId])
  expect(await stream.ended()).toBe('clean')
  const [acknowledgement, ...rest] = stream.messages
  const final = rest.pop()
  expect(acknowledgement.params.notifications).toEqual({ taskIds: [taskId] })
  expect(counted(rest)).toEqual(counted(rest).toSorted((a, b) => a - b))
  expect(rest.at(-1).params.status).toBe('completed')
  expect(final).toMatchObject({ id: 1, result: { _meta: { [SUBSCRIPTION]: 1 } } })
  expect(stream.comments).toContain('keepalive')
})

test('the place of a subscriber that vanished is free again after two keepalives', async () => {
  const own = new McpClient(server.url, { key: NARROW })
  const taskId = await own.start('confirm', { what: 'wait' })
  const first = await listen([taskId], NARROW)
  await first.next(isAcknowledgement)
  const refused = await listen([taskId], NARROW)
  expect(refused.status).toBe(429)
  first.vanish()
  // A client that takes nothing is given up after a minute: this is far below it, on any machine.
  const next = await vi.waitUntil(
    async () => {
      const stream = await listen([taskId], NARROW)
      return stream.status === 200 && stream
    },
    { timeout: 25 * KEEPALIVE_MS, interval: KEEPALIVE_MS / 2 },
  )
  await next.next(({ params }) => params?.status === 'input_required')
  next.vanish()
  await own.rpc('tasks/cancel', { taskId })
})

test('the work of a caller that vanished is cancelled, unless it can come back', async () => {
  const born = await Stream.open(
    server.url,
    { ...bearer(ACME), 'content-type': 'application/json', accept: 'text/event-stream' },
    {
      jsonrpc: '2.0',
      id: 1,
      method: 'subscriptions/listen',
      params: { notifications: ['notifications/tasks'] },
    },
  )
  /** Calls without Tasks and waits for a message; tells which task it became. */
  const call = async (tool: string, args: object, what: string, meta: object = {}) => {
    const params = { name: tool, arguments: args }
    const known = new Set(born.messages.map((message) => message.params?.task.taskId))
    const stream = await open('tools/call', params, {
      capabilities: { elicitation: {} },
      meta: { progressToken: what, ...meta },
    })
    await stream.next(() => true)
    const note = await born.next(({ params: told }) => told && !known.has(told.task.taskId))
    return { stream, taskId: String(note.params.task.taskId) }
  }
  const long = { to: 300, pauseMs: 200 }
  const withKey = await call('count', long, 'key', { 'longhaul.dev/idempotencyKey': 'vanishing' })
  const withState = await call('confirm', { what: 'stay' }, 'state')
  await withState.stream.next(({ result }) => typeof result?.requestState === 'string')
  const lost = await call('count', long, 'lost')
  // Somebody who listens would keep the work alive.
  for (const stream of [born, withKey.stream, withState.stream, lost.stream]) stream.vanish()

  await client.until(lost.taskId, ['cancelled'])
  expect(await client.get(withKey.taskId)).toMatchObject({ status: 'working' })
  expect(await client.get(withState.taskId)).toMatchObject({ status: 'input_required' })
  for (const { taskId } of [withKey, withState]) await client.rpc('tasks/cancel', { taskId })
})

test('a socket that does not read is cut; neither the task nor another listener waits for it', async () => {
  const taskId = await client.start('shout', { times: 28, chars: 240_000, pauseMs: 250 })
  const stuck = await Door.open(server.url, taskId, bearer(ACME))
  await stuck.next(isAcknowledgement)
  stuck.socket.pause()
  const healthy = await Door.open(server.url, taskId, bearer(ACME))
  healthy.socket.on('message', (data) => textOf(data) !== 'pong' && healthy.socket.send('ping'))
  expect(await healthy.untilClosed()).toBe(1000)
  expect(healthy.messages.at(-1)?.params ?? healthy.messages.at(-2).params).toMatchObject({
    status: 'completed',
  })
  expect(stuck.closed).toBeUndefined()
  stuck.socket.resume()
  expect(await stuck.untilClosed()).toBe(1013)
  const told = ({ messages }: Door) => new Set(counted(messages.filter((message) => message !== 'pong'))).size
  expect(told(stuck)).toBeLessThan(told(healthy))
})

test(
  'whoever listens when the server is killed sees it, and loses nothing',
  { timeout: 120_000 },
  async () => {
    const taskId = await client.start('count', { to: 25, pauseMs: 250 })
    const doors = [await Door.open(server.url, taskId, bearer(ACME))]
    const streams = [await listen([taskId])]
    await doors[0]?.next(({ params }) => /\([5-9]\//.test(params?.statusMessage ?? ''))
    await server.kill()
    expect(await doors[0]?.untilClosed()).toBe(1006)
    expect(await streams[0]?.ended()).toBe('cut')
    await server.restart()
    doors.push(await Door.open(server.url, taskId, bearer(ACME)))
    streams.push(await listen([taskId]))
    await doors[1]?.untilClosed()
    await streams[1]?.ended()
    for (const [before, after] of [doors, streams]) {
      const messages = [...(before?.messages ?? []), ...(after?.messages ?? [])]
      // The present state comes first.
      expect(after?.messages[0]).toMatchObject({ params: { notifications: { taskIds: [taskId] } } })
      expect(after?.messages[1]).toMatchObject({ method: 'notifications/tasks', params: { taskId } })
      const steps = counted(messages)
      expect(steps).toEqual(steps.toSorted((a, b) => a - b))
      const notes = messages.filter(({ method }) => method === 'notifications/tasks')
      expect(notes.at(-1).params).toMatchObject({
        status: 'completed',
        result: { structuredContent: { counted: 25 } },
      })
    }
  },
)
