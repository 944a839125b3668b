/**
 * Follows a task from the Worker: its state now, and every change, over one hibernatable WebSocket to
 * the object, so that an idle follower costs no object time. Connects again when the object restarts;
 * the present state comes first each time, so nothing is missed. A slow reader gets the latest state,
 * not a backlog.
 */
import { backoffMs } from '../retry'
import { hasEnded } from '../task/snapshot'

export interface TaskFeed {
  /** A connected, not yet accepted socket; `null` when there is no such task for this tenant. */
  open(): Promise<WebSocket | null>
  /** The state by a plain call, for what is too large to push. */
  read(): Promise<string | null>
}

/** A ping at this interval is a sign of life in both directions; the object answers it asleep. */
const PING_MS = 20_000
const RECONNECT = { delayMs: 200, maxDelayMs: 5_000 }
const CLOSE_TOO_BIG = 1009

/**
 * Snapshots, as JSON text. Ends after the terminal one, when the task is gone, or when `signal` aborts.
 * @param first a socket that was opened already.
 */
export async function* follow(
  feed: TaskFeed,
  signal: AbortSignal,
  first?: WebSocket,
): AsyncGenerator<string, void, undefined> {
  let last: string | undefined
  for (let attempt = 0; !signal.aborted; attempt++) {
    if (attempt > 0) await pause(backoffMs(RECONNECT, attempt) + 50, signal)
    let socket: WebSocket | null
    try {
      socket = attempt === 0 && first ? first : await feed.open()
    } catch {
      // The object cannot be reached now.
      continue
    }
    if (!socket) return
    const inbox = new Inbox(socket, signal)
    try {
      for (;;) {
        const news = await inbox.next()
        if (news.kind === 'closed' && news.code !== CLOSE_TOO_BIG) break
        if (news.kind === 'aborted') return
        const snapshot = news.kind === 'snapshot' ? news.snapshot : await feed.read()
        if (snapshot === null) return
        attempt = 0
        if (snapshot !== last) yield snapshot
        last = snapshot
        if (hasEnded(snapshot)) return
        if (news.kind === 'closed') break
      }
    } finally {
      inbox.close()
    }
  }
}

type News =
  | { readonly kind: 'snapshot'; readonly snapshot: string }
  | { readonly kind: 'closed'; readonly code: number }
  | { readonly kind: 'aborted' }

/** The latest that came over a socket. */
class Inbox {
  readonly #socket: WebSocket
  readonly #signal: AbortSignal
  readonly #ping: ReturnType<typeof setInterval>
  #latest: string | undefined
  #closed: number | undefined
  #waiting: (() => void) | undefined
  #silent = false

  constructor(socket: WebSocket, signal: AbortSignal) {
    this.#socket = socket
    this.#signal = signal
    socket.addEventListener('message', ({ data }) => {
      this.#silent = false
      if (typeof data === 'string' && data !== 'pong') this.#latest = data
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
      const snapshot = this.#latest
      if (snapshot !== undefined) {
        this.#latest = undefined
        return { kind: 'snapshot', snapshot }
      }
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

async function pause(ms: number, signal: AbortSignal): Promise<void> {
  await scheduler.wait(ms, { signal }).catch(() => undefined)
}
