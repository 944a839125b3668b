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

export type Opened =
  | { readonly ok: true; readonly payload: Record<string, Json> }
  /** `invalid`: damaged, or meant for something else. */
  | { readonly ok: false; readonly reason: 'invalid' | 'expired' }

/** The payload, or why there is none: whoever has a token that we signed may know that its time is over. */
export async function openSealed(
  keys: SigningKeys,
  purpose: Purpose,
  audience: readonly string[],
  token: string,
): Promise<Opened> {
  const body = token.slice(0, -(SIGNATURE_CHARS + 1))
  const signature = token.slice(-SIGNATURE_CHARS)
  if (token.charAt(body.length) !== '.') return { ok: false, reason: 'invalid' }
  if (!(await keys.verify(purpose, [...audience, body], signature))) return { ok: false, reason: 'invalid' }
  const payload: unknown = JSON.parse(fromBase64Url(body))
  if (!isObject(payload) || typeof payload['exp'] !== 'number') return { ok: false, reason: 'invalid' }
  if (payload['exp'] < Date.now()) return { ok: false, reason: 'expired' }
  // It is JSON that we signed.
  return { ok: true, payload: payload as Record<string, Json> }
}

/** The payload, or `undefined` when the token is damaged, expired, or meant for something else. */
export async function unseal(
  keys: SigningKeys,
  purpose: Purpose,
  audience: readonly string[],
  token: string,
): Promise<Record<string, Json> | undefined> {
  const opened = await openSealed(keys, purpose, audience, token)
  return opened.ok ? opened.payload : undefined
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
