/**
 * Who is calling? The configured ways of telling, in their order. Fails closed: with nothing
 * configured nobody is served, and the answer says what to configure.
 */
import { byApiKey, parseApiKeys } from './api-keys'
import { type Authentication, type Authenticator, bearerOf, type Principal } from './principal'
import { BASIC_SCOPES } from './scopes'
import { type TokenEnv, tokenSources } from './sources'
import { byToken } from './token'

export interface AuthEnv extends TokenEnv {
  /** JSON object of tenant to key, see `auth/api-keys.ts`. Turns on `Authorization: Bearer <key>`. */
  readonly API_KEYS?: string
  /** `local`: everybody on this machine is the tenant `local`. For development only. */
  readonly LONGHAUL_DEV?: string
}

/** Everything about identity that follows from the configuration. */
export interface Authority {
  readonly authenticate: (request: Request) => Promise<Authentication>
  /** The open local mode is on; then only this machine is served, whatever the Origin check allows. */
  readonly localMode: boolean
  /** Where clients get access tokens, when tokens are accepted. */
  readonly issuer: string | undefined
  /** What a token needs to begin with; empty when scopes are not looked at. */
  readonly scopes: readonly string[]
}

/**
 * Once per isolate.
 * @param everything all scopes this server knows
 * @throws ConfigurationError
 */
export function createAuthority(env: AuthEnv, everything: readonly string[]): Authority {
  const keys = env.API_KEYS === undefined || env.API_KEYS === '' ? [] : parseApiKeys(env.API_KEYS)
  const sources = tokenSources(env)
  const reserved = new Set(keys.map(({ tenant }) => tenant))
  // What a client sends on purpose comes before what a proxy adds.
  const authenticators = [
    ...(keys.length > 0 ? [byApiKey(keys, everything)] : []),
    ...sources.map((source) => byToken(source, { everything, reserved })),
  ]
  const localMode = authenticators.length === 0 && env.LONGHAUL_DEV === 'local'
  const oidc = sources.find(({ header }) => header === 'authorization')
  return {
    authenticate: localMode ? byLocalhost(everything) : firstOf(authenticators),
    localMode,
    issuer: oidc?.issuer,
    scopes: oidc?.scoped ? BASIC_SCOPES : [],
  }
}

function byLocalhost(everything: readonly string[]) {
  const principal: Principal = { tenant: 'local', subject: 'local', scopes: everything }
  return async (): Promise<Authentication> => ({ ok: true, principal })
}

function firstOf(authenticators: readonly Authenticator[]) {
  return async (request: Request): Promise<Authentication> => {
    if (authenticators.length === 0) return UNCONFIGURED
    for (const authenticator of authenticators) {
      const found = await authenticator(request)
      if (found) return found
    }
    return bearerOf(request) === undefined
      ? {
          ok: false,
          status: 401,
          message: 'Send an API key or an access token as "Authorization: Bearer <…>".',
        }
      : { ok: false, status: 401, message: 'The key or token is not known here.', error: 'invalid_token' }
  }
}

const UNCONFIGURED: Authentication = {
  ok: false,
  status: 503,
  message:
    'No authentication is configured, so nobody is served. Set OIDC_ISSUER and OIDC_AUDIENCE, or ACCESS_TEAM_DOMAIN and ' +
    'ACCESS_AUDIENCE, or the secret API_KEYS to a JSON object of tenant to key (`wrangler secret put API_KEYS`); or ' +
    'LONGHAUL_DEV=local for development on this machine.',
}
