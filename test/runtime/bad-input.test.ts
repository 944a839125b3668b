/** Whatever is wrong with a request: a clear JSON-RPC error, the right status, and nothing created. */
import { listDurableObjectIds } from 'cloudflare:test'
import { env, exports } from 'cloudflare:workers'
import { afterEach, beforeEach, expect, test } from 'vitest'
import { ACME, ALL_CAPABILITIES, post, rpc } from './client'

const META = {
  'io.modelcontextprotocol/protocolVersion': '2026-07-28',
  'io.modelcontextprotocol/clientCapabilities': ALL_CAPABILITIES,
}
const headersFor = (method: string, name?: string): Record<string, string> => ({
  authorization: `Bearer ${ACME}`,
  'mcp-protocol-version': '2026-07-28',
  'mcp-method': method,
  ...(name !== undefined && { 'mcp-name': name }),
})

let before: number
beforeEach(async () => {
  before = (await listDurableObjectIds(env.TASKS)).length
})
afterEach(async () => {
  expect(await listDurableObjectIds(env.TASKS)).toHaveLength(before)
})

async function refused(response: Response, status: number, code: number, message?: RegExp) {
  const text = await response.text()
  expect(response.status, text).toBe(status)
  const body = JSON.parse(text)
  expect(body).toMatchObject({ jsonrpc: '2.0', error: { code } })
  expect(body).not.toHaveProperty('result')
  if (message) expect(body.error.message).toMatch(message)
  return body
}

const greet = (params: unknown, more: Record<string, unknown> = {}) => ({
  jsonrpc: '2.0',
  id: 1,
  method: 'tools/call',
  params,
  ...more,
})
const call = { name: 'greet', arguments: { name: 'Ada' }, _meta: META }

test.each([
  ['nothing', ''],
  ['half a message', '{"jsonrpc":"2.0","id":1,'],
  ['no JSON at all', 'hello'],
  ['a lone surrogate outside of a string', '\ud800'],
  ['two messages', '{"jsonrpc":"2.0"}{"jsonrpc":"2.0"}'],
])('invalid JSON: %s', async (_, text) => {
  const body = await refused(
    await post(text, headersFor('tools/call', 'greet')),
    400,
    -32700,
    /not valid JSON/,
  )
  expect(body).not.toHaveProperty('id')
})

test.each([
  ['a batch', [greet(call)], /batches/],
  ['an empty batch', [], /batches/],
  ['a text', JSON.stringify('tools/call'), /object/],
  ['a number', '7', /object/],
  ['null', 'null', /object/],
])('not one message: %s', async (_, body, message) => {
  await refused(await post(body, headersFor('tools/call', 'greet')), 400, -32600, message)
})

test.each([
  ['text/plain', 'text/plain'],
  ['a form', 'application/x-www-form-urlencoded'],
  ['none', ''],
  ['something that only begins like JSON', 'application/jsonp'],
])('the wrong content type: %s', async (_, contentType) => {
  const headers = { ...headersFor('tools/call', 'greet'), 'content-type': contentType }
  await refused(await post(greet(call), headers), 415, -32600, /application\/json/)
})

test('a content type with parameters is fine', async () => {
  const headers = { ...headersFor('tasks/get', 'x'), 'content-type': 'application/json; charset=utf-8' }
  const body = greet({ taskId: 'x', _meta: META }, { method: 'tasks/get' })
  await refused(await post(body, headers), 200, -32602, /Task not found/)
})

test.each([
  ['with a length', (text: string) => text],
  ['as a stream of unknown length', (text: string) => new Blob([text]).stream()],
])('a body past the limit: %s', async (_, bodyOf) => {
  const large = JSON.stringify(greet({ ...call, arguments: { name: 'x'.repeat(4 * 1024 * 1024) } }))
  const headers = { ...headersFor('tools/call', 'greet'), 'content-type': 'application/json' }
  const response = await exports.default.fetch(
    new Request('http://localhost/mcp', { method: 'POST', headers, body: bodyOf(large) }),
  )
  await refused(response, 413, -32600, /larger than 4194304 bytes/)
})

test.each([
  ['lists', '['.repeat(100_000)],
  ['objects', '{"a":'.repeat(100_000)],
  ['closed and valid', `${'['.repeat(5_000)}${']'.repeat(5_000)}`],
])('deep nesting: %s', async (_, nested) => {
  const text = `{"jsonrpc":"2.0","id":1,"method":"tools/call","params":{"name":"greet","arguments":{"name":${nested}}}}`
  await refused(await post(text, headersFor('tools/call', 'greet')), 400, -32600, /nested deeper/)
})

test('brackets inside of strings are no nesting', async () => {
  const { status, body } = await rpc(
    'tasks/get',
    { taskId: `${'['.repeat(200)}"\\${'{'.repeat(200)}` },
    {
      headers: { 'mcp-name': `=?base64?${btoa(`${'['.repeat(200)}"\\${'{'.repeat(200)}`)}?=` },
    },
  )
  expect([status, body.error.code]).toEqual([200, -32602])
})

test.each([
  ['id is null', { id: null }, 400, -32600],
  ['id is a list', { id: [1] }, 400, -32600],
  ['id is true', { id: true }, 400, -32600],
  ['jsonrpc is missing', { jsonrpc: undefined }, 400, -32600],
  ['jsonrpc is a number', { jsonrpc: 2 }, 400, -32600],
  ['method is a number', { method: 7 }, 400, -32600],
  ['method is missing', { method: undefined }, 400, -32600],
])('the wrong shape: %s', async (_, more, status, code) => {
  await refused(await post(greet(call, more), headersFor('tools/call', 'greet')), status, code)
})

test.each([
  ['a list', []],
  ['a text', 'x'],
  ['null', null],
])('params that are %s', async (_, params) => {
  const response = await post(greet(params), headersFor('tools/call', 'greet'))
  expect(response.status).toBe(400)
  const { error } = await response.json<{ error: { code: number } }>()
  expect([-32600, -32602]).toContain(error.code)
})

test.each(['tasks/list', 'tasks/result', 'tasks/create', 'tasks/status', 'tools/none', 'constructor'])(
  'an unknown method: %s',
  async (method) => {
    const response = await post(greet({ _meta: META }, { method }), headersFor(method))
    await refused(response, 404, -32601)
  },
)

test.each([
  ['unknown', 'nobody'],
  ['a name every object has', 'constructor'],
  ['another case', 'GREET'],
])('an unknown tool: %s', async (_, name) => {
  const { status, body } = await rpc('tools/call', { name, arguments: {} })
  expect(status).toBe(200)
  expect(body.error).toMatchObject({ code: -32602, message: expect.stringContaining(name) })
})

test.each([
  ['a list', ['greet']],
  ['an object', { toString: 'greet' }],
  ['a number', 7],
  ['missing', undefined],
  ['null', null],
])('a tool name that is %s', async (_, name) => {
  const response = await post(greet({ ...call, name }), headersFor('tools/call', 'greet'))
  const { error } = await response.json<{ error: { code: number } }>()
  expect(error.code).toBe(-32602)
  expect(response.status).toBeLessThan(500)
})

test.each([
  ['missing', {}, /name/],
  ['of the wrong type', { name: 7 }, /name/],
  ['null', { name: null }, /name/],
])('arguments that do not fit (%s) are a result that says so, for the model', async (_, args, message) => {
  const { status, body } = await rpc('tools/call', { name: 'greet', arguments: args })
  expect(status).toBe(200)
  expect(body.result).toMatchObject({ isError: true, resultType: 'complete' })
  expect(body.result.content[0].text).toMatch(message)
})

test.each([
  ['a list', []],
  ['a text', '{"name":"Ada"}'],
  ['null', null],
  ['a number', 7],
])('arguments that are %s', async (_, args) => {
  const { status, body } = await rpc('tools/call', { name: 'greet', arguments: args })
  expect(status).toBe(200)
  expect(body.error).toMatchObject({ code: -32602, message: expect.stringContaining('arguments') })
})

test('no arguments at all are an empty object', async () => {
  const { body } = await rpc('tools/call', { name: 'greet' })
  expect(body.result.isError).toBe(true)
})

test.each([
  ['a number', 7],
  ['a list', ['tsk_']],
  ['missing', undefined],
  ['null', null],
])('a task id that is %s', async (_, taskId) => {
  for (const method of ['tasks/get', 'tasks/cancel', 'tasks/update']) {
    const body = greet({ taskId, inputResponses: {}, _meta: META }, { method })
    await refused(await post(body, headersFor(method, 'x')), 200, -32602, /taskId/)
  }
})

test('capabilities of a size that no row bears are refused', async () => {
  const capabilities = { ...ALL_CAPABILITIES, experimental: { x: 'x'.repeat(1_000_000) } }
  const { status, body } = await rpc(
    'tools/call',
    { name: 'greet', arguments: { name: 'Ada' } },
    { capabilities },
  )
  expect([status, body.error?.code]).toEqual([200, -32602])
})

test('a call sent as a notification is no call', async () => {
  const { id: _, ...notification } = greet(call)
  const response = await post(notification, headersFor('tools/call', 'greet'))
  expect(response.status).toBeLessThan(500)
  expect(await response.text()).not.toContain('tsk_')
})

test.each(['GET', 'PUT', 'DELETE', 'PATCH'])('the HTTP method %s', async (method) => {
  const response = await exports.default.fetch(
    new Request('http://localhost/mcp', { method, headers: { authorization: `Bearer ${ACME}` } }),
  )
  expect(response.status).toBe(405)
  expect(response.headers.get('allow')).toContain('POST')
})
