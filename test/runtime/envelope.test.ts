import { expect, test } from 'vitest'
import { post, TASKS } from './client'

const VERSION = 'io.modelcontextprotocol/protocolVersion'
const CAPABILITIES = 'io.modelcontextprotocol/clientCapabilities'
const REVISION = '2026-07-28'

interface Envelope {
  readonly id?: unknown
  readonly jsonrpc?: string
  readonly meta?: Record<string, unknown>
  readonly headers?: Record<string, string | undefined>
}

/** What is wrong with a request, and the error it is refused with. */
const refusals: readonly [string, Envelope, number][] = [
  ['without the version header', { headers: { 'mcp-protocol-version': undefined } }, -32020],
  ['whose version header differs', { headers: { 'mcp-protocol-version': '2025-11-25' } }, -32020],
  ['whose _meta names another version than the header', { meta: { [VERSION]: 'v999.0.0' } }, -32020],
  [
    'of a version nobody speaks',
    { meta: { [VERSION]: '2031-01-01' }, headers: { 'mcp-protocol-version': '2031-01-01' } },
    -32022,
  ],
  ['whose version is not a string', { meta: { [VERSION]: 7 } }, -32602],
  ['without a version in _meta', { meta: { [VERSION]: undefined } }, -32602],
  ['without capabilities', { meta: { [CAPABILITIES]: undefined } }, -32602],
  ['whose capabilities are a list', { meta: { [CAPABILITIES]: [] } }, -32602],
  ['without the method header', { headers: { 'mcp-method': undefined } }, -32020],
  ['whose method header is in capitals', { headers: { 'mcp-method': 'TASKS/GET' } }, -32020],
  [
    'without capabilities and method header, for what comes first',
    {
      meta: { [CAPABILITIES]: undefined },
      headers: { 'mcp-method': undefined },
    },
    -32602,
  ],
  ['whose id is null', { id: null }, -32600],
  ['whose id is an object', { id: {} }, -32600],
  ['of another JSON-RPC', { jsonrpc: '1.0' }, -32600],
]

// Two of ours, answered before the SDK, and two of the SDK's: a client must see no difference.
const methods: readonly [string, Record<string, unknown>][] = [
  ['tasks/get', { taskId: 'any' }],
  ['tools/call', { name: 'greet', arguments: { name: 'Ada' } }],
  ['tools/list', {}],
  ['server/discover', {}],
]

test.each(
  refusals.flatMap(([what, envelope, code]) =>
    methods.map(([method, params]) => ({ what, envelope, code, method, params })),
  ),
)('a $method $what is refused with $code', async ({ envelope, code, method, params }) => {
  const { status, body } = await send(method, params, envelope)
  expect(body.error?.code, JSON.stringify(body)).toBe(code)
  expect(status).toBe(400)
  if (code !== -32600) expect(body.id).toBe('one')
  else if (envelope.id !== undefined) expect(body).not.toHaveProperty('id')
})

async function send(
  method: string,
  params: Record<string, unknown>,
  { id = 'one', jsonrpc = '2.0', meta = {}, headers = {} }: Envelope,
) {
  const name = params['name'] ?? params['taskId']
  const all = {
    authorization: 'Bearer acme-key-acme-key',
    'mcp-protocol-version': REVISION,
    'mcp-method': method,
    ...(typeof name === 'string' && { 'mcp-name': name }),
    ...headers,
  }
  const sent = Object.fromEntries(
    Object.entries(all).flatMap(([key, value]) => (value === undefined ? [] : [[key, value]])),
  )
  const response = await post(
    {
      jsonrpc,
      id,
      method,
      params: { ...params, _meta: { [VERSION]: REVISION, [CAPABILITIES]: TASKS, ...meta } },
    },
    sent,
  )
  return { status: response.status, body: await response.json<{ id?: unknown; error?: { code: number } }>() }
}
