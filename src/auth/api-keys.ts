/** API keys: `API_KEYS` names who holds which key, and what a key is good for. */
import { isObject } from '../json'
import { ConfigurationError } from './keys'
import { type Authenticator, bearerOf, type Principal } from './principal'
import { isScope } from './scopes'

const MIN_KEY_CHARS = 16

interface ApiKey {
  readonly tenant: string
  readonly key: string
  /** Without any, the key is good for everything. */
  readonly scopes: readonly string[] | undefined
}

/**
 * An object of tenant to key, to `{ key, scopes? }`, or to a list of those (two keys while one is
 * replaced by another).
 * @throws ConfigurationError
 */
export function parseApiKeys(json: string): readonly ApiKey[] {
  let parsed: unknown
  try {
    parsed = JSON.parse(json)
  } catch {
    throw new ConfigurationError('API_KEYS is not valid JSON: it must be an object of tenant to key.')
  }
  const keys = Object.entries(isObject(parsed) ? parsed : {}).flatMap(([tenant, value]) =>
    (Array.isArray(value) ? value : [value]).map((entry) => apiKey(tenant, entry)),
  )
  if (keys.length === 0) throw new ConfigurationError('API_KEYS must be an object of tenant to key.')
  if (new Set(keys.map(({ key }) => key)).size < keys.length) {
    throw new ConfigurationError('API_KEYS has the same key twice: a key must tell who is calling.')
  }
  return keys
}

function apiKey(tenant: string, entry: unknown): ApiKey {
  const { key, scopes } = isObject(entry) ? entry : { key: entry, scopes: undefined }
  if (tenant === '' || typeof key !== 'string' || key.length < MIN_KEY_CHARS || /\s/.test(key)) {
    throw new ConfigurationError(
      `API_KEYS must be an object of tenant to key, each key at least ${MIN_KEY_CHARS} characters without spaces.`,
    )
  }
  if (scopes === undefined) return { tenant, key, scopes: undefined }
  if (!Array.isArray(scopes) || !scopes.every((scope) => typeof scope === 'string' && isScope(scope))) {
    throw new ConfigurationError('The "scopes" of an entry of API_KEYS must be a list of scopes.')
  }
  return { tenant, key, scopes }
}

/** Compares digests, all of them, so that neither time nor length tells how close a guess was. */
export function byApiKey(keys: readonly ApiKey[], everything: readonly string[]): Authenticator {
  const known = async ({ tenant, key, scopes = everything }: ApiKey) => {
    const principal: Principal = { tenant, subject: tenant, scopes }
    return { principal, hash: await sha256(key) }
  }
  // Kept once it is there; a promise must not outlive the request that made it.
  let candidates: Awaited<ReturnType<typeof known>>[] | undefined
  return async (request) => {
    const given = bearerOf(request)
    if (given === undefined) return undefined
    candidates ??= await Promise.all(keys.map(known))
    const hash = await sha256(given)
    let principal: Principal | undefined
    for (const candidate of candidates) {
      if (crypto.subtle.timingSafeEqual(hash, candidate.hash)) principal = candidate.principal
    }
    return principal && { ok: true, principal }
  }
}

function sha256(text: string): Promise<ArrayBuffer> {
  return crypto.subtle.digest('SHA-256', new TextEncoder().encode(text))
}
