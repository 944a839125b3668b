/**
 * The public keys of a token issuer, fetched when they are needed and kept per isolate.
 *
 * Only values are kept, never a promise: a request must not wait for what another request began
 * (on Workers it may be cancelled with it, and then never settles). Who finds a fetch under way looks
 * now and then whether it has ended, and loses patience with it.
 */
import { createLocalJWKSet, errors, type JSONWebKeySet, type JWTVerifyGetKey } from 'jose'
import { fault } from '../observe/observer'

/** A key that its issuer withdrew is accepted at most this long. */
const FRESH_MS = 10 * 60_000
/** ... or this long, while the issuer cannot be reached. */
const STALE_MS = 60 * 60_000
/** An unknown key id may be a new key, or made up: such make us look at most this often. */
const COOLDOWN_MS = 30_000
/** After a failure, while there are no keys at all. */
const RETRY_MS = 2_000
/** How long to wait for another request's fetch before starting one of our own. */
const PATIENCE_MS = 1_000
const GLANCE_MS = 20

/** The keys cannot be had now; nothing is said about the token. */
export class KeysUnavailableError extends Error {
  override name = 'KeysUnavailableError'
}

interface Keys {
  readonly find: ReturnType<typeof createLocalJWKSet>
  /** When they were asked for. */
  readonly at: number
}

interface Attempt {
  readonly at: number
  state: 'under way' | 'succeeded' | 'failed'
}

export class RemoteKeys {
  readonly #load: () => Promise<JSONWebKeySet>
  #keys: Keys | undefined
  #attempt: Attempt | undefined
  #missedAt = -Infinity
  #problem = ''

  /** `load` fetches the key set; whatever it throws is taken as "not now". */
  constructor(load: () => Promise<JSONWebKeySet>) {
    this.#load = load
  }

  /**
   * The key for a token, as `jwtVerify` asks for it.
   * @throws KeysUnavailableError, or an error of `jose` when no key fits.
   */
  readonly find: JWTVerifyGetKey = async (header, token) => {
    const keys = await this.#current()
    try {
      return await keys.find(header, token)
    } catch (error) {
      if (!(error instanceof errors.JWKSNoMatchingKey)) throw error
      const newer = await this.#afterMiss()
      if (!newer || newer === keys) throw error
      return newer.find(header, token)
    }
  }

  async #current(): Promise<Keys> {
    if (!this.#keys) await this.#refresh(RETRY_MS)
    else if (Date.now() - this.#keys.at > FRESH_MS && !this.#underWay()) await this.#refresh(COOLDOWN_MS)
    const keys = this.#keys
    if (!keys || Date.now() - keys.at > STALE_MS) throw new KeysUnavailableError(this.#problem)
    return keys
  }

  async #afterMiss(): Promise<Keys | undefined> {
    const now = Date.now()
    if (!this.#underWay()) {
      if (now - this.#missedAt < COOLDOWN_MS) return undefined
      this.#missedAt = now
    }
    await this.#refresh(0)
    return this.#keys
  }

  #underWay(): boolean {
    return this.#attempt?.state === 'under way' && Date.now() - this.#attempt.at < PATIENCE_MS
  }

  /** Joins a fetch that is under way, or makes one, unless the last one failed just now. */
  async #refresh(pauseMs: number): Promise<void> {
    const joined = this.#underWay()
    while (this.#underWay()) await scheduler.wait(GLANCE_MS)
    const last = this.#attempt
    if (joined && last?.state !== 'under way') return
    if (last?.state === 'failed' && Date.now() - last.at < pauseMs) return

    const attempt: Attempt = { at: Date.now(), state: 'under way' }
    this.#attempt = attempt
    try {
      const find = createLocalJWKSet(await this.#load())
      attempt.state = 'succeeded'
      // A slower, older attempt must not bring back older keys.
      if (!this.#keys || this.#keys.at <= attempt.at) this.#keys = { find, at: attempt.at }
    } catch (error) {
      attempt.state = 'failed'
      this.#problem = error instanceof Error ? error.message : String(error)
      fault({ event: 'issuer_keys_failed' }, this.#problem)
    }
  }
}
