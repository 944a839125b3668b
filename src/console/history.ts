/**
 * What happened to a task since somebody looks at it here: its states, and the steps it told of. A step
 * that only counts on is one entry, whose numbers move. Pure; a server keeps no such list.
 */
import type { Progress, Update } from '../client/index.ts'
import { isTerminal } from '../client/index.ts'

export interface Entry {
  /** Milliseconds since the epoch, by the server's clock where it says. */
  readonly at: number
  readonly kind: 'state' | 'step'
  readonly text: string
  readonly progress?: Progress
}

/** A watcher who comes so much later than the task did not see its beginning. */
const LATE_MS = 3_000
const MOST_ENTRIES = 300

export class History {
  readonly #entries: Entry[] = []
  #status: string | undefined
  #cancelRequested = false

  get entries(): readonly Entry[] {
    return this.#entries
  }

  /** @param now milliseconds since the epoch. */
  add(update: Update, now: number): void {
    const at = timeOf(update.task?.lastUpdatedAt) ?? now
    if (this.#status === undefined) this.#begin(update, now)
    if (update.cancelRequested && !this.#cancelRequested) {
      this.#cancelRequested = true
      this.#put({ at: now, kind: 'state', text: 'Cancellation requested' })
    }
    // A task that asks may still say what it did before.
    const isQuestion = update.questions.some(({ message }) => message === update.message)
    if (update.message !== undefined && !isTerminal(update.status) && !isQuestion) {
      this.#step(at, update.message, update.progress)
    }
    if (update.status === this.#status) return
    const before = this.#status
    this.#status = update.status
    const text = wordsFor(update, before)
    if (text !== undefined) this.#put({ at, kind: 'state', text })
  }

  #begin(update: Update, now: number): void {
    const createdAt = timeOf(update.task?.createdAt) ?? now
    this.#put({ at: createdAt, kind: 'state', text: 'Started' })
    if (now - createdAt > LATE_MS && !isTerminal(update.status)) {
      this.#put({ at: now, kind: 'state', text: 'Picked up again in this window' })
    }
  }

  #step(at: number, message: string, progress: Progress | undefined): void {
    const text = progress?.label ?? message
    const index = this.#entries.findLastIndex(({ kind }) => kind === 'step')
    const last = this.#entries[index]
    const entry: Entry = { at, kind: 'step', text, ...(progress && { progress }) }
    if (last?.text !== text) return this.#put(entry)
    // It began when it was told of first.
    this.#entries[index] = { ...entry, at: last.at }
  }

  #put(entry: Entry): void {
    this.#entries.push(entry)
    // The beginning stays; a long middle goes.
    if (this.#entries.length > MOST_ENTRIES) this.#entries.splice(1, 1)
  }
}

function wordsFor({ status, outcome }: Update, before: string | undefined): string | undefined {
  switch (status) {
    case 'working':
      return before === 'input_required' ? 'Answered; working again' : undefined
    case 'input_required':
      return 'Asked a question'
    case 'completed':
      if (outcome?.status !== 'completed') return 'Completed'
      if (outcome.completedAnyway) return 'Completed although cancellation was requested'
      return outcome.result.isError === true ? 'Completed with an error' : 'Completed'
    case 'failed':
      return 'Failed'
    case 'cancelled':
      return 'Cancelled'
  }
}

export function timeOf(text: string | undefined): number | undefined {
  const ms = Date.parse(text ?? '')
  return Number.isNaN(ms) ? undefined : ms
}
