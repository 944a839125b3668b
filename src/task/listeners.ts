/**
 * The WebSockets that listen to a task. They hibernate with the object; nothing about them is
 * kept in memory. Each receives the snapshot when it connects, one per change after that, and
 * a normal close after the terminal one.
 */

/** At most four a second; what a listener cannot see anyway is not sent. */
const COALESCE_MS = 250
/** Larger snapshots are not pushed: the listener is told to poll. */
export const MAX_PUSH_CHARS = 256 * 1024

export const CLOSE_NORMAL = 1000
export const CLOSE_TOO_BIG = 1009

export class Listeners {
  readonly #ctx: DurableObjectState
  #pending: string | undefined
  #timer: ReturnType<typeof setTimeout> | undefined
  #lastPush = 0

  constructor(ctx: DurableObjectState) {
    this.#ctx = ctx
    ctx.setWebSocketAutoResponse(new WebSocketRequestResponsePair('ping', 'pong'))
  }

  /** Takes a socket and greets it with the present state. */
  accept(socket: WebSocket, snapshot: string): void {
    this.#ctx.acceptWebSocket(socket)
    sendQuietly(socket, snapshot)
  }

  /** Tells everybody; changes that come quickly are told as one, the latest wins. */
  changed(snapshot: string): void {
    if (this.#ctx.getWebSockets().length === 0) return
    this.#pending = snapshot
    if (this.#timer !== undefined) return
    const wait = this.#lastPush + COALESCE_MS - Date.now()
    if (wait <= 0) this.#flush()
    else this.#timer = setTimeout(() => this.#flush(), wait)
  }

  /** Tells everybody the last state, at once, and says goodbye. */
  ended(snapshot: string): void {
    this.#pending = snapshot
    this.#flush()
    for (const socket of this.#ctx.getWebSockets()) closeQuietly(socket, CLOSE_NORMAL, 'The task has ended.')
  }

  #flush(): void {
    if (this.#timer !== undefined) clearTimeout(this.#timer)
    this.#timer = undefined
    const snapshot = this.#pending
    this.#pending = undefined
    if (snapshot === undefined) return
    this.#lastPush = Date.now()
    for (const socket of this.#ctx.getWebSockets()) sendQuietly(socket, snapshot)
  }
}

function sendQuietly(socket: WebSocket, snapshot: string): void {
  if (socket.readyState !== WebSocket.OPEN && socket.readyState !== WebSocket.CONNECTING) return
  if (snapshot.length > MAX_PUSH_CHARS) {
    closeQuietly(socket, CLOSE_TOO_BIG, 'Too large to push; poll with tasks/get.')
    return
  }
  try {
    socket.send(snapshot)
  } catch {
    // It went away between the check and the send; its close event is on the way.
  }
}

/** Completes a close handshake. The codes 1005, 1006 and 1015 are never sent (RFC 6455, 7.4.1). */
export function closeQuietly(socket: WebSocket, code: number, reason = ''): void {
  const sendable = code === 1005 || code === 1006 || code === 1015 ? CLOSE_NORMAL : code
  try {
    socket.close(sendable, reason)
  } catch {
    // Already closed.
  }
}
