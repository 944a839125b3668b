/**
 * A stored task and the one way to change it: the machine moves, row and journal are written in one
 * transaction with the alarm that guards the next deadline, then listeners are told and the next
 * dispatch is sent. Synchronous throughout, so that nothing resumes into a task that was deleted.
 */
import { type Json, utf8Bytes } from '../json'
import { type NewRow, isOpen, questionOf } from './entries'
import type { Observer, Subject } from '../observe/observer'
import { nextDeadline } from './deadlines'
import type { Listeners } from './listeners'
import { INITIAL, type MachineEvent, type Move, move } from './machine'
import { probablyQueued, resendDelayMs, send, type WorkMessage } from './outbox'
import { withGap } from './pace'
import { MAX_ENTRY_BYTES, type OpenQuestion } from './questions'
import { snapshotText } from './snapshot'
import { type JournalRow, type TaskRow, TaskStore } from './store'
import type { CreateTask, LastError, ProgressNote, StoredResult, TaskError } from './types'

export const INTERNAL_ERROR = -32603
/** What an entry may need around the value that its limit is about. */
const ENTRY_FRAME_BYTES = 1_000
/** All entries together: a claim carries them, and an RPC carries 32 MiB of at most 2 bytes a character. */
const MAX_JOURNAL_CHARS = 16_000_000
/** Larger snapshots are put together when they are read, not kept. */
const MAX_KEPT_CHARS = 256 * 1024
/** How long to wait for the tenant's object to acknowledge the end of a task. */
const RELEASE_AGAIN_MS = 30_000

/** Alarms are late at times; this late they do not come. */
const OVERDUE_MS = 60_000

export interface TaskQueues {
  readonly work: Queue<WorkMessage>
  readonly slow: Queue<WorkMessage>
  /** When an unclaimed message is taken for lost, in ms. */
  readonly resendMs: number
}

/** Tells the tenant's object that a task has ended. May be called more than once. */
export type Release = (row: TaskRow) => Promise<void>

/** What changes together with a move. */
export interface Change {
  readonly patch?: Partial<TaskRow>
  /** Journal rows that exist and change. */
  readonly rows?: readonly JournalRow[]
  /** New journal rows. */
  readonly added?: readonly NewRow[]
  /** Readers see a difference although the status is the same. */
  readonly visible?: boolean
  /** JSON text of the result, or where it is, should the move complete the task. */
  readonly result?: string | StoredResult
  /** The error, should the move end the task as failed. */
  readonly failure?: TaskError
}

export class Task {
  readonly #ctx: DurableObjectState
  readonly #store: TaskStore
  readonly #listeners: Listeners
  readonly #queues: TaskQueues
  readonly #release: Release
  readonly #observer: Observer
  // Caches of what is stored; `#unsaved` marks a status text that the next write will store.
  #row: TaskRow | undefined
  #journal: Map<string, JournalRow> | undefined
  #snapshot: string | undefined
  #unsaved = false
  /** Polls seen by this instance, for the operator. */
  polls = 0

  constructor(
    ctx: DurableObjectState,
    listeners: Listeners,
    queues: TaskQueues,
    release: Release,
    observer: Observer,
  ) {
    this.#ctx = ctx
    this.#store = new TaskStore(ctx.storage.sql)
    this.#listeners = listeners
    this.#queues = queues
    this.#release = release
    this.#observer = observer
  }

  // ---------------------------------------------------------------- reading

  /** The row, or `undefined` when this object holds no task. */
  row(): TaskRow | undefined {
    if (this.#row === undefined) {
      this.#row = this.#store.load()
      if (this.#row) this.#miss(this.#row)
    }
    return this.#row
  }

  /** The row, unless its time is over: the alarm may be late. */
  live(): TaskRow | undefined {
    const row = this.row()
    return row && Date.now() < expiresAt(row) ? row : undefined
  }

  /** What clients see, as JSON text. */
  snapshot(row: TaskRow): string {
    if (this.#snapshot !== undefined) return this.#snapshot
    const { outcome } = row
    const result =
      outcome?.kind === 'result' || outcome?.kind === 'chunks' ? this.#store.readResult(outcome) : undefined
    const questions =
      row.status === 'input_required' ? this.openQuestions().map(({ question }) => question) : []
    const text = snapshotText(row, questions, result)
    if (text.length <= MAX_KEPT_CHARS) this.#snapshot = text
    return text
  }

  input(): string {
    return this.#store.input()
  }

  journal(): ReadonlyMap<string, JournalRow> {
    return this.#entries()
  }

  /** Why an entry cannot be stored, if so. */
  tooLarge(data: Json): string | undefined {
    const bytes = utf8Bytes(JSON.stringify(data))
    if (bytes > MAX_ENTRY_BYTES + ENTRY_FRAME_BYTES) {
      return `A journal entry holds at most ${MAX_ENTRY_BYTES} bytes; this one has ${bytes}. Store large data elsewhere (R2, D1) and pass its key.`
    }
    if (this.#store.journalChars() + bytes > MAX_JOURNAL_CHARS) {
      return `The journal of this task would exceed ${MAX_JOURNAL_CHARS} characters. Use fewer or smaller steps.`
    }
    return undefined
  }

  openQuestions(): { row: JournalRow; question: OpenQuestion }[] {
    return [...this.#entries().values()]
      .filter((row) => isOpen(row, 'question'))
      .map((row) => ({ row, question: questionOf(row) }))
  }

  // ---------------------------------------------------------------- changing

  create(command: CreateTask): TaskRow {
    const now = Date.now()
    const { input, leashMs, journal = [], ...head } = command
    const begun: TaskRow = {
      ...INITIAL,
      head,
      message: null,
      createdAt: now,
      updatedAt: now,
      ttlMs: head.policy.ttlMs,
      gaps: [],
      ...this.#dispatchNow(now),
      queue: head.policy.queue,
      leashAt: leashMs === undefined ? null : now + leashMs,
      releaseAt: null,
      alarmAt: null,
      outcome: null,
      lastError: null,
    }
    // The alarm belongs to the transaction: a creation that fails leaves none.
    const row = this.#ctx.storage.transactionSync(() => {
      const armed = this.#armed(begun)
      this.#store.create(armed, input)
      for (const seed of journal) this.#store.append(seed)
      return armed
    })
    this.#row = row
    this.#observer.occurred({ event: 'task_created', ...subjectOf(row) })
    this.#send(row)
    return row
  }

  /** Moves the machine and stores what follows. An illegal move changes nothing. */
  apply(row: TaskRow, event: MachineEvent, change: Change = {}): Move {
    const moved = move(row, event)
    if (!moved.ok) return moved
    const patch: Partial<TaskRow> = {
      ...moved.state,
      ...change.patch,
      ...(change.failure && { lastError: this.#lastError(row, change.failure) }),
      ...(moved.dispatched && { ...this.#dispatchNow(Date.now()), queue: queueAfter(event, row) }),
    }
    const next = this.commit(row, { ...row, ...patch }, change, moved.ended !== undefined)
    this.#observe(row, next, event.type)
    if (moved.dispatched) this.#send(next)
    if (moved.ended) this.#tellTenant(next)
    return moved
  }

  /** Writes row and journal together, and tells the listeners what they can see of it. */
  commit(before: TaskRow, row: TaskRow, change: Change = {}, ended = false): TaskRow {
    const now = Date.now()
    const visible = change.visible === true || ended || before.status !== row.status
    const changed = visible ? { ...row, updatedAt: now, gaps: withGap(row.gaps, now - row.updatedAt) } : row
    const saved = this.#transaction(() => {
      const next = this.#armed(ended ? this.#ended(changed, change, now) : changed)
      for (const entry of change.rows ?? []) this.#amend(entry)
      for (const entry of change.added ?? []) this.#remember({ ...entry, seq: this.#store.append(entry) })
      if (next !== before) this.#store.save(next)
      return next
    })
    this.#unsaved &&= saved === before
    this.#row = saved
    if (visible) {
      this.#snapshot = undefined
      const { taskId } = saved.head
      if (ended) this.#listeners.ended(taskId, () => this.snapshot(saved))
      else this.#listeners.changed(taskId, () => this.snapshot(saved))
    }
    return saved
  }

  /**
   * Status text is shown at once and stored with the next write: after a crash a run repeats it with
   * its first sign of life, so a write of its own would buy nothing.
   */
  note(row: TaskRow, { message }: ProgressNote): TaskRow {
    if (row.message === message) return row
    const now = Date.now()
    const next = { ...row, message, updatedAt: now, gaps: withGap(row.gaps, now - row.updatedAt) }
    this.#row = next
    this.#unsaved = true
    this.#snapshot = undefined
    this.#listeners.changed(next.head.taskId, () => this.snapshot(next))
    return next
  }

  /** Stores a status text that no other write would store soon. */
  flush(): void {
    if (this.#unsaved && this.#row) this.commit(this.#row, { ...this.#row })
  }

  /** Sends the current dispatch again, unless its message is probably still waiting in the queue. */
  resend(row: TaskRow, now: number): void {
    const sends = row.sends + 1
    const next = this.commit(row, {
      ...row,
      sends,
      resendAt: now + resendDelayMs(this.#queues.resendMs, sends),
    })
    this.#ctx.waitUntil(
      probablyQueued(this.#queues[next.queue], next.sentAt, now).then((queued) => {
        const current = this.row()
        if (queued || current?.phase !== 'queued' || current.dispatch !== next.dispatch) return
        this.#observer.occurred({
          event: 'task_resent',
          ...subjectOf(current),
          dispatch: current.dispatch,
          sends,
        })
        this.#send(this.commit(current, { ...current, sentAt: Date.now() }))
      }),
    )
  }

  /** Tells the tenant's object again, which has not acknowledged yet. */
  releaseAgain(row: TaskRow, now: number): void {
    this.#tellTenant(this.commit(row, { ...row, releaseAt: now + RELEASE_AGAIN_MS }))
  }

  /**
   * A listener has come: the alarm also rings when its credentials end. As with the tenant's
   * acknowledgement the stored row is left as it is.
   */
  listened(): void {
    const row = this.row()
    if (row && this.#listeners.nextExpiry() < Infinity) this.#row = this.#armed(row)
  }

  /** Deletes everything. */
  async erase(): Promise<void> {
    this.#forget()
    await this.#ctx.storage.deleteAll()
  }

  // ---------------------------------------------------------------- parts of the above

  #dispatchNow(now: number) {
    return {
      sentAt: now,
      sends: 1,
      resendAt: now + resendDelayMs(this.#queues.resendMs, 1),
      wakeAt: null,
      leaseUntil: null,
    }
  }

  /** A send that fails is repeated by the alarm. */
  #send(row: TaskRow): void {
    const { taskId, traceparent } = row.head
    const message = {
      taskId,
      n: row.dispatch,
      sentAt: row.sentAt,
      ...(traceparent !== undefined && { traceparent }),
    }
    this.#ctx.waitUntil(send(this.#queues[row.queue], message).catch(() => undefined))
  }

  /** Until it is acknowledged, a deadline sees to it that it is said again. */
  #tellTenant(row: TaskRow): void {
    const told = this.#release(row).then(() => this.#acknowledged())
    this.#ctx.waitUntil(told.catch(() => undefined))
  }

  /**
   * Nothing is left to do but to be deleted one day, and the alarm is moved to that. The stored row is
   * left as it is: its earlier deadlines matter no more, and each row written is paid for.
   */
  #acknowledged(): void {
    const row = this.row()
    if (row) this.#row = this.#armed({ ...row, releaseAt: null, alarmAt: null })
  }

  #lastError({ dispatch, attempts }: TaskRow, { message }: TaskError): LastError {
    const names = [...this.#entries().keys()]
    return {
      at: Date.now(),
      message,
      dispatch,
      attempts,
      recorded: names.length,
      lastEntry: names.at(-1) ?? null,
    }
  }

  #observe(before: TaskRow, row: TaskRow, cause: string): void {
    if (before.status === row.status && before.phase === row.phase && before.dispatch === row.dispatch) return
    const { status, phase, dispatch, attempts } = row
    const about = { ...subjectOf(row), cause, status, dispatch, attempts }
    this.#observer.occurred(
      phase === 'ended'
        ? { event: 'task_settled', ...about, ms: Date.now() - row.createdAt, polls: this.polls }
        : { event: 'task_moved', ...about, phase },
    )
  }

  /** Outcome, deadlines and retention of a task that ends now. */
  #ended(row: TaskRow, { result, failure }: Change, now: number): TaskRow {
    for (const { row: open } of this.openQuestions()) this.#remember({ ...open, state: 'withdrawn' })
    const error = failure ?? { code: INTERNAL_ERROR, message: 'Internal error' }
    const outcome =
      row.status === 'failed'
        ? { kind: 'error' as const, error }
        : row.status === 'completed' && result !== undefined
          ? typeof result === 'string'
            ? this.#store.writeResult(result)
            : { kind: 'r2' as const, ...result }
          : null
    const message =
      row.status === 'failed' ? error.message : row.status === 'cancelled' ? 'Cancelled.' : row.message
    return {
      ...row,
      outcome,
      message,
      leaseUntil: null,
      resendAt: null,
      wakeAt: null,
      leashAt: null,
      releaseAt: now + RELEASE_AGAIN_MS,
      // A job that used up its time must not lose its result; one that ran out of it has none.
      ttlMs:
        now < expiresAt(row)
          ? Math.max(row.ttlMs, now - row.createdAt + row.head.policy.retentionMs)
          : row.ttlMs,
    }
  }

  /** The row with its alarm set to the next deadline, unless one rings before that anyway. */
  #armed(row: TaskRow): TaskRow {
    const next = Math.min(nextDeadline({ ...row, expiresAt: expiresAt(row) }), this.#listeners.nextExpiry())
    if (row.alarmAt !== null && row.alarmAt <= next) return row
    void this.#ctx.storage.setAlarm(Math.max(next, Date.now() + 1))
    return { ...row, alarmAt: next }
  }

  /** An alarm that failed too often is lost: an object that finds one long overdue sets it again. */
  #miss({ alarmAt }: TaskRow): void {
    const now = Date.now()
    if (alarmAt !== null && alarmAt + OVERDUE_MS < now) void this.#ctx.storage.setAlarm(now + 1)
  }

  #transaction<T>(work: () => T): T {
    try {
      return this.#ctx.storage.transactionSync(work)
    } catch (error) {
      // What was rolled back must not live on in memory.
      this.#forget()
      throw error
    }
  }

  #forget(): void {
    this.#row = undefined
    this.#journal = undefined
    this.#snapshot = undefined
    this.#unsaved = false
  }

  #entries(): Map<string, JournalRow> {
    this.#journal ??= new Map(this.#store.journal().map((entry) => [entry.name, entry]))
    return this.#journal
  }

  #amend(entry: JournalRow): void {
    this.#store.amend(entry)
    this.#remember(entry)
  }

  #remember(entry: JournalRow): void {
    this.#entries().set(entry.name, entry)
  }
}

function subjectOf({ head }: TaskRow): Subject {
  return { task: head.taskId, tool: head.tool, tenant: head.tenantHash }
}

/**
 * A run that used up its slice, or vanished, has shown that it takes long. One that waited has not: on
 * `slow`, which may be busy for the whole slice of another task, its answer would lie unread that long.
 */
function queueAfter({ type }: MachineEvent, { head }: TaskRow): 'work' | 'slow' {
  return type === 'yield' || type === 'lapse' ? 'slow' : head.policy.queue
}

/** Milliseconds since the epoch. */
export function expiresAt(row: Pick<TaskRow, 'createdAt' | 'ttlMs'>): number {
  return row.createdAt + row.ttlMs
}
