/**
 * Where the messages for one waiting request of a 2025 client go: a resumable event stream that is
 * opened by the first message, or nowhere when the client takes no streams. Every event carries a
 * cursor as its id; at 2025-11-25 the stream is primed with one at once, which older clients choke on.
 */
import { EventStream } from '../../push/sse'
import type { Exchange } from '../incoming'
import type { Caller } from './caller'
import { type Cursor, sealCursor } from './cursor'

/** When a client that was cut off comes back. */
const RETRY_MS = 1_000
const HOUR_MS = 3_600_000

export interface OutletOptions {
  readonly cursor: Cursor
  readonly caller: Caller
  readonly exchange: Exchange
  /** Whether the client accepts a stream. */
  readonly streams: boolean
  /** The client has an event id now: it can come back. */
  readonly onResumable: () => void
  readonly onGone: () => void
}

export class Outlet {
  readonly #options: OutletOptions
  readonly #opened = Promise.withResolvers<EventStream>()
  #opening: Promise<EventStream> | undefined
  #cursor: Cursor
  #resumable = false
  #closed = false
  /** Until when the stream can be resumed: as long as the task is there, once that is known. */
  expiresAt = Date.now() + HOUR_MS

  constructor(options: OutletOptions) {
    this.#options = options
    this.#cursor = options.cursor
  }

  get cursor(): Cursor {
    return this.#cursor
  }

  get streams(): boolean {
    return this.#options.streams
  }

  get isOpen(): boolean {
    return this.#opening !== undefined
  }

  /** Whether the client could take the stream up again. */
  get resumable(): boolean {
    return this.#resumable
  }

  /** Resolves when a message has opened the stream. */
  get opened(): Promise<EventStream> {
    return this.#opened.promise
  }

  open(): Promise<EventStream> {
    this.#opening ??= this.#prime()
    return this.#opening
  }

  /** Sends a message; `change`: what the client has received with it. Resolves when it takes the next one. */
  async send(message: string, change: Partial<Cursor> = {}): Promise<void> {
    if (!this.streams) return
    const stream = await this.open()
    this.#cursor = { ...this.#cursor, ...change }
    const id = await this.#eventId()
    const sent = stream.send(message, id)
    this.#came()
    await sent
  }

  async close(): Promise<void> {
    this.#closed = true
    if (this.#opening) (await this.#opening).close()
  }

  async #prime(): Promise<EventStream> {
    const { exchange, caller, onGone } = this.#options
    const { request, services, principal } = exchange
    const stream = new EventStream({
      keepaliveMs: services.limits.keepaliveMs,
      signal: request.signal,
      expiresAt: principal.expiresAt,
    })
    stream.onEnd(() => {
      if (!this.#closed) onGone()
    })
    if (caller.revision === '2025-11-25') {
      stream.raw(`id: ${await this.#eventId()}\nretry: ${RETRY_MS}\ndata: \n\n`)
      this.#came()
    } else {
      stream.raw(`retry: ${RETRY_MS}\n\n`)
    }
    this.#opened.resolve(stream)
    return stream
  }

  #came(): void {
    if (this.#resumable) return
    this.#resumable = true
    this.#options.onResumable()
  }

  #eventId(): Promise<string> {
    const { services, principal } = this.#options.exchange
    return sealCursor(services.keys, principal.tenant, this.#cursor, this.expiresAt)
  }
}
