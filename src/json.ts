/** JSON values and the few questions asked of them everywhere. */

export type Json = null | boolean | number | string | readonly Json[] | { readonly [key: string]: Json }
export type JsonObject = { readonly [key: string]: Json }

/** A plain JSON object: neither null nor an array. */
export function isObject(value: unknown): value is Record<string, unknown> {
  return typeof value === 'object' && value !== null && !Array.isArray(value)
}

const encoder = new TextEncoder()

/** Bytes of a text in UTF-8, which is what storage and the wire count. */
export function utf8Bytes(text: string): number {
  return encoder.encode(text).byteLength
}
