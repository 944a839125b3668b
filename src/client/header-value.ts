/** HTTP header values that mirror parts of a message (SEP-2243). Pure. */

const PLAIN = /^[\x20-\x7e]*$/
const SENTINEL = /^=\?base64\?.*\?=$/

/** As it is when it is printable ASCII without outer spaces, and in the Base64 form otherwise. */
export function encodeHeaderValue(value: string): string {
  if (PLAIN.test(value) && value.trim() === value && !SENTINEL.test(value)) return value
  return `=?base64?${base64(value)}?=`
}

function base64(text: string): string {
  return btoa(Array.from(new TextEncoder().encode(text), (byte) => String.fromCharCode(byte)).join(''))
}

/** Base64 for where `+`, `/` and `=` may not stand, such as a WebSocket subprotocol. */
export function base64Url(text: string): string {
  return base64(text).replaceAll('+', '-').replaceAll('/', '_').replace(/=+$/, '')
}
