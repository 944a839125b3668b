/**
 * Malformed requests, made up by the hundred from a fixed seed: whatever comes, nothing breaks on our
 * side (no 5xx) and nothing comes into being (no object).
 */
import { listDurableObjectIds } from 'cloudflare:test'
import { env, exports } from 'cloudflare:workers'
import * as fc from 'fast-check'
import { afterAll, afterEach, expect, test, vi } from 'vitest'
import { isObject } from '../../../src/json'
import { ACME, ALL_CAPABILITIES } from '../client'
import { Deployment } from './deployment'
import { base64url, Issuer, signingKey } from './issuer'
import { AUDIENCE, ISSUER } from './with-tokens'

const SEED = 20_260_728
const run = (numRuns: number) => ({ seed: SEED, numRuns, interruptAfterTimeLimit: 45_000 })
const TIMEOUT = { timeout: 60_000 }

afterEach(() => vi.restoreAllMocks())
afterAll(async () => {
  expect(await listDurableObjectIds(env.TASKS)).toEqual([])
  expect(await listDurableObjectIds(env.TENANTS)).toEqual([])
})

interface Sent {
  readonly method?: string
  readonly path?: string
  readonly headers: Record<string, string>
  readonly body?: string | Uint8Array
}

const toMain = (request: Request) => exports.default.fetch(request)

/** The status, and the whole answer read. What a client library would not even send is no matter here. */
async function statusOf(
  { method = 'POST', path = '/mcp', headers, body }: Sent,
  to = toMain,
): Promise<number> {
  let request: Request
  try {
    const withBody = method !== 'GET' && method !== 'HEAD' && body !== undefined
    request = new Request(`http://localhost${path}`, { method, headers, ...(withBody && { body }) })
  } catch {
    return 0
  }
  const response = await to(request)
  response.webSocket?.accept()
  response.webSocket?.close()
  if (response.headers.get('content-type')?.startsWith('text/event-stream')) await response.body?.cancel()
  else await response.arrayBuffer()
  return response.status
}

async function holds(sent: Sent, to?: typeof toMain): Promise<void> {
  const status = await statusOf(sent, to)
  expect(status, JSON.stringify(sent)).toBeLessThan(500)
}

const HEADERS = {
  'content-type': 'application/json',
  accept: 'application/json, text/event-stream',
  authorization: `Bearer ${ACME}`,
}

const METHODS = [
  'tools/call',
  'tools/list',
  'tasks/get',
  'tasks/update',
  'tasks/cancel',
  'tasks/result',
  'tasks/list',
  'subscriptions/listen',
  'server/discover',
  'initialize',
  'ping',
  'prompts/get',
  'resources/read',
  'completion/complete',
  'logging/setLevel',
  'notifications/cancelled',
]

/** Texts that have broken parsers before, besides any others. */
const text = fc.oneof(
  fc.string({ unit: 'binary', maxLength: 40 }),
  fc.constantFrom(
    '',
    '__proto__',
    'constructor',
    'toString',
    '\0',
    '\ud800',
    '=?base64?/?=',
    'tsk_',
    '%ff',
    '-0',
    '1e999',
  ),
)
const header = fc.oneof(fc.string({ unit: 'grapheme-ascii', maxLength: 60 }), text)
const json = fc.jsonValue({ maxDepth: 4, stringUnit: 'binary' })
const someNoise: fc.Arbitrary<Record<string, string>> = fc.dictionary(
  fc.constantFrom(
    'mcp-protocol-version',
    'mcp-method',
    'mcp-name',
    'mcp-session-id',
    'mcp-param-name',
    'last-event-id',
    'idempotency-key',
    'traceparent',
    'accept',
    'content-type',
    'origin',
    'host',
    'authorization',
    'cf-access-jwt-assertion',
    'cookie',
  ),
  fc.oneof(
    header,
    fc.constantFrom('2026-07-28', '2025-11-25', '9999-99-99', 'tools/call', 'greet', 'http://localhost'),
  ),
  { maxKeys: 4 },
)
const noise = fc.oneof({ weight: 2, arbitrary: fc.constant({}) }, { weight: 1, arbitrary: someNoise })

test('bodies that are anything at all', TIMEOUT, async () => {
  const body = fc.oneof(
    fc.uint8Array({ maxLength: 200 }),
    text,
    json.map((value) => JSON.stringify(value)),
    fc.integer({ min: 1, max: 20_000 }).map((depth) => '['.repeat(depth) + ']'.repeat(depth)),
    fc.integer({ min: 1, max: 20_000 }).map((depth) => '{"a":'.repeat(depth) + '1' + '}'.repeat(depth)),
  )
  await fc.assert(
    fc.asyncProperty(body, noise, (it, headers) => holds({ headers: { ...HEADERS, ...headers }, body: it })),
    run(250),
  )
})

test('messages whose parts are anything at all', TIMEOUT, async () => {
  const part = fc.oneof(json, text)
  const meta = fc.oneof(
    {
      weight: 3,
      arbitrary: fc.constant({
        'io.modelcontextprotocol/protocolVersion': '2026-07-28',
        'io.modelcontextprotocol/clientCapabilities': ALL_CAPABILITIES,
      }),
    },
    {
      weight: 1,
      arbitrary: fc.record({
        'io.modelcontextprotocol/protocolVersion': fc.oneof(part, fc.constant('2026-07-28')),
        'io.modelcontextprotocol/clientCapabilities': fc.oneof(part, fc.constant(ALL_CAPABILITIES)),
      }),
    },
    { weight: 1, arbitrary: part },
  )
  const params = fc.record(
    {
      _meta: meta,
      // Of a tool that exists nothing is asked here: see the test below.
      name: part,
      taskId: part,
      arguments: part,
      inputResponses: part,
      requestState: part,
      notifications: fc.oneof(part, fc.record({ taskIds: fc.oneof(part, fc.array(part, { maxLength: 5 })) })),
      task: part,
      uri: part,
      cursor: part,
    },
    { requiredKeys: ['_meta'] },
  )
  const mostly = <T>(usual: fc.Arbitrary<T>) =>
    fc.oneof({ weight: 5, arbitrary: usual }, { weight: 1, arbitrary: part })
  const message = fc.record({
    jsonrpc: mostly(fc.constant('2.0')),
    id: mostly(fc.constant(1)),
    method: mostly(fc.constantFrom(...METHODS)),
    params: mostly(params),
  })
  const alsoAResponse = fc.oneof(
    { weight: 7, arbitrary: fc.constant({}) },
    { weight: 1, arbitrary: fc.record({ result: part, error: part }, { requiredKeys: [] }) },
  )
  await fc.assert(
    fc.asyncProperty(message, alsoAResponse, fc.boolean(), noise, async (it, response, modern, headers) => {
      const method = typeof it.method === 'string' ? it.method : ''
      const { name, taskId } = isObject(it.params) ? it.params : {}
      const named = method.startsWith('tasks/') ? taskId : name
      const routing = {
        'mcp-protocol-version': '2026-07-28',
        'mcp-method': method,
        ...(typeof named === 'string' && { 'mcp-name': sentinel(named) }),
      }
      await holds({
        headers: { ...HEADERS, ...(modern && routing), ...headers },
        body: JSON.stringify({ ...it, ...response }),
      })
    }),
    run(400),
  )
})

test('calls of a real tool with one thing wrong that no dialect forgives', TIMEOUT, async () => {
  const good = {
    jsonrpc: '2.0',
    id: 1,
    method: 'tools/call',
    params: {
      name: 'greet',
      arguments: { name: 'Ada' },
      _meta: {
        'io.modelcontextprotocol/protocolVersion': '2026-07-28',
        'io.modelcontextprotocol/clientCapabilities': ALL_CAPABILITIES,
      },
    },
  }
  const { params } = good
  const notText = json.filter((value) => typeof value !== 'string')
  const notObject = json.filter(
    (value) => typeof value !== 'object' || value === null || Array.isArray(value),
  )
  const broken = fc.oneof(
    json.filter((it) => it !== '2.0').map((jsonrpc) => ({ ...good, jsonrpc })),
    fc
      .oneof(fc.constant(null), fc.boolean(), fc.constant({}), fc.constant([1]))
      .map((id) => ({ ...good, id })),
    notText.map((method) => ({ ...good, method })),
    fc
      .constantFrom('Tools/Call', 'tools/call ', 'tools.call', 'tools')
      .map((method) => ({ ...good, method })),
    notObject.map((it) => ({ ...good, params: it })),
    notText.map((name) => ({ ...good, params: { ...params, name } })),
    fc.constant({ ...good, params: { ...params, name: ['greet'] } }),
    text.map((name) => ({ ...good, params: { ...params, name: `${name}?` } })),
    notObject
      .filter((it) => it !== undefined)
      .map((args) => ({ ...good, params: { ...params, arguments: args } })),
    notText.map((name) => ({ ...good, params: { ...params, arguments: { name } } })),
    fc.constant([good]),
  )
  const asBody = fc.oneof(
    broken.map((it) => JSON.stringify(it)),
    fc.nat({ max: JSON.stringify(good).length - 1 }).map((end) => JSON.stringify(good).slice(0, end)),
    text.filter((it) => it.trim() !== '').map((it) => `${JSON.stringify(good)}${it}}`),
  )
  const routing = {
    'mcp-protocol-version': '2026-07-28',
    'mcp-method': 'tools/call',
    'mcp-name': 'greet',
  }
  await fc.assert(
    fc.asyncProperty(asBody, fc.boolean(), noise, async (body, modern, headers) => {
      await holds({ headers: { ...HEADERS, ...(modern && routing), ...headers }, body })
    }),
    run(400),
  )
})

test('addresses and methods that are anything at all', TIMEOUT, async () => {
  const segment = fc.oneof(
    text.map((it) => encodeURIComponent(it.toWellFormed())),
    fc.constantFrom('%', '%ff', '%00', '..', '.', 'tsk_', '%2e%2e', 'a b', '*', ':taskId'),
  )
  const path = fc
    .tuple(
      fc.constantFrom('/mcp', '/mcp/tasks', '/callbacks', '/.well-known/oauth-protected-resource', ''),
      fc.array(segment, { maxLength: 3 }),
      fc.oneof(
        fc.constant(''),
        segment.map((it) => `?${it}=${it}`),
      ),
    )
    .map(([start, rest, query]) => [start, ...rest].join('/') + query || '/')
  const method = fc.constantFrom('GET', 'HEAD', 'POST', 'PUT', 'PATCH', 'DELETE', 'OPTIONS')
  const upgrade = fc.record(
    { upgrade: fc.constant('websocket'), 'sec-websocket-protocol': fc.oneof(header, header.map(bearer)) },
    { requiredKeys: [] },
  )
  await fc.assert(
    fc.asyncProperty(method, path, noise, upgrade, async (verb, where, headers, socket) => {
      const all = { ...HEADERS, ...headers, ...definedOf(socket) }
      await holds({ method: verb, path: where, headers: all, body: '{}' })
    }),
    run(400),
  )
})

function bearer(token: string): string {
  return `mcp, longhaul.bearer.${base64url(utf8(token))}`
}

function definedOf(record: Record<string, string | undefined>): Record<string, string> {
  return Object.fromEntries(
    Object.entries(record).flatMap(([name, value]) => (value === undefined ? [] : [[name, value]])),
  )
}

test('tokens that are anything at all never get in, and never break the door', TIMEOUT, async () => {
  const key = await signingKey('it')
  const issuer = new Issuer([key])
  const server = new Deployment({
    OIDC_ISSUER: ISSUER,
    OIDC_AUDIENCE: AUDIENCE,
    ACCESS_TEAM_DOMAIN: 'team.example',
    ACCESS_AUDIENCE: 'tag',
    TENANT_CLAIM: 'sub',
  })
  const valid = (await issuer.token()).split('.')
  const segment = fc.oneof(
    fc.constantFrom(...valid, '', '=', 'e30', 'bnVsbA', 'W10'),
    json.map((it) => base64url(utf8(JSON.stringify(it)))),
    fc
      .record(
        {
          alg: fc.oneof(json, fc.constantFrom('ES256', 'none', 'HS256', 'RS256', 'dir')),
          kid: json,
          typ: json,
          crit: json,
          b64: json,
          jwk: json,
        },
        { requiredKeys: [] },
      )
      .map(base64urlOfJson),
    fc
      .record(
        { iss: fc.oneof(json, fc.constant(ISSUER)), aud: json, exp: json, nbf: json, sub: json },
        { requiredKeys: [] },
      )
      .map(base64urlOfJson),
    fc.string({ unit: 'grapheme-ascii', maxLength: 30 }).map((it) => it.replaceAll(/\s/g, '')),
  )
  const token = fc
    .array(segment, { minLength: 1, maxLength: 5 })
    .map((parts) => parts.join('.'))
    .filter((it) => it !== valid.join('.'))
  const places = fc.constantFrom('authorization', 'cf-access-jwt-assertion')
  await fc.assert(
    fc.asyncProperty(token, places, async (it, place) => {
      const status = await statusOf(
        {
          headers: {
            ...HEADERS,
            authorization: 'none',
            [place]: place === 'authorization' ? `Bearer ${it}` : it,
          },
          body: '{}',
        },
        (request) => server.fetch(request.url, request),
      )
      expect([0, 401], it).toContain(status)
    }),
    run(500),
  )
})

function base64urlOfJson(value: unknown): string {
  return base64url(utf8(JSON.stringify(value)))
}

/** The bytes of a text, as the characters that `btoa` wants. */
function utf8(it: string): string {
  return String.fromCharCode(...new TextEncoder().encode(it))
}

/** How a header carries what it cannot carry plainly. */
function sentinel(it: string): string {
  return `=?base64?${btoa(utf8(it))}?=`
}
