/** A tool call as its caller sees it. */
import type { JsonObject } from '../json.ts'
import type { QuestionResponse } from './questions.ts'
import type { Outcome, Update } from './update.ts'
import type { ToolResult } from './wire.ts'

/** A call under way, or over. Iterating yields updates: the latest first, then each change. */
export interface Call extends AsyncIterable<Update> {
  /** `undefined` when the server answered without a task. */
  readonly taskId: string | undefined
  readonly tool: string | undefined
  /** The latest update; `undefined` until the first look at a task that was resumed. */
  readonly latest: Update | undefined
  /**
   * What the tool answered. An answer with `isError` is one too.
   *
   * @throws TaskFailedError, TaskCancelledError, and every error of `outcome`.
   */
  result(): Promise<ToolResult>
  /**
   * How the task ended, as data.
   *
   * @throws TasksError when that cannot be known: the task is unknown or expired, the server unreachable,
   * the deadline passed, or following was given up. A reference to a task that may still end is kept.
   */
  outcome(): Promise<Outcome>
  /** Answers an open question; resolves when the server has the answer. */
  answer(key: string, response: QuestionResponse): Promise<void>
  /**
   * Asks the server to cancel; resolves when it has heard. That is a request: only an update with the
   * status `cancelled` says that it happened, and the task may complete all the same.
   */
  cancel(): Promise<void>
  /** Stops following. The task goes on, its reference is kept, and it can be resumed. */
  detach(): void
}

/** What is to be called. */
export interface Invocation {
  readonly tool: string
  readonly args: JsonObject
  readonly meta: JsonObject | undefined
  /** The server knows by it that a call is the same call again. */
  readonly idempotencyKey: string | undefined
}
