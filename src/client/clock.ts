/**
 * Time and chance, as the library uses them: replaceable, so that tests can move the one
 * and fix the other. Knows nothing of tasks.
 */

export interface Clock {
  /** Milliseconds that only grow, for measuring waits. */
  now(): number
  /** Milliseconds since the epoch, for times that are kept or compared with a server's. */
  date(): number
  setTimeout(callback: () => void, ms: number): unknown
  clearTimeout(timer: unknown): void
  /** From 0 to just under 1. */
  random(): number
}

/** The globals are looked up at each call: a test may replace them after this module was loaded. */
export const systemClock: Clock = {
  now: () => performance.now(),
  date: () => Date.now(),
  setTimeout: (callback, ms) => setTimeout(callback, ms),
  // What `setTimeout` returned: a number here, an object there.
  clearTimeout: (timer) => clearTimeout(timer as ReturnType<typeof setTimeout>),
  random: () => Math.random(),
}

/** `setTimeout` takes 31 bits, and fires at once for anything longer. */
const LONGEST_WAIT_MS = 2 ** 31 - 1

/** One wait that can be set again; however long it is. */
export class Timer {
  readonly #clock: Clock
  #timer: unknown

  constructor(clock: Clock) {
    this.#clock = clock
  }

  set(ms: number, callback: () => void): void {
    this.clear()
    const wait = Math.min(Math.max(ms, 0), LONGEST_WAIT_MS)
    this.#timer = this.#clock.setTimeout(() => {
      this.#timer = undefined
      if (ms > wait) this.set(ms - wait, callback)
      else callback()
    }, wait)
  }

  clear(): void {
    if (this.#timer !== undefined) this.#clock.clearTimeout(this.#timer)
    this.#timer = undefined
  }
}

/** Resolves after `ms`; rejects with the signal's reason when it is aborted first. */
export function sleep(clock: Clock, ms: number, signal?: AbortSignal): Promise<void> {
  return new Promise((resolve, reject) => {
    if (signal?.aborted) return reject(asError(signal.reason))
    const timer = new Timer(clock)
    const abort = () => {
      timer.clear()
      reject(asError(signal?.reason))
    }
    signal?.addEventListener('abort', abort, { once: true })
    timer.set(ms, () => {
      signal?.removeEventListener('abort', abort)
      resolve()
    })
  })
}

/**
 * Runs `work` with a signal that aborts with `signal`, and after `ms` with the error of `late`.
 * Work that ignores its signal is left behind, not waited for.
 */
export async function within<T>(
  clock: Clock,
  ms: number,
  signal: AbortSignal | undefined,
  late: () => Error,
  work: (signal: AbortSignal) => Promise<T>,
): Promise<T> {
  const controller = new AbortController()
  const timer = new Timer(clock)
  const abort = () => controller.abort(signal?.reason)
  if (signal?.aborted) abort()
  signal?.addEventListener('abort', abort, { once: true })
  timer.set(ms, () => controller.abort(late()))
  try {
    const aborted = new Promise<never>((_, reject) => {
      const fail = () => reject(asError(controller.signal.reason))
      if (controller.signal.aborted) fail()
      else controller.signal.addEventListener('abort', fail, { once: true })
    })
    return await Promise.race([work(controller.signal), aborted])
  } catch (error) {
    // A fetch that was aborted rejects with the reason or with an error of its own.
    throw controller.signal.aborted ? asError(controller.signal.reason) : error
  } finally {
    timer.clear()
    signal?.removeEventListener('abort', abort)
  }
}

export function asError(value: unknown): Error {
  return value instanceof Error ? value : new Error(String(value))
}
