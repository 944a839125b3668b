/** Clients of revision 2026-07-28 that do not declare the Tasks extension. */
import { env } from 'cloudflare:workers'
import { runInDurableObject } from 'cloudflare:test'
import { expect, test, vi } from 'vitest'
import { GLOBEX, rpc, send } from '../client'
import { Events } from '../events'

const capabilities = { elicitation: {} }
const call = (name: string, args: Record<string, unknown>, more: Record<string, unknown> = {}) =>
  rpc(
    'tools/call',
    { name, arguments: args, ...more },
    { capabilities, headers: { accept: 'application/json' } },
  )

test('an optional tool that ends in time gives the plain result', async () => {
  const { status, body } = await call('greet', { name: 'Ada' })
  expect(status).toBe(200)
  expect(body.result).toMatchObject({
    resultType: 'complete',
    content: [{ type: 'text', text: 'Hello, Ada!' }],
  })
})

test('a required tool is -32021 naming the extension', async () => {
  const { status, body } = await call('needs_tasks', {})
  expect(status).toBe(400)
  expect(body.error).toMatchObject({
    code: -32021,
    data: { requiredCapabilities: { extensions: { 'io.modelcontextprotocol/tasks': {} } } },
  })
})

test('a client that cannot be asked is refused before any work is done', async () => {
  const { status, body } = await rpc('tools/call', { name: 'ask', arguments: {} }, { capabilities: {} })
  expect(status).toBe(400)
  expect(body.error).toMatchObject({ code: -32021, data: { requiredCapabilities: { elicitation: {} } } })
})

test('a question comes as an InputRequiredResult and its retry brings the answer', async () => {
  const first = await call('ask', {})
  expect(first.body.result).toMatchObject({
    resultType: 'input_required',
    inputRequests: { sure: { method: 'elicitation/create' } },
  })
  const { requestState } = first.body.result
  const inputResponses = { sure: { action: 'accept', content: { confirm: true } } }
  const second = await call('ask', {}, { requestState, inputResponses })
  expect(second.body.result.content[0].text).toBe('{"action":"accept","content":{"confirm":true}}')
})

test('an answer that does not fit is asked again under a new key with a fresh state', async () => {
  const first = await call('ask', {})
  const { requestState } = first.body.result
  const second = await call(
    'ask',
    {},
    { requestState, inputResponses: { sure: { action: 'accept', content: {} } } },
  )
  expect(second.body.result.resultType).toBe('input_required')
  expect(Object.keys(second.body.result.inputRequests)).toEqual(['sure~2'])
  expect(second.body.result.requestState).not.toBe(requestState)
})

test('a state that is tampered with, foreign, or of other arguments is refused', async () => {
  const first = await call('ask', {})
  const { requestState } = first.body.result
  const tampered = await call('ask', {}, { requestState: `${requestState.slice(0, -2)}xx` })
  expect(tampered.body.error.code).toBe(-32602)
  const otherTool = await call('greet', { name: 'Ada' }, { requestState })
  expect(otherTool.body.error.code).toBe(-32602)
  const foreign = await rpc(
    'tools/call',
    { name: 'ask', arguments: {}, requestState },
    { capabilities, key: GLOBEX },
  )
  expect(foreign.body.error.code).toBe(-32602)
})

test('a leg that is over is answered with a fresh state only, and retrying goes on', async () => {
  const first = await call('count', { to: 12 })
  expect(first.body.result).toMatchObject({ resultType: 'input_required' })
  expect(first.body.result).not.toHaveProperty('inputRequests')
  let { requestState } = first.body.result
  let result = first.body.result
  for (let i = 0; i < 5 && result.resultType === 'input_required'; i++) {
    result = (await call('count', { to: 12 }, { requestState })).body.result
    expect(result.requestState).not.toBe(requestState)
    requestState = result.requestState
  }
  expect(result.content[0].text).toBe('Counted to 12.')
})

test('on its last round a client hears that the work goes on', async () => {
  const meta = { 'longhaul.dev/maxRounds': 1 }
  const options = { capabilities, meta, headers: { accept: 'application/json' } }
  const first = await rpc('tools/call', { name: 'ask', arguments: {} }, options)
  const { requestState } = first.body.result
  const last = await rpc('tools/call', { name: 'ask', arguments: {}, requestState }, options)
  expect(last.body.result).toMatchObject({ resultType: 'complete', isError: true })
  expect(last.body.result.content[0].text).toMatch(/waits for an answer/)
})

test('with a progress token the wait is a stream of growing progress and then the result', async () => {
  const response = await send(
    'tools/call',
    { name: 'count', arguments: { to: 3 } },
    { capabilities, meta: { progressToken: 'p' } },
  )
  expect(response.headers.get('content-type')).toBe('text/event-stream')
  const messages = await new Events(response).all()
  const final = messages.pop()
  expect(final.result.content[0].text).toBe('Counted to 3.')
  expect(messages.length).toBeGreaterThan(0)
  expect(
    messages.every(
      (message) => message.method === 'notifications/progress' && message.params.progressToken === 'p',
    ),
  ).toBe(true)
  const values = messages.map((message) => message.params.progress)
  expect(values.every((value, i) => i === 0 || value > values[i - 1])).toBe(true)
  expect(messages.at(-1).params).toMatchObject({ total: 3, message: expect.stringContaining('(') })
})

test('a caller that goes away without a way back has its work put on a leash; one with a state has not', async () => {
  const leashOf = (taskId: string) =>
    runInDurableObject(
      env.TASKS.getByName(taskId),
      (_, { storage }) => storage.sql.exec('SELECT leash_at FROM task').one()['leash_at'],
    )
  const first = await call('ask', {})
  const [body] = String(first.body.result.requestState).split('.')
  const { taskId } = JSON.parse(atob(String(body).replaceAll('-', '+').replaceAll('_', '/')))
  expect(await vi.waitUntil(async () => (await leashOf(taskId)) === null)).toBe(true)
})
