/**
 * What somebody outside may do to a task with a signed address: finish a wait, report progress, see and
 * answer a question. The caller has verified the signature; nothing here asks for an owner, so nothing
 * here tells more than the address was made for. Synchronous, as everything that changes a task.
 */
import { isObject, type Json } from '../json'
import { RateWindow } from '../rate'
import { answered, entryOf, eventProblem, isOpen, questionOf } from './entries'
import { isTerminal } from './machine'
import { judge } from './questions'
import type { JournalRow, TaskRow } from './store'
import { expiresAt, type Task } from './task'
import type { Delivery, LinkedAnswer, LinkedQuestion, LinkedReply, ProgressNote, Reported } from './types'

/** Every report is a row written and a push. */
const MAX_REPORTS = 50
const REPORT_WINDOW_MS = 10_000

export class Outside {
  readonly #task: Task
  readonly #reports = new RateWindow(REPORT_WINDOW_MS)

  constructor(task: Task) {
    this.#task = task
  }

  /** Finishes the wait for `event`. The first delivery counts; a repeated one changes nothing, whatever it brings. */
  deliver(event: string, payload: Json): Delivery {
    const waited = this.#waited(event)
    if (!waited.ok) {
      const { reason } = waited
      return reason === 'received' ? { ok: true, duplicate: true } : { ok: false, reason }
    }
    const { row, entry } = waited
    const problem = eventProblem(entry, payload) ?? this.#task.tooLarge({ payload })
    if (problem !== undefined) return { ok: false, reason: 'invalid', problem }
    const change = { rows: [{ ...entry, state: 'received', data: { payload }, at: null }] }
    if (row.phase === 'waiting') this.#task.apply(row, { type: 'wake' }, change)
    else this.#task.commit(row, row, change)
    return { ok: true, duplicate: false }
  }

  /** Shows how the work behind `event` gets on. */
  report(event: string, note: ProgressNote): Reported {
    const waited = this.#waited(event)
    if (!waited.ok) return waited
    const retryAfterMs = this.#reports.take(Date.now(), MAX_REPORTS)
    if (retryAfterMs > 0) return { ok: false, reason: 'busy', retryAfterMs }
    this.#task.note(waited.row, note)
    this.#task.flush()
    return { ok: true }
  }

  /** The question put by the step `name`, as far as its link may know. */
  question(name: string): LinkedQuestion {
    const row = this.#task.live()
    if (!row) return { state: 'unknown' }
    const entry = this.#task.journal().get(name)
    if (entry?.kind === 'question' && entry.state === 'answered') return answeredQuestion(entry)
    if (isTerminal(row.status)) return { state: 'ended', status: row.status }
    return entry && isOpen(entry, 'question') ? openQuestion(row, entry) : { state: 'not_asked' }
  }

  /** Answers it, unless somebody was first. */
  answer(name: string, { response, by, nonce }: LinkedAnswer): LinkedReply {
    const question = this.question(name)
    if (question.state === 'unknown') return { accepted: false, question }
    const row = this.#task.row()
    const entry = this.#task.journal().get(name)
    // The platform may deliver one call twice; the second finds its own answer.
    const again = question.state === 'answered' && entry !== undefined && nonceOf(entry) === nonce
    if (question.state !== 'open' || !row || !entry) return { accepted: again, question }
    const verdict = judge(question.request, response)
    if (!verdict.fits) return { accepted: false, problem: verdict.problem, question }
    const rows = [answered(entry, verdict.answer, by, nonce)]
    this.#task.apply(row, { type: 'answer', count: 1 }, { rows, visible: true })
    return { accepted: true, question: this.question(name) }
  }

  /** The open wait for `event`, or why there is none. What was received stays so after the end of the task. */
  #waited(event: string): Waited {
    const row = this.#task.live()
    const entry = row && this.#task.journal().get(event)
    if (!row || !entry || entry.kind !== 'event') return { ok: false, reason: 'unknown' }
    if (entry.state === 'received') return { ok: false, reason: 'received' }
    if (isTerminal(row.status)) return { ok: false, reason: 'ended' }
    // The alarm that gives the wait up may be late, or held back by a run that is at work.
    if (entry.state === 'timeout' || (entry.at ?? 0) <= Date.now()) return { ok: false, reason: 'late' }
    return { ok: true, row, entry }
  }
}

type Waited =
  | { readonly ok: true; readonly row: TaskRow; readonly entry: JournalRow }
  | { readonly ok: false; readonly reason: 'unknown' | 'received' | 'ended' | 'late' }

function openQuestion(row: TaskRow, entry: JournalRow): LinkedQuestion {
  const { head } = row
  return {
    state: 'open',
    request: questionOf(entry).request,
    tool: head.tool,
    requestedBy: head.principal.subject,
    requestedAt: row.createdAt,
    openUntil: Math.min(entry.at ?? Infinity, expiresAt(row)),
  }
}

function answeredQuestion(entry: JournalRow): LinkedQuestion {
  const read = entryOf(entry)
  const given = read.kind === 'question' && read.state === 'answered' ? read : { answer: null }
  return {
    state: 'answered',
    request: questionOf(entry).request,
    answer: given.answer,
    ...('by' in given && { by: given.by }),
  }
}

function nonceOf({ data }: JournalRow): unknown {
  return isObject(data) ? data['nonce'] : undefined
}
