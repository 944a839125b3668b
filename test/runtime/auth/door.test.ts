import { afterEach, describe, expect, test, vi } from 'vitest'
import { Deployment, type Variables } from './deployment'
import { Issuer, signingKey } from './issuer'
import { AUDIENCE, ISSUER } from './with-tokens'

const OIDC: Variables = { OIDC_ISSUER: ISSUER, OIDC_AUDIENCE: AUDIENCE }
const KEYS: Variables = { API_KEYS: '{"acme":"acme-key-acme-key"}' }
const key = await signingKey('it')
const WELL_KNOWN = '/.well-known/oauth-protected-resource'

afterEach(() => vi.restoreAllMocks())

describe('API keys', () => {
  const server = new Deployment({
    API_KEYS: JSON.stringify({
      acme: 'acme-key-acme-key',
      reader: { key: 'reader-key-reader-key', scopes: ['tasks:read'] },
      moving: ['moving-key-old-old', { key: 'moving-key-new-new', scopes: ['tasks:write'] }],
    }),
  })

  test('are good for everything, unless they say for what', async () => {
    const purge = { name: 'purge_now', arguments: {} }
    expect((await server.call('tools/call', purge, { token: 'acme-key-acme-key' })).status).toBe(200)
    const limited = await server.send('tools/call', purge, { token: 'reader-key-reader-key' })
    expect(limited.status).toBe(403)
    expect(limited.headers.get('www-authenticate')).toContain('error="insufficient_scope"')
    const get = await server.call('tasks/get', { taskId: 'tsk_any' }, { token: 'reader-key-reader-key' })
    expect(get.body.error.message).toBe('Task not found.')
  })

  test('may be two for a tenant, while one replaces the other', async () => {
    for (const token of ['moving-key-old-old', 'moving-key-new-new']) {
      expect((await server.whoami({ token })).principal).toMatchObject({
        tenant: 'moving',
        subject: 'moving',
      })
    }
  })

  test.each(['acme', 'acme-key-acme-ke', 'acme-key-acme-key-', 'ACME-KEY-ACME-KEY', 'undefined', '[object'])(
    'are not guessed by %s',
    async (token) => {
      expect((await server.send('server/discover', {}, { token })).status).toBe(401)
    },
  )

  test.each([
    'Basic YWNtZTphY21lLWtleS1hY21lLWtleQ==',
    'acme-key-acme-key',
    'Bearer',
    'Bearer ',
    'Bearer acme-key-acme-key, Bearer reader-key-reader-key',
    'Bearer acme-key acme-key',
  ])('are not found in "Authorization: %s"', async (authorization) => {
    const response = await server.send('server/discover', {}, { headers: { authorization } })
    expect(response.status).toBe(401)
  })
})

describe('a configuration that is not whole serves nobody, and says what is missing', () => {
  const cases: [string, Variables, RegExp][] = [
    ['nothing', {}, /No authentication is configured.*OIDC_ISSUER.*API_KEYS/],
    ['an issuer without an audience', { OIDC_ISSUER: ISSUER }, /OIDC_AUDIENCE is not set/],
    ['an audience without an issuer', { OIDC_AUDIENCE: 'x' }, /OIDC_ISSUER is not set/],
    ['a blank audience', { OIDC_ISSUER: ISSUER, OIDC_AUDIENCE: ' , ' }, /OIDC_AUDIENCE is not set/],
    ['half of it beside API keys', { ...KEYS, OIDC_ISSUER: ISSUER }, /OIDC_AUDIENCE is not set/],
    ['half of it beside local mode', { LONGHAUL_DEV: 'local', OIDC_AUDIENCE: 'x' }, /OIDC_ISSUER is not set/],
    ['an issuer in the clear', { OIDC_ISSUER: 'http://issuer.example', OIDC_AUDIENCE: 'x' }, /https/],
    ['an issuer that is no address', { OIDC_ISSUER: 'issuer', OIDC_AUDIENCE: 'x' }, /https/],
    ['an issuer with a query', { OIDC_ISSUER: `${ISSUER}?a`, OIDC_AUDIENCE: 'x' }, /query/],
    ['keys in the clear', { ...OIDC, OIDC_JWKS_URL: 'http://issuer.example/keys' }, /OIDC_JWKS_URL/],
    ['a symmetric algorithm', { ...OIDC, OIDC_ALGORITHMS: 'RS256,HS256' }, /HS256/],
    ['no signature at all', { ...OIDC, OIDC_ALGORITHMS: 'none' }, /none/],
    ['scopes that are neither', { ...OIDC, SCOPES: 'on' }, /SCOPES/],
    ['a team without an application', { ACCESS_TEAM_DOMAIN: 'a.b' }, /ACCESS_AUDIENCE is not set/],
    ['an application without a team', { ACCESS_AUDIENCE: 'tag' }, /ACCESS_TEAM_DOMAIN is not set/],
    ['a team that is a path', { ACCESS_TEAM_DOMAIN: 'a.b/c', ACCESS_AUDIENCE: 'tag' }, /host name/],
    [
      'two issuers of subjects',
      { ...OIDC, ACCESS_TEAM_DOMAIN: 'a.b', ACCESS_AUDIENCE: 'tag' },
      /TENANT_CLAIM or ACCESS_TENANT_CLAIM/,
    ],
    ['keys that are no JSON', { API_KEYS: 'acme=key' }, /API_KEYS is not valid JSON/],
    ['keys that are no object', { API_KEYS: '["acme-key-acme-key"]' }, /API_KEYS/],
    ['no keys in it', { API_KEYS: '{}' }, /API_KEYS/],
    ['a short key', { API_KEYS: '{"acme":"short"}' }, /at least 16/],
    ['a tenant without a name', { API_KEYS: '{"":"acme-key-acme-key"}' }, /API_KEYS/],
    ['one key for two', { API_KEYS: '{"a":"acme-key-acme-key","b":"acme-key-acme-key"}' }, /same key twice/],
    ['scopes that are a text', { API_KEYS: '{"a":{"key":"acme-key-acme-key","scopes":"x"}}' }, /scopes/],
    ['no signing keys', { ...KEYS, SIGNING_KEYS: undefined }, /SIGNING_KEYS is not set/],
    ['a short signing key', { ...KEYS, SIGNING_KEYS: '1:short' }, /SIGNING_KEYS/],
    [
      'two signing keys of one id',
      { ...KEYS, SIGNING_KEYS: `1:${'a'.repeat(20)},1:${'b'.repeat(20)}` },
      /id 1/,
    ],
    ['a public address that is none', { ...KEYS, PUBLIC_URL: 'mcp.example.com' }, /PUBLIC_URL/],
  ]

  test.each(cases)('%s', async (_, variables, sentence) => {
    const { status, body } = await new Deployment(variables).call('server/discover', {}, { token: 'x' })
    expect({ status, said: body.error.message }).toEqual({
      status: 503,
      said: expect.stringMatching(sentence),
    })
  })
})

describe('the open local mode', () => {
  const server = new Deployment({ LONGHAUL_DEV: 'local', SIGNING_KEYS: undefined })

  test('serves this machine without any key', async () => {
    expect((await server.whoami()).principal).toMatchObject({ tenant: 'local', subject: 'local' })
  })

  test('serves no other name, and no page of another place', async () => {
    for (const [name, value] of [
      ['host', 'attacker.example'],
      ['origin', 'https://attacker.example'],
      ['origin', 'null'],
    ] as const) {
      const response = await server.send('server/discover', {}, { headers: { [name]: value } })
      expect(response.status).toBe(403)
    }
  })

  test('is off as soon as there is another way to tell who calls', async () => {
    for (const variables of [KEYS, OIDC]) {
      const guarded = new Deployment({ ...variables, LONGHAUL_DEV: 'local' })
      expect((await guarded.send('server/discover')).status).toBe(401)
    }
  })
})

describe('web pages', () => {
  const server = new Deployment({
    ...OIDC,
    ALLOWED_ORIGINS: 'https://app.example.com, https://two.example.com',
  })
  const preflight = (origin: string, headers: string) =>
    server.fetch('/mcp', {
      method: 'OPTIONS',
      headers: { origin, 'access-control-request-method': 'POST', 'access-control-request-headers': headers },
    })

  test('of allowed origins are told what they may send, without a key', async () => {
    const response = await preflight(
      'https://two.example.com',
      'authorization, Content-Type, mcp-param-region, x-other',
    )
    expect(response.status).toBe(204)
    expect(Object.fromEntries(response.headers)).toMatchObject({
      'access-control-allow-origin': 'https://two.example.com',
      'access-control-allow-methods': 'GET, POST',
      'access-control-allow-headers': 'authorization, content-type, mcp-param-region',
      vary: 'Origin, Access-Control-Request-Headers',
    })
    expect(response.headers.has('access-control-allow-credentials')).toBe(false)
  })

  test.each([
    'https://evil.example',
    'http://app.example.com',
    'https://app.example.com.evil.example',
    'null',
  ])('of %s are told nothing, and get nothing', async (origin) => {
    const issuer = new Issuer([key])
    const asked = await preflight(origin, 'authorization')
    const called = await server.send(
      'server/discover',
      {},
      { token: await issuer.token(), headers: { origin } },
    )
    const read = await server.fetch(WELL_KNOWN, { headers: { origin } })
    for (const response of [asked, called, read]) {
      expect(response.status).toBe(403)
      expect([...response.headers.keys()].filter((name) => name.startsWith('access-control'))).toEqual([])
    }
  })

  test('of allowed origins can read answers, refusals and the headers that matter', async () => {
    const issuer = new Issuer([key])
    const origin = 'https://app.example.com'
    const token = await issuer.token({ scope: 'tasks:read' })
    const answers = [
      await server.send('server/discover', {}, { headers: { origin } }),
      await server.send('server/discover', {}, { token, headers: { origin } }),
      await server.send('tools/call', { name: 'greet' }, { token, headers: { origin } }),
      await server.send('tasks/get', { taskId: 'tsk_any' }, { token, headers: { origin } }),
      await server.fetch(WELL_KNOWN, { headers: { origin } }),
      await server.fetch('/nowhere', { headers: { origin } }),
    ]
    expect(answers.map(({ status }) => status)).toEqual([401, 200, 403, 200, 200, 404])
    for (const { headers } of answers) {
      expect(headers.get('access-control-allow-origin')).toBe(origin)
      expect(headers.get('access-control-expose-headers')).toBe(
        'Mcp-Session-Id, WWW-Authenticate, Retry-After',
      )
      expect(headers.has('access-control-allow-credentials')).toBe(false)
      expect(headers.get('vary')).toContain('Origin')
    }
  })

  test('are no matter to callers that are none', async () => {
    const response = await server.send('server/discover')
    expect([...response.headers.keys()].filter((name) => name.startsWith('access-control'))).toEqual([])
    // No cache keeps the answer to a POST, so it need not say that others get other headers.
    expect(response.headers.get('vary')).toBeNull()
  })
})
