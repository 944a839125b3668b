import { afterEach, describe, expect, test, vi } from 'vitest'
import { Deployment, type Variables } from './deployment'
import { Issuer, nowSeconds, signingKey } from './issuer'
import { AUDIENCE, ISSUER } from './with-tokens'

const OIDC: Variables = { OIDC_ISSUER: ISSUER, OIDC_AUDIENCE: AUDIENCE }
const first = await signingKey('first')
const rsa = await signingKey('rsa', 'RS256')

afterEach(() => vi.restoreAllMocks())

describe('Cloudflare Access', () => {
  const TEAM = 'https://team.cloudflareaccess.com'
  const ACCESS: Variables = {
    ACCESS_TEAM_DOMAIN: 'team.cloudflareaccess.com',
    ACCESS_AUDIENCE: 'tag-of-the-app',
  }
  const access = () => new Issuer([rsa], TEAM, `${TEAM}/cdn-cgi/access/certs`)
  const assertion = async (issuer: Issuer, claims = {}) => ({
    headers: {
      'cf-access-jwt-assertion': await issuer.token({ aud: ['tag-of-the-app'], scope: undefined, ...claims }),
    },
  })

  test('names a person, who is not limited by scopes', async () => {
    const issuer = access()
    const { principal } = await new Deployment(ACCESS).whoami(await assertion(issuer))
    expect(principal).toEqual({
      tenant: 'ada',
      subject: 'ada',
      scopes: ['tasks:read', 'tasks:write', 'files:delete', 'files:list'],
    })
    expect(issuer.fetched).toEqual([`${TEAM}/cdn-cgi/access/certs`])
  })

  test('names a service by its common name', async () => {
    const service = await assertion(access(), { sub: '', common_name: 'ci.access' })
    const { principal } = await new Deployment(ACCESS).whoami(service)
    expect(principal).toMatchObject({ tenant: 'ci.access', subject: 'ci.access' })
  })

  test('can name the tenant by another claim', async () => {
    const server = new Deployment({ ...ACCESS, ACCESS_TENANT_CLAIM: 'custom.org' })
    const { principal } = await server.whoami(await assertion(access(), { custom: { org: 'acme' } }))
    expect(principal).toMatchObject({ tenant: 'acme', subject: 'ada' })
  })

  test.each([
    ['of another application', { aud: ['another-tag'] }],
    ['of another team', { iss: 'https://evil.cloudflareaccess.com' }],
    ['that has expired', { exp: nowSeconds() - 60 }],
  ])('is refused with an assertion %s', async (_, claims) => {
    const response = await new Deployment(ACCESS).send(
      'server/discover',
      {},
      await assertion(access(), claims),
    )
    expect(response.status).toBe(401)
    expect(response.headers.get('www-authenticate')).toMatch(
      /^Bearer realm="deployment", error="invalid_token"/,
    )
  })

  test('is not reached by an assertion in the wrong header', async () => {
    const token = await access().token({ aud: 'tag-of-the-app' })
    expect((await new Deployment(ACCESS).send('server/discover', {}, { token })).status).toBe(401)
  })

  test('gives way to what the client sends on purpose, and fills in when that says nothing here', async () => {
    const issuer = access()
    const server = new Deployment({ ...ACCESS, API_KEYS: '{"acme":"acme-key-acme-key"}' })
    const ambient = await assertion(issuer)
    expect((await server.whoami({ ...ambient, token: 'acme-key-acme-key' })).principal.tenant).toBe('acme')
    expect((await server.whoami({ ...ambient, token: 'opaque-token-of-a-proxy' })).principal.tenant).toBe(
      'ada',
    )
  })

  test('does not stand in for a token of the issuer that is bad', async () => {
    const oidc = new Issuer([first])
    const bad = await oidc.token({ exp: nowSeconds() - 60 })
    const server = new Deployment({ ...OIDC, ...ACCESS, TENANT_CLAIM: 'sub' })
    const response = await server.send('server/discover', {}, { ...(await assertion(access())), token: bad })
    expect(response.status).toBe(401)
  })
})
