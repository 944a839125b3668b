/**
 * What a run does with its task: claim a dispatch, record, ask, leave, settle. Every write carries the token of
 * the claim; a run whose token is no longer the current one is told that it is lost, and changes nothing.
 */
import { backoffMs } from '../retry'
import { answered, askedAgain, entryOf, firstDue, isReady, newQuestion, questionOf, rowOf } from './entries'
import { MAX_TRIES, supersede, unanswered } from './questions'
import type { TaskRow } from './store'
import { expiresAt, INTERNAL_ERROR, type Task } from './task'
import type { Claim, JournalRecord, NewQuestion, Outcome, ProgressNote, RunReply, TaskError } from './types'

const LOST: RunReply = { lost: true }

export class Runs {
  readonly #task: Task
  readonly #leaseMs: number
  /** The lease as extended by heartbeats that wrote nothing. */
  #leaseUntil = 0

  constructor(task: Task, leaseMs: number) {
    this.#task = task
    this.#leaseMs = leaseMs
  }

  /** When the run that holds the task is taken for dead, in milliseconds since the epoch. */
  leaseUntil(row: TaskRow): number {
    return Math.max(row.leaseUntil ?? 0, this.#leaseUntil)
  }

  /** Takes dispatch `n`; every later write carries `token`. */
  claim(n: number, token: string): Claim {
    const row = this.#task.live()
    if (!row) return { ok: false, reason: 'unknown' }
    const leaseUntil = Date.now() + this.#leaseMs
    // The platform may deliver one call twice; the second finds its own token.
    const again = row.phase === 'running' && row.token === token
    const moved = again
      ? undefined
      : this.#task.apply(row, { type: 'claim', n, token }, { patch: { leaseUntil } })
    if (moved && !moved.ok) return { ok: false, reason: moved.refusal }
    this.#leaseUntil = leaseUntil
    const { taskId, tool, gathered, principal, capabilities, baseUrl, lineage, tenantHash, policy } = row.head
    return {
      ok: true,
      taskId,
      tool,
      input: this.#task.input(),
      gathered,
      principal,
      capabilities,
      baseUrl,
      lineage,
      createdAt: row.createdAt,
      expiresAt: expiresAt(row),
      attempts: row.attempts,
      cancelRequested: row.cancelRequested,
      tenantHash,
      maxResultBytes: policy.maxResultBytes,
      journal: [...this.#task.journal().values()].map(entryOf),
    }
  }

  /** A sign of life, about every second. Writes only when the stored lease grows old. */
  beat(token: string, note?: ProgressNote): RunReply {
    const row = this.#held(token)
    return row ? this.#alive(row, note) : LOST
  }

  /** Records a step, a sleep or a wait. Recording the same name twice keeps the first. */
  record(token: string, record: JournalRecord, note?: ProgressNote): RunReply {
    const row = this.#held(token)
    if (!row) return LOST
    const known = this.#task.journal().get(record.name)
    if (known && !(known.kind === 'step' && known.state === 'retry')) return this.#alive(row, note)
    const next = rowOf(record)
    const problem = this.#task.tooLarge(next.data)
    if (problem) return this.#fail(row, token, problem)
    const change = known ? { rows: [{ ...next, seq: known.seq }] } : { added: [next] }
    // A recorded step is progress: attempts count from here on.
    if (row.attempts > 0 && next.state !== 'retry') this.#task.apply(row, { type: 'record', token }, change)
    else this.#task.commit(row, row, change)
    return this.#alive(row, note)
  }

  /** Puts questions. One that was put before (by a run that died) is not put again. */
  ask(token: string, questions: readonly NewQuestion[]): RunReply {
    const row = this.#held(token)
    if (!row) return LOST
    const added = questions.filter(({ name }) => !this.#task.journal().has(name)).map(newQuestion)
    const problem = added.map((entry) => this.#task.tooLarge(entry.data)).find(Boolean)
    if (problem) return this.#fail(row, token, problem)
    if (added.length > 0)
      this.#task.apply(row, { type: 'ask', token, count: added.length }, { added, visible: true })
    return this.#alive(row)
  }

  /** The tool's own schema refused an answer that the wire schema let pass: puts the question again. */
  askAgain(token: string, name: string, problem: string): RunReply {
    const row = this.#held(token)
    if (!row) return LOST
    const entry = this.#task.journal().get(name)
    if (entry?.kind === 'question' && entry.state === 'answered') {
      const question = questionOf(entry)
      const givenUp = question.tries >= MAX_TRIES
      const next = givenUp
        ? answered(entry, unanswered(question.request))
        : askedAgain(entry, supersede(question, problem))
      this.#task.apply(row, { type: 'ask', token, count: givenUp ? 0 : 1 }, { rows: [next], visible: true })
    }
    return this.#alive(row)
  }

  /** Ends the run until one of `parked` (names of entries) can go on. */
  suspend(token: string, parked: readonly string[], note?: ProgressNote): RunReply {
    const held = this.#held(token)
    if (!held) return LOST
    const row = note ? this.#task.note(held, note) : held
    const waits = parked.flatMap((name) => this.#task.journal().get(name) ?? [])
    const ready = waits.some((entry) => isReady(entry, Date.now(), row.openQuestions))
    const patch = { wakeAt: firstDue(waits), leaseUntil: null }
    this.#task.apply(row, { type: 'suspend', token, ready }, { patch })
    return kept(row)
  }

  /** Ends the run because its slice is used up; it goes on in the next one. */
  proceed(token: string, note?: ProgressNote): RunReply {
    const row = this.#held(token)
    if (!row) return LOST
    this.#task.apply(note ? this.#task.note(row, note) : row, { type: 'yield', token })
    return kept(row)
  }

  /** The run threw. Tried again after a back-off while the policy allows, unless `final`. */
  throwError(token: string, error: TaskError, final: boolean): RunReply {
    const row = this.#held(token)
    if (!row) return LOST
    const { retryLimit, retryDelayMs, retryMaxDelayMs } = row.head.policy
    const delay = backoffMs({ delayMs: retryDelayMs, maxDelayMs: retryMaxDelayMs }, row.attempts + 1)
    const patch = { wakeAt: Date.now() + delay, leaseUntil: null }
    this.#task.apply(row, { type: 'throw', token, limit: retryLimit, final }, { patch, failure: error })
    return kept(row)
  }

  /** The run ended with a result or with a final error. Settling twice with the same stored result is once. */
  settle(token: string, outcome: Outcome, note?: ProgressNote): RunReply {
    const row = this.#held(token)
    if (!row) {
      const ended = this.#task.live()
      const key = 'stored' in outcome ? outcome.stored.key : undefined
      return ended?.outcome?.kind === 'r2' && ended.outcome.key === key ? kept(ended) : LOST
    }
    if (outcome.status === 'failed') return this.throwError(token, outcome.error, true)
    const result = 'stored' in outcome ? outcome.stored : JSON.stringify(outcome.result)
    // The last status text may not have been sent yet.
    const patch = note ? { message: note.message } : {}
    this.#task.apply(row, { type: 'complete', token }, { result, patch })
    return kept(row)
  }

  /** The run stopped because of a cancellation. */
  stop(token: string): RunReply {
    const row = this.#held(token)
    if (!row) return LOST
    this.#task.apply(row, { type: 'stop', token })
    return kept(row)
  }

  /** Dispatch `n` ended in the dead-letter queue. `false`: another dispatch is on its way, or a run is at work. */
  deadLetter(n: number, reason: string): boolean {
    const row = this.#task.live()
    if (!row) return false
    const failure = { code: INTERNAL_ERROR, message: reason }
    return this.#task.apply(row, { type: 'deadLetter', n }, { failure }).ok
  }

  #held(token: string): TaskRow | undefined {
    const row = this.#task.live()
    return row?.phase === 'running' && row.token === token ? row : undefined
  }

  /** Extends the lease and takes a note; stores both when the stored lease grows old. */
  #alive(before: TaskRow, note?: ProgressNote): RunReply {
    const current = this.#task.row() ?? before
    const row = note ? this.#task.note(current, note) : current
    const now = Date.now()
    this.#leaseUntil = now + this.#leaseMs
    if ((row.leaseUntil ?? 0) - now < (this.#leaseMs * 2) / 3) {
      this.#task.commit(row, { ...row, leaseUntil: this.#leaseUntil })
    }
    return kept(row)
  }

  #fail(row: TaskRow, token: string, message: string): RunReply {
    const failure = { code: INTERNAL_ERROR, message }
    this.#task.apply(row, { type: 'throw', token, limit: 0, final: true }, { failure })
    return LOST
  }
}

function kept({ cancelRequested }: TaskRow): RunReply {
  return { lost: false, cancelRequested }
}
