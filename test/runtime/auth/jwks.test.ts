import { exports } from 'cloudflare:workers'
import { afterEach, beforeEach, describe, expect, test, vi } from 'vitest'
import { Deployment, message, type Variables } from './deployment'
import { Issuer, nowSeconds, signingKey } from './issuer'
import { AUDIENCE, forget, ISSUER } from './with-tokens'

const OIDC: Variables = { OIDC_ISSUER: ISSUER, OIDC_AUDIENCE: AUDIENCE }
const METADATA = `${ISSUER}/.well-known/openid-configuration`
const KEYS = `${ISSUER}/keys`
const MINUTES = 60_000
const old = await signingKey('old')
const fresh = await signingKey('fresh')
const made_up = await signingKey('made-up')

let skewMs = 0
beforeEach(() => {
  skewMs = 0
  forget()
  const now = Date.now.bind(Date)
  vi.spyOn(Date, 'now').mockImplementation(() => now() + skewMs)
  vi.spyOn(console, 'error').mockImplementation(() => undefined)
})
afterEach(() => vi.restoreAllMocks())

/** Lives an hour of the skewed clock too: `exp` is judged by the real one. */
const long = { exp: nowSeconds() + 7_200 }

const statusOf = async (server: Deployment, token: string) =>
  (await server.send('server/discover', {}, { token })).status

describe('keys of an issuer', () => {
  test('are found through its metadata, once for many requests', async () => {
    const issuer = new Issuer([old])
    const server = new Deployment(OIDC)
    for (let i = 0; i < 5; i++) expect(await statusOf(server, await issuer.token())).toBe(200)
    expect(issuer.fetched).toEqual([METADATA, KEYS])
  })

  test('are found at OIDC_JWKS_URL without any metadata', async () => {
    const issuer = new Issuer([old])
    const server = new Deployment({ ...OIDC, OIDC_JWKS_URL: KEYS })
    expect(await statusOf(server, await issuer.token())).toBe(200)
    expect(issuer.fetched).toEqual([KEYS])
  })

  test('are found for an issuer with a path', async () => {
    const url = `${ISSUER}/realms/acme`
    const issuer = new Issuer([old], url)
    const server = new Deployment({ ...OIDC, OIDC_ISSUER: url })
    expect(await statusOf(server, await issuer.token())).toBe(200)
    expect(issuer.fetched).toEqual([`${url}/.well-known/openid-configuration`, `${url}/keys`])
  })

  test('are not taken from metadata that is somebody else’s', async () => {
    const issuer = new Issuer([old])
    issuer.fault = async () => Response.json({ issuer: 'https://evil.example', jwks_uri: KEYS })
    const response = await new Deployment(OIDC).send('server/discover', {}, { token: await issuer.token() })
    expect(response.status).toBe(503)
    expect(await response.text()).toContain('OIDC_ISSUER')
    expect(issuer.fetched).not.toContain(KEYS)
  })

  test.each([
    ['an address in the clear', { issuer: ISSUER, jwks_uri: 'http://issuer.example/keys' }],
    ['no address', { issuer: ISSUER }],
  ])('are not taken from metadata with %s', async (_, metadata) => {
    const issuer = new Issuer([old])
    issuer.fault = async () => Response.json(metadata)
    expect(await statusOf(new Deployment(OIDC), await issuer.token())).toBe(503)
    expect(issuer.fetched.every((url) => url.includes('/.well-known/'))).toBe(true)
  })

  test('may rotate: a token of the new key is accepted at once', async () => {
    const issuer = new Issuer([old])
    const server = new Deployment(OIDC)
    expect(await statusOf(server, await issuer.token())).toBe(200)
    issuer.keys = [fresh, old]
    expect(await statusOf(server, await issuer.token())).toBe(200)
    expect(await statusOf(server, await issuer.token({}, { key: old }))).toBe(200)
  })

  test('that were withdrawn end with their ten minutes', async () => {
    const issuer = new Issuer([old, fresh])
    const server = new Deployment(OIDC)
    const token = await issuer.token(long)
    expect(await statusOf(server, token)).toBe(200)
    issuer.keys = [fresh]
    skewMs = 11 * MINUTES
    expect(await statusOf(server, token)).toBe(401)
  })

  test('that are made up do not make us ask the issuer again and again', async () => {
    const issuer = new Issuer([old])
    const server = new Deployment({ ...OIDC, OIDC_JWKS_URL: KEYS })
    for (let i = 0; i < 20; i++) {
      const forged = await issuer.token({}, { key: made_up, header: { kid: `made-up-${i}` } })
      expect(await statusOf(server, forged)).toBe(401)
    }
    expect(issuer.fetched).toEqual([KEYS, KEYS])
    skewMs = 31_000
    await statusOf(server, await issuer.token({}, { key: made_up }))
    expect(issuer.fetched).toHaveLength(3)
  })

  test('are not asked for by a token of another issuer', async () => {
    const issuer = new Issuer([old])
    expect(await statusOf(new Deployment(OIDC), await issuer.token({ iss: 'https://other.example' }))).toBe(
      401,
    )
    expect(issuer.fetched).toEqual([])
  })
})

describe('an issuer that cannot be reached', () => {
  const FAULTS: [string, () => Promise<Response>][] = [
    ['fails', async () => new Response('down', { status: 500 })],
    ['redirects', async () => Response.redirect('https://evil.example/keys', 302)],
    ['answers with something else', async () => new Response('<html>')],
    ['answers with other JSON', async () => Response.json({ keys: 'none' })],
    ['breaks the connection', async () => Promise.reject(new TypeError('connection lost'))],
  ]

  test.each(FAULTS)('lets nobody in while it %s, and says when to try again', async (_, fault) => {
    const issuer = new Issuer([old])
    issuer.fault = fault
    const server = new Deployment({ ...OIDC, OIDC_JWKS_URL: KEYS })
    const response = await server.send('server/discover', {}, { token: await issuer.token() })
    expect(response.status).toBe(503)
    expect(response.headers.get('retry-after')).toBe('5')
    expect(await response.json()).toMatchObject({ error: { code: -32603 } })
  })

  test('is not asked by every request, and is believed again soon', async () => {
    const issuer = new Issuer([old])
    const server = new Deployment({ ...OIDC, OIDC_JWKS_URL: KEYS })
    issuer.fault = async () => new Response('down', { status: 500 })
    for (let i = 0; i < 10; i++) expect(await statusOf(server, await issuer.token())).toBe(503)
    expect(issuer.fetched).toHaveLength(1)
    issuer.fault = undefined
    skewMs = 3_000
    expect(await statusOf(server, await issuer.token())).toBe(200)
  })

  test('leaves the known keys in use for an hour, and no longer', async () => {
    const issuer = new Issuer([old])
    const server = new Deployment({ ...OIDC, OIDC_JWKS_URL: KEYS })
    const token = await issuer.token(long)
    expect(await statusOf(server, token)).toBe(200)
    issuer.fault = async () => new Response('down', { status: 500 })
    skewMs = 50 * MINUTES
    expect(await statusOf(server, token)).toBe(200)
    skewMs = 61 * MINUTES
    expect(await statusOf(server, token)).toBe(503)
  })

  test('does not take API keys down with it', async () => {
    const issuer = new Issuer([old])
    issuer.fault = async () => new Response('down', { status: 500 })
    const server = new Deployment({ ...OIDC, API_KEYS: '{"acme":"acme-key-acme-key"}' })
    expect(await statusOf(server, 'acme-key-acme-key')).toBe(200)
    expect(await statusOf(server, await issuer.token())).toBe(503)
  })
})

describe('many requests at the same time', () => {
  const ask = (token: string, signal?: AbortSignal) =>
    exports.WithTokens.fetch(
      new Request('http://localhost/mcp', {
        ...message('server/discover', {}, token),
        ...(signal && { signal }),
      }),
    )

  test('wait for one fetch, each in its own context', async () => {
    const issuer = new Issuer([old])
    issuer.delayMs = 100
    const token = await issuer.token()
    const statuses = await Promise.all(Array.from({ length: 50 }, async () => (await ask(token)).status))
    expect(new Set(statuses)).toEqual(new Set([200]))
    expect(issuer.fetched).toEqual([METADATA, KEYS])
  })

  test('all find the new key when it rotates between them', async () => {
    const issuer = new Issuer([old])
    expect((await ask(await issuer.token())).status).toBe(200)
    issuer.keys = [fresh, old]
    issuer.delayMs = 100
    const tokens = [await issuer.token(), await issuer.token({}, { key: old })]
    const statuses = await Promise.all(
      Array.from({ length: 40 }, async (_, i) => (await ask(tokens[i % 2] ?? '')).status),
    )
    expect(new Set(statuses)).toEqual(new Set([200]))
    expect(issuer.fetched).toHaveLength(4)
  })

  test('do not hang when the one that fetches is cancelled', async () => {
    const issuer = new Issuer([old])
    const token = await issuer.token()
    issuer.delayMs = 60_000
    const gone = new AbortController()
    const first = ask(token, gone.signal).then(
      () => 'answered',
      () => 'cancelled',
    )
    await vi.waitUntil(() => issuer.fetched.length === 1)
    issuer.delayMs = 0
    gone.abort()
    expect(await first).toBe('cancelled')
    expect((await ask(token)).status).toBe(200)
    expect(issuer.fetched).toEqual([METADATA, METADATA, KEYS])
  })
})
