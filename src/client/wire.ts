/**
 * What travels, and the checks on what comes back. Every shape is looked at before it is
 * believed: a result that does not say what it is, is an error and never an empty success.
 * Pure.
 *
 * @see https://modelcontextprotocol.github.io/ext-tasks/specification/2026-07-28/tasks.html
 */
import { isObject, type Json, type JsonObject } from '../json.ts'
import { INTERNAL_ERROR } from '../protocol/names.ts'
import { InvalidResponseError } from './errors.ts'

export type Status = 'working' | 'input_required' | 'completed' | 'failed' | 'cancelled'

/** A JSON-RPC error. */
export interface RpcError {
  readonly code: number
  readonly message: string
  readonly data?: Json
}

/** A request of the server to the client, as `inputRequests` carries it. */
export interface InputRequest {
  readonly method: string
  readonly params?: JsonObject
}

export type InputRequests = { readonly [key: string]: InputRequest }

/** What a tool answers. */
export interface ToolResult {
  readonly content: readonly JsonObject[]
  readonly structuredContent?: Json
  readonly isError?: boolean
  readonly _meta?: JsonObject
  readonly [key: string]: Json | undefined
}

/** A task as the server tells it: `DetailedTask` of SEP-2663. */
export interface Task {
  readonly taskId: string
  readonly status: Status
  readonly statusMessage?: string
  /** ISO 8601, by the server's clock. */
  readonly createdAt?: string
  readonly lastUpdatedAt?: string
  /** From creation, in milliseconds; `null` for no limit. */
  readonly ttlMs: number | null
  readonly pollIntervalMs?: number
  readonly inputRequests?: InputRequests
  readonly result?: ToolResult
  readonly error?: RpcError
}

/** What `tools/call` can be answered with. */
export type CallAnswer =
  | { readonly kind: 'result'; readonly result: ToolResult }
  /** `ended`: the task is over already, and the first look will bring how. */
  | { readonly kind: 'task'; readonly task: Task; readonly ended: boolean }
  | {
      readonly kind: 'questions'
      readonly inputRequests: InputRequests
      readonly requestState: string | undefined
    }

export function isTerminal(status: Status): boolean {
  return status === 'completed' || status === 'failed' || status === 'cancelled'
}

/** @throws InvalidResponseError */
export function readCallAnswer(result: JsonObject): CallAnswer {
  switch (result['resultType']) {
    case 'complete':
      return { kind: 'result', result: readToolResult(result) }
    case 'task':
      return readSeed(result)
    case 'input_required':
      return {
        kind: 'questions',
        inputRequests: readInputRequests(result['inputRequests']),
        requestState: optionalString(result, 'requestState'),
      }
    default:
      throw unmarked('tools/call', result)
  }
}

/** A `CreateTaskResult` has no payload, whatever its status says; so it is never the last word. */
function readSeed(value: JsonObject): CallAnswer {
  const ended = isStatus(value['status']) && isTerminal(value['status'])
  const asking = value['status'] === 'input_required' && value['inputRequests'] === undefined
  return { kind: 'task', task: readTask(ended || asking ? { ...value, status: 'working' } : value), ended }
}

/** The answer to `tasks/get`. @throws InvalidResponseError */
export function readTaskAnswer(result: JsonObject, taskId: string): Task {
  expectComplete('tasks/get', result)
  const task = readTask(result)
  if (task.taskId !== taskId) throw bad(`asked for task ${taskId}, the server told of ${task.taskId}`)
  return task
}

/** An answer that is marked `complete`, as acknowledgements and lists are. @throws InvalidResponseError */
export function expectComplete(method: string, result: JsonObject): void {
  if (result['resultType'] !== 'complete') throw unmarked(method, result)
}

function unmarked(method: string, result: JsonObject): InvalidResponseError {
  const type = result['resultType']
  return bad(
    type === undefined
      ? `the result of ${method} has no resultType, so it could be anything`
      : `the result of ${method} has the resultType ${JSON.stringify(type)}`,
  )
}

/** A task in any state. @throws InvalidResponseError */
export function readTask(value: unknown): Task {
  if (!isObject(value)) throw bad('a task must be an object')
  const { taskId, status, ttlMs, pollIntervalMs } = value
  if (typeof taskId !== 'string' || taskId === '') throw bad('a task must have a taskId')
  if (!isStatus(status)) throw bad(`a task has the status ${JSON.stringify(status)}`)
  const statusMessage = optionalString(value, 'statusMessage')
  const createdAt = optionalString(value, 'createdAt')
  const lastUpdatedAt = optionalString(value, 'lastUpdatedAt')
  return {
    taskId,
    status,
    ...(statusMessage !== undefined && { statusMessage }),
    ...(createdAt !== undefined && { createdAt }),
    ...(lastUpdatedAt !== undefined && { lastUpdatedAt }),
    ttlMs: isDuration(ttlMs) ? ttlMs : null,
    ...(isDuration(pollIntervalMs) && { pollIntervalMs }),
    ...(status === 'input_required' && { inputRequests: readInputRequests(value['inputRequests']) }),
    ...(status === 'completed' && { result: readToolResult(value['result']) }),
    ...(status === 'failed' && { error: readFailure(value['error'], statusMessage) }),
  }
}

/** The result of a tool, on its own or inside a completed task. @throws InvalidResponseError */
function readToolResult(value: unknown): ToolResult {
  if (!isObject(value) || !Array.isArray(value['content']) || !value['content'].every(isObject)) {
    throw bad('the result of a tool must have a list of content')
  }
  const type = value['resultType']
  if (type !== undefined && type !== 'complete') {
    throw bad(`a finished tool's result has the resultType ${JSON.stringify(type)}`)
  }
  const { resultType: _, ...result } = value
  // Parsed from JSON, and its content was just looked at.
  return result as unknown as ToolResult
}

/** A task that failed, failed: a missing or crooked error does not make it anything else. */
function readFailure(value: unknown, statusMessage: string | undefined): RpcError {
  if (isObject(value) && typeof value['code'] === 'number' && typeof value['message'] === 'string') {
    // Parsed from JSON.
    const data = value['data'] as Json | undefined
    return { code: value['code'], message: value['message'], ...(data !== undefined && { data }) }
  }
  return { code: INTERNAL_ERROR, message: statusMessage ?? 'The task failed and does not say why.' }
}

function readInputRequests(value: unknown): InputRequests {
  if (value === undefined) return {}
  if (!isObject(value)) throw bad('"inputRequests" must be an object')
  for (const [key, request] of Object.entries(value)) {
    if (!isObject(request) || typeof request['method'] !== 'string') {
      throw bad(`the input request ${JSON.stringify(key)} has no method`)
    }
  }
  // Just checked, and parsed from JSON.
  return value as InputRequests
}

function isStatus(value: unknown): value is Status {
  return (
    value === 'working' ||
    value === 'input_required' ||
    value === 'completed' ||
    value === 'failed' ||
    value === 'cancelled'
  )
}

function isDuration(value: unknown): value is number {
  return typeof value === 'number' && Number.isFinite(value) && value >= 0
}

function optionalString(value: Record<string, unknown>, key: string): string | undefined {
  const text = value[key]
  return typeof text === 'string' ? text : undefined
}

function bad(problem: string): InvalidResponseError {
  return new InvalidResponseError(`The server broke the protocol: ${problem}.`)
}
