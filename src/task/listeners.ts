/**
 * The WebSockets that listen to a task. They hibernate with the object; what must survive is in their
 * attachments. Each is greeted with the present state, told of every change, and closed normally after
 * the last one. A socket that does not read is cut before it costs memory.
 *
 * Two kinds connect. A `feed` belongs to our own Worker and gets bare snapshots. At the `door` is a
 * client that speaks some protocol, which is not this module's business: see {@link DoorProtocol}.
 */

import { resultKeyOf } from './snapshot'

export type Attachment = {
  readonly kind: 'feed' | 'door'
  readonly tenant: string
  /** When the credentials it came with end, in milliseconds since the epoch. */
  readonly expiresAt: number | null
}

/** How frames at the door are read and written. Injected, so that this folder knows no protocol. */
export interface DoorProtocol {
  /** Frames for a client that has just connected. */
  greeting(taskId: string, snapshot: string): readonly string[]
  change(taskId: string, snapshot: string): string
  /** The answer to a frame of the client, or `undefined` when it needs none. */
  answer(frame: string | ArrayBuffer, task: DoorTask): Promise<string | undefined>
}

/** What a client at the door may do with the task, already bound to its tenant. */
export interface DoorTask {
  readonly taskId: string
  read(): Promise<string | null>
  update(inputResponses: unknown): Promise<boolean>
  cancel(): Promise<boolean>
}

export const CLOSE_NORMAL = 1000
const ENDED = 'The task has ended.'
const CLOSE_POLICY = 1008
const CLOSE_TOO_BIG = 1009
const CLOSE_TRY_LATER = 1013
/** Another socket has taken over the stream of this one. */
export const CLOSE_REPLACED = 4001
/** At most four changes a second; the latest wins. */
const COALESCE_MS = 250
/** Larger snapshots are not pushed: the listener is told to poll. */
const MAX_PUSH_CHARS = 256 * 1024
/** The runtime does not say how much it buffers for a socket, so this much unanswered is the end. */
const MAX_OUTSTANDING_CHARS = 4 * 1024 * 1024

export class Listeners {
  readonly #ctx: DurableObjectState
  readonly #door: DoorProtocol
  /** Characters sent since the last sign of life; forgotten with the instance, which errs on the safe side. */
  readonly #outstanding = new WeakMap<WebSocket, { chars: number; since: number }>()
  /** Sockets whose request is being answered now. */
  readonly #answering = new Map<WebSocket, 'open' | 'ended'>()
  /** When the first of the sockets' credentials end; not known after the object slept. */
  #firstExpiry: number | undefined
  #pending: { taskId: string; snapshot: string } | undefined
  #timer: ReturnType<typeof setTimeout> | undefined
  #lastPush = 0

  constructor(ctx: DurableObjectState, door: DoorProtocol) {
    this.#ctx = ctx
    this.#door = door
    ctx.setWebSocketAutoResponse(new WebSocketRequestResponsePair('ping', 'pong'))
  }

  /**
   * Takes a socket and greets it with the present state; `ended`: that is also the last one.
   * @param stream a stream that the socket feeds. One that comes back replaces its former socket.
   */
  accept(
    socket: WebSocket,
    attachment: Attachment,
    taskId: string,
    snapshot: string,
    ended: boolean,
    stream?: string,
  ): void {
    if (stream !== undefined) {
      for (const former of this.#ctx.getWebSockets(stream))
        closeQuietly(former, CLOSE_REPLACED, 'The stream was resumed elsewhere.')
    }
    this.#ctx.acceptWebSocket(socket, stream === undefined ? [] : [stream])
    socket.serializeAttachment(attachment)
    if (this.#firstExpiry !== undefined)
      this.#firstExpiry = Math.min(this.#firstExpiry, attachment.expiresAt ?? Infinity)
    const frames = attachment.kind === 'feed' ? [snapshot] : this.#door.greeting(taskId, snapshot)
    if (attachment.kind === 'door' && isElsewhere(snapshot)) refuseToPush(socket)
    else for (const frame of frames) this.#send(socket, frame)
    if (ended) closeQuietly(socket, CLOSE_NORMAL, ENDED)
  }

  /** Whether a socket feeds this stream now. */
  hasStream(stream: string): boolean {
    return this.#ctx.getWebSockets(stream).some(isOpen)
  }

  any(): boolean {
    return this.#ctx.getWebSockets().some(isOpen)
  }

  /** When the credentials of a socket end next, in milliseconds since the epoch; `Infinity` for never. */
  nextExpiry(): number {
    this.#firstExpiry ??= this.#ctx
      .getWebSockets()
      .filter(isOpen)
      .reduce((first, socket) => Math.min(first, attachmentOf(socket).expiresAt ?? Infinity), Infinity)
    return this.#firstExpiry
  }

  /** Closes the sockets whose credentials have ended. */
  closeExpired(): void {
    if (Date.now() < this.nextExpiry()) return
    for (const socket of this.#ctx.getWebSockets()) this.#refuseExpired(socket, attachmentOf(socket))
    this.#firstExpiry = undefined
  }

  /** Tells everybody; changes that come quickly are told as one. */
  changed(taskId: string, snapshot: () => string): void {
    if (this.#ctx.getWebSockets().length === 0) return
    this.#pending = { taskId, snapshot: snapshot() }
    if (this.#timer !== undefined) return
    const wait = this.#lastPush + COALESCE_MS - Date.now()
    if (wait <= 0) this.#flush()
    else this.#timer = setTimeout(() => this.#flush(), wait)
  }

  /** Tells everybody the last state, at once, and says goodbye. */
  ended(taskId: string, snapshot: () => string): void {
    if (this.#ctx.getWebSockets().length === 0) return
    this.#pending = { taskId, snapshot: snapshot() }
    this.#flush()
    this.#firstExpiry = undefined
    for (const socket of this.#ctx.getWebSockets()) {
      if (this.#answering.has(socket)) this.#answering.set(socket, 'ended')
      else closeQuietly(socket, CLOSE_NORMAL, ENDED)
    }
  }

  /** A frame of a client. Feeds only listen; `ping` is answered without waking the object. */
  async received(
    socket: WebSocket,
    frame: string | ArrayBuffer,
    task: (tenant: string) => DoorTask,
  ): Promise<void> {
    this.#outstanding.delete(socket)
    const attachment = attachmentOf(socket)
    if (attachment.kind === 'feed' || this.#refuseExpired(socket, attachment)) return
    this.#answering.set(socket, 'open')
    const answer = await this.#door.answer(frame, task(attachment.tenant))
    if (answer !== undefined) this.#send(socket, answer)
    // The request may have ended the task; its acknowledgement still goes out before the close.
    if (this.#answering.get(socket) === 'ended') closeQuietly(socket, CLOSE_NORMAL, ENDED)
    this.#answering.delete(socket)
  }

  #flush(): void {
    if (this.#timer !== undefined) clearTimeout(this.#timer)
    this.#timer = undefined
    const pending = this.#pending
    this.#pending = undefined
    if (!pending) return
    this.#lastPush = Date.now()
    const { taskId, snapshot } = pending
    let frame: string | undefined
    for (const socket of this.#ctx.getWebSockets()) {
      const attachment = attachmentOf(socket)
      if (this.#refuseExpired(socket, attachment)) continue
      if (attachment.kind === 'feed') this.#send(socket, snapshot)
      else if (isElsewhere(snapshot)) refuseToPush(socket)
      else this.#send(socket, (frame ??= this.#door.change(taskId, snapshot)))
    }
  }

  #send(socket: WebSocket, frame: string): void {
    if (!isOpen(socket)) return
    if (frame.length > MAX_PUSH_CHARS) {
      refuseToPush(socket)
      return
    }
    if (this.#count(socket, frame.length) > MAX_OUTSTANDING_CHARS) {
      closeQuietly(socket, CLOSE_TRY_LATER, 'Too slow; connect again for the present state.')
      return
    }
    try {
      socket.send(frame)
    } catch {
      // It went away between the check and the send; its close event is on the way.
    }
  }

  /** Adds to what the socket has not shown to have read. A `pong` that it asked for is a sign of life. */
  #count(socket: WebSocket, chars: number): number {
    const counted = this.#outstanding.get(socket)
    const alive = this.#ctx.getWebSocketAutoResponseTimestamp(socket)?.getTime() ?? 0
    const next = counted && counted.since >= alive ? counted : { chars: 0, since: Date.now() }
    next.chars += chars
    this.#outstanding.set(socket, next)
    return next.chars
  }

  #refuseExpired(socket: WebSocket, { expiresAt }: Attachment): boolean {
    if (expiresAt === null || Date.now() < expiresAt) return false
    closeQuietly(socket, CLOSE_POLICY, 'The credentials have expired; connect again with new ones.')
    return true
  }
}

/** The result is in a bucket, which the Worker reads, not this object. */
function isElsewhere(snapshot: string): boolean {
  return resultKeyOf(snapshot) !== undefined
}

function refuseToPush(socket: WebSocket): void {
  closeQuietly(socket, CLOSE_TOO_BIG, 'Too large to push; poll with tasks/get.')
}

/** `getWebSockets` also lists sockets that are closing. */
function isOpen(socket: WebSocket): boolean {
  return socket.readyState === WebSocket.OPEN
}

/** What `accept` wrote. */
function attachmentOf(socket: WebSocket): Attachment {
  return socket.deserializeAttachment() as Attachment
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
