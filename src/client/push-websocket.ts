/**
 * Push over one WebSocket per task, at `<endpoint>/tasks/<task id>`. Longhaul servers have this door, most
 * others do not: a socket that does not open is taken for a no, and not knocked at again for a while.
 */
import { isObject } from '../json.ts'
import { type Clock, Timer } from './clock.ts'
import { base64Url } from './header-value.ts'
import { type PushEnd, type PushSink, type PushSource, REST_MS } from './push.ts'
import { parse } from './response.ts'
import { isTerminal, readTask } from './wire.ts'

/** What is used of a WebSocket: browsers, Node and Workers agree on this much. */
export interface Socket {
  send(data: string): void
  close(code?: number, reason?: string): void
  addEventListener(type: 'open' | 'error', listener: () => void): void
  addEventListener(type: 'close', listener: (event: { readonly code: number }) => void): void
  addEventListener(type: 'message', listener: (event: { readonly data: unknown }) => void): void
}

export type SocketConstructor = new (url: string, protocols: string[]) => Socket

export interface WebSocketPushOptions {
  /** The MCP endpoint. */
  readonly url: string
  readonly WebSocket: SocketConstructor
  readonly token: () => Promise<string | undefined>
  readonly clock: Clock
  /** To open, and then to agree. Default 10 s. */
  readonly openTimeoutMs?: number
  /** A silent socket is pinged after this long, and given up after half as long again. Default 20 s. */
  readonly pingMs?: number
}

const CLOSE_FOLLOWS_MS = 1_000

/** The close codes that mean something here; the last two are the door's (RFC 6455, 7.4). */
const NORMAL = 1000
const POLICY_VIOLATION = 1008
const TOO_BIG = 1009

export class WebSocketPush implements PushSource {
  readonly via = 'websocket'
  readonly #options: WebSocketPushOptions
  #restUntil = 0
  #known = false
  /** The first attempt finds out for all that come meanwhile. */
  #first: Promise<unknown> | undefined

  constructor(options: WebSocketPushOptions) {
    this.#options = options
  }

  restMs(): number {
    return Math.max(0, this.#restUntil - this.#options.clock.now())
  }

  async watch(taskId: string, sink: PushSink, signal: AbortSignal): Promise<PushEnd> {
    if (!this.#known && this.#first) await this.#first
    if (this.restMs() > 0) return 'refused'
    let decided: () => void = () => {}
    if (!this.#known) this.#first = new Promise<void>((resolve) => (decided = resolve))
    try {
      const token = await this.#options.token()
      const end = await this.#run(taskId, token, signal, {
        ...sink,
        live: () => {
          this.#known = true
          decided()
          sink.live()
        },
      })
      if (end !== 'refused') return end
      // Where it worked before, a socket that does not open is bad luck.
      if (this.#known) return 'dropped'
      if (!signal.aborted) this.#restUntil = this.#options.clock.now() + REST_MS
      return end
    } catch {
      // The token could not be had, or the address is none for a socket; looking goes on.
      return 'dropped'
    } finally {
      this.#first = undefined
      decided()
    }
  }

  #run(taskId: string, token: string | undefined, signal: AbortSignal, sink: PushSink): Promise<PushEnd> {
    const { clock, WebSocket, openTimeoutMs = 10_000, pingMs = 20_000 } = this.#options
    return new Promise((resolve) => {
      if (signal.aborted) return resolve('dropped')
      const protocols = token === undefined ? ['mcp'] : ['mcp', `longhaul.bearer.${base64Url(token)}`]
      const socket = new WebSocket(socketUrl(this.#options.url, taskId), protocols)
      const timer = new Timer(clock)
      let isOver = false
      let isOpen = false
      let isLive = false
      let sawEnd = false

      const stop = (end: PushEnd, reason = 'Thank you.') => {
        // Closing a socket that never opened makes some runtimes tell an error at once.
        if (isOver) return
        isOver = true
        timer.clear()
        signal.removeEventListener('abort', abort)
        closeQuietly(socket, reason)
        resolve(end)
      }
      const abort = () => stop('dropped')
      const expectMore = () => {
        if (!isLive) return
        timer.set(pingMs, () => {
          timer.set(pingMs / 2, () => stop('dropped', 'No sign of life.'))
          sendQuietly(socket, 'ping')
        })
      }
      const live = () => {
        if (isLive) return
        isLive = true
        sink.live()
      }

      signal.addEventListener('abort', abort, { once: true })
      timer.set(openTimeoutMs, () => stop('refused'))
      socket.addEventListener('open', () => {
        if (isOver) return closeQuietly(socket, 'Too late.')
        isOpen = true
        timer.set(openTimeoutMs, () => stop('refused', 'No acknowledgement.'))
      })
      socket.addEventListener('message', ({ data }) => {
        if (isOver) return
        const message = typeof data === 'string' ? parse(data) : undefined
        const told = isObject(message) ? message : {}
        const params = isObject(told['params']) ? told['params'] : {}
        if (told['method'] === 'notifications/subscriptions/acknowledged') {
          if (!acceptedTasks(params).includes(taskId)) return stop('unsuitable')
          live()
        } else if (told['method'] === 'notifications/tasks') {
          live()
          try {
            const task = readTask(params)
            if (task.taskId !== taskId) return
            sawEnd = isTerminal(task.status)
            sink.snapshot(task)
          } catch {
            return stop('dropped', 'Not a task.')
          }
        }
        if (!isOver) expectMore()
      })
      socket.addEventListener('close', ({ code }) => {
        if (code === TOO_BIG) stop('unsuitable')
        else if (sawEnd || (isLive && code === NORMAL)) stop('finished')
        else stop(isOpen && code !== POLICY_VIOLATION ? 'dropped' : 'refused')
      })
      socket.addEventListener('error', () => {
        // Node 22 tells no close after a handshake that failed; after one that went well it does.
        if (isOpen) timer.set(CLOSE_FOLLOWS_MS, () => stop('dropped'))
        else stop('refused')
      })
    })
  }
}

/** The ids in the parameters of an acknowledgement. */
export function acceptedTasks(params: Record<string, unknown>): readonly unknown[] {
  const accepted = isObject(params['notifications']) ? params['notifications']['taskIds'] : undefined
  return Array.isArray(accepted) ? accepted : []
}

function socketUrl(endpoint: string, taskId: string): string {
  const url = new URL(endpoint)
  url.protocol = url.protocol === 'http:' ? 'ws:' : 'wss:'
  url.pathname = `${url.pathname.replace(/\/$/, '')}/tasks/${encodeURIComponent(taskId)}`
  url.search = ''
  url.hash = ''
  return url.href
}

function closeQuietly(socket: Socket, reason: string): void {
  try {
    socket.close(NORMAL, reason)
  } catch {
    // Closed already, or never opened.
  }
}

function sendQuietly(socket: Socket, data: string): void {
  try {
    socket.send(data)
  } catch {
    // Its close event is on the way.
  }
}
