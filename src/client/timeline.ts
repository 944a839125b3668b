/**
 * One line of what is known of a task, from looks and pushes that may overtake each other. A
 * snapshot is new, or the same again, or older than what is known already. Pure.
 */
import { isTerminal, type Task } from './wire.ts'

export type Verdict = 'new' | 'same' | 'stale'

export class Timeline {
  #current: Task | undefined
  #seen: string | undefined
  #mark = 0

  get current(): Task | undefined {
    return this.#current
  }

  /** A point on the line, to be given back with a snapshot that was asked for at it. */
  get mark(): number {
    return this.#mark
  }

  get ended(): boolean {
    return this.#current !== undefined && isTerminal(this.#current.status)
  }

  /**
   * Takes in a snapshot that is no older than the point `since`. Clocks of servers jump, so their times
   * only decide when two sources overlap: then the later one wins, and an end always does.
   */
  take(task: Task, since: number): Verdict {
    if (this.ended) return 'stale'
    if (since < this.#mark && !isTerminal(task.status) && !isLater(task, this.#current)) return 'stale'
    const seen = JSON.stringify([
      task.status,
      task.statusMessage,
      task.inputRequests,
      task.result,
      task.error,
    ])
    this.#current = task
    if (seen === this.#seen) return 'same'
    this.#seen = seen
    this.#mark += 1
    return 'new'
  }
}

function isLater(task: Task, than: Task | undefined): boolean {
  const [a, b] = [Date.parse(task.lastUpdatedAt ?? ''), Date.parse(than?.lastUpdatedAt ?? '')]
  return a > b
}
