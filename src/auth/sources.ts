/**
 * Which token issuers this server trusts, read from its variables. Pure. Everything that is missing or
 * half set is an error: a slip of the pen must not open a door.
 */
import { discoverKeys, fetchKeys, secureUrl } from './issuer'
import { RemoteKeys } from './jwks'
import { ConfigurationError } from './keys'

export interface TokenEnv {
  /** Issuer of access tokens, exactly as its tokens' `iss` says. Turns on `Authorization: Bearer <JWT>`. */
  readonly OIDC_ISSUER?: string
  /** What `aud` must contain, one of these, separated by commas. Best is this endpoint's own address. */
  readonly OIDC_AUDIENCE?: string
  /** Address of the issuer's key set. Default: found through the issuer's metadata. */
  readonly OIDC_JWKS_URL?: string
  /** Accepted signature algorithms, separated by commas. Default: all with public keys. */
  readonly OIDC_ALGORITHMS?: string
  /** `required` (default): tokens need the scopes of what they call. `off`: they may call everything. */
  readonly SCOPES?: string
  /** Claim that names the tenant; with dots for one inside another. Default `sub`. */
  readonly TENANT_CLAIM?: string
  /** `<team>.cloudflareaccess.com`. Turns on `Cf-Access-Jwt-Assertion`. */
  readonly ACCESS_TEAM_DOMAIN?: string
  /** Audience tags of the Access applications in front, separated by commas. */
  readonly ACCESS_AUDIENCE?: string
  /** Default: TENANT_CLAIM, else `sub`, or `common_name` for service tokens. */
  readonly ACCESS_TENANT_CLAIM?: string
}

/** An issuer, what its tokens must say, and how they become a principal. */
export interface TokenSource {
  readonly header: 'authorization' | 'cf-access-jwt-assertion'
  readonly issuer: string
  readonly audience: readonly string[]
  readonly algorithms: readonly string[]
  /** The first one that is not empty names the subject. */
  readonly subjectClaims: readonly string[]
  /** Without one the subject is the tenant. */
  readonly tenantClaim: string | undefined
  /** Whether tokens are held to their scopes. */
  readonly scoped: boolean
  readonly keys: RemoteKeys
}

/** RFC 8725 section 3.1. No `none`, and nothing symmetric: a public key must never serve as a secret. */
const ALGORITHMS = [
  'RS256',
  'RS384',
  'RS512',
  'PS256',
  'PS384',
  'PS512',
  'ES256',
  'ES384',
  'ES512',
  'EdDSA',
  'Ed25519',
]

/** @throws ConfigurationError */
export function tokenSources(env: TokenEnv): readonly TokenSource[] {
  const oidc = oidcSource(env)
  const access = accessSource(env)
  if (oidc && access && oidc.tenantClaim === undefined && access.tenantClaim === undefined) {
    // OpenID Connect Core section 2: a subject is unique within its issuer only.
    throw new ConfigurationError(
      'Tokens of OIDC_ISSUER and of Cloudflare Access are both accepted, and the same subject may be somebody else there. ' +
        'Say which claim names the tenant: set TENANT_CLAIM or ACCESS_TENANT_CLAIM ("sub" if subjects never collide).',
    )
  }
  return [oidc, access].filter((source) => source !== undefined)
}

function oidcSource(env: TokenEnv): TokenSource | undefined {
  const scopes = given(env.SCOPES) ?? 'required'
  if (scopes !== 'required' && scopes !== 'off') {
    throw new ConfigurationError(`SCOPES must be "required" or "off"; it is ${JSON.stringify(scopes)}.`)
  }
  const issuer = given(env.OIDC_ISSUER)
  const audience = list(env.OIDC_AUDIENCE)
  const jwksUrl = given(env.OIDC_JWKS_URL)
  if (issuer === undefined) {
    if (audience.length > 0 || jwksUrl !== undefined) throw missing('OIDC_ISSUER', 'OIDC_AUDIENCE')
    return undefined
  }
  const { search, hash } = secureUrl('OIDC_ISSUER', issuer)
  if (search !== '' || hash !== '') {
    throw new ConfigurationError('OIDC_ISSUER must have neither a query nor a fragment.')
  }
  if (audience.length === 0) throw missing('OIDC_AUDIENCE', 'OIDC_ISSUER')
  const keysAt = jwksUrl === undefined ? undefined : secureUrl('OIDC_JWKS_URL', jwksUrl).href
  return {
    header: 'authorization',
    issuer,
    audience,
    algorithms: algorithms(env.OIDC_ALGORITHMS),
    subjectClaims: ['sub'],
    tenantClaim: given(env.TENANT_CLAIM),
    scoped: scopes === 'required',
    keys: new RemoteKeys(() => (keysAt === undefined ? discoverKeys(issuer) : fetchKeys(keysAt))),
  }
}

/** @see https://developers.cloudflare.com/cloudflare-one/access-controls/applications/http-apps/authorization-cookie/validating-json/ */
function accessSource(env: TokenEnv): TokenSource | undefined {
  const domain = given(env.ACCESS_TEAM_DOMAIN)
  const audience = list(env.ACCESS_AUDIENCE)
  if (domain === undefined) {
    if (audience.length > 0) throw missing('ACCESS_TEAM_DOMAIN', 'ACCESS_AUDIENCE')
    return undefined
  }
  if (audience.length === 0) throw missing('ACCESS_AUDIENCE', 'ACCESS_TEAM_DOMAIN')
  const host = domain.replace(/^https:\/\//, '').replace(/\/$/, '')
  if (!/^[a-z0-9-]+(\.[a-z0-9-]+)+$/i.test(host)) {
    throw new ConfigurationError('ACCESS_TEAM_DOMAIN must be a host name like "<team>.cloudflareaccess.com".')
  }
  const issuer = `https://${host.toLowerCase()}`
  return {
    header: 'cf-access-jwt-assertion',
    issuer,
    audience,
    algorithms: ['RS256'],
    // Tokens of services have an empty `sub`.
    subjectClaims: ['sub', 'common_name'],
    tenantClaim: given(env.ACCESS_TENANT_CLAIM) ?? given(env.TENANT_CLAIM),
    // Access has policies in front instead.
    scoped: false,
    keys: new RemoteKeys(() => fetchKeys(`${issuer}/cdn-cgi/access/certs`)),
  }
}

function algorithms(text: string | undefined): readonly string[] {
  const chosen = list(text)
  const odd = chosen.find((name) => !ALGORITHMS.includes(name))
  if (odd !== undefined) {
    throw new ConfigurationError(
      `OIDC_ALGORITHMS has ${JSON.stringify(odd)}; the choice is ${ALGORITHMS.join(', ')}.`,
    )
  }
  return chosen.length > 0 ? chosen : ALGORITHMS
}

function missing(name: string, because: string): ConfigurationError {
  return new ConfigurationError(`${name} is not set, but ${because} is: they belong together.`)
}

function given(text: string | undefined): string | undefined {
  return text === undefined || text.trim() === '' ? undefined : text.trim()
}

function list(commas: string | undefined): readonly string[] {
  return (commas ?? '')
    .split(',')
    .map((item) => item.trim())
    .filter(Boolean)
}
