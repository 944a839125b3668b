/**
 * A run's hold on its task: the fence token, the heartbeat that keeps the lease and brings back a
 * wish to cancel, and the calls to the object, each on a fresh stub.
 */
import { fault } from '../observe/observer'
import type { ProgressNote, RunReply, TaskApi } from '../task/types'
import { CancelledError, LeaseLostError, UnreachableError } from './errors'
import { callTask, type TaskStubs } from './stub'

/** How often a run checks in. */
const BEAT_MS = 1_000
/** Status changes that come faster are told as one, the latest wins. */
const NOTE_EVERY_MS = 250

export class Lease {
  readonly #stubs: TaskStubs
  readonly #taskId: string
  readonly #token: string
  readonly #abort = new AbortController()
  readonly #ended = new AbortController()
  readonly #loss = Promise.withResolvers<void>()
  #cancelled: boolean
  #lost = false
  #note: ProgressNote | undefined
  /** A note that was shown by an earlier run: it waits for the next write. */
  #repeated: ProgressNote | undefined
  #noteSentAt = 0

  constructor(stubs: TaskStubs, taskId: string, token: string, cancelled: boolean) {
    this.#stubs = stubs
    this.#taskId = taskId
    this.#token = token
    this.#cancelled = cancelled
    if (cancelled) this.#abort.abort(new CancelledError('The task was cancelled.'))
  }

  /** Aborted by cancellation and by the loss of the lease. */
  get signal(): AbortSignal {
    return this.#abort.signal
  }

  get cancelled(): boolean {
    return this.#cancelled
  }

  get lost(): boolean {
    return this.#lost
  }

  /** @throws CancelledError, LeaseLostError */
  checkCancelled(): void {
    if (this.#lost) throw new LeaseLostError('Another run has taken over.')
    if (this.#cancelled) throw new CancelledError('The task was cancelled.')
  }

  /** Resolves when the lease is lost. */
  get whenLost(): Promise<void> {
    return this.#loss.promise
  }

  /**
   * One call to the object under the token. Either error ends the run, and the tool must not take it for
   * a failure of its own: what this run could not write is done again by the next one.
   * @throws LeaseLostError when the object refuses the token; UnreachableError.
   */
  async write(
    call: (task: TaskApi, token: string, note: ProgressNote | undefined) => Promise<RunReply>,
  ): Promise<void> {
    this.#note = this.#repeated ?? this.#note
    this.#repeated = undefined
    const note = this.#note
    let reply: RunReply
    try {
      reply = await callTask(this.#stubs, this.#taskId, (task) => call(task, this.#token, note))
    } catch (error) {
      fault({ event: 'task_unreachable', task: this.#taskId }, error)
      this.#lose('The task could not be reached.')
      throw new UnreachableError(`The task could not be reached: ${String(error)}`)
    }
    this.#take(reply)
    if (reply.lost) throw new LeaseLostError('Another run has taken over.')
  }

  /** Shows a status text: at once, or with the next sign of life when they come in quick succession. */
  async note(note: ProgressNote): Promise<void> {
    this.#note = note
    this.#repeated = undefined
    const now = Date.now()
    if (now - this.#noteSentAt < NOTE_EVERY_MS) return
    this.#noteSentAt = now
    await this.#beat()
    if (this.#lost) throw new LeaseLostError('Another run has taken over.')
  }

  /** A status text from a part of the tool that an earlier run has been through: not news. */
  repeat(note: ProgressNote): void {
    this.#repeated = note
  }

  /** Checks in until `end` is called, or until `until`, when the run is given up. */
  async keep(until: number): Promise<void> {
    const { signal } = this.#ended
    while (!signal.aborted && !this.#lost) {
      if (Date.now() >= until) return this.#lose('The run took too long.')
      await scheduler.wait(BEAT_MS, { signal }).catch(() => undefined)
      if (!signal.aborted) await this.#beat()
    }
  }

  /** The run is over: no more signs of life, and what the tool left running is told to stop. */
  end(): void {
    this.#ended.abort()
    this.#abort.abort(new Error('The run is over.'))
  }

  async #beat(): Promise<void> {
    try {
      this.#take(await callTask(this.#stubs, this.#taskId, (task) => task.beat(this.#token, this.#note)))
    } catch {
      // The object cannot be reached now. The lease bears several missed beats.
    }
  }

  #take(reply: RunReply): void {
    if (reply.lost) {
      this.#lose('Another run has taken over.')
    } else if (reply.cancelRequested && !this.#cancelled) {
      this.#cancelled = true
      this.#abort.abort(new CancelledError('The task was cancelled.'))
    }
  }

  #lose(why: string): void {
    this.#lost = true
    this.#abort.abort(new LeaseLostError(why))
    this.#loss.resolve()
  }
}
