/** The Worker's end of a socket to one of our objects: what came over it, one message after another. */

/** A ping at this interval is a sign of life in both directions; the object answers it asleep. */
const PING_MS = 20_000

export type News =
  | { readonly kind: 'message'; readonly text: string }
  | { readonly kind: 'closed'; readonly code: number }
  | { readonly kind: 'aborted' }

export class Inbox {
  readonly #socket: WebSocket
  readonly #signal: AbortSignal
  readonly #ping: ReturnType<typeof setInterval>
  readonly #keep: 'latest' | 'all'
  #messages: string[] = []
  #closed: number | undefined
  #waiting: (() => void) | undefined
  #silent = false

  /** `latest`: a message replaces one that was not read yet, so that a slow reader costs no memory. */
  constructor(socket: WebSocket, signal: AbortSignal, keep: 'latest' | 'all') {
    this.#keep = keep
    this.#socket = socket
    this.#signal = signal
    socket.addEventListener('message', ({ data }) => {
      this.#silent = false
      if (typeof data === 'string' && data !== 'pong') this.#take(data)
      this.#waiting?.()
    })
    socket.addEventListener('close', ({ code }) => this.#close(code))
    socket.addEventListener('error', () => this.#close(1006))
    signal.addEventListener('abort', this.#wake, { once: true })
    socket.accept()
    this.#ping = setInterval(() => this.#sendPing(), PING_MS)
  }

  async next(): Promise<News> {
    for (;;) {
      if (this.#signal.aborted) return { kind: 'aborted' }
      const text = this.#messages.shift()
      if (text !== undefined) return { kind: 'message', text }
      if (this.#closed !== undefined) return { kind: 'closed', code: this.#closed }
      await new Promise<void>((resolve) => {
        this.#waiting = resolve
      })
    }
  }

  close(): void {
    clearInterval(this.#ping)
    this.#signal.removeEventListener('abort', this.#wake)
    try {
      this.#socket.close(1000)
    } catch {
      // Already closed.
    }
  }

  #take(text: string): void {
    if (this.#keep === 'latest') this.#messages = [text]
    else this.#messages.push(text)
  }

  readonly #wake = () => this.#waiting?.()

  #sendPing(): void {
    if (this.#silent) return this.#close(1006)
    this.#silent = true
    try {
      this.#socket.send('ping')
    } catch {
      this.#close(1006)
    }
  }

  #close(code: number): void {
    this.#closed ??= code
    this.#waiting?.()
  }
}
