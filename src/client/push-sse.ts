/**
 * Push over server-sent events: one `subscriptions/listen` stream for all tasks that are watched at an
 * endpoint, because browsers allow few connections to a host. A stream's tasks are fixed when it opens, so a new
 * task means a new stream; the old one ends when the new one is agreed.
 */
import { isObject } from '../json.ts'
import { INVALID_PARAMS, METHOD_NOT_FOUND } from '../protocol/names.ts'
import { type Clock, sleep, Timer } from './clock.ts'
import type { Endpoint } from './endpoint.ts'
import { HttpError, ServerError, TasksError } from './errors.ts'
import { acceptedTasks } from './push-websocket.ts'
import { type PushEnd, type PushSink, type PushSource, REST_MS } from './push.ts'
import { parse } from './response.ts'
import { readTask } from './wire.ts'

interface Watcher {
  readonly taskId: string
  readonly sink: PushSink
  readonly end: (end: PushEnd) => void
  /** The stream that serves it, once one has agreed to. */
  stream: Stream | undefined
}

interface Stream {
  readonly watchers: readonly Watcher[]
  readonly controller: AbortController
}

/** Tasks that begin together share a stream. */
const GATHER_MS = 20
const OPEN_TIMEOUT_MS = 15_000

export class SsePush implements PushSource {
  readonly via = 'sse'
  readonly #endpoint: Endpoint
  readonly #clock: Clock
  readonly #watchers = new Set<Watcher>()
  #opening = false
  #restUntil = 0

  constructor(endpoint: Endpoint) {
    this.#endpoint = endpoint
    this.#clock = endpoint.clock
  }

  restMs(): number {
    return Math.max(0, this.#restUntil - this.#clock.now())
  }

  watch(taskId: string, sink: PushSink, signal: AbortSignal): Promise<PushEnd> {
    return new Promise((resolve) => {
      if (signal.aborted) return resolve('dropped')
      if (this.restMs() > 0) return resolve('refused')
      const abort = () => watcher.end('dropped')
      const watcher: Watcher = {
        taskId,
        sink,
        stream: undefined,
        end: (end) => {
          signal.removeEventListener('abort', abort)
          this.#watchers.delete(watcher)
          const { stream } = watcher
          if (stream?.watchers.every((other) => !this.#watchers.has(other))) stream.controller.abort()
          resolve(end)
        },
      }
      signal.addEventListener('abort', abort, { once: true })
      this.#watchers.add(watcher)
      void this.#openForWaiting()
    })
  }

  /** Opens a stream for everybody while somebody has none. One opening at a time. */
  async #openForWaiting(): Promise<void> {
    if (this.#opening) return
    this.#opening = true
    while ([...this.#watchers].some((watcher) => !watcher.stream)) {
      await sleep(this.#clock, GATHER_MS)
      const stream: Stream = { watchers: [...this.#watchers], controller: new AbortController() }
      if (stream.watchers.length > 0) await this.#open(stream)
    }
    this.#opening = false
  }

  /** Resolves when the stream is agreed, or failed; then it goes on by itself. */
  #open(stream: Stream): Promise<void> {
    return new Promise((settled) => {
      const timer = new Timer(this.#clock)
      timer.set(OPEN_TIMEOUT_MS, () => stream.controller.abort())
      const agreed = () => {
        timer.clear()
        settled()
      }
      this.#listen(stream, agreed)
        .catch((error: unknown) => this.#classify(error))
        .then((end) => {
          agreed()
          stream.controller.abort()
          for (const watcher of stream.watchers) {
            // Whoever has another stream by now is not concerned.
            if (watcher.stream === undefined || watcher.stream === stream) watcher.end(end)
          }
        })
        // Nothing above throws; a listener's own fault must not become an unhandled rejection.
        .catch(() => agreed())
    })
  }

  async #listen(stream: Stream, agreed: () => void): Promise<PushEnd> {
    const { signal } = stream.controller
    const taskIds = [...new Set(stream.watchers.map(({ taskId }) => taskId))]
    const { requestId, items } = await this.#endpoint.open(
      'subscriptions/listen',
      { notifications: { taskIds } },
      { signal, timeoutMs: OPEN_TIMEOUT_MS },
    )
    for await (const item of items) {
      if (signal.aborted) return 'dropped'
      const message = item.kind === 'event' ? parse(item.data) : undefined
      if (!isObject(message)) continue
      const params = isObject(message['params']) ? message['params'] : {}
      if (message['method'] === 'notifications/subscriptions/acknowledged') {
        this.#adopt(stream, acceptedTasks(params))
        agreed()
      } else if (message['method'] === 'notifications/tasks') {
        this.#deliver(stream, params)
      } else if (message['id'] === requestId && message['result'] !== undefined) {
        return 'finished'
      } else if (isObject(message['error'])) {
        return 'dropped'
      }
    }
    return 'dropped'
  }

  /** The server agreed: these tasks are told from here from now on. */
  #adopt(stream: Stream, accepted: readonly unknown[]): void {
    for (const watcher of stream.watchers) {
      if (!this.#watchers.has(watcher)) continue
      if (!accepted.includes(watcher.taskId)) {
        watcher.end('unsuitable')
        continue
      }
      const before = watcher.stream
      watcher.stream = stream
      if (before && this.#servedBy(before).length === 0) before.controller.abort()
      watcher.sink.live()
    }
  }

  #deliver(stream: Stream, params: Record<string, unknown>): void {
    const watchers = this.#servedBy(stream).filter(({ taskId }) => taskId === params['taskId'])
    if (watchers.length === 0) return
    try {
      const task = readTask(params)
      for (const { sink } of watchers) sink.snapshot(task)
    } catch (error) {
      // A notification that is none: these tasks are better looked at.
      if (!(error instanceof TasksError)) throw error
      for (const watcher of watchers) watcher.end('unsuitable')
    }
  }

  #servedBy(stream: Stream): Watcher[] {
    return stream.watchers.filter((watcher) => watcher.stream === stream && this.#watchers.has(watcher))
  }

  #classify(error: unknown): PushEnd {
    if (!isRefusal(error)) return 'dropped'
    this.#restUntil = this.#clock.now() + REST_MS
    return 'refused'
  }
}

/** Whether this says that the server has no such stream, rather than that it went wrong. */
function isRefusal(error: unknown): boolean {
  if (error instanceof HttpError) return [404, 405, 406, 410, 426, 501].includes(error.status)
  if (error instanceof ServerError) {
    return error.error.code === METHOD_NOT_FOUND || error.error.code === INVALID_PARAMS
  }
  return error instanceof TasksError && !error.transient
}
