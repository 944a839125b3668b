/**
 * The Worker's signing keys, and MACs made with them. Every MAC is bound to a purpose, so that
 * a token made for one use is worth nothing for another.
 *
 * `SIGNING_KEYS` is a list `<id>:<secret>`, separated by commas; the first one signs, all of them
 * verify, so a key is rotated by putting the new one in front. An id is one letter or digit.
 */

export const PURPOSES = [
  'task-id',
  'request-state',
  'callback',
  'approval',
  'session',
  'stream',
  'question',
] as const
export type Purpose = (typeof PURPOSES)[number]

/** Bytes of a MAC that travel: 96 bits. */
const MAC_BYTES = 12

export class ConfigurationError extends Error {
  override name = 'ConfigurationError'
}

export class SigningKeys {
  readonly #keys: ReadonlyMap<string, { readonly secret: string; imported?: CryptoKey }>
  readonly currentId: string

  /** @throws ConfigurationError when the list is empty or malformed. */
  constructor(list: string) {
    const keys = new Map<string, { secret: string; imported?: CryptoKey }>()
    for (const part of list.split(',')) {
      const match = /^\s*([A-Za-z0-9]):(\S{16,})\s*$/.exec(part)
      const [id, secret] = [match?.[1], match?.[2]]
      if (id === undefined || secret === undefined) {
        throw new ConfigurationError(
          'SIGNING_KEYS must be a list like "1:<secret>", each secret at least 16 characters; make one with `openssl rand -base64 32`.',
        )
      }
      if (keys.has(id)) throw new ConfigurationError(`SIGNING_KEYS has two keys with the id ${id}.`)
      keys.set(id, { secret })
    }
    const [current] = keys.keys()
    if (current === undefined) throw new ConfigurationError('SIGNING_KEYS is empty.')
    this.#keys = keys
    this.currentId = current
  }

  /** Key id and MAC (base64url) over the fields. */
  async sign(purpose: Purpose, fields: readonly string[]): Promise<string> {
    return this.currentId + encode(await this.#mac(this.currentId, purpose, fields))
  }

  /** Whether `signature` is one that {@link sign} makes with a key that is still listed. */
  async verify(purpose: Purpose, fields: readonly string[], signature: string): Promise<boolean> {
    const id = signature.charAt(0)
    if (!this.#keys.has(id)) return false
    const expected = encoder.encode(encode(await this.#mac(id, purpose, fields)))
    const given = encoder.encode(signature.slice(1))
    return given.byteLength === expected.byteLength && crypto.subtle.timingSafeEqual(given, expected)
  }

  async #mac(id: string, purpose: Purpose, fields: readonly string[]): Promise<Uint8Array> {
    const key = this.#keys.get(id)
    if (!key) throw new Error('no such key')
    // The key is kept, not the promise of it: a promise must not outlive the request that made it.
    key.imported ??= await importKey(key.secret)
    // Length-prefixed, so that no two lists of fields read the same.
    const text = `longhaul/v1/${purpose}` + fields.map((field) => `|${field.length}:${field}`).join('')
    const mac = await crypto.subtle.sign('HMAC', key.imported, encoder.encode(text))
    return new Uint8Array(mac, 0, MAC_BYTES)
  }
}

/** Characters of a signature: the key id and the MAC. */
export const SIGNATURE_CHARS = 1 + Math.ceil((MAC_BYTES * 4) / 3)

const encoder = new TextEncoder()

function importKey(secret: string): Promise<CryptoKey> {
  return crypto.subtle.importKey('raw', encoder.encode(secret), { name: 'HMAC', hash: 'SHA-256' }, false, [
    'sign',
  ])
}

function encode(bytes: Uint8Array): string {
  return btoa(String.fromCharCode(...bytes))
    .replaceAll('+', '-')
    .replaceAll('/', '_')
    .replace(/=+$/, '')
}
