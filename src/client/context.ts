/** What every call of one client shares. */
import type { JsonObject } from '../json.ts'
import type { Call, Invocation } from './call.ts'
import type { Endpoint } from './endpoint.ts'
import type { PollOptions } from './pace.ts'
import type { PushSource } from './push.ts'
import type { Question, QuestionResponse } from './questions.ts'
import type { TaskReference } from './store.ts'
import type { CallAnswer } from './wire.ts'

/**
 * Puts a question to somebody. `undefined` leaves it open, to be answered elsewhere or by `call.answer`.
 * `signal` says that the answer is no longer wanted: it was given elsewhere, or the task is over.
 */
export type QuestionHandler = (
  question: Question,
  context: { readonly signal: AbortSignal },
) => QuestionResponse | undefined | Promise<QuestionResponse | undefined>

export interface CallContext {
  readonly endpoint: Endpoint
  readonly sources: readonly PushSource[]
  readonly poll: PollOptions
  readonly onQuestion: QuestionHandler | undefined
  readonly rememberArguments: boolean
  readonly deadlineMs: number | undefined
  readonly signal: AbortSignal | undefined
  /** One `tools/call`; `more` carries the answers of a round of questions. */
  callTool(invocation: Invocation, more: JsonObject, signal: AbortSignal): Promise<CallAnswer>
  /** Neither rejects: a store that fails is warned about. */
  put(reference: TaskReference): Promise<void>
  forget(taskId: string): Promise<void>
  warn(message: string): void
  ended(call: Call): void
}
