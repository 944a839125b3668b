/**
 * The Task object: one Durable Object per task, its single writer. Thin methods over the pure
 * machine: load, move, store, tell. It knows nothing of JSON-RPC and nothing of tools, and it
 * awaits nothing but its own storage, so that no method resumes into a task that was deleted.
 */
import { DurableObject } from 'cloudflare:workers'
import { z } from 'zod'
import { isObject, type Json, type JsonObject, utf8Bytes } from '../json'
import { backoffMs } from '../retry'
import { nextDeadline } from './deadlines'
import { closeQuietly, Listeners } from './listeners'
import { INITIAL, isTerminal, type MachineEvent, type Move, move } from './machine'
import { probablyQueued, resendDelayMs, send, type WorkMessage } from './outbox'
import { withGap } from './pace'
import { describe, judge, MAX_TRIES, type OpenQuestion, supersede, unanswered } from './questions'
import { snapshotText } from './snapshot'
import { type JournalRow, type TaskRow, TaskStore } from './store'
import type {
  Claim,
  CreateTask,
  Delivery,
  JournalEntry,
  JournalRecord,
  NewQuestion,
  Outcome,
  ProgressNote,
  RunReply,
  StepFailure,
  TaskApi,
  TaskError,
} from './types'

export interface TaskEnv {
  readonly WORK_QUEUE: Queue<WorkMessage>
  readonly SLOW_QUEUE: Queue<WorkMessage>
  /** How long a run may be silent before another takes over, in ms. Default 30000. */
  readonly TASK_LEASE_MS?: string | number
  /** When an unclaimed message is taken for lost, in ms. Default 5000. */
  readonly TASK_RESEND_MS?: string | number
}

const INTERNAL_ERROR = -32603
const DEFAULT_LEASE_MS = 30_000
const DEFAULT_RESEND_MS = 5_000
/** One journal entry, and all of them together (an RPC carries 32 MiB). */
const MAX_ENTRY_BYTES = 128_000
const MAX_JOURNAL_CHARS = 16_000_000
/** Should an alarm ever fail. */
const ALARM_AGAIN_MS = 30_000
/** Larger snapshots are put together when they are read, not kept. */
const MAX_KEPT_CHARS = 256 * 1024
const LOST: RunReply = { lost: true }

type Patch = Partial<TaskRow>

export class TaskObject extends DurableObject<TaskEnv> implements TaskApi {
  readonly #store: TaskStore
  readonly #listeners: Listeners
  readonly #leaseMs: number
  readonly #resendMs: number
  // Everything below is a cache of what is stored, except the two last ones, which only save writes.
  #row: TaskRow | undefined
  #journal: Map<string, JournalRow> | undefined
  #snapshot: string | undefined
  /** The lease as extended by heartbeats that wrote nothing. */
  #leaseUntil = 0
  #unsaved = false

  constructor(ctx: DurableObjectState, env: TaskEnv) {
    super(ctx, env)
    this.#store = new TaskStore(ctx.storage.sql)
    this.#listeners = new Listeners(ctx)
    this.#leaseMs = Number(env.TASK_LEASE_MS ?? DEFAULT_LEASE_MS)
    this.#resendMs = Number(env.TASK_RESEND_MS ?? DEFAULT_RESEND_MS)
  }

  // ---------------------------------------------------------------- for clients

  /**
   * Creates the task and sends its first dispatch. Durable when it returns. Safe to call twice.
   * @returns the snapshot.
   */
  async create(command: CreateTask): Promise<string> {
    const existing = this.#load()
    if (existing) return this.#read(existing)
    const now = Date.now()
    const { input, ...head } = command
    const row: TaskRow = {
      ...INITIAL,
      head,
      message: null,
      createdAt: now,
      updatedAt: now,
      ttlMs: head.policy.ttlMs,
      gaps: [],
      queue: head.policy.queue,
      sentAt: now,
      sends: 1,
      leaseUntil: null,
      resendAt: now + resendDelayMs(this.#resendMs, 1),
      wakeAt: null,
      alarmAt: null,
      outcome: null,
    }
    const armed = this.#armed(row)
    this.ctx.storage.transactionSync(() => this.#store.create(armed, input))
    this.#row = armed
    this.#journal = new Map()
    this.#dispatch(armed)
    return this.#read(armed)
  }

  /** The snapshot as JSON text, or `null` for anybody but the owner, and when there is no such task. */
  async read(tenant: string): Promise<string | null> {
    const row = this.#owned(tenant)
    return row ? this.#read(row) : null
  }

  /**
   * Answers questions by key. Keys that are not open are ignored; an answer that does not fit
   * supersedes its question by a new one. `false`: no such task for this tenant.
   */
  async update(tenant: string, inputResponses: JsonObject): Promise<boolean> {
    const row = this.#owned(tenant)
    if (!row) return false
    if (isTerminal(row.status)) return true
    const open = this.#openQuestions()
    const changed: JournalRow[] = []
    let settled = 0
    for (const { entry, question } of open) {
      const response = Object.hasOwn(inputResponses, question.key) ? inputResponses[question.key] : undefined
      if (response === undefined) continue
      const verdict = judge(question.request, response)
      if (verdict.fits) {
        changed.push(answered(entry, question, verdict.answer))
        settled++
      } else if (question.tries >= MAX_TRIES) {
        changed.push(answered(entry, question, unanswered(question.request)))
        settled++
      } else {
        changed.push({ ...entry, data: questionData(supersede(question, verdict.problem)) })
      }
    }
    if (changed.length > 0)
      this.#apply(row, { type: 'answer', count: settled }, { entries: changed, visible: true })
    return true
  }

  /** Notes the wish to cancel; at once when nobody runs. `false`: no such task for this tenant. */
  async cancel(tenant: string): Promise<boolean> {
    const row = this.#owned(tenant)
    if (!row) return false
    if (!row.cancelRequested) this.#apply(row, { type: 'cancel' })
    return true
  }

  /** An event from outside. The caller has verified the callback's signature. */
  async deliver(event: string, payload: Json): Promise<Delivery> {
    const row = this.#live()
    if (!row) return { ok: false, reason: 'unknown' }
    if (isTerminal(row.status)) return { ok: false, reason: 'ended' }
    const entry = this.#entries().get(event)
    if (entry && entry.kind !== 'event') return { ok: false, reason: 'unknown' }
    if (entry?.state === 'received') return { ok: true, duplicate: true }
    if (entry?.state === 'timeout') return { ok: false, reason: 'late' }
    const schema = isObject(entry?.data) ? entry.data['schema'] : undefined
    if (isObject(schema)) {
      const checked = z.fromJSONSchema(schema).safeParse(payload)
      if (!checked.success) return { ok: false, reason: 'invalid', problem: describe(checked.error) }
    }
    const received = { kind: 'event', name: event, state: 'received', data: { payload }, at: null } as const
    const change = entry ? { entries: [{ ...received, seq: entry.seq }] } : { added: [received] }
    if (row.phase === 'waiting') this.#apply(row, { type: 'wake' }, change)
    else this.#commit(row, row, change)
    return { ok: true, duplicate: false }
  }

  /** A status text from outside, while the task waits for an event. */
  async note(note: ProgressNote): Promise<boolean> {
    const row = this.#live()
    if (!row || isTerminal(row.status)) return false
    this.#progress(row, note)
    this.#saveUnsaved()
    return true
  }

  /** A WebSocket of a listener. The Worker has authenticated it and names the tenant. */
  override async fetch(request: Request): Promise<Response> {
    const row = this.#owned(request.headers.get('x-longhaul-tenant') ?? '')
    if (!row) return new Response(null, { status: 404 })
    if (request.headers.get('upgrade')?.toLowerCase() !== 'websocket')
      return new Response(null, { status: 426 })
    const { 0: client, 1: server } = new WebSocketPair()
    this.#listeners.accept(server, this.#read(row))
    if (isTerminal(row.status)) closeQuietly(server, 1000, 'The task has ended.')
    return new Response(null, { status: 101, webSocket: client })
  }

  override webSocketMessage(): void {
    // Listeners only listen; `ping` is answered by the runtime without waking the object.
  }

  override webSocketClose(socket: WebSocket, code: number): void {
    closeQuietly(socket, code)
  }

  override webSocketError(socket: WebSocket): void {
    closeQuietly(socket, 1011)
  }

  // ---------------------------------------------------------------- for runs

  /** Takes dispatch `n`; every later write carries `token`. */
  async claim(n: number, token: string): Promise<Claim> {
    const row = this.#live()
    if (!row) return { ok: false, reason: 'unknown' }
    const leaseUntil = Date.now() + this.#leaseMs
    const moved = this.#apply(row, { type: 'claim', n, token }, { patch: { leaseUntil } })
    if (!moved.ok) return { ok: false, reason: moved.refusal }
    this.#leaseUntil = leaseUntil
    const { head } = row
    return {
      ok: true,
      taskId: head.taskId,
      tool: head.tool,
      input: this.#store.input(),
      gathered: head.gathered,
      principal: head.principal,
      capabilities: head.capabilities,
      baseUrl: head.baseUrl,
      lineage: head.lineage,
      createdAt: row.createdAt,
      expiresAt: row.createdAt + row.ttlMs,
      attempts: row.attempts,
      cancelRequested: row.cancelRequested,
      maxResultBytes: head.policy.maxResultBytes,
      journal: [...this.#entries().values()].map(entryForRun),
    }
  }

  /** A sign of life, about every second. Writes only when the stored lease grows old. */
  async beat(token: string, note?: ProgressNote): Promise<RunReply> {
    const row = this.#held(token)
    if (!row) return LOST
    return this.#alive(row, note)
  }

  /** Records a step, a sleep or a wait. Recording the same name twice keeps the first. */
  async record(token: string, record: JournalRecord, note?: ProgressNote): Promise<RunReply> {
    const row = this.#held(token)
    if (!row) return LOST
    const entry = this.#entries().get(record.name)
    // An event may have come before the run waited for it; a final record is never replaced.
    if (entry && !(entry.kind === 'step' && entry.state === 'retry')) return this.#alive(row, note)
    const next = recordedRow(record)
    const problem = this.#tooLarge(next.data)
    if (problem) return this.#fail(row, token, problem)
    const change = entry ? { entries: [{ ...next, seq: entry.seq }] } : { added: [next] }
    if (row.attempts > 0 && next.state !== 'retry') this.#apply(row, { type: 'record', token }, change)
    else this.#commit(row, row, change)
    return this.#alive(row, note)
  }

  /** Puts questions. One that was put before (by a run that died) is not put again. */
  async ask(token: string, questions: readonly NewQuestion[]): Promise<RunReply> {
    const row = this.#held(token)
    if (!row) return LOST
    const added = questions
      .filter(({ name }) => !this.#entries().has(name))
      .map(({ name, request, at }) => ({
        kind: 'question' as const,
        name,
        state: 'open',
        data: questionData({ name, key: name, request, tries: 1 }),
        at,
      }))
    const problem = added.map((entry) => this.#tooLarge(entry.data)).find(Boolean)
    if (problem) return this.#fail(row, token, problem)
    if (added.length > 0)
      this.#apply(row, { type: 'ask', token, count: added.length }, { added, visible: true })
    return this.#alive(row)
  }

  /** The tool's own schema refused an answer that the wire schema let pass: puts the question again. */
  async askAgain(token: string, name: string, problem: string): Promise<RunReply> {
    const row = this.#held(token)
    if (!row) return LOST
    const entry = this.#entries().get(name)
    if (entry?.kind === 'question' && entry.state === 'answered') {
      const question = supersede(questionOf(entry), problem)
      const again =
        question.tries > MAX_TRIES
          ? answered(entry, questionOf(entry), unanswered(question.request))
          : { ...entry, state: 'open', data: questionData(question) }
      const count = again.state === 'open' ? 1 : 0
      this.#apply(row, { type: 'ask', token, count }, { entries: [again], visible: true })
    }
    return this.#alive(row)
  }

  /** Ends the run until one of `parked` (names of entries) can go on. */
  async suspend(token: string, parked: readonly string[], note?: ProgressNote): Promise<RunReply> {
    const row = this.#held(token)
    if (!row) return LOST
    const noted = note ? this.#progress(row, note) : row
    const now = Date.now()
    const waits = parked.flatMap((name) => this.#entries().get(name) ?? [])
    const ready = waits.some((entry) => isReady(entry, now, noted.openQuestions))
    this.#apply(
      noted,
      { type: 'suspend', token, ready },
      { patch: { wakeAt: earliest(waits), leaseUntil: null } },
    )
    return { lost: false, cancelRequested: noted.cancelRequested }
  }

  /** Ends the run because its slice is used up; it goes on in the next one. */
  async proceed(token: string, note?: ProgressNote): Promise<RunReply> {
    const row = this.#held(token)
    if (!row) return LOST
    this.#apply(note ? this.#progress(row, note) : row, { type: 'yield', token })
    return { lost: false, cancelRequested: row.cancelRequested }
  }

  /** The run threw. Tried again after a back-off while the policy allows, unless `final`. */
  async throwError(token: string, error: TaskError, final: boolean): Promise<RunReply> {
    const row = this.#held(token)
    if (!row) return LOST
    const { retryLimit, retryDelayMs, retryMaxDelayMs } = row.head.policy
    const delay = backoffMs({ delayMs: retryDelayMs, maxDelayMs: retryMaxDelayMs }, row.attempts + 1)
    this.#apply(
      row,
      { type: 'throw', token, limit: retryLimit, final },
      { patch: { wakeAt: Date.now() + delay, leaseUntil: null }, failure: error },
    )
    return { lost: false, cancelRequested: row.cancelRequested }
  }

  /** The run ended with a result or with a final error. */
  async settle(token: string, outcome: Outcome): Promise<RunReply> {
    const row = this.#held(token)
    if (!row) return LOST
    if (outcome.status === 'failed') {
      this.#apply(row, { type: 'throw', token, limit: 0, final: true }, { failure: outcome.error })
      return { lost: false, cancelRequested: row.cancelRequested }
    }
    const text = JSON.stringify(outcome.result)
    const bytes = utf8Bytes(text)
    if (bytes > row.head.policy.maxResultBytes) return this.#fail(row, token, resultTooLarge(bytes, row))
    this.#apply(row, { type: 'complete', token }, { resultText: text })
    return { lost: false, cancelRequested: row.cancelRequested }
  }

  /** The run stopped because of a cancellation. */
  async stop(token: string): Promise<RunReply> {
    const row = this.#held(token)
    if (!row) return LOST
    this.#apply(row, { type: 'stop', token })
    return { lost: false, cancelRequested: row.cancelRequested }
  }

  /** Dispatch `n` ended in the dead-letter queue. `false`: another dispatch is on its way, or a run is at work. */
  async deadLetter(n: number, reason: string): Promise<boolean> {
    const row = this.#live()
    if (!row) return false
    return this.#apply(row, { type: 'deadLetter', n }, { failure: { code: INTERNAL_ERROR, message: reason } })
      .ok
  }

  // ---------------------------------------------------------------- deadlines

  /** Awaits nothing but the final deletion and never throws: an alarm that fails six times is lost. */
  override async alarm(): Promise<void> {
    const rang = this.#load()
    if (!rang) return
    if (Date.now() >= rang.createdAt + rang.ttlMs) return this.#expire(rang)
    try {
      // The alarm that rang is spent: whatever is stored next sets the following one.
      this.#ring({ ...rang, alarmAt: null })
      const row = this.#load()
      if (row && row.alarmAt === rang.alarmAt) this.#commit(row, { ...row, alarmAt: null })
    } catch (error) {
      console.error(JSON.stringify({ event: 'alarm_failed', task: rang.head.taskId, error: String(error) }))
      void this.ctx.storage.setAlarm(Date.now() + ALARM_AGAIN_MS)
    }
  }

  #ring(row: TaskRow): void {
    const now = Date.now()
    if (row.phase === 'running') {
      const leaseUntil = Math.max(row.leaseUntil ?? 0, this.#leaseUntil)
      if (now < leaseUntil) {
        this.#commit(row, { ...row, leaseUntil })
      } else {
        const failure = { code: INTERNAL_ERROR, message: 'The run stopped without a word too often.' }
        this.#apply(row, { type: 'lapse', limit: row.head.policy.retryLimit }, { failure })
      }
    } else if (row.phase === 'queued' && row.resendAt !== null && now >= row.resendAt) {
      this.#resend(row, now)
    } else if (row.phase === 'waiting' && row.wakeAt !== null && now >= row.wakeAt) {
      this.#wake(row, now)
    }
  }

  #wake(row: TaskRow, now: number): void {
    const due = [...this.#entries().values()].filter((entry) => entry.at !== null && entry.at <= now)
    const questions = due.filter((entry) => entry.kind === 'question' && entry.state === 'open')
    const events = due.filter((entry) => entry.kind === 'event' && entry.state === 'open')
    const entries = [
      ...questions.map((entry) => answered(entry, questionOf(entry), unanswered(questionOf(entry).request))),
      ...events.map((entry) => ({ ...entry, state: 'timeout', data: null, at: null })),
    ]
    if (questions.length === 0) {
      this.#apply(row, { type: 'wake' }, { entries })
      return
    }
    const change = { entries, visible: true, patch: { wakeAt: null } }
    const moved = this.#apply(row, { type: 'answer', count: questions.length }, change)
    const current = this.#load()
    // Other questions are still open, but something else may be due.
    if (moved.ok && !moved.dispatched && current) this.#apply(current, { type: 'wake' })
  }

  #resend(row: TaskRow, now: number): void {
    const sends = row.sends + 1
    const next = this.#commit(row, { ...row, sends, resendAt: now + resendDelayMs(this.#resendMs, sends) })
    const queue = this.#queue(next)
    this.ctx.waitUntil(
      probablyQueued(queue, next.sentAt, now).then((queued) => {
        const current = this.#load()
        if (queued || !current || current.phase !== 'queued' || current.dispatch !== next.dispatch) return
        this.#commit(current, { ...current, sentAt: Date.now() })
        this.#dispatch(current)
      }),
    )
  }

  /** The end of the time-to-live: the work stops, the listeners are told, nothing is left. */
  async #expire(row: TaskRow): Promise<void> {
    const failure = {
      code: INTERNAL_ERROR,
      message: `The task did not finish within its time-to-live of ${row.ttlMs} ms.`,
    }
    if (!isTerminal(row.status)) this.#apply(row, { type: 'expire' }, { failure })
    this.#row = undefined
    this.#journal = undefined
    this.#snapshot = undefined
    await this.ctx.storage.deleteAll()
  }

  // ---------------------------------------------------------------- one way to change anything

  /**
   * Moves the machine and stores what follows from it, in one transaction; then tells the
   * listeners and sends what has to be sent. An illegal move changes nothing.
   */
  #apply(row: TaskRow, event: MachineEvent, change: Change = {}): Move {
    const moved = move(row, event)
    if (!moved.ok) return moved
    const now = Date.now()
    const patch: Patch = { ...moved.state, ...change.patch }
    const dispatched: Patch = moved.dispatched
      ? {
          queue: 'slow',
          sentAt: now,
          sends: 1,
          resendAt: now + resendDelayMs(this.#resendMs, 1),
          wakeAt: null,
          leaseUntil: null,
        }
      : {}
    const next = this.#commit(row, { ...row, ...patch, ...dispatched }, change, moved.ended !== undefined)
    if (moved.dispatched) this.#dispatch(next)
    return moved
  }

  /** Writes row and journal together, and rebuilds what readers see. */
  #commit(before: TaskRow, row: TaskRow, change: Change = {}, ended = false): TaskRow {
    const now = Date.now()
    const visible = change.visible === true || ended || before.status !== row.status
    const changed: TaskRow = visible
      ? { ...row, updatedAt: now, gaps: withGap(row.gaps, now - row.updatedAt) }
      : row
    try {
      this.ctx.storage.transactionSync(() => {
        const next = this.#armed(ended ? this.#ended(changed, change, now) : changed)
        for (const entry of change.entries ?? []) this.#remember(entry, () => this.#store.amend(entry))
        for (const entry of change.added ?? []) this.#remember({ ...entry, seq: this.#store.append(entry) })
        if (next !== before) {
          this.#store.save(next)
          this.#unsaved = false
        }
        this.#row = next
      })
    } catch (error) {
      // What was rolled back must not live on in memory.
      this.#row = undefined
      this.#journal = undefined
      throw error
    }
    const saved = this.#row ?? changed
    if (visible) {
      this.#snapshot = undefined
      if (ended) this.#listeners.ended(this.#read(saved))
      else this.#listeners.changed(this.#read(saved))
    }
    return saved
  }

  /** Outcome, deadlines and retention of a task that ends now. */
  #ended(row: TaskRow, change: Change, now: number): TaskRow {
    const outcome =
      change.resultText !== undefined && row.status === 'completed'
        ? this.#store.writeResult(change.resultText)
        : row.status === 'failed'
          ? {
              kind: 'error' as const,
              error: change.failure ?? { code: INTERNAL_ERROR, message: 'Internal error' },
            }
          : null
    const withdrawn = [...this.#entries().values()].filter((e) => e.kind === 'question' && e.state === 'open')
    for (const entry of withdrawn) this.#remember({ ...entry, state: 'withdrawn' })
    return {
      ...row,
      outcome,
      message:
        outcome?.kind === 'error'
          ? outcome.error.message
          : row.status === 'cancelled'
            ? 'Cancelled.'
            : row.message,
      leaseUntil: null,
      resendAt: null,
      wakeAt: null,
      // A job that used up its time must not lose its result.
      ttlMs: Math.max(row.ttlMs, now - row.createdAt + row.head.policy.retentionMs),
      // Its next alarm is the last one: do not let it ring before.
      alarmAt: null,
    }
  }

  /** The row with its alarm set to the next deadline, unless one rings before that anyway. */
  #armed(row: TaskRow): TaskRow {
    const next = nextDeadline({ ...row, expiresAt: row.createdAt + row.ttlMs })
    if (row.alarmAt !== null && row.alarmAt <= next) return row
    void this.ctx.storage.setAlarm(Math.max(next, Date.now() + 1))
    return { ...row, alarmAt: next }
  }

  #dispatch(row: TaskRow): void {
    const message = { taskId: row.head.taskId, n: row.dispatch }
    // A send that fails is repeated by the alarm.
    this.ctx.waitUntil(send(this.#queue(row), message).catch(() => undefined))
  }

  #queue(row: TaskRow): Queue<WorkMessage> {
    return row.queue === 'work' ? this.env.WORK_QUEUE : this.env.SLOW_QUEUE
  }

  // ---------------------------------------------------------------- reading

  #load(): TaskRow | undefined {
    this.#row ??= this.#store.load()
    return this.#row
  }

  /** The task, unless its time is over: the alarm may be late. */
  #live(): TaskRow | undefined {
    const row = this.#load()
    return row && Date.now() < row.createdAt + row.ttlMs ? row : undefined
  }

  #owned(tenant: string): TaskRow | undefined {
    const row = this.#live()
    return row?.head.principal.tenant === tenant ? row : undefined
  }

  #held(token: string): TaskRow | undefined {
    const row = this.#live()
    return row?.phase === 'running' && row.token === token ? row : undefined
  }

  #read(row: TaskRow): string {
    if (this.#snapshot !== undefined) return this.#snapshot
    const { outcome } = row
    const result = outcome && outcome.kind !== 'error' ? this.#store.readResult(outcome) : undefined
    const questions =
      row.status === 'input_required' ? this.#openQuestions().map(({ question }) => question) : []
    const text = snapshotText(row, questions, result)
    if (text.length <= MAX_KEPT_CHARS) this.#snapshot = text
    return text
  }

  #entries(): Map<string, JournalRow> {
    this.#journal ??= new Map(this.#store.journal().map((entry) => [entry.name, entry]))
    return this.#journal
  }

  #remember(entry: JournalRow, write?: () => void): void {
    write?.()
    this.#entries().set(entry.name, entry)
  }

  #openQuestions(): { entry: JournalRow; question: OpenQuestion }[] {
    return [...this.#entries().values()]
      .filter((entry) => entry.kind === 'question' && entry.state === 'open')
      .map((entry) => ({ entry, question: questionOf(entry) }))
  }

  // ---------------------------------------------------------------- small parts of the above

  /** Extends the lease and takes a note; stores both when the stored lease grows old. */
  #alive(row: TaskRow, note?: ProgressNote): RunReply {
    const current = note ? this.#progress(this.#row ?? row, note) : (this.#row ?? row)
    const now = Date.now()
    this.#leaseUntil = now + this.#leaseMs
    const stored = current.leaseUntil ?? 0
    if (stored - now < (this.#leaseMs * 2) / 3)
      this.#commit(current, { ...current, leaseUntil: this.#leaseUntil })
    return { lost: false, cancelRequested: current.cancelRequested }
  }

  /**
   * Status text is shown at once and stored with the next write: after a crash a run repeats it
   * with its first sign of life, so a write of its own would buy nothing.
   */
  #progress(row: TaskRow, { message }: ProgressNote): TaskRow {
    if (row.message === message) return row
    const now = Date.now()
    const next = { ...row, message, updatedAt: now, gaps: withGap(row.gaps, now - row.updatedAt) }
    this.#row = next
    this.#unsaved = true
    this.#snapshot = undefined
    this.#listeners.changed(this.#read(next))
    return next
  }

  #saveUnsaved(): void {
    if (this.#unsaved && this.#row) this.#commit(this.#row, { ...this.#row })
  }

  /** Why an entry cannot be stored, if so. */
  #tooLarge(data: Json): string | undefined {
    const bytes = utf8Bytes(JSON.stringify(data))
    if (bytes > MAX_ENTRY_BYTES) {
      return `A step may record at most ${MAX_ENTRY_BYTES} bytes; this one returned ${bytes}. Store large data elsewhere (R2, D1) and return its key.`
    }
    if (this.#store.journalChars() + bytes > MAX_JOURNAL_CHARS) {
      return `The journal of this task would exceed ${MAX_JOURNAL_CHARS} characters. Use fewer or smaller steps.`
    }
    return undefined
  }

  #fail(row: TaskRow, token: string, message: string): RunReply {
    const failure = { code: INTERNAL_ERROR, message }
    this.#apply(row, { type: 'throw', token, limit: 0, final: true }, { failure })
    return LOST
  }
}

/** What changes together with the row. */
interface Change {
  readonly patch?: Patch
  /** Entries that exist and change. */
  readonly entries?: readonly JournalRow[]
  /** New entries. */
  readonly added?: readonly Omit<JournalRow, 'seq'>[]
  /** Readers see a difference although the status is the same. */
  readonly visible?: boolean
  readonly resultText?: string
  /** The error, should the move end the task as failed. */
  readonly failure?: TaskError
}

function resultTooLarge(bytes: number, row: TaskRow): string {
  return (
    `The result of ${row.head.tool} is ${bytes} bytes; this server keeps at most ${row.head.policy.maxResultBytes}. ` +
    'Return a summary and a link to the whole (a resource_link), or raise maxResultBytes.'
  )
}

function isReady(entry: JournalRow, now: number, openQuestions: number): boolean {
  switch (entry.kind) {
    case 'question':
      return entry.state === 'answered' && openQuestions === 0
    case 'event':
      return entry.state !== 'open'
    case 'sleep':
    case 'step':
      return entry.at === null || entry.at <= now
  }
}

function earliest(entries: readonly JournalRow[]): number | null {
  const times = entries.flatMap((entry) => entry.at ?? [])
  return times.length > 0 ? Math.min(...times) : null
}

function recordedRow(record: JournalRecord): Omit<JournalRow, 'seq'> {
  const { kind, name } = record
  switch (kind) {
    case 'sleep':
      return { kind, name, state: 'set', data: null, at: record.at }
    case 'event':
      return {
        kind,
        name,
        state: 'open',
        data: record.schema ? { schema: record.schema } : null,
        at: record.at,
      }
    case 'step':
      switch (record.state) {
        case 'done':
          return {
            kind,
            name,
            state: 'done',
            data: record.value === undefined ? {} : { value: record.value },
            at: null,
          }
        case 'failed':
          return { kind, name, state: 'failed', data: { ...record.error }, at: null }
        case 'retry':
          return { kind, name, state: 'retry', data: { attempts: record.attempts }, at: record.at }
      }
  }
}

/** The casts restore what `recordedRow`, `questionData` and `answered` wrote. */
function entryForRun(entry: JournalRow): JournalEntry {
  const { kind, name } = entry
  const data = isObject(entry.data) ? entry.data : {}
  switch (kind) {
    case 'sleep':
      return { kind, name, at: entry.at ?? 0 }
    case 'question':
      return entry.state === 'answered'
        ? { kind, name, state: 'answered', answer: data['answer'] ?? null }
        : { kind, name, state: 'open' }
    case 'event':
      if (entry.state === 'received')
        return { kind, name, state: 'received', payload: data['payload'] ?? null }
      return entry.state === 'timeout'
        ? { kind, name, state: 'timeout' }
        : { kind, name, state: 'open', at: entry.at ?? 0 }
    case 'step':
      if (entry.state === 'failed')
        return { kind, name, state: 'failed', error: data as unknown as StepFailure }
      if (entry.state === 'retry') {
        return { kind, name, state: 'retry', attempts: Number(data['attempts']), at: entry.at ?? 0 }
      }
      return 'value' in data
        ? { kind, name, state: 'done', value: data['value'] ?? null }
        : { kind, name, state: 'done' }
  }
}

function questionData(question: OpenQuestion): Json {
  const { key, tries, request } = question
  return { key, tries, request: request as unknown as JsonObject }
}

function questionOf(entry: JournalRow): OpenQuestion {
  const data = entry.data as unknown as Omit<OpenQuestion, 'name'>
  return { name: entry.name, key: data.key, tries: data.tries, request: data.request }
}

function answered(entry: JournalRow, question: OpenQuestion, answer: Json): JournalRow {
  const { key, tries, request } = question
  return {
    ...entry,
    state: 'answered',
    data: { key, tries, request: request as unknown as JsonObject, answer },
    at: null,
  }
}
