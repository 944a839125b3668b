/**
 * Follows one task to its end: looks at it at the server's pace, and is told by push where that
 * works. While a push is alive, looks only make sure that it is; when it breaks they take over
 * at once, and the push is tried again behind them. Both feed one timeline, so nothing is told twice.
 */
import { INVALID_PARAMS } from '../protocol/names.ts'
import { asError, type Clock, sleep, Timer } from './clock.ts'
import type { Endpoint } from './endpoint.ts'
import { ServerError, TaskExpiredError, TaskNotFoundError, TasksError } from './errors.ts'
import { floorMs, intervalMs, jitter, type PollOptions, retryMs } from './pace.ts'
import type { PushEnd, PushSource } from './push.ts'
import { Timeline } from './timeline.ts'
import { readTaskAnswer, type Task } from './wire.ts'

export type Via = 'call' | 'poll' | 'sse' | 'websocket'

export interface FollowerOptions {
  readonly taskId: string
  readonly endpoint: Endpoint
  /** In order of preference. */
  readonly sources: readonly PushSource[]
  readonly poll: PollOptions
  /** When this client heard of the task first, if it did; milliseconds since the epoch. */
  readonly bornAt: number | undefined
  /** Called for each change, in order; never after `failed` or the end. */
  readonly changed: (task: Task, via: Via) => void
  /** Following is given up. */
  readonly failed: (error: Error) => void
}

/** After so long (or five intervals) without news, a look makes sure that there are none. */
const SILENCE_MS = 60_000
const SILENT_INTERVALS = 5
/** A push that kept back news so often is not used for this task again. */
const MOST_MISSES = 2
/** A push that lasted so long did work. */
const LASTING_MS = 5_000
/** On top of a time-to-live before the task is given up: clocks differ, and news takes a while. */
const GRACE_MS = 5_000

export class Follower {
  readonly #options: FollowerOptions
  readonly #clock: Clock
  readonly #timeline = new Timeline()
  readonly #stopped = new AbortController()
  readonly #timer: Timer
  /** Ends the push that has shown to work, while one does. */
  #push: AbortController | undefined
  #misses = 0
  #looking = false
  #lastLook = Number.NEGATIVE_INFINITY
  #lastTold = 0
  #notBefore = 0
  #unchanged = 0
  #failures = 0
  #jitter: number

  constructor(options: FollowerOptions) {
    this.#options = options
    this.#clock = options.endpoint.clock
    this.#timer = new Timer(this.#clock)
    this.#jitter = jitter(this.#clock.random())
  }

  /** @param seed what is known already; without it, or when the task is over, the first look is at once. */
  start(seed: Task | undefined, lookNow: boolean): void {
    if (seed) this.#take(seed, this.#timeline.mark, 'call')
    if (seed && !lookNow) this.#lastLook = this.#clock.now()
    this.#arm()
    if (this.#options.sources.length > 0) void this.#keepPushed()
  }

  /** Something was sent that may change the task: waits that had grown long start anew. */
  hurry(): void {
    this.#unchanged = 0
    this.#arm()
  }

  stop(): void {
    this.#stopped.abort()
    this.#timer.clear()
  }

  #fail(error: Error): void {
    if (this.#stopped.signal.aborted) return
    this.stop()
    this.#options.failed(error)
  }

  /** Returns whether the snapshot was new. */
  #take(task: Task, since: number, via: Via): boolean {
    const verdict = this.#timeline.take(task, since)
    if (verdict === 'new') {
      this.#unchanged = 0
      if (this.#timeline.ended) this.stop()
      this.#options.changed(task, via)
    }
    return verdict === 'new'
  }

  // Looking

  #arm(): void {
    if (this.#stopped.signal.aborted || this.#looking) return
    this.#timer.set(this.#due() - this.#clock.now(), () => void this.#look())
  }

  #due(): number {
    const { poll } = this.#options
    const floor = floorMs(this.#timeline.current?.pollIntervalMs, poll)
    const wait = this.#push
      ? this.#lastTold + Math.max(SILENCE_MS, SILENT_INTERVALS * floor) * this.#jitter
      : this.#lastLook + intervalMs(floor, this.#unchanged, this.#failures, poll) * this.#jitter
    const expiry = this.#expiresAt() - this.#clock.date() + this.#clock.now()
    return Math.max(Math.min(wait, expiry), this.#lastLook + floor * this.#jitter, this.#notBefore)
  }

  async #look(): Promise<void> {
    const { endpoint, taskId, poll } = this.#options
    const { signal } = this.#stopped
    const since = this.#timeline.mark
    const wasPushed = this.#push
    this.#looking = true
    try {
      const params = { taskId }
      const result = await endpoint.request('tasks/get', params, { signal, timeoutMs: poll.timeoutMs })
      const task = readTaskAnswer(result, taskId)
      this.#looked()
      this.#failures = 0
      const isNew = this.#take(task, since, 'poll')
      if (!isNew) this.#unchanged += 1
      else if (wasPushed && wasPushed === this.#push) {
        // It should have told: it is not to be relied on.
        this.#misses += 1
        wasPushed.abort()
      }
    } catch (error) {
      if (signal.aborted) return
      this.#looked()
      this.#missed(asError(error))
    }
    if (this.#clock.date() >= this.#expiresAt()) this.#fail(new TaskExpiredError(taskId))
    this.#arm()
  }

  #looked(): void {
    this.#looking = false
    this.#lastLook = this.#clock.now()
    this.#lastTold = this.#lastLook
    this.#notBefore = 0
    this.#jitter = jitter(this.#clock.random())
  }

  /** A look failed: whether that is the end depends on why, and how often. */
  #missed(error: Error): void {
    const { taskId, poll } = this.#options
    if (error instanceof ServerError && error.error.code === INVALID_PARAMS) {
      return this.#fail(new TaskNotFoundError(taskId, error.error.message))
    }
    if (!(error instanceof TasksError) || !error.transient) return this.#fail(error)
    if (error.retryAfterMs !== undefined) {
      // The server is well and says when: that is no failure, however often.
      this.#notBefore = this.#clock.now() + error.retryAfterMs * this.#jitter
      return
    }
    this.#failures += 1
    if (this.#failures >= poll.maxFailures && !this.#push) this.#fail(error)
  }

  /** By this client's clock; `Infinity` while there is no limit. */
  #expiresAt(): number {
    const task = this.#timeline.current
    const bornAt = this.#options.bornAt ?? Date.parse(task?.createdAt ?? '')
    if (!task || task.ttlMs === null || Number.isNaN(bornAt)) return Number.POSITIVE_INFINITY
    return bornAt + task.ttlMs + GRACE_MS
  }

  // Being told

  /** Tries the sources in turn, for as long as the task is followed. */
  async #keepPushed(): Promise<void> {
    const { signal } = this.#stopped
    let attempt = 0
    while (!signal.aborted) {
      let worked = false
      for (const source of this.#options.sources) {
        if (source.restMs() > 0) continue
        const { end, lasted } = await this.#pushedBy(source)
        if (end === 'unsuitable' || this.#misses >= MOST_MISSES || signal.aborted) return
        worked = lasted
        if (worked) break
      }
      attempt = worked ? 1 : attempt + 1
      const rest = Math.min(...this.#options.sources.map((source) => source.restMs()))
      try {
        await sleep(this.#clock, Math.max(rest, retryMs(attempt, this.#clock.random())), signal)
      } catch {
        return
      }
    }
  }

  async #pushedBy(source: PushSource): Promise<{ end: PushEnd; lasted: boolean }> {
    const push = new AbortController()
    const stop = () => push.abort()
    this.#stopped.signal.addEventListener('abort', stop, { once: true })
    const since = { mark: this.#timeline.mark, time: Number.POSITIVE_INFINITY }
    const end = await source.watch(
      this.#options.taskId,
      {
        live: () => {
          since.time = this.#clock.now()
        },
        snapshot: (task) => {
          if (push.signal.aborted) return
          // Only now: an agreement to tell is not worth as much as being told.
          this.#push = push
          this.#lastTold = this.#clock.now()
          this.#failures = 0
          this.#take(task, since.mark, source.via)
          since.mark = this.#timeline.mark
          this.#arm()
        },
      },
      push.signal,
    )
    this.#stopped.signal.removeEventListener('abort', stop)
    const now = this.#clock.now()
    if (this.#push === push) {
      this.#push = undefined
      // When a server goes down it drops everybody at once; they do not all come back at once.
      const floor = floorMs(this.#timeline.current?.pollIntervalMs, this.#options.poll)
      this.#notBefore = Math.max(this.#notBefore, now + floor * (this.#jitter - 1))
      this.#arm()
    }
    return { end, lasted: now - since.time >= LASTING_MS }
  }
}
