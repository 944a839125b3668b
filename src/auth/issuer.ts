/**
 * Where an issuer publishes its keys, and fetching them: the only requests that authentication makes.
 *
 * @see OpenID Connect Discovery 1.0 section 4, RFC 8414 section 3
 */
import type { JSONWebKeySet } from 'jose'
import { isObject } from '../json'
import { ConfigurationError } from './keys'

const TIMEOUT_MS = 5_000

/** The addresses of an issuer's metadata, in the order in which they are tried. */
export function metadataUrls(issuer: string): readonly string[] {
  const { origin, pathname } = new URL(issuer)
  const path = pathname.replace(/\/$/, '')
  return [
    `${origin}${path}/.well-known/openid-configuration`,
    `${origin}/.well-known/oauth-authorization-server${path}`,
  ]
}

/** The key set of an issuer, found through its metadata. */
export async function discoverKeys(issuer: string): Promise<JSONWebKeySet> {
  const problems: string[] = []
  for (const url of metadataUrls(issuer)) {
    try {
      return await fetchKeys(jwksUrlOf(await fetchJson(url), issuer))
    } catch (error) {
      problems.push(`${url}: ${error instanceof Error ? error.message : String(error)}`)
    }
  }
  throw new Error(problems.join('; '))
}

/** Pure: the metadata must be the issuer's own (RFC 8414 section 3.3), compared as text. */
export function jwksUrlOf(metadata: unknown, issuer: string): string {
  const { issuer: named, jwks_uri: url } = isObject(metadata) ? metadata : {}
  if (named !== issuer) {
    throw new Error(
      `the metadata is of the issuer ${JSON.stringify(named)}: set OIDC_ISSUER to exactly that, if it is the one you mean`,
    )
  }
  if (typeof url !== 'string') throw new Error('the metadata has no jwks_uri: set OIDC_JWKS_URL')
  return secureUrl('jwks_uri', url).href
}

/** The key set at a known address. */
export async function fetchKeys(url: string): Promise<JSONWebKeySet> {
  // Its shape is checked by jose before a key is used.
  return (await fetchJson(url)) as JSONWebKeySet
}

async function fetchJson(url: string): Promise<unknown> {
  const response = await fetch(url, {
    headers: { accept: 'application/json' },
    // A redirect could lead anywhere; who moved its keys names their new address.
    redirect: 'manual',
    signal: AbortSignal.timeout(TIMEOUT_MS),
  })
  if (response.status !== 200) {
    await response.body?.cancel()
    throw new Error(`HTTP ${response.status} instead of 200`)
  }
  return response.json()
}

/**
 * An address that can be trusted to be whose it says: https, or this machine.
 * @throws ConfigurationError
 */
export function secureUrl(name: string, text: string): URL {
  const url = URL.parse(text)
  const local = url?.protocol === 'http:' && ['localhost', '127.0.0.1', '[::1]'].includes(url.hostname)
  if (!url || (url.protocol !== 'https:' && !local)) {
    throw new ConfigurationError(`${name} must be an https address; it is ${JSON.stringify(text)}.`)
  }
  return url
}
