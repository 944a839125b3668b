import { evictDurableObject, runInDurableObject } from 'cloudflare:test'
import { env, exports } from 'cloudflare:workers'
import { expect, test, vi } from 'vitest'
import { ACME, GLOBEX, send, start, untilEnded } from '../client'
import { Events, type Message } from '../events'

const base64url = (text: string) => btoa(text).replaceAll('+', '-').replaceAll('/', '_').replace(/=+$/, '')

/** A plain WebSocket client of the door. */
class Door {
  readonly messages: Message[] = []
  closed: { code: number; reason: string } | undefined
  readonly #socket: WebSocket

  constructor(socket: WebSocket) {
    this.#socket = socket
    socket.addEventListener('message', ({ data }) => {
      this.messages.push(data === 'pong' ? data : JSON.parse(String(data)))
    })
    socket.addEventListener('close', ({ code, reason }) => {
      this.closed = { code, reason }
    })
    socket.accept()
  }

  send(frame: unknown) {
    this.#socket.send(
      typeof frame === 'string' || frame instanceof ArrayBuffer ? frame : JSON.stringify(frame),
    )
  }

  close() {
    this.#socket.close(1000)
  }

  async next(matching: (message: Message) => boolean): Promise<Message> {
    return vi.waitUntil(() => this.messages.find(matching), { timeout: 10_000 })
  }

  untilClosed() {
    return vi.waitUntil(() => this.closed, { timeout: 10_000 })
  }
}

function knock(taskId: string, headers: Record<string, string>): Promise<Response> {
  return exports.default.fetch(
    new Request(`http://localhost/mcp/tasks/${taskId}`, { headers: { upgrade: 'websocket', ...headers } }),
  )
}

async function open(taskId: string, key = ACME): Promise<Door> {
  const response = await knock(taskId, { authorization: `Bearer ${key}` })
  expect(response.status).toBe(101)
  return new Door(response.webSocket as WebSocket)
}

const reply = (id: number) => (message: Message) => message.id === id

test('a client at the door is acknowledged, greeted with the state, told every change and closed normally', async () => {
  const taskId = await start('count', { to: 2, pauseMs: 600 })
  const door = await open(taskId)
  expect(await door.untilClosed()).toMatchObject({ code: 1000 })
  const [acknowledgement, ...notes] = door.messages
  expect(acknowledgement).toMatchObject({
    method: 'notifications/subscriptions/acknowledged',
    params: { notifications: { taskIds: [taskId] } },
  })
  expect(notes.map((note) => note.method)).toEqual(notes.map(() => 'notifications/tasks'))
  expect(notes.at(-1).params).toMatchObject({ taskId, status: 'completed' })
  expect(notes.map((note) => note.params.statusMessage)).toContain('Counting (2/2)')
})

test('a question is answered and the task read on the same socket', async () => {
  const taskId = await start('ask')
  const door = await open(taskId)
  await door.next((message) => message.params?.status === 'input_required')
  door.send({ jsonrpc: '2.0', id: 1, method: 'tasks/get', params: { taskId } })
  expect((await door.next(reply(1))).result).toMatchObject({
    resultType: 'complete',
    status: 'input_required',
  })
  const inputResponses = { sure: { action: 'accept', content: { confirm: true } } }
  door.send({ jsonrpc: '2.0', id: 2, method: 'tasks/update', params: { taskId, inputResponses } })
  expect((await door.next(reply(2))).result).toEqual({ resultType: 'complete' })
  await door.untilClosed()
  expect(door.messages.at(-1).params.status).toBe('completed')
})

test('cancelling at the door is acknowledged and told', async () => {
  const taskId = await start('ask')
  const door = await open(taskId)
  await door.next((message) => message.params?.status === 'input_required')
  door.send({ jsonrpc: '2.0', id: 'c', method: 'tasks/cancel', params: { taskId } })
  await door.untilClosed()
  expect(door.messages.find((message) => message.id === 'c')?.result).toEqual({ resultType: 'complete' })
  expect(door.messages.find((message) => message.params?.status === 'cancelled')).toBeDefined()
})

test('bad frames get a JSON-RPC error and the socket stays open', async () => {
  const taskId = await start('ask')
  const other = await start('ask')
  const door = await open(taskId)
  const cases: [unknown, number][] = [
    ['{nonsense', -32700],
    [[], -32600],
    [new ArrayBuffer(4), -32600],
    [{ jsonrpc: '2.0', id: 7, method: 'tools/call', params: {} }, -32601],
    [{ jsonrpc: '2.0', id: 8, method: 'tasks/get', params: { taskId: other } }, -32602],
    [{ jsonrpc: '2.0', id: 9, method: 'tasks/update', params: { taskId, inputResponses: [] } }, -32602],
  ]
  for (const [frame, code] of cases) {
    const before = door.messages.filter((message) => message.error).length
    door.send(frame)
    await vi.waitUntil(() => door.messages.filter((message) => message.error).length > before)
    expect(door.messages.findLast((message) => message.error).error.code).toBe(code)
  }
  door.send('ping')
  await door.next((message) => message === 'pong')
  expect(door.closed).toBeUndefined()
  door.close()
})

test('a browser authenticates by subprotocol', async () => {
  const taskId = await start('greet', { name: 'Ada' })
  const response = await knock(taskId, {
    'sec-websocket-protocol': `mcp, longhaul.bearer.${base64url(ACME)}`,
  })
  expect(response.status).toBe(101)
  expect(response.headers.get('sec-websocket-protocol')).toBe('mcp')
  await new Door(response.webSocket as WebSocket).untilClosed()
})

test('strangers, foreign ids and plain requests are turned away alike', async () => {
  const taskId = await start('greet', { name: 'Ada' })
  expect((await knock(taskId, {})).status).toBe(401)
  expect((await knock(taskId, { authorization: 'Bearer wrong-key-wrong-key' })).status).toBe(401)
  const foreign = await knock(taskId, { authorization: `Bearer ${GLOBEX}` })
  const unknown = await knock('tsk_nonsense', { authorization: `Bearer ${GLOBEX}` })
  expect(foreign.status).toBe(404)
  expect(await foreign.text()).toBe(await unknown.text())
  expect((await knock(taskId, { authorization: `Bearer ${ACME}`, upgrade: '' })).status).toBe(426)
})

test('the object hibernates with a socket and a listen stream attached and wakes to push to both', async () => {
  const taskId = await start('ask')
  const door = await open(taskId)
  const events = new Events(await send('subscriptions/listen', { notifications: { taskIds: [taskId] } }))
  await door.next((message) => message.params?.status === 'input_required')
  let heard = await events.next()
  while (heard.params.status !== 'input_required') heard = await events.next()
  const stub = env.TASKS.getByName(taskId)
  const before = await runInDurableObject(stub, (instance) => instance)
  await evictDurableObject(stub, { webSockets: 'hibernate' })
  door.send({ jsonrpc: '2.0', id: 1, method: 'tasks/cancel', params: { taskId } })
  await door.untilClosed()
  expect(door.messages.find((message) => message.params?.status === 'cancelled')).toBeDefined()
  const rest = await events.all()
  expect(rest.findLast((message) => message.method === 'notifications/tasks').params.status).toBe('cancelled')
  expect(rest.at(-1).result.resultType).toBe('complete')
  expect(await runInDurableObject(stub, (instance) => instance)).not.toBe(before)
})

test('a thousand sockets on one task all hear of its end', async () => {
  const taskId = await start('ask')
  const doors = await Promise.all(Array.from({ length: 1_000 }, () => open(taskId)))
  await doors[0]?.next((message) => message.params?.status === 'input_required')
  doors[0]?.send({ jsonrpc: '2.0', id: 1, method: 'tasks/cancel', params: { taskId } })
  await Promise.all(doors.map((door) => door.untilClosed()))
  expect(
    doors.every(
      (door) =>
        door.messages.at(-1)?.params?.status === 'cancelled' ||
        door.messages.at(-2)?.params?.status === 'cancelled',
    ),
  ).toBe(true)
  await untilEnded(taskId)
}, 60_000)
