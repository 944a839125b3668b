/**
 * What can go wrong, as types that a caller can tell apart. `transient` says whether asking again
 * later may help; `code` is stable and meant for programs, `message` for people.
 */
import type { Json } from '../json.ts'
import {
  HEADER_MISMATCH,
  INVALID_PARAMS,
  INVALID_REQUEST,
  METHOD_NOT_FOUND,
  MISSING_CLIENT_CAPABILITY,
  PARSE_ERROR,
  UNSUPPORTED_PROTOCOL_VERSION,
} from '../protocol/names.ts'
import type { RpcError } from './wire.ts'

export type ErrorCode =
  | 'unreachable'
  | 'http'
  | 'unauthorized'
  | 'invalid_response'
  | 'rpc'
  | 'missing_capability'
  | 'unsupported_version'
  | 'invalid_tool'
  | 'task_not_found'
  | 'task_expired'
  | 'task_failed'
  | 'task_cancelled'
  | 'deadline'
  | 'detached'
  | 'too_many_rounds'

/** The base of every error of this library. */
export class TasksError extends Error {
  readonly code: ErrorCode
  readonly transient: boolean
  /** What the server asked to wait before the next request, if it did. */
  readonly retryAfterMs: number | undefined

  constructor(
    code: ErrorCode,
    message: string,
    options: { transient?: boolean; retryAfterMs?: number | undefined; cause?: unknown } = {},
  ) {
    super(message, options.cause === undefined ? undefined : { cause: options.cause })
    this.name = new.target.name
    this.code = code
    this.transient = options.transient ?? false
    this.retryAfterMs = options.retryAfterMs
  }
}

/** No answer: the network failed, the connection broke, or it took too long. */
export class UnreachableError extends TasksError {
  constructor(message: string, cause?: unknown) {
    super('unreachable', message, { transient: true, cause })
  }
}

/** An HTTP status that is not a success, without a JSON-RPC error in its body. */
export class HttpError extends TasksError {
  readonly status: number

  constructor(status: number, message: string, retryAfterMs?: number) {
    super('http', message, { transient: isPassing(status), retryAfterMs })
    this.status = status
  }
}

/** 401 or 403: the token is missing, wrong or expired. */
export class UnauthorizedError extends TasksError {
  readonly status: number

  constructor(status: number, message: string) {
    super('unauthorized', message)
    this.status = status
  }
}

/** An answer that is not what the protocol promises. */
export class InvalidResponseError extends TasksError {
  constructor(message: string, options: { transient?: boolean; cause?: unknown } = {}) {
    super('invalid_response', message, options)
  }
}

/** The server answered with a JSON-RPC error. */
export class ServerError extends TasksError {
  readonly error: RpcError

  constructor(error: RpcError, options: { transient?: boolean; retryAfterMs?: number | undefined } = {}) {
    super('rpc', `${error.message} (${error.code})`, options)
    this.error = error
  }
}

/** The server needs something that this client did not declare, such as answering questions. */
export class MissingCapabilityError extends TasksError {
  readonly required: Json | undefined

  constructor(message: string, required: Json | undefined) {
    super('missing_capability', message)
    this.required = required
  }
}

export class UnsupportedVersionError extends TasksError {
  readonly supported: readonly string[]

  constructor(supported: readonly string[]) {
    const list = supported.length > 0 ? supported.join(', ') : 'others'
    super(
      'unsupported_version',
      `The server does not speak MCP 2026-07-28, which has Tasks; it speaks ${list}.`,
    )
    this.supported = supported
  }
}

/** The definition of the tool breaks the rules for `x-mcp-header`, so it may not be called (SEP-2243). */
export class InvalidToolError extends TasksError {
  constructor(tool: string, reason: string) {
    super('invalid_tool', `The tool ${tool} cannot be called: its definition is invalid: ${reason}`)
  }
}

/** The server does not know the task: it expired and was deleted, or never was the caller's. */
export class TaskNotFoundError extends TasksError {
  readonly taskId: string

  constructor(taskId: string, message: string) {
    super('task_not_found', `The server does not know the task ${taskId}: ${message}`)
    this.taskId = taskId
  }
}

/** The task's time-to-live went by without an end. */
export class TaskExpiredError extends TasksError {
  readonly taskId: string

  constructor(taskId: string) {
    super('task_expired', `The task ${taskId} did not end within its time-to-live.`)
    this.taskId = taskId
  }
}

/** The task ended in `failed`: the JSON-RPC error that the call would have been answered with. */
export class TaskFailedError extends TasksError {
  readonly error: RpcError

  constructor(error: RpcError) {
    super('task_failed', error.message)
    this.error = error
  }
}

/** The task ended in `cancelled`. */
export class TaskCancelledError extends TasksError {
  constructor(message = 'The task was cancelled.') {
    super('task_cancelled', message)
  }
}

/** The deadline that the caller set went by. The task goes on; its reference is kept. */
export class DeadlineError extends TasksError {
  constructor(deadlineMs: number) {
    super('deadline', `Not done after ${deadlineMs} ms. The task goes on and can be resumed.`)
  }
}

/** The caller stopped following. The task goes on; its reference is kept. */
export class DetachedError extends TasksError {
  constructor() {
    super('detached', 'No longer followed. The task goes on and can be resumed.')
  }
}

/** The server asked for input before the task, again and again. */
export class TooManyRoundsError extends TasksError {
  constructor(rounds: number) {
    super('too_many_rounds', `The server asked for more input ${rounds} times without beginning the work.`)
  }
}

/** MCP's number before the specification settled on -32021; some servers still send it. */
const OLD_MISSING_CLIENT_CAPABILITY = -32003

const FINAL_CODES: ReadonlySet<number> = new Set([
  PARSE_ERROR,
  INVALID_REQUEST,
  METHOD_NOT_FOUND,
  INVALID_PARAMS,
  HEADER_MISMATCH,
])

/** The error for a JSON-RPC error that arrived with this HTTP status. */
export function fromRpcError(error: RpcError, status: number, retryAfterMs: number | undefined): TasksError {
  const data = error.data
  const details = typeof data === 'object' && data !== null && !Array.isArray(data) ? data : {}
  if (error.code === MISSING_CLIENT_CAPABILITY || error.code === OLD_MISSING_CLIENT_CAPABILITY) {
    // `isArray` does not narrow readonly arrays away.
    const required = (details as { readonly [key: string]: Json })['requiredCapabilities']
    return new MissingCapabilityError(error.message, required)
  }
  if (error.code === UNSUPPORTED_PROTOCOL_VERSION) {
    const supported = (details as { readonly [key: string]: Json })['supported']
    return new UnsupportedVersionError(Array.isArray(supported) ? supported.map(String) : [])
  }
  if (status === 401 || status === 403) return new UnauthorizedError(status, error.message)
  const transient = isPassing(status) || (status < 400 && !FINAL_CODES.has(error.code))
  return new ServerError(error, { transient, retryAfterMs })
}

/** 404 is one of them: while a server is deployed, its address may lead nowhere for a moment. */
function isPassing(status: number): boolean {
  return status >= 500 || status === 404 || status === 408 || status === 425 || status === 429
}
