import { exportJWK, generateKeyPair, SignJWT } from 'jose'
import { afterEach, describe, expect, test, vi } from 'vitest'
import { Deployment, type Variables } from './deployment'
import { base64url, Issuer, nowSeconds, signingKey } from './issuer'
import { AUDIENCE, ISSUER } from './with-tokens'

const OIDC: Variables = { OIDC_ISSUER: ISSUER, OIDC_AUDIENCE: AUDIENCE }
const first = await signingKey('first')
const second = await signingKey('second')
const rsa = await signingKey('rsa', 'RS256')

afterEach(() => vi.restoreAllMocks())

async function refusal(server: Deployment, token: string) {
  const response = await server.send('server/discover', {}, { token })
  const body = await response.json<{ error?: { message: string } }>()
  return {
    status: response.status,
    challenge: response.headers.get('www-authenticate'),
    said: body.error?.message,
  }
}

describe('a token of the configured issuer', () => {
  test('names tenant, subject and scopes to the tool', async () => {
    const issuer = new Issuer([first])
    const token = await issuer.token({ scope: 'tasks:read tasks:write files:delete' })
    const { principal } = await new Deployment(OIDC).whoami({ token })
    expect(principal).toEqual({
      tenant: 'ada',
      subject: 'ada',
      scopes: ['tasks:read', 'tasks:write', 'files:delete'],
    })
  })

  test('is not shown to the tool in any form', async () => {
    const issuer = new Issuer([first])
    const token = await issuer.token()
    const seen = await new Deployment(OIDC).whoami({
      token,
      headers: { cookie: 'CF_Authorization=secret', 'cf-access-jwt-assertion': token },
    })
    const text = JSON.stringify(seen)
    for (const part of [token, token.split('.')[2] ?? '?', 'authorization', 'cookie', 'assertion']) {
      expect(text.toLowerCase()).not.toContain(part.toLowerCase())
    }
    expect(text).toContain('mcp-method')
  })

  test.each(['RS256', 'PS256', 'ES256', 'ES384', 'EdDSA'])('may be signed with %s', async (alg) => {
    const issuer = new Issuer([await signingKey('it', alg)])
    const { principal } = await new Deployment(OIDC).whoami({ token: await issuer.token() })
    expect(principal.tenant).toBe('ada')
  })

  test.each([
    ['among several audiences', { aud: ['https://other.example', AUDIENCE] }],
    ['just expired, within the clocks’ tolerance', { exp: nowSeconds() - 10 }],
    ['valid from soon, within the tolerance', { nbf: nowSeconds() + 10 }],
  ])('counts when it is %s', async (_, claims) => {
    const issuer = new Issuer([first])
    expect((await refusal(new Deployment(OIDC), await issuer.token(claims))).status).toBe(200)
  })

  test.each([
    ['scope as a list', { scope: ['tasks:write', 'x'] }],
    ['scp as a list', { scope: undefined, scp: ['tasks:write', 'x'] }],
    ['scp as a text', { scope: undefined, scp: 'tasks:write x' }],
  ])('may carry its %s', async (_, claims) => {
    const issuer = new Issuer([first])
    const { principal } = await new Deployment(OIDC).whoami({ token: await issuer.token(claims) })
    expect(principal.scopes).toEqual(['tasks:write', 'x'])
  })

  test.each([
    ['org_id', { org_id: 'acme' }],
    ['https://example.com/tenant', { 'https://example.com/tenant': 'acme' }],
    ['custom.org', { custom: { org: 'acme' } }],
  ])('names its tenant in the claim %s', async (claim, claims) => {
    const issuer = new Issuer([first])
    const server = new Deployment({ ...OIDC, TENANT_CLAIM: claim })
    const { principal } = await server.whoami({ token: await issuer.token(claims) })
    expect(principal).toMatchObject({ tenant: 'acme', subject: 'ada' })
  })

  test.each([undefined, '', 7, ['acme'], 'a\nb', '\ud800', 'x'.repeat(300)])(
    'has no place here when the tenant claim is %j',
    async (org) => {
      const issuer = new Issuer([first])
      const token = await issuer.token({ org_id: org })
      const { status, said, challenge } = await refusal(
        new Deployment({ ...OIDC, TENANT_CLAIM: 'org_id' }),
        token,
      )
      expect({ status, challenge }).toEqual({ status: 403, challenge: null })
      expect(said).toContain('org_id')
    },
  )
})

describe('a token is refused', () => {
  const cases: [string, (issuer: Issuer) => Promise<string>, RegExp][] = [
    ['when it has expired', (i) => i.token({ exp: nowSeconds() - 60 }), /expired/],
    ['when it never expires', (i) => i.token({ exp: undefined }), /"exp"/],
    ['when it is not valid yet', (i) => i.token({ nbf: nowSeconds() + 60 }), /not valid yet/],
    ['for another audience', (i) => i.token({ aud: 'https://other.example' }), /another audience/],
    [
      'for an audience that only begins like ours',
      (i) => i.token({ aud: `${AUDIENCE}/x` }),
      /another audience/,
    ],
    ['without an audience', (i) => i.token({ aud: undefined }), /another audience/],
    ['of another issuer', (i) => i.token({ iss: 'https://other.example' }), /another issuer/],
    ['of an issuer that only looks like it', (i) => i.token({ iss: `${ISSUER}/` }), /another issuer/],
    ['without a subject', (i) => i.token({ sub: '' }), /subject/],
    [
      'without a key id, when the issuer has several keys',
      (i) => i.token({}, { header: { kid: undefined } }),
      /kid/,
    ],
    [
      'with an unknown key id',
      (i) => i.token({}, { header: { kid: 'third' } }),
      /not one its issuer publishes/,
    ],
    [
      'signed by a key of another name',
      async (i) => i.token({}, { key: { ...second, kid: 'first' } }),
      /signature/,
    ],
    ['of another type', (i) => i.token({}, { header: { typ: 'logout+jwt' } }), /typ/],
    ['bound to a proof', (i) => i.token({ cnf: { jkt: 'x' } }), /cnf/],
    [
      'with a critical header nobody knows',
      async (i) => {
        const [, payload, signature] = (await i.token()).split('.')
        return `${base64url({ alg: 'ES256', kid: 'first', crit: ['x'], x: 1 })}.${payload}.${signature}`
      },
      /not a valid JWT/,
    ],
    [
      'with alg none',
      async (i) => `${base64url({ alg: 'none' })}.${(await i.token()).split('.')[1]}.`,
      /algorithm|not a valid JWT/,
    ],
    [
      'with alg none in capitals, and a signature',
      async (i) => {
        const [, payload, signature] = (await i.token()).split('.')
        return `${base64url({ alg: 'NONE', kid: 'first' })}.${payload}.${signature}`
      },
      /algorithm/,
    ],
    [
      'with a public key used as a secret',
      async (i) => {
        // What a verifier would do that lets the token choose: HMAC with the bytes of the public key.
        const secret = new TextEncoder().encode(JSON.stringify(rsa.jwk))
        const now = nowSeconds()
        return new SignJWT({ iss: i.url, aud: AUDIENCE, sub: 'ada', exp: now + 300 })
          .setProtectedHeader({ alg: 'HS256', kid: 'rsa' })
          .sign(secret)
      },
      /algorithm/,
    ],
    [
      'with a key it brought along',
      async (i) => {
        const { publicKey, privateKey } = await generateKeyPair('ES256', { extractable: true })
        const jwk = await exportJWK(publicKey)
        return i.token(
          {},
          {
            key: { ...first, private: privateKey },
            header: { jwk, jku: 'https://evil.example' },
          },
        )
      },
      /signature/,
    ],
    [
      'whose payload was changed',
      async (i) => {
        const [header, , signature] = (await i.token()).split('.')
        const payload = { iss: i.url, aud: AUDIENCE, sub: 'eve', exp: nowSeconds() + 300 }
        return `${header}.${base64url(payload)}.${signature}`
      },
      /signature/,
    ],
    ['that is no JWT at all', async () => 'a.b.c', /not a valid JWT/],
    ['that is endless', async (i) => `${await i.token()}${'A'.repeat(20_000)}`, /too long/],
  ]

  test.each(cases)('%s', async (_, make, sentence) => {
    const issuer = new Issuer([first, second, rsa])
    const { status, challenge, said } = await refusal(new Deployment(OIDC), await make(issuer))
    expect({ status, said }).toEqual({ status: 401, said: expect.stringMatching(sentence) })
    expect(challenge).toContain('error="invalid_token"')
    expect(challenge).toContain(
      'resource_metadata="http://localhost/.well-known/oauth-protected-resource/mcp"',
    )
    expect(issuer.fetched.every((url) => url.startsWith(ISSUER))).toBe(true)
  })

  test('with an algorithm that OIDC_ALGORITHMS leaves out', async () => {
    const issuer = new Issuer([first, rsa])
    const server = new Deployment({ ...OIDC, OIDC_ALGORITHMS: 'RS256' })
    expect((await refusal(server, await issuer.token())).said).toMatch(/algorithm/)
    expect((await refusal(server, await issuer.token({}, { key: rsa }))).status).toBe(200)
  })

  test('when its issuer publishes a secret as a key', async () => {
    const secret = crypto.getRandomValues(new Uint8Array(32))
    const issuer = new Issuer([
      { ...first, jwk: { kty: 'oct', k: base64url(String.fromCharCode(...secret)), kid: 'first' } },
    ])
    const token = await new SignJWT({ iss: ISSUER, aud: AUDIENCE, sub: 'ada', exp: nowSeconds() + 300 })
      .setProtectedHeader({ alg: 'HS256', kid: 'first' })
      .sign(secret)
    expect(await refusal(new Deployment(OIDC), token)).toMatchObject({ status: 401 })
    expect(issuer.fetched).toEqual([])
  })

  test('in the address or in the body, where tokens are not looked for', async () => {
    const token = await new Issuer([first]).token()
    const server = new Deployment(OIDC)
    const inAddress = await server.fetch(`/mcp?access_token=${token}`, {
      method: 'POST',
      headers: { 'content-type': 'application/json' },
      body: '{}',
    })
    expect(inAddress.status).toBe(401)
    expect(inAddress.headers.get('www-authenticate')).not.toContain('error=')
  })
})

describe('several ways at once', () => {
  const API_KEYS = '{"acme":"acme-key-acme-key"}'

  test('keys and tokens are told apart', async () => {
    const issuer = new Issuer([first])
    const server = new Deployment({ ...OIDC, API_KEYS })
    expect((await server.whoami({ token: 'acme-key-acme-key' })).principal.tenant).toBe('acme')
    expect((await server.whoami({ token: await issuer.token() })).principal.tenant).toBe('ada')
    expect(await refusal(server, 'neither-of-the-two')).toMatchObject({
      status: 401,
      challenge: expect.stringContaining('error="invalid_token"'),
    })
  })

  test('a subject cannot pass for the tenant of a key, unless the operator named the claim', async () => {
    const issuer = new Issuer([first])
    const token = await issuer.token({ sub: 'acme' })
    expect(await refusal(new Deployment({ ...OIDC, API_KEYS }), token)).toMatchObject({
      status: 403,
      said: expect.stringContaining('TENANT_CLAIM'),
    })
    const meant = new Deployment({ ...OIDC, API_KEYS, TENANT_CLAIM: 'sub' })
    expect((await meant.whoami({ token })).principal.tenant).toBe('acme')
  })

  test('a task belongs to the tenant of the token, and to nobody else', async () => {
    const issuer = new Issuer([first])
    const server = new Deployment({ ...OIDC, API_KEYS })
    const ada = { token: await issuer.token() }
    const { body } = await server.call('tools/call', { name: 'whoami', arguments: {} }, ada)
    const { taskId } = body.result
    const own = await vi.waitUntil(
      async () => {
        const answer = await server.call('tasks/get', { taskId }, ada)
        return answer.body.result.status === 'completed' ? answer.body.result : undefined
      },
      { timeout: 10_000 },
    )
    const principal = JSON.parse(own.result.content[0].text)
    expect(principal).toMatchObject({ tenant: 'ada', subject: 'ada', scopes: ['tasks:read', 'tasks:write'] })
    expect(principal.expiresAt).toBeGreaterThan(Date.now())
    for (const token of [await issuer.token({ sub: 'eve' }), 'acme-key-acme-key']) {
      const foreign = await server.call('tasks/get', { taskId }, { token })
      expect(foreign.body.error).toEqual({ code: -32602, message: 'Task not found.' })
    }
  })
})
