/**
 * The Task object: one Durable Object per task, its single writer. Thin methods that decide which
 * move a call asks for. It knows nothing of JSON-RPC and nothing of tools, awaits nothing but its own
 * storage, and answers the same to everybody who is not the owner as to an id that never existed.
 */
import { DurableObject } from 'cloudflare:workers'
import { type Json, type JsonObject } from '../json'
import { createObserver, fault, type ObserveEnv } from '../observe/observer'
import { RateWindow } from '../rate'
import { carriedBy, isFree } from './carriers'
import { answered, askedAgain, isOpen, questionOf } from './entries'
import { closeQuietly, type DoorProtocol, Listeners } from './listeners'
import { isTerminal } from './machine'
import { inspectionOf, replayable } from './operate'
import type { WorkMessage } from './outbox'
import { Outside } from './outside'
import { Runs } from './runs'
import { judge, MAX_TRIES, supersede, unanswered } from './questions'
import type { TenantApi } from '../tenant/object'
import type { JournalRow, TaskRow } from './store'
import { expiresAt, INTERNAL_ERROR, Task } from './task'
import type {
  CancelledNow,
  Carrying,
  Claim,
  CreateTask,
  Delivery,
  Dialect,
  Inspection,
  JournalRecord,
  LinkedAnswer,
  LinkedQuestion,
  LinkedReply,
  NewQuestion,
  Outcome,
  ProgressNote,
  Replay,
  Reported,
  RunReply,
  TaskApi,
  TaskError,
  Throttled,
} from './types'

export interface TaskEnv extends ObserveEnv {
  readonly WORK_QUEUE: Queue<WorkMessage>
  readonly SLOW_QUEUE: Queue<WorkMessage>
  readonly TENANTS: DurableObjectNamespace
  /** Where large results go; without it they stay in the object. */
  readonly RESULTS?: R2Bucket
  /** How long a run may be silent before another takes over, in ms. Default 30000. */
  readonly TASK_LEASE_MS?: string | number
  /** When an unclaimed message is taken for lost, in ms. Default 5000. */
  readonly TASK_RESEND_MS?: string | number
}

const DEFAULT_LEASE_MS = 30_000
const DEFAULT_RESEND_MS = 5_000
/** Should an alarm ever fail. */
const ALARM_AGAIN_MS = 30_000
/** How long the leash of a task is extended while somebody listens. */
const LEASH_AGAIN_MS = 60_000
/** Clients poll every 100 to 200 ms whatever they are told; this is well past that. */
const MAX_POLLS = 150
const POLL_WINDOW_MS = 10_000

export class TaskCore extends DurableObject<TaskEnv> implements TaskApi {
  readonly #listeners: Listeners
  readonly #task: Task
  readonly #outside: Outside
  readonly #runs: Runs
  readonly #polls = new RateWindow(POLL_WINDOW_MS)
  /** Offers to carry questions that were refused for the sake of a better one. */
  #refusedOffers = 0

  constructor(ctx: DurableObjectState, env: TaskEnv, door: DoorProtocol) {
    super(ctx, env)
    this.#listeners = new Listeners(ctx, door)
    const queues = {
      work: env.WORK_QUEUE,
      slow: env.SLOW_QUEUE,
      resendMs: Number(env.TASK_RESEND_MS ?? DEFAULT_RESEND_MS),
    }
    const release = async (row: TaskRow) => {
      // The object implements TenantApi; see `Services.tenant`.
      const tenant = env.TENANTS.getByName(row.head.principal.tenant) as unknown as TenantApi
      await tenant.release(row.head.taskId, expiresAt(row))
    }
    this.#task = new Task(ctx, this.#listeners, queues, release, createObserver(env))
    this.#outside = new Outside(this.#task)
    this.#runs = new Runs(this.#task, Number(env.TASK_LEASE_MS ?? DEFAULT_LEASE_MS))
  }

  // ---------------------------------------------------------------- for clients

  /**
   * Creates the task and sends its first dispatch. Durable when it returns. Safe to call twice.
   * @returns the snapshot.
   */
  async create(command: CreateTask): Promise<string> {
    return this.#task.snapshot(this.#task.row() ?? this.#task.create(command))
  }

  /** {@link read} for clients that poll: far past the interval they were told, they are told to wait. */
  async poll(tenant: string): Promise<string | null | Throttled> {
    const row = this.#owned(tenant)
    if (!row) return null
    this.#task.polls++
    const retryAfterMs = this.#polls.take(Date.now(), MAX_POLLS)
    return retryAfterMs > 0 ? { retryAfterMs } : this.#task.snapshot(row)
  }

  /** The snapshot as JSON text, or `null` for anybody but the owner, and when there is no such task. */
  async read(tenant: string): Promise<string | null> {
    const row = this.#owned(tenant)
    return row ? this.#task.snapshot(row) : null
  }

  /**
   * Answers questions by key. Keys that are not open are ignored; an answer that does not fit
   * supersedes its question by a new one. `false`: no such task for this tenant.
   */
  async update(tenant: string, inputResponses: JsonObject): Promise<boolean> {
    const row = this.#owned(tenant)
    if (!row) return false
    const by = { via: 'client', at: Date.now() } as const
    const rows: JournalRow[] = []
    for (const { row: open, question } of this.#task.openQuestions()) {
      const response = Object.hasOwn(inputResponses, question.key) ? inputResponses[question.key] : undefined
      if (response === undefined) continue
      const verdict = judge(question.request, response)
      if (verdict.fits) rows.push(answered(open, verdict.answer, by))
      else if (question.tries >= MAX_TRIES) rows.push(answered(open, unanswered(question.request)))
      else rows.push(askedAgain(open, supersede(question, verdict.problem)))
    }
    const count = rows.filter((changed) => changed.state === 'answered').length
    if (rows.length > 0) this.#task.apply(row, { type: 'answer', count }, { rows, visible: true })
    return true
  }

  /** Notes the wish to cancel; at once when nobody runs. `false`: no such task for this tenant. */
  async cancel(tenant: string): Promise<boolean> {
    const row = this.#owned(tenant)
    if (!row) return false
    if (!row.cancelRequested) this.#task.apply(row, { type: 'cancel' })
    return true
  }

  /** Cancels at once; a run that is at work is fenced off. */
  async cancelNow(tenant: string): Promise<CancelledNow> {
    const row = this.#owned(tenant)
    if (!row) return { ok: false, reason: 'unknown' }
    if (!this.#task.apply(row, { type: 'cancelNow' }).ok) return { ok: false, reason: 'ended' }
    return { ok: true, snapshot: this.#task.snapshot(this.#task.row() ?? row) }
  }

  /** The keys of those open questions that this stream may carry to its client, and nobody else until it ends. */
  async carry(tenant: string, by: Carrying): Promise<readonly string[]> {
    const row = this.#owned(tenant)
    if (!row) return []
    const now = Date.now()
    const isConnected = (stream: string) => this.#listeners.hasStream(stream)
    const free = this.#task
      .openQuestions()
      .filter(({ question }) => by.keys.includes(question.key))
      .filter((open) => isFree(open.row, by, now, isConnected))
    if (free.length === 0 || this.#refusedOffers++ < by.patience) return []
    this.#refusedOffers = 0
    this.#task.commit(row, row, { rows: free.map((open) => carriedBy(open.row, by, now)) })
    return free.map(({ question }) => question.key)
  }

  /** The client has no answer to this question, and never will. `false`: no such task for this tenant. */
  async giveUp(tenant: string, key: string): Promise<boolean> {
    const row = this.#owned(tenant)
    if (!row) return false
    const open = this.#task.openQuestions().find(({ question }) => question.key === key)
    if (open) {
      const rows = [answered(open.row, unanswered(open.question.request))]
      this.#task.apply(row, { type: 'answer', count: 1 }, { rows, visible: true })
    }
    return true
  }

  /**
   * Cancels the task in `ms`, or lets it live (`null`): whether somebody can still come back for the result.
   * `false`: no such task for this tenant.
   */
  async leash(tenant: string, ms: number | null): Promise<boolean> {
    const row = this.#owned(tenant)
    if (!row) return false
    if (isTerminal(row.status)) return true
    this.#task.commit(row, { ...row, leashAt: ms === null ? null : Date.now() + ms })
    return true
  }

  /** The snapshot, and the dialect the task was created in. */
  async readStored(tenant: string): Promise<{ readonly dialect: Dialect; readonly snapshot: string } | null> {
    const row = this.#owned(tenant)
    return row ? { dialect: row.head.dialect, snapshot: this.#task.snapshot(row) } : null
  }

  /** For the tenant's object: whether the task counts, and when its time is over. */
  async liveUntil(): Promise<{ readonly live: boolean; readonly expiresAt: number }> {
    const row = this.#task.live()
    return row ? { live: !isTerminal(row.status), expiresAt: expiresAt(row) } : { live: false, expiresAt: 0 }
  }

  // ---------------------------------------------------------------- for signed addresses; see `outside.ts`

  async deliver(event: string, payload: Json): Promise<Delivery> {
    return this.#outside.deliver(event, payload)
  }

  async report(event: string, note: ProgressNote): Promise<Reported> {
    return this.#outside.report(event, note)
  }

  async question(name: string): Promise<LinkedQuestion> {
    return this.#outside.question(name)
  }

  async answer(name: string, answer: LinkedAnswer): Promise<LinkedReply> {
    return this.#outside.answer(name, answer)
  }

  // ---------------------------------------------------------------- for listeners

  /**
   * A WebSocket of a listener: `/feed` for our own Worker, `/door` for a client. The Worker has
   * authenticated it and says for whom it listens, and until when.
   */
  override async fetch(request: Request): Promise<Response> {
    const tenant = decodeURIComponent(request.headers.get('x-longhaul-tenant') ?? '')
    const row = this.#owned(tenant)
    if (!row) return new Response(null, { status: 404 })
    const kind = new URL(request.url).pathname === '/door' ? 'door' : 'feed'
    const expires = request.headers.get('x-longhaul-expires')
    const stream = request.headers.get('x-longhaul-stream') ?? undefined
    const { 0: client, 1: server } = new WebSocketPair()
    this.#listeners.accept(
      server,
      { kind, tenant, expiresAt: expires === null ? null : Number(expires) },
      row.head.taskId,
      this.#task.snapshot(row),
      isTerminal(row.status),
      stream,
    )
    this.#task.listened()
    return new Response(null, { status: 101, webSocket: client })
  }

  override async webSocketMessage(socket: WebSocket, frame: string | ArrayBuffer): Promise<void> {
    const row = this.#task.live()
    if (!row) return closeQuietly(socket, 1011)
    await this.#listeners.received(socket, frame, (tenant) => ({
      taskId: row.head.taskId,
      read: () => this.read(tenant),
      // The door has checked that it is an object; it came out of JSON.parse.
      update: (inputResponses) => this.update(tenant, inputResponses as JsonObject),
      cancel: () => this.cancel(tenant),
    }))
  }

  override webSocketClose(socket: WebSocket, code: number): void {
    closeQuietly(socket, code)
  }

  override webSocketError(socket: WebSocket): void {
    closeQuietly(socket, 1011)
  }

  // ---------------------------------------------------------------- for operators

  async inspect(): Promise<Inspection | null> {
    const row = this.#task.live()
    return row ? inspectionOf(row, this.#task.journal().values()) : null
  }

  /** What a new task needs to go on where this one died. */
  async replay(): Promise<Replay> {
    const row = this.#task.live()
    if (!row) return { ok: false, reason: 'unknown' }
    if (!isTerminal(row.status)) return { ok: false, reason: 'alive' }
    if (row.status === 'completed') return { ok: false, reason: 'completed' }
    const { taskId: _, ...head } = row.head
    return {
      ok: true,
      command: { ...head, input: this.#task.input(), journal: replayable(this.#task.journal()) },
    }
  }

  // ---------------------------------------------------------------- for runs; see `runs.ts`

  async claim(n: number, token: string): Promise<Claim> {
    return this.#runs.claim(n, token)
  }

  async beat(token: string, note?: ProgressNote): Promise<RunReply> {
    return this.#runs.beat(token, note)
  }

  async record(token: string, record: JournalRecord, note?: ProgressNote): Promise<RunReply> {
    return this.#runs.record(token, record, note)
  }

  async ask(token: string, questions: readonly NewQuestion[]): Promise<RunReply> {
    return this.#runs.ask(token, questions)
  }

  async askAgain(token: string, name: string, problem: string): Promise<RunReply> {
    return this.#runs.askAgain(token, name, problem)
  }

  async suspend(token: string, parked: readonly string[], note?: ProgressNote): Promise<RunReply> {
    return this.#runs.suspend(token, parked, note)
  }

  async proceed(token: string, note?: ProgressNote): Promise<RunReply> {
    return this.#runs.proceed(token, note)
  }

  async throwError(token: string, error: TaskError, final: boolean): Promise<RunReply> {
    return this.#runs.throwError(token, error, final)
  }

  async settle(token: string, outcome: Outcome, note?: ProgressNote): Promise<RunReply> {
    return this.#runs.settle(token, outcome, note)
  }

  async stop(token: string): Promise<RunReply> {
    return this.#runs.stop(token)
  }

  async deadLetter(n: number, reason: string): Promise<boolean> {
    return this.#runs.deadLetter(n, reason)
  }

  // ---------------------------------------------------------------- deadlines

  /** Awaits nothing but the final deletion and never throws: an alarm that fails six times is lost. */
  override async alarm(): Promise<void> {
    const rang = this.#task.row()
    if (!rang) return
    if (Date.now() >= expiresAt(rang)) return this.#expire(rang)
    try {
      this.#listeners.closeExpired()
      // The alarm that rang is spent: whatever is stored next sets the following one.
      this.#ring({ ...rang, alarmAt: null })
      const row = this.#task.row()
      if (row && row.alarmAt === rang.alarmAt) this.#task.commit(row, { ...row, alarmAt: null })
    } catch (error) {
      fault({ event: 'alarm_failed', task: rang.head.taskId }, error)
      void this.ctx.storage.setAlarm(Date.now() + ALARM_AGAIN_MS)
    }
  }

  #ring(row: TaskRow): void {
    const now = Date.now()
    if (row.leashAt !== null && now >= row.leashAt && this.#listeners.any()) {
      // Somebody waits for it after all.
      this.#task.commit(row, { ...row, leashAt: now + LEASH_AGAIN_MS })
    } else if (row.leashAt !== null && now >= row.leashAt) {
      this.#task.apply(row, { type: 'cancel' }, { patch: { leashAt: null } })
    } else if (row.phase === 'running') {
      const leaseUntil = this.#runs.leaseUntil(row)
      if (now < leaseUntil) {
        this.#task.commit(row, { ...row, leaseUntil })
      } else {
        const failure = { code: INTERNAL_ERROR, message: 'The run stopped without a word too often.' }
        this.#task.apply(row, { type: 'lapse', limit: row.head.policy.retryLimit }, { failure })
      }
    } else if (row.phase === 'queued' && row.resendAt !== null && now >= row.resendAt) {
      this.#task.resend(row, now)
    } else if (row.phase === 'waiting' && row.wakeAt !== null && now >= row.wakeAt) {
      this.#wake(row, now)
    } else if (row.phase === 'ended' && row.releaseAt !== null && now >= row.releaseAt) {
      this.#task.releaseAgain(row, now)
    }
  }

  /** What the task waits for by the clock is due: time-outs are answers too. */
  #wake(row: TaskRow, now: number): void {
    const due = [...this.#task.journal().values()].filter((entry) => entry.at !== null && entry.at <= now)
    const questions = due.filter((entry) => isOpen(entry, 'question'))
    const rows = [
      ...questions.map((entry) => answered(entry, unanswered(questionOf(entry).request))),
      ...due
        .filter((entry) => isOpen(entry, 'event'))
        .map((entry) => ({ ...entry, state: 'timeout', data: null, at: null })),
    ]
    if (questions.length === 0) {
      this.#task.apply(row, { type: 'wake' }, { rows })
      return
    }
    const change = { rows, visible: true, patch: { wakeAt: null } }
    const moved = this.#task.apply(row, { type: 'answer', count: questions.length }, change)
    const current = this.#task.row()
    // Other questions are still open, but something else may be due.
    if (moved.ok && !moved.dispatched && current) this.#task.apply(current, { type: 'wake' })
  }

  /** The end of the time-to-live: the work stops, the listeners are told, nothing is left. */
  async #expire(row: TaskRow): Promise<void> {
    const message = `The task did not finish within its time-to-live of ${row.ttlMs} ms.`
    this.#task.apply(row, { type: 'expire' }, { failure: { code: INTERNAL_ERROR, message } })
    if (row.outcome?.kind === 'r2' && !(await this.#deleteResult(row.outcome.key))) {
      await this.ctx.storage.setAlarm(Date.now() + ALARM_AGAIN_MS)
      return
    }
    await this.#task.erase()
  }

  // ---------------------------------------------------------------- small parts of the above

  /** The result goes with its task. `false`: it could not be deleted now. */
  async #deleteResult(key: string): Promise<boolean> {
    try {
      await this.env.RESULTS?.delete(key)
      return true
    } catch (error) {
      fault({ event: 'alarm_failed' }, error)
      return false
    }
  }

  #owned(tenant: string): TaskRow | undefined {
    const row = this.#task.live()
    return row?.head.principal.tenant === tenant ? row : undefined
  }
}
