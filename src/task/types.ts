/**
 * What crosses the boundary of a Task object: plain data, flat and named, so that it
 * serialises over RPC and stays readable between versions of the code.
 */
import type { Principal } from '../auth/principal'
import type { Json, JsonObject } from '../json'
import type { Status } from './machine'

/** The protocol a task was created in, for readers that do not name one. */
export type Dialect = '2026-07-28' | '2025-11-25' | 'article'

/** Everything a task needs for its whole life; the object never looks at tool definitions. */
export interface CreateTask {
  readonly taskId: string
  readonly principal: Principal
  readonly dialect: Dialect
  /** As the client declared them: what it may be asked. */
  readonly capabilities: JsonObject
  readonly tool: string
  /** JSON text of the validated arguments. */
  readonly input: string
  /** Answers gathered before the task existed, by key. */
  readonly gathered: JsonObject
  /** Origin of this server, for callback URLs. */
  readonly baseUrl: string
  /** Prefix of idempotency keys. The task id, or that of the task this one replays. */
  readonly lineage: string
  /** What operators see instead of the tenant's name. */
  readonly tenantHash: string
  /** W3C Trace Context of the call. */
  readonly traceparent?: string
  readonly policy: TaskPolicy
  /** Of a task that this one replays. */
  readonly journal?: readonly JournalSeed[]
  /** For a caller who cannot come back: cancelled after this time, unless {@link TaskApi.leash} says otherwise. */
  readonly leashMs?: number
}

export interface TaskPolicy {
  readonly ttlMs: number
  readonly retentionMs: number
  readonly pollMinMs: number
  readonly pollMaxMs: number
  readonly retryLimit: number
  readonly retryDelayMs: number
  readonly retryMaxDelayMs: number
  readonly queue: 'work' | 'slow'
  readonly maxResultBytes: number
}

/** A task as a client sees it: `DetailedTask` of SEP-2663, which is also our neutral form. */
export interface TaskSnapshot {
  readonly taskId: string
  readonly status: Status
  readonly statusMessage?: string
  /** ISO 8601. */
  readonly createdAt: string
  readonly lastUpdatedAt: string
  readonly ttlMs: number
  readonly pollIntervalMs: number
  readonly inputRequests?: { readonly [key: string]: InputRequest }
  readonly result?: JsonObject
  readonly error?: TaskError
}

/** A request to the client, as `inputRequests` carries it. */
export interface InputRequest {
  readonly method: string
  readonly params?: JsonObject
}

/** The JSON-RPC error of a failed task. */
export interface TaskError {
  readonly code: number
  readonly message: string
  readonly data?: Json
}

/** A journal entry as a run sees it. */
export type JournalEntry =
  | { readonly kind: 'step'; readonly name: string; readonly state: 'done'; readonly value?: Json }
  | { readonly kind: 'step'; readonly name: string; readonly state: 'failed'; readonly error: StepFailure }
  | {
      readonly kind: 'step'
      readonly name: string
      readonly state: 'retry'
      readonly attempts: number
      readonly at: number
    }
  | { readonly kind: 'sleep'; readonly name: string; readonly at: number }
  | { readonly kind: 'question'; readonly name: string; readonly state: 'open' }
  | {
      readonly kind: 'question'
      readonly name: string
      readonly state: 'answered'
      readonly answer: Json
      /** Not set when nobody gave a usable answer in time. */
      readonly by?: AnsweredBy
    }
  | { readonly kind: 'event'; readonly name: string; readonly state: 'open'; readonly at: number }
  | { readonly kind: 'event'; readonly name: string; readonly state: 'received'; readonly payload: Json }
  | { readonly kind: 'event'; readonly name: string; readonly state: 'timeout' }

export interface StepFailure {
  readonly name: string
  readonly message: string
}

/** What a run adds to the journal. */
export type JournalRecord =
  | Extract<JournalEntry, { kind: 'step' | 'sleep' }>
  | { readonly kind: 'event'; readonly name: string; readonly at: number; readonly schema?: Json }

export interface NewQuestion {
  readonly name: string
  readonly request: InputRequest
  /** Milliseconds since the epoch, or null to wait as long as the task lives. */
  readonly at: number | null
}

/** What a run gets when it claims a dispatch. */
export type Claim =
  | { readonly ok: false; readonly reason: 'unknown' | 'ended' | 'stale' | 'phase' }
  | {
      readonly ok: true
      readonly taskId: string
      readonly tool: string
      readonly input: string
      readonly gathered: JsonObject
      readonly principal: Principal
      readonly capabilities: JsonObject
      readonly baseUrl: string
      readonly lineage: string
      readonly createdAt: number
      readonly expiresAt: number
      readonly attempts: number
      readonly cancelRequested: boolean
      readonly tenantHash: string
      readonly maxResultBytes: number
      readonly journal: readonly JournalEntry[]
    }

/** The answer to every write of a run. `lost`: another run holds the task, or it is over; stop. */
export type RunReply = { readonly lost: true } | { readonly lost: false; readonly cancelRequested: boolean }

/** Where a result is that is too large for the object. */
export interface StoredResult {
  readonly key: string
  readonly bytes: number
}

export type Outcome =
  | { readonly status: 'completed'; readonly result: JsonObject }
  | { readonly status: 'completed'; readonly stored: StoredResult }
  | { readonly status: 'failed'; readonly error: TaskError }

/** A journal row as it is copied from one task to another. */
export interface JournalSeed {
  readonly kind: 'step' | 'sleep' | 'question' | 'event'
  readonly name: string
  readonly state: string
  readonly data: Json
  readonly at: number | null
}

/** What went wrong last, for the operator. */
export interface LastError {
  /** Milliseconds since the epoch. */
  readonly at: number
  readonly message: string
  readonly dispatch: number
  readonly attempts: number
  /** How far the task had come. */
  readonly recorded: number
  readonly lastEntry: string | null
}

/** A task as an operator sees it: no arguments, results or answers. */
export interface Inspection {
  readonly taskId: string
  readonly tool: string
  readonly tenantHash: string
  readonly lineage: string
  readonly status: Status
  readonly phase: string
  readonly dispatch: number
  readonly attempts: number
  readonly cancelRequested: boolean
  readonly createdAt: string
  readonly lastUpdatedAt: string
  readonly expiresAt: string
  readonly lastError: LastError | null
  readonly journal: readonly { readonly kind: string; readonly name: string; readonly state: string }[]
}

/** What a replay starts from, or why it cannot. */
export type Replay =
  | { readonly ok: true; readonly command: Omit<CreateTask, 'taskId'> }
  | { readonly ok: false; readonly reason: 'unknown' | 'alive' | 'completed' }

/** Status text of a run. */
export interface ProgressNote {
  readonly message: string
}

/** A client polls far faster than it was asked to. */
export interface Throttled {
  readonly retryAfterMs: number
}

/** What became of an event from outside. */
export type Delivery =
  | { readonly ok: true; readonly duplicate: boolean }
  | { readonly ok: false; readonly reason: 'unknown' | 'ended' | 'late' }
  | { readonly ok: false; readonly reason: 'invalid'; readonly problem: string }

/** What came of a cancellation that is terminal at once. */
export type CancelledNow =
  | { readonly ok: true; readonly snapshot: string }
  | { readonly ok: false; readonly reason: 'unknown' | 'ended' }

/** A stream that would carry questions to a client. */
export interface Carrying {
  /** Keys of the questions that its client can be asked and has not been asked on it. */
  readonly keys: readonly string[]
  readonly stream: string
  /** The client at its other end. */
  readonly client: string
  /** Whether it stays open until the task ends; its feed then connects under the same name. */
  readonly held: boolean
  /** How often to refuse before, so that a stream that is held may come first. */
  readonly patience: number
}

/** What became of a report of progress from outside. `received`: the event itself has come already. */
export type Reported =
  | { readonly ok: true }
  | { readonly ok: false; readonly reason: 'unknown' | 'received' | 'ended' | 'late' }
  | { readonly ok: false; readonly reason: 'busy'; readonly retryAfterMs: number }

/** Who answered a question, and when. */
export interface AnsweredBy {
  /** `client`: by `tasks/update`. `link`: on the page behind an answer link. `slack`: with a button. */
  readonly via: 'client' | 'link' | 'slack'
  /** Whom the link was made for, or the Slack user. */
  readonly name?: string
  /** Milliseconds since the epoch. */
  readonly at: number
}

/** A question as somebody with its link may see it. */
export type LinkedQuestion =
  /** There is no such task, or no longer. */
  | { readonly state: 'unknown' }
  /** The tool has not come to it yet. */
  | { readonly state: 'not_asked' }
  | {
      readonly state: 'open'
      readonly request: InputRequest
      readonly tool: string
      readonly requestedBy: string
      /** Milliseconds since the epoch, as `openUntil`. */
      readonly requestedAt: number
      readonly openUntil: number
    }
  /** Without `by` nobody answered in time. */
  | {
      readonly state: 'answered'
      readonly request: InputRequest
      readonly answer: Json
      readonly by?: AnsweredBy
    }
  /** The task ended before anybody answered. */
  | { readonly state: 'ended'; readonly status: Status }

export interface LinkedAnswer {
  readonly response: Json
  readonly by: AnsweredBy
  /** Tells a call that was delivered twice from two that say the same. */
  readonly nonce: string
}

/** What became of an answer by link: the question after it, and whether it was this answer that counted. */
export interface LinkedReply {
  readonly accepted: boolean
  /** Why it does not fit the question; the question stays open. */
  readonly problem?: string
  readonly question: LinkedQuestion
}

/** The methods of a Task object, as callers see them through a stub. */
export interface TaskApi {
  create(command: CreateTask): Promise<string>
  poll(tenant: string): Promise<string | null | Throttled>
  read(tenant: string): Promise<string | null>
  update(tenant: string, inputResponses: JsonObject): Promise<boolean>
  cancel(tenant: string): Promise<boolean>
  cancelNow(tenant: string): Promise<CancelledNow>
  carry(tenant: string, by: Carrying): Promise<readonly string[]>
  giveUp(tenant: string, key: string): Promise<boolean>
  leash(tenant: string, ms: number | null): Promise<boolean>
  readStored(tenant: string): Promise<{ readonly dialect: Dialect; readonly snapshot: string } | null>
  liveUntil(): Promise<{ readonly live: boolean; readonly expiresAt: number }>
  deliver(event: string, payload: Json): Promise<Delivery>
  report(event: string, note: ProgressNote): Promise<Reported>
  question(name: string): Promise<LinkedQuestion>
  answer(name: string, answer: LinkedAnswer): Promise<LinkedReply>

  inspect(): Promise<Inspection | null>
  replay(): Promise<Replay>

  claim(n: number, token: string): Promise<Claim>
  beat(token: string, note?: ProgressNote): Promise<RunReply>
  record(token: string, record: JournalRecord, note?: ProgressNote): Promise<RunReply>
  ask(token: string, questions: readonly NewQuestion[]): Promise<RunReply>
  askAgain(token: string, question: string, problem: string): Promise<RunReply>
  suspend(token: string, parked: readonly string[], note?: ProgressNote): Promise<RunReply>
  proceed(token: string, note?: ProgressNote): Promise<RunReply>
  throwError(token: string, error: TaskError, final: boolean): Promise<RunReply>
  settle(token: string, outcome: Outcome, note?: ProgressNote): Promise<RunReply>
  stop(token: string): Promise<RunReply>
  deadLetter(n: number, reason: string): Promise<boolean>
}
