/**
 * Signed, expiring tokens that travel through somebody else's hands: the `requestState` of a
 * multi-round-trip call, the address of a callback. Signed, not encrypted: nothing secret goes in.
 */
import { isObject, type Json, type JsonObject } from '../json'
import { type Purpose, SIGNATURE_CHARS, type SigningKeys } from './keys'

/** `audience` binds a token to what it is for (a tenant, a tool, its arguments), without being in it. */
export async function seal(
  keys: SigningKeys,
  purpose: Purpose,
  audience: readonly string[],
  payload: JsonObject,
  expiresAt: number,
): Promise<string> {
  const body = toBase64Url(JSON.stringify({ ...payload, exp: expiresAt }))
  return `${body}.${await keys.sign(purpose, [...audience, body])}`
}

/** The payload, or `undefined` when the token is damaged, expired, or meant for something else. */
export async function unseal(
  keys: SigningKeys,
  purpose: Purpose,
  audience: readonly string[],
  token: string,
): Promise<Record<string, Json> | undefined> {
  const body = token.slice(0, -(SIGNATURE_CHARS + 1))
  const signature = token.slice(-SIGNATURE_CHARS)
  if (token.charAt(body.length) !== '.') return undefined
  if (!(await keys.verify(purpose, [...audience, body], signature))) return undefined
  const payload: unknown = JSON.parse(fromBase64Url(body))
  if (!isObject(payload) || typeof payload['exp'] !== 'number' || payload['exp'] < Date.now())
    return undefined
  // It is JSON that we signed.
  return payload as Record<string, Json>
}

/** Hex SHA-256 of a text, to bind a token to something long. */
export async function digest(text: string): Promise<string> {
  const hash = await crypto.subtle.digest('SHA-256', new TextEncoder().encode(text))
  return [...new Uint8Array(hash)].map((byte) => byte.toString(16).padStart(2, '0')).join('')
}

function toBase64Url(text: string): string {
  const bytes = new TextEncoder().encode(text)
  let binary = ''
  for (const byte of bytes) binary += String.fromCharCode(byte)
  return btoa(binary).replaceAll('+', '-').replaceAll('/', '_').replace(/=+$/, '')
}

function fromBase64Url(encoded: string): string {
  const binary = atob(encoded.replaceAll('-', '+').replaceAll('_', '/'))
  return new TextDecoder().decode(Uint8Array.from(binary, (char) => char.charCodeAt(0)))
}
