/**
 * Who is calling? Fails closed: with nothing configured nobody is served, and the answer says
 * what to configure. Identity providers plug in as further {@link Authenticator}s.
 */
import { isObject } from '../json'
import { ConfigurationError } from './keys'
import type { Principal } from './principal'

export interface AuthEnv {
  /** JSON object of tenant to key. Turns on `Authorization: Bearer <key>`. */
  readonly API_KEYS?: string
  /** `local`: everybody on this machine is the tenant `local`. For development only. */
  readonly LONGHAUL_DEV?: string
}

export type Authentication =
  | { readonly ok: true; readonly principal: Principal }
  | { readonly ok: false; readonly status: 401 | 503; readonly message: string }

export type Authenticator = (request: Request) => Promise<Authentication>

/** Chooses the way of authentication by configuration, once per isolate. */
export function authenticatorFor(env: AuthEnv): Authenticator {
  if (env.API_KEYS !== undefined && env.API_KEYS !== '') return byApiKey(parseApiKeys(env.API_KEYS))
  if (env.LONGHAUL_DEV === 'local') return byLocalhost
  return unconfigured
}

/** Whether the open local mode is on; then only this machine is served, whatever the Origin check allows. */
export function isLocalMode(env: AuthEnv): boolean {
  return (env.API_KEYS === undefined || env.API_KEYS === '') && env.LONGHAUL_DEV === 'local'
}

const LOCAL_PRINCIPAL: Principal = { tenant: 'local', subject: 'local', scopes: [] }

const byLocalhost: Authenticator = async () => ({ ok: true, principal: LOCAL_PRINCIPAL })

const unconfigured: Authenticator = async () => ({
  ok: false,
  status: 503,
  message:
    'No authentication is configured, so nobody is served. Set the secret API_KEYS to a JSON object of tenant to key ' +
    '(`wrangler secret put API_KEYS`), or LONGHAUL_DEV=local for development on this machine.',
})

function parseApiKeys(json: string): ReadonlyMap<string, string> {
  let keys: unknown
  try {
    keys = JSON.parse(json)
  } catch {
    throw new ConfigurationError('API_KEYS is not valid JSON: it must be an object of tenant to key.')
  }
  const entries = isObject(keys) ? Object.entries(keys) : []
  const valid = entries.every(([tenant, key]) => tenant !== '' && typeof key === 'string' && key.length >= 16)
  if (entries.length === 0 || !valid) {
    throw new ConfigurationError(
      'API_KEYS must be an object of tenant to key, each key at least 16 characters.',
    )
  }
  return new Map(entries.map(([tenant, key]) => [tenant, String(key)]))
}

/** Compares digests, all of them, so that neither time nor length tells how close a guess was. */
function byApiKey(keys: ReadonlyMap<string, string>): Authenticator {
  const hash = async ([tenant, key]: [string, string]) => ({ tenant, hash: await sha256(key) })
  // Kept once it is there; a promise must not outlive the request that made it.
  let known: { tenant: string; hash: ArrayBuffer }[] | undefined
  return async (request) => {
    const given = /^Bearer +(\S+) *$/i.exec(request.headers.get('authorization') ?? '')?.[1]
    if (given === undefined) {
      return { ok: false, status: 401, message: 'Send your API key as "Authorization: Bearer <key>".' }
    }
    known ??= await Promise.all([...keys].map(hash))
    const givenHash = await sha256(given)
    let principal: Principal | undefined
    for (const candidate of known) {
      if (crypto.subtle.timingSafeEqual(givenHash, candidate.hash)) {
        principal = { tenant: candidate.tenant, subject: candidate.tenant, scopes: [] }
      }
    }
    return principal
      ? { ok: true, principal }
      : { ok: false, status: 401, message: 'The API key is not known here.' }
  }
}

function sha256(text: string): Promise<ArrayBuffer> {
  return crypto.subtle.digest('SHA-256', new TextEncoder().encode(text))
}
