/** Status changes of a task as `notifications/progress`, whose values must increase. Pure. */
import type { TaskSnapshot } from '../task/types'

/** What a progress that counts nothing grows by. */
const SMALL_STEP = 0.001

export class ProgressLine {
  readonly #token: unknown
  #message: string | undefined
  #value: number

  /** @param value what the client has been told already. */
  constructor(token: unknown, value = 0) {
    this.#token = token
    this.#value = value
  }

  get wanted(): boolean {
    return typeof this.#token === 'string' || typeof this.#token === 'number'
  }

  /** The last value told. */
  get value(): number {
    return this.#value
  }

  /** The notification for this state, or `undefined` when it says nothing new. */
  next({ statusMessage: message }: TaskSnapshot): string | undefined {
    if (!this.wanted || message === undefined || message === this.#message) return undefined
    this.#message = message
    const counted = /\((\d+)\/(\d+)\)$/.exec(message)
    const done = Number(counted?.[1] ?? 0)
    this.#value = done > this.#value ? done : this.#value + SMALL_STEP
    const total = counted ? { total: Number(counted[2]) } : {}
    const params = { progressToken: this.#token, progress: this.#value, ...total, message }
    return JSON.stringify({ jsonrpc: '2.0', method: 'notifications/progress', params })
  }
}
