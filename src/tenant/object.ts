/**
 * The Tenant object: one per tenant. It knows the tenant's live tasks, for quotas and for subscribing to
 * all of them, and its idempotency keys. It is asked when a task is created and told when one ends,
 * never on a poll, and holds nothing that a task's own object does not know better.
 *
 * A count that only ever goes up and down drifts, so nothing is counted: each live task is a row that
 * ends with the task's own time-to-live whatever happens, and at the limit doubtful rows are checked.
 */
import { DurableObject } from 'cloudflare:workers'
import { decodeTime } from 'ulid'
import { closeQuietly } from '../task/listeners'
import type { TaskApi } from '../task/types'
import { RateWindow } from '../rate'

export interface TenantEnv {
  readonly TASKS: DurableObjectNamespace
}

export interface Reservation {
  readonly taskId: string
  /** When the task's time-to-live ends, in milliseconds since the epoch. */
  readonly expiresAt: number
  readonly maxLive: number
  readonly maxPerMinute: number
  readonly idempotency?: Idempotency
}

export interface Idempotency {
  readonly key: string
  readonly digest: string
}

export type Reserved =
  /** `taskId` is that of an earlier call when `existing`. */
  | { readonly ok: true; readonly taskId: string; readonly existing: boolean }
  | {
      readonly ok: false
      readonly reason: 'live_tasks' | 'creations_per_minute'
      readonly retryAfterMs: number
    }
  | { readonly ok: false; readonly reason: 'idempotency_conflict' }

/** The methods of a Tenant object, as callers see them through a stub. */
export interface TenantApi {
  reserve(reservation: Reservation): Promise<Reserved>
  confirm(taskId: string, expiresAt: number): Promise<void>
  release(taskId: string, expiresAt: number): Promise<void>
  live(): Promise<readonly string[]>
}

/** Rows whose task may never have been created or may have ended unheard of are checked this often. */
const AUDIT_EVERY_MS = 10_000
const AUDIT_ROWS = 50
/** A task this young may still be on its way between the reservation and its creation. */
const AUDIT_AGE_MS = 60_000
const REMEMBERED_ENDS = 1_000
/** Tags of sockets. */
const NEWS = 'news'
const SUBSCRIPTION = 'subscription'
const SWEEP_EVERY_MS = 10 * 60_000
/** Nobody knows when a task will end; worth another try then. */
const LIVE_RETRY_MS = 5_000

export class TenantObject extends DurableObject<TenantEnv> implements TenantApi {
  readonly #sql: SqlStorage
  readonly #rate = new RateWindow(60_000)
  /** Live tasks and when they end at the latest: the table, and reservations not yet confirmed. */
  #live: Map<string, LiveTask> | undefined
  /** Tasks that ended lately. */
  readonly #ended = new Set<string>()
  #auditedAt = 0
  #sweptAt = 0

  constructor(ctx: DurableObjectState, env: TenantEnv) {
    super(ctx, env)
    this.#sql = ctx.storage.sql
    ctx.setWebSocketAutoResponse(new WebSocketRequestResponsePair('ping', 'pong'))
  }

  /** Makes room for a task, before it is created. The same idempotency key gets the same task. */
  async reserve(reservation: Reservation): Promise<Reserved> {
    const now = Date.now()
    const { taskId, expiresAt, idempotency } = reservation
    const live = this.#load(now)
    if (idempotency) {
      const earlier = this.#sql
        .exec(
          'SELECT task_id, digest FROM idempotency WHERE key = ? AND expires_at > ?',
          idempotency.key,
          now,
        )
        .toArray()[0]
      if (earlier && earlier['digest'] !== idempotency.digest)
        return { ok: false, reason: 'idempotency_conflict' }
      if (earlier) return { ok: true, taskId: earlier['task_id'] as string, existing: true }
    }
    if (live.size >= reservation.maxLive) {
      this.#audit(now)
      return { ok: false, reason: 'live_tasks', retryAfterMs: LIVE_RETRY_MS }
    }
    const waitMs = this.#rate.take(now, reservation.maxPerMinute)
    if (waitMs > 0) return { ok: false, reason: 'creations_per_minute', retryAfterMs: waitMs }

    // A key must be remembered before the caller can come again with it; other reservations are written
    // while the task is being created.
    if (idempotency) this.#write(taskId, expiresAt, idempotency)
    live.set(taskId, { expiresAt, key: idempotency?.key })
    for (const socket of this.ctx.getWebSockets(NEWS)) tell(socket, taskId)
    return { ok: true, taskId, existing: false }
  }

  /** The task is being created: from here on its reservation outlives this instance. */
  async confirm(taskId: string, expiresAt: number): Promise<void> {
    if (this.#ended.has(taskId)) return
    const live = this.#load(Date.now())
    this.#write(taskId, expiresAt)
    if (!live.has(taskId)) live.set(taskId, { expiresAt, key: undefined })
  }

  /** The task has ended. Its idempotency key lives as long as its result, until `expiresAt`. */
  async release(taskId: string, expiresAt: number): Promise<void> {
    const live = this.#load(Date.now())
    const key = live.get(taskId)?.key
    live.delete(taskId)
    this.#forgetSoon(taskId)
    this.ctx.storage.transactionSync(() => {
      this.#sql.exec('DELETE FROM live WHERE task_id = ?', taskId)
      if (key !== undefined) {
        this.#sql.exec('UPDATE idempotency SET expires_at = ? WHERE key = ?', expiresAt, key)
      }
    })
  }

  async live(): Promise<readonly string[]> {
    return [...this.#load(Date.now()).keys()]
  }

  /**
   * A socket of our own Worker. `/feed`: the ids of the live tasks, then of each new one. `/subscription`:
   * stands for an open event stream and closes with it, so that what is counted is what is there.
   */
  override async fetch(request: Request): Promise<Response> {
    const { pathname, searchParams } = new URL(request.url)
    const tag = pathname === '/subscription' ? SUBSCRIPTION : NEWS
    if (tag === SUBSCRIPTION && this.#open(SUBSCRIPTION) >= Number(searchParams.get('max'))) {
      return new Response(null, { status: 429 })
    }
    const { 0: client, 1: server } = new WebSocketPair()
    this.ctx.acceptWebSocket(server, [tag])
    if (tag === NEWS) for (const taskId of await this.live()) tell(server, taskId)
    return new Response(null, { status: 101, webSocket: client })
  }

  override webSocketMessage(): void {
    // Listeners only listen; `ping` is answered by the runtime.
  }

  override webSocketClose(socket: WebSocket, code: number): void {
    closeQuietly(socket, code)
  }

  override webSocketError(socket: WebSocket): void {
    closeQuietly(socket, 1011)
  }

  #write(taskId: string, expiresAt: number, idempotency?: Idempotency): void {
    this.ctx.storage.transactionSync(() => {
      const key = idempotency?.key ?? null
      this.#sql.exec('INSERT OR REPLACE INTO live VALUES (?, ?, ?)', taskId, expiresAt, key)
      if (!idempotency) return
      const { digest } = idempotency
      this.#sql.exec('INSERT OR REPLACE INTO idempotency VALUES (?, ?, ?, ?)', key, digest, taskId, expiresAt)
    })
  }

  /** A task may end before the word that it is being created arrives; that must not count it again. */
  #forgetSoon(taskId: string): void {
    this.#ended.add(taskId)
    if (this.#ended.size > REMEMBERED_ENDS) {
      const [oldest] = this.#ended
      if (oldest !== undefined) this.#ended.delete(oldest)
    }
  }

  #open(tag: string): number {
    return this.ctx.getWebSockets(tag).filter((socket) => socket.readyState === WebSocket.OPEN).length
  }

  #load(now: number): Map<string, LiveTask> {
    if (!this.#live) {
      this.#sql.exec(
        `CREATE TABLE IF NOT EXISTS live (task_id TEXT PRIMARY KEY, expires_at INTEGER NOT NULL, key TEXT)
         WITHOUT ROWID`,
      )
      this.#sql.exec(
        `CREATE TABLE IF NOT EXISTS idempotency (key TEXT PRIMARY KEY, digest TEXT NOT NULL,
         task_id TEXT NOT NULL, expires_at INTEGER NOT NULL) WITHOUT ROWID`,
      )
      const rows = this.#sql.exec('SELECT task_id, expires_at, key FROM live').toArray()
      this.#live = new Map(
        rows.map((row) => [
          row['task_id'] as string,
          { expiresAt: row['expires_at'] as number, key: (row['key'] as string | null) ?? undefined },
        ]),
      )
    }
    if (now - this.#sweptAt > SWEEP_EVERY_MS) this.#sweep(now, this.#live)
    return this.#live
  }

  /** What has passed its time is over, whether anybody said so or not. */
  #sweep(now: number, live: Map<string, LiveTask>): void {
    this.#sweptAt = now
    this.#sql.exec('DELETE FROM live WHERE expires_at <= ?', now)
    this.#sql.exec('DELETE FROM idempotency WHERE expires_at <= ?', now)
    for (const [taskId, { expiresAt }] of live) if (expiresAt <= now) live.delete(taskId)
  }

  /**
   * At the limit: are the oldest rows really alive? A Worker that died between reserving and creating,
   * or a release that has not arrived yet, must not shut a tenant out.
   */
  #audit(now: number): void {
    if (now - this.#auditedAt < AUDIT_EVERY_MS) return
    this.#auditedAt = now
    this.#sweep(now, this.#load(now))
    const oldest = [...this.#load(now).keys()]
      .filter((taskId) => now - bornAt(taskId) > AUDIT_AGE_MS)
      .slice(0, AUDIT_ROWS)
    this.ctx.waitUntil(Promise.all(oldest.map((taskId) => this.#check(taskId))))
  }

  async #check(taskId: string): Promise<void> {
    // The object implements TaskApi; see `Services.stubs`.
    const task = this.env.TASKS.getByName(taskId) as unknown as Pick<TaskApi, 'liveUntil'>
    const state = await task.liveUntil().catch(() => undefined)
    if (state && !state.live) await this.release(taskId, state.expiresAt)
  }
}

interface LiveTask {
  readonly expiresAt: number
  readonly key: string | undefined
}

/** When a task was made: its ULID says. */
function bornAt(taskId: string): number {
  return decodeTime(taskId.slice('tsk_'.length, 'tsk_'.length + 26))
}

function tell(socket: WebSocket, taskId: string): void {
  try {
    socket.send(taskId)
  } catch {
    // It is closing.
  }
}
