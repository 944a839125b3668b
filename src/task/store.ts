/**
 * The SQL of a Task object: two tables, created with the task and never otherwise, so that
 * an id that was never created leaves nothing behind. Documented in `docs/storage.md`.
 *
 * Rows written are what Durable Objects bill, so `task` is one row with its deadlines as
 * columns, both tables have integer keys and no index, and nothing logs transitions.
 */
import type { Json } from '../json'
import type { MachineState, Phase, Status } from './machine'
import type { CreateTask, LastError, StoredResult, TaskError } from './types'

/** The one row of `task`. Times are milliseconds since the epoch. */
export interface TaskRow extends MachineState {
  readonly head: Head
  readonly message: string | null
  readonly createdAt: number
  readonly updatedAt: number
  readonly ttlMs: number
  /** Gaps between visible changes, for the poll interval. */
  readonly gaps: readonly number[]
  /** The queue the current dispatch goes to. */
  readonly queue: 'work' | 'slow'
  /** Last time a message for the current dispatch was sent, and how often. */
  readonly sentAt: number
  readonly sends: number
  readonly leaseUntil: number | null
  readonly resendAt: number | null
  readonly wakeAt: number | null
  readonly leashAt: number | null
  readonly releaseAt: number | null
  /** What the alarm is set to. */
  readonly alarmAt: number | null
  readonly outcome: StoredOutcome | null
  readonly lastError: LastError | null
}

/** Never changes after creation. */
export type Head = Omit<CreateTask, 'input' | 'leashMs' | 'journal'>

/** JSON text of the result, in the row or in chunks of the journal; or the error. */
export type StoredOutcome =
  | { readonly kind: 'result'; readonly text: string }
  | { readonly kind: 'chunks'; readonly count: number }
  | ({ readonly kind: 'r2' } & StoredResult)
  | { readonly kind: 'error'; readonly error: TaskError }

export type EntryKind = 'step' | 'sleep' | 'question' | 'event'

/** A row of `journal`. What `data` holds depends on `kind` and `state`. */
export interface JournalRow {
  readonly seq: number
  readonly kind: EntryKind
  readonly name: string
  readonly state: string
  readonly data: Json
  readonly at: number | null
}

/** Characters per row: at most 3 bytes each, within the 2 MB a row may hold. */
const CHUNK_CHARS = 500_000
/** Texts up to this many characters stay in the task row, which is rewritten at each change. */
const INLINE_CHARS = 8_000

export class TaskStore {
  readonly #sql: SqlStorage
  #nextSeq = 0
  #chars: number | undefined

  constructor(sql: SqlStorage) {
    this.#sql = sql
  }

  /** Creates the tables and the row. */
  create(row: TaskRow, input: string): void {
    this.#sql.exec(`CREATE TABLE task (
      id INTEGER PRIMARY KEY CHECK (id = 1), head TEXT NOT NULL, input TEXT,
      status TEXT NOT NULL, phase TEXT NOT NULL, dispatch INTEGER NOT NULL, token TEXT,
      attempts INTEGER NOT NULL, cancel_requested INTEGER NOT NULL, open_questions INTEGER NOT NULL,
      message TEXT, created_at INTEGER NOT NULL, updated_at INTEGER NOT NULL, ttl_ms INTEGER NOT NULL,
      gaps TEXT NOT NULL, queue TEXT NOT NULL, sent_at INTEGER NOT NULL, sends INTEGER NOT NULL,
      lease_until INTEGER, resend_at INTEGER, wake_at INTEGER, leash_at INTEGER, release_at INTEGER, alarm_at INTEGER, outcome TEXT, last_error TEXT)`)
    this.#sql.exec(`CREATE TABLE journal (
      seq INTEGER PRIMARY KEY, kind TEXT NOT NULL, name TEXT NOT NULL, state TEXT NOT NULL,
      data TEXT NOT NULL, at INTEGER)`)
    this.#nextSeq = 1
    const inline = input.length <= INLINE_CHARS
    this.#sql.exec(
      `INSERT INTO task VALUES (1,?,?,?,?,?,?,?,?,?,?,?,?,?,?,?,?,?,?,?,?,?,?,?,?,?)`,
      JSON.stringify(row.head),
      inline ? input : null,
      ...columns(row),
    )
    if (!inline) this.#writeChunks('input', input)
  }

  /** The row, or `undefined` when this object holds no task. */
  load(): TaskRow | undefined {
    let found: Record<string, SqlStorageValue> | undefined
    try {
      found = this.#sql.exec('SELECT * FROM task').toArray()[0]
    } catch (error) {
      if (String(error).includes('no such table')) return undefined
      throw error
    }
    return found && rowOf(found)
  }

  save(row: TaskRow): void {
    this.#sql.exec(
      `UPDATE task SET status=?, phase=?, dispatch=?, token=?, attempts=?, cancel_requested=?, open_questions=?,
       message=?, created_at=?, updated_at=?, ttl_ms=?, gaps=?, queue=?, sent_at=?, sends=?, lease_until=?,
       resend_at=?, wake_at=?, leash_at=?, release_at=?, alarm_at=?, outcome=?, last_error=?`,
      ...columns(row),
    )
  }

  /** JSON text of the arguments. */
  input(): string {
    const inline = this.#sql.exec('SELECT input FROM task').one()['input']
    return typeof inline === 'string' ? inline : this.#readChunks('input')
  }

  /** Stores a result text and says where it is. */
  writeResult(text: string): StoredOutcome {
    if (text.length <= CHUNK_CHARS) return { kind: 'result', text }
    return { kind: 'chunks', count: this.#writeChunks('output', text) }
  }

  readResult(outcome: Extract<StoredOutcome, { kind: 'result' | 'chunks' }>): string {
    return outcome.kind === 'result' ? outcome.text : this.#readChunks('output')
  }

  journal(): JournalRow[] {
    return this.#sql
      .exec(`SELECT * FROM journal WHERE kind IN ('step','sleep','question','event') ORDER BY seq`)
      .toArray()
      .map(journalRowOf)
  }

  /** Characters in the journal, chunks of arguments and result included. */
  journalChars(): number {
    if (this.#chars === undefined) {
      const total = this.#sql.exec('SELECT coalesce(sum(length(data)), 0) AS chars FROM journal').one()[
        'chars'
      ]
      this.#chars = typeof total === 'number' ? total : 0
    }
    return this.#chars
  }

  /** Adds an entry and returns its number. */
  append(entry: Omit<JournalRow, 'seq'>): number {
    const seq = this.#sequence()
    const data = this.#counted(entry.data)
    this.#sql.exec(
      'INSERT INTO journal VALUES (?,?,?,?,?,?)',
      seq,
      entry.kind,
      entry.name,
      entry.state,
      data,
      entry.at,
    )
    return seq
  }

  amend(entry: JournalRow): void {
    const data = this.#counted(entry.data)
    this.#sql.exec(
      'UPDATE journal SET state=?, data=?, at=? WHERE seq=?',
      entry.state,
      data,
      entry.at,
      entry.seq,
    )
  }

  /** What a row held before it was amended stays counted: a limit may err on this side. */
  #counted(data: Json): string {
    const text = JSON.stringify(data)
    if (this.#chars !== undefined) this.#chars += text.length
    return text
  }

  #sequence(): number {
    if (this.#nextSeq === 0) {
      const last = this.#sql.exec('SELECT max(seq) AS last FROM journal').one()['last']
      this.#nextSeq = (typeof last === 'number' ? last : 0) + 1
    }
    return this.#nextSeq++
  }

  #writeChunks(kind: 'input' | 'output', text: string): number {
    let count = 0
    for (let start = 0; start < text.length; count++) {
      const end = chunkEnd(text, start)
      this.#sql.exec(
        `INSERT INTO journal VALUES (?,?,?,'chunk',?,NULL)`,
        this.#sequence(),
        kind,
        String(count),
        text.slice(start, end),
      )
      start = end
    }
    return count
  }

  #readChunks(kind: 'input' | 'output'): string {
    return this.#sql
      .exec('SELECT data FROM journal WHERE kind = ? ORDER BY seq', kind)
      .toArray()
      .map((row) => row['data'] as string)
      .join('')
  }
}

/** Never between the two halves of a surrogate pair, which UTF-8 could not store. */
function chunkEnd(text: string, start: number): number {
  const end = Math.min(start + CHUNK_CHARS, text.length)
  const last = text.charCodeAt(end - 1)
  return end < text.length && last >= 0xd800 && last <= 0xdbff ? end - 1 : end
}

function columns(row: TaskRow): SqlStorageValue[] {
  return [
    row.status,
    row.phase,
    row.dispatch,
    row.token,
    row.attempts,
    row.cancelRequested ? 1 : 0,
    row.openQuestions,
    row.message,
    row.createdAt,
    row.updatedAt,
    row.ttlMs,
    JSON.stringify(row.gaps),
    row.queue,
    row.sentAt,
    row.sends,
    row.leaseUntil,
    row.resendAt,
    row.wakeAt,
    row.leashAt,
    row.releaseAt,
    row.alarmAt,
    row.outcome && JSON.stringify(row.outcome),
    row.lastError && JSON.stringify(row.lastError),
  ]
}

/** The casts below restore what `columns` and `create` wrote; nobody else writes these tables. */
function rowOf(row: Record<string, SqlStorageValue>): TaskRow {
  const number = (column: string) => row[column] as number
  const time = (column: string) => row[column] as number | null
  return {
    head: JSON.parse(row['head'] as string) as Head,
    status: row['status'] as Status,
    phase: row['phase'] as Phase,
    dispatch: number('dispatch'),
    token: row['token'] as string | null,
    attempts: number('attempts'),
    cancelRequested: row['cancel_requested'] === 1,
    openQuestions: number('open_questions'),
    message: row['message'] as string | null,
    createdAt: number('created_at'),
    updatedAt: number('updated_at'),
    ttlMs: number('ttl_ms'),
    gaps: JSON.parse(row['gaps'] as string) as number[],
    queue: row['queue'] as 'work' | 'slow',
    sentAt: number('sent_at'),
    sends: number('sends'),
    leaseUntil: time('lease_until'),
    resendAt: time('resend_at'),
    wakeAt: time('wake_at'),
    leashAt: time('leash_at'),
    releaseAt: time('release_at'),
    alarmAt: time('alarm_at'),
    outcome: parsed(row['outcome']) as StoredOutcome | null,
    lastError: parsed(row['last_error']) as LastError | null,
  }
}

function parsed(column: SqlStorageValue | undefined): unknown {
  return typeof column === 'string' ? JSON.parse(column) : null
}

function journalRowOf(row: Record<string, SqlStorageValue>): JournalRow {
  return {
    seq: row['seq'] as number,
    kind: row['kind'] as EntryKind,
    name: row['name'] as string,
    state: row['state'] as string,
    data: JSON.parse(row['data'] as string) as Json,
    at: row['at'] as number | null,
  }
}
