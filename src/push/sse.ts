/**
 * A server-sent event stream. Owns its keepalive and the news that the client has gone: an idle
 * client that vanished quietly is noticed by the next write only, so the keepalive is the detector.
 *
 * Cloudflare's edge closes a stream that is idle for about five minutes; comments every 25 s or less
 * keep it, and clients' own body time-outs, at bay.
 */

const HEADERS = {
  'content-type': 'text/event-stream',
  'cache-control': 'no-cache, no-transform',
  'x-accel-buffering': 'no',
}
/** A client that takes nothing for this long is taken for gone. */
const STUCK_MS = 60_000
/** A comment, for whoever looks at the stream. */
const EXPIRED = ': the credentials have expired; connect again with new ones\n\n'
const encoder = new TextEncoder()

export interface EventStreamOptions {
  readonly keepaliveMs: number
  /** Aborted when the client goes away noisily. */
  readonly signal?: AbortSignal
  /**
   * When the caller's credentials end, in milliseconds since the epoch: nothing is sent after that, and
   * the stream ends within one keepalive. The client connects again with new ones.
   */
  readonly expiresAt?: number | undefined
}

export class EventStream {
  readonly response: Response
  readonly #gone = new AbortController()
  readonly #expiresAt: number
  readonly #keepalive: ReturnType<typeof setInterval>
  #controller: ReadableStreamDefaultController<Uint8Array> | undefined
  readonly #waiting = new Set<() => void>()
  #blockedSince: number | undefined
  #closed = false

  constructor({ keepaliveMs, signal, expiresAt = Infinity }: EventStreamOptions) {
    this.#expiresAt = expiresAt
    const stream = new ReadableStream<Uint8Array>({
      start: (controller) => {
        this.#controller = controller
      },
      pull: () => {
        this.#blockedSince = undefined
        this.#release()
      },
      cancel: () => this.#end(true),
    })
    this.response = new Response(stream, { headers: HEADERS })
    this.#keepalive = setInterval(() => this.#tick(), keepaliveMs)
    if (signal?.aborted) this.#end(true)
    signal?.addEventListener('abort', () => this.#end(true), { once: true })
  }

  /** Aborted when the client has gone, and when the stream was closed. */
  get signal(): AbortSignal {
    return this.#gone.signal
  }

  /** Calls back when the client has gone or the stream was closed: at once, if that is so already. */
  onEnd(callback: () => void): void {
    if (this.#closed) callback()
    else this.#gone.signal.addEventListener('abort', callback, { once: true })
  }

  /** Sends one message; resolves when the client can take the next one. Nothing is sent to a client that has gone. */
  async send(message: string, id?: string): Promise<void> {
    this.raw(`${id === undefined ? '' : `id: ${id}\n`}event: message\ndata: ${message}\n\n`)
    if (this.#closed || (this.#controller?.desiredSize ?? 0) > 0) return
    this.#blockedSince ??= Date.now()
    await new Promise<void>((resolve) => {
      this.#waiting.add(resolve)
    })
  }

  /** Sends a frame as it is. */
  raw(frame: string): void {
    if (this.#closed) return
    const expired = Date.now() >= this.#expiresAt
    try {
      this.#controller?.enqueue(encoder.encode(expired ? EXPIRED : frame))
    } catch {
      this.#end(true)
    }
    if (expired) this.#end(false)
  }

  /** Ends the stream in good order. */
  close(): void {
    this.#end(false)
  }

  #tick(): void {
    const now = Date.now()
    if (this.#blockedSince === undefined) this.raw(': keepalive\n\n')
    // Behind a message that the client does not take, a comment would only queue up.
    else if (now - this.#blockedSince > STUCK_MS || now >= this.#expiresAt) this.#end(true)
  }

  #end(gone: boolean): void {
    if (this.#closed) return
    this.#closed = true
    clearInterval(this.#keepalive)
    try {
      if (gone) this.#controller?.error(new Error('The client has gone.'))
      else this.#controller?.close()
    } catch {
      // Cancelled by the client: already closed.
    }
    this.#gone.abort()
    this.#release()
  }

  #release(): void {
    for (const resolve of this.#waiting) resolve()
    this.#waiting.clear()
  }
}
