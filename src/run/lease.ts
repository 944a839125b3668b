/**
 * A run's hold on its task: the fence token, the heartbeat that keeps the lease and brings back a
 * wish to cancel, and the calls to the object, each on a fresh stub.
 */
import type { ProgressNote, RunReply, TaskApi } from '../task/types'
import { CancelledError, LeaseLostError } from './errors'
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
  #cancelled: boolean
  #lost = false
  #note: ProgressNote | undefined
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
  readonly whenLost = new Promise<void>((resolve) => {
    this.#abort.signal.addEventListener('abort', () => {
      if (this.#lost) resolve()
    })
  })

  /**
   * One call to the object under the token.
   * @throws LeaseLostError when the object refuses the token.
   */
  async write(
    call: (task: TaskApi, token: string, note: ProgressNote | undefined) => Promise<RunReply>,
  ): Promise<void> {
    const note = this.#note
    this.#take(await callTask(this.#stubs, this.#taskId, (task) => call(task, this.#token, note)))
    if (this.#lost) throw new LeaseLostError('Another run has taken over.')
  }

  /** Shows a status text: at once, or with the next sign of life when they come in quick succession. */
  async note(note: ProgressNote): Promise<void> {
    this.#note = note
    const now = Date.now()
    if (now - this.#noteSentAt < NOTE_EVERY_MS) return
    this.#noteSentAt = now
    await this.write((task, token) => task.beat(token, note))
  }

  /** Keeps a status text for the next sign of life. */
  hold(note: ProgressNote): void {
    this.#note = note
  }

  /** Checks in until `end` is called. `until`: no sign of life after that, the platform ends the run anyway. */
  async keep(until: number): Promise<void> {
    const { signal } = this.#ended
    while (!signal.aborted && !this.#lost && Date.now() < until) {
      await scheduler.wait(BEAT_MS, { signal }).catch(() => undefined)
      if (signal.aborted) return
      try {
        this.#take(await callTask(this.#stubs, this.#taskId, (task) => task.beat(this.#token, this.#note)))
      } catch {
        // The object cannot be reached now. The lease bears several missed beats.
      }
    }
  }

  /** The run is over: no more signs of life, and what the tool left running is told to stop. */
  end(): void {
    this.#ended.abort()
    this.#abort.abort(new Error('The run is over.'))
  }

  #take(reply: RunReply): void {
    if (reply.lost) {
      this.#lost = true
      this.#abort.abort(new LeaseLostError('Another run has taken over.'))
    } else if (reply.cancelRequested && !this.#cancelled) {
      this.#cancelled = true
      this.#abort.abort(new CancelledError('The task was cancelled.'))
    }
  }
}
