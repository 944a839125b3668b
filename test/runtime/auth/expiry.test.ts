/** What is open when the credentials end that it was opened with. */
import { afterAll, beforeAll, describe, expect, test, vi } from 'vitest'
import { Events, type Message } from '../events'
import { Deployment } from './deployment'
import { Issuer, nowSeconds, signingKey } from './issuer'
import { AUDIENCE, ISSUER } from './with-tokens'

const key = await signingKey('it')
const server = new Deployment(
  { OIDC_ISSUER: ISSUER, OIDC_AUDIENCE: AUDIENCE, SSE_KEEPALIVE_MS: '200' },
  {
    configure: (mcp) => {
      mcp.registerResource('note', 'test://note', {}, ({ href }) => ({
        contents: [{ uri: href, text: 'A note.' }],
      }))
      mcp.server.registerCapabilities({ resources: { subscribe: true } })
    },
  },
)

let issuer: Issuer
beforeAll(() => {
  issuer = new Issuer([key])
})
afterAll(() => vi.restoreAllMocks())

/** One token that lasts, and one that is accepted for two or three seconds more: 30 are forgiven. */
async function tokens() {
  const [fresh, ending] = await Promise.all([
    issuer.token(),
    issuer.token({ iat: nowSeconds() - 60, exp: nowSeconds() - 27 }),
  ])
  return { fresh, ending }
}

async function start(name: string, args: Record<string, unknown>, token: string): Promise<string> {
  const { body } = await server.call('tools/call', { name, arguments: args }, { token })
  return body.result.taskId
}

const listen = async (notifications: unknown, token: string, headers = {}) =>
  new Events(await server.send('subscriptions/listen', { notifications }, { token, headers }))

/** Everything on a stream, and how long it lasted. */
async function untilEnded(events: Events): Promise<{ messages: Message[]; ms: number }> {
  const startedAt = Date.now()
  return { messages: await events.all(), ms: Date.now() - startedAt }
}

// They wait most of their time.
describe.concurrent('when a token ends', () => {
  test('a listen stream ends, without a last word, and goes on with a new token where the task is', async () => {
    const { fresh, ending } = await tokens()
    const taskId = await start('ask', {}, fresh)
    const events = await listen({ taskIds: [taskId] }, ending)
    const { messages } = await untilEnded(events)
    expect(messages[0].method).toBe('notifications/subscriptions/acknowledged')
    expect(messages.at(-1)).toMatchObject({ method: 'notifications/tasks', params: { taskId } })
    expect(events.comments.at(-1)).toContain('credentials have expired')

    expect((await server.send('tasks/get', { taskId }, { token: ending })).status).toBe(401)
    const again = await listen({ taskIds: [taskId] }, fresh)
    await again.next()
    expect((await again.next()).params).toMatchObject({ taskId, status: 'input_required' })
    await again.cancel()
  })

  test('a change that comes after the token has ended is not told', async () => {
    const { fresh, ending } = await tokens()
    const taskId = await start('count', { to: 30, pauseMs: 300 }, fresh)
    const { messages, ms } = await untilEnded(await listen({ taskIds: [taskId] }, ending))
    expect(messages.at(-1).params.status).toBe('working')
    expect(ms).toBeLessThan(8_000)
    await server.call('tasks/cancel', { taskId }, { token: fresh })
  })

  test('a subscription that is not to tasks ends as well', async () => {
    const { ending } = await tokens()
    const { messages } = await untilEnded(await listen({ resourceSubscriptions: ['test://note'] }, ending))
    expect(messages.map(({ method }) => method)).toEqual(['notifications/subscriptions/acknowledged'])
  })

  test('a call that blocks is given back with a requestState, and goes on with a new token', async () => {
    const { fresh, ending } = await tokens()
    const params = { name: 'count', arguments: { to: 8, pauseMs: 500 } }
    const withoutTasks = (more: object, token: string) =>
      server.fetch('/mcp', {
        method: 'POST',
        headers: {
          'content-type': 'application/json',
          accept: 'application/json, text/event-stream',
          authorization: `Bearer ${token}`,
          'mcp-protocol-version': '2026-07-28',
          'mcp-method': 'tools/call',
          'mcp-name': 'count',
        },
        body: JSON.stringify({
          jsonrpc: '2.0',
          id: 1,
          method: 'tools/call',
          params: {
            ...params,
            ...more,
            _meta: {
              progressToken: 1,
              'io.modelcontextprotocol/protocolVersion': '2026-07-28',
              'io.modelcontextprotocol/clientCapabilities': {},
            },
          },
        }),
      })
    const first = (await new Events(await withoutTasks({}, ending)).all()).at(-1).result
    expect(first).toMatchObject({ resultType: 'input_required', requestState: expect.any(String) })
    const { requestState } = first
    const second = (await new Events(await withoutTasks({ requestState }, fresh)).all()).at(-1).result
    expect(second).toMatchObject({ content: [{ text: 'Counted to 8.' }] })
  })

  test('a call of an older client is cut off, and resumed with a new token', async () => {
    const { fresh, ending } = await tokens()
    const headers = (token: string) => ({
      'content-type': 'application/json',
      accept: 'application/json, text/event-stream',
      authorization: `Bearer ${token}`,
      'mcp-protocol-version': '2025-11-25',
    })
    const params = { name: 'count', arguments: { to: 8, pauseMs: 500 }, _meta: { progressToken: 'p' } }
    const response = await server.fetch('/mcp', {
      method: 'POST',
      headers: headers(ending),
      body: JSON.stringify({ jsonrpc: '2.0', id: 5, method: 'tools/call', params }),
    })
    const events = new Events(response)
    const before = await events.all()
    expect(before.filter((message) => message.id === 5)).toEqual([])
    const lastEventId = String(events.ids.at(-1))
    const resume = (token: string) =>
      server.fetch('/mcp', { headers: { ...headers(token), 'last-event-id': lastEventId } })
    expect((await resume(ending)).status).toBe(401)
    const after = await new Events(await resume(fresh)).all()
    expect(after.at(-1)).toMatchObject({ id: 5, result: { content: [{ text: 'Counted to 8.' }] } })
  })

  test('a WebSocket is closed, though nothing happens, and another one is greeted with the present state', async () => {
    const { fresh, ending } = await tokens()
    const taskId = await start('ask', {}, fresh)
    const open = async (token: string) => {
      const headers = { upgrade: 'websocket', authorization: `Bearer ${token}` }
      const { status, webSocket } = await server.fetch(`/mcp/tasks/${taskId}`, { headers })
      if (!webSocket) return { status }
      const messages: Message[] = []
      let closed: CloseEvent | undefined
      webSocket.addEventListener('message', ({ data }) => messages.push(JSON.parse(String(data))))
      webSocket.addEventListener('close', (event) => (closed = event))
      webSocket.accept()
      return { status, webSocket, messages, closed: () => closed }
    }
    const lasting = await open(fresh)
    const short = await open(ending)
    const closed = await vi.waitUntil(() => short.closed?.(), { timeout: 10_000 })
    expect(closed).toMatchObject({ code: 1008, reason: expect.stringContaining('expired') })
    expect(await open(ending)).toEqual({ status: 401 })
    const again = await open(fresh)
    await vi.waitUntil(() => again.messages?.some(({ params }) => params?.status === 'input_required'))
    expect(lasting.closed?.()).toBeUndefined()
    for (const { webSocket } of [lasting, again]) webSocket?.close(1000)
  })
})
