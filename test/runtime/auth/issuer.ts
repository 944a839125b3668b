/** An OpenID provider of the test's own: it signs tokens and publishes keys, by intercepting `fetch`. */
import { exportJWK, generateKeyPair, type JWK, SignJWT } from 'jose'
import { vi } from 'vitest'
import { AUDIENCE, ISSUER } from './with-tokens'

export interface SigningKey {
  readonly kid: string
  readonly alg: string
  readonly private: CryptoKey
  readonly jwk: JWK
}

export async function signingKey(kid: string, alg = 'ES256'): Promise<SigningKey> {
  const { publicKey, privateKey } = await generateKeyPair(alg, { extractable: true })
  return { kid, alg, private: privateKey, jwk: { ...(await exportJWK(publicKey)), kid, alg, use: 'sig' } }
}

export const nowSeconds = () => Math.floor(Date.now() / 1000)

export class Issuer {
  /** What is published, in this order. */
  keys: readonly SigningKey[]
  /** Addresses that were fetched. */
  readonly fetched: string[] = []
  /** What the provider does instead of answering. */
  fault: undefined | (() => Promise<Response>)
  /** How long an answer takes. */
  delayMs = 0
  readonly url: string
  readonly jwksUrl: string

  constructor(keys: readonly SigningKey[], url = ISSUER, jwksUrl = `${url}/keys`) {
    this.keys = keys
    this.url = url
    this.jwksUrl = jwksUrl
    // Another issuer of the same test answers for what is its own.
    const other = vi.isMockFunction(globalThis.fetch)
      ? vi.mocked(globalThis.fetch).getMockImplementation()
      : undefined
    vi.spyOn(globalThis, 'fetch').mockImplementation(async (input, init) => {
      const asked = input instanceof Request ? input.url : input.toString()
      if (asked.startsWith(`${this.url}/`)) return this.#answer(asked)
      return other ? other(input, init) : new Response('nobody', { status: 502 })
    })
  }

  async #answer(url: string): Promise<Response> {
    this.fetched.push(url)
    if (this.delayMs > 0) await scheduler.wait(this.delayMs)
    if (this.fault) return this.fault()
    if (url === `${this.url}/.well-known/openid-configuration`) {
      return Response.json({ issuer: this.url, jwks_uri: this.jwksUrl })
    }
    if (url === this.jwksUrl) return Response.json({ keys: this.keys.map(({ jwk }) => jwk) })
    return new Response('not found', { status: 404 })
  }

  /** A token that is right in everything, but for what is asked otherwise. `undefined` leaves a claim out. */
  token(
    claims: Record<string, unknown> = {},
    { key = this.keys[0], header = {} }: Making = {},
  ): Promise<string> {
    if (!key) throw new Error('no key')
    const now = nowSeconds()
    const payload = {
      iss: this.url,
      aud: AUDIENCE,
      sub: 'ada',
      scope: 'tasks:read tasks:write',
      iat: now,
      exp: now + 300,
      ...claims,
    }
    const protectedHeader = { alg: key.alg, kid: key.kid, ...header }
    return new SignJWT(payload).setProtectedHeader(protectedHeader).sign(key.private)
  }
}

interface Making {
  readonly key?: SigningKey | undefined
  readonly header?: Record<string, unknown>
}

/** Text as base64url, for tokens that no library would make. */
export function base64url(value: unknown): string {
  return btoa(typeof value === 'string' ? value : JSON.stringify(value))
    .replaceAll('+', '-')
    .replaceAll('/', '_')
    .replaceAll('=', '')
}
