/**
 * Codec of the older revisions 2025-06-18 and 2025-11-25, and of the experimental Tasks that the later
 * of the two had. Pure: snapshots of the core in, shapes of that revision out.
 *
 * @see https://modelcontextprotocol.io/specification/2025-11-25/basic/utilities/tasks
 */
import { isObject, type Json, type JsonObject } from '../json'
import type { InputRequest, TaskSnapshot } from '../task/types'
import {
  type Checked,
  INTERNAL_ERROR,
  INVALID_PARAMS,
  ok,
  refuse,
  type RequestId,
  type RpcError,
} from './jsonrpc'
import { type ClientCapabilities, TASKS_EXTENSION } from './modern'

/** 2025-03-26 is not among them: it would oblige us to take batches. */
export const LEGACY_REVISIONS = ['2025-06-18', '2025-11-25'] as const
export type LegacyRevision = (typeof LEGACY_REVISIONS)[number]

export const META_RELATED_TASK = 'io.modelcontextprotocol/related-task'

/** What `initialize` is answered with: the revision asked for when we speak it, else our latest of that age. */
export function negotiate(requested: unknown): LegacyRevision {
  return isLegacyRevision(requested) ? requested : '2025-11-25'
}

export function isLegacyRevision(value: unknown): value is LegacyRevision {
  return value === '2025-06-18' || value === '2025-11-25'
}

export function hasTasks(revision: LegacyRevision): boolean {
  return revision === '2025-11-25'
}

/** `Task` of 2025-11-25. `ttl` and `pollInterval` are milliseconds. */
export type LegacyTask = {
  readonly taskId: string
  readonly status: TaskSnapshot['status']
  readonly statusMessage?: string
  readonly createdAt: string
  readonly lastUpdatedAt: string
  readonly ttl: number
  readonly pollInterval: number
}

/** A longer diagnosis is in `tasks/result`. */
const MAX_DIAGNOSIS_CHARS = 500

/**
 * The task as this revision tells it. A result with `isError` is `failed` here (and `completed` in
 * 2026-07-28), and its text is the diagnosis that the status of a failed task should carry.
 */
export function taskOf(task: TaskSnapshot): LegacyTask {
  const { taskId, createdAt, lastUpdatedAt, ttlMs, pollIntervalMs } = task
  const failed = task.status === 'completed' && task.result?.['isError'] === true
  const message = failed ? (firstText(task.result) ?? task.statusMessage) : task.statusMessage
  return {
    taskId,
    status: failed ? 'failed' : task.status,
    ...(message !== undefined && { statusMessage: message }),
    createdAt,
    lastUpdatedAt,
    ttl: ttlMs,
    pollInterval: pollIntervalMs,
  }
}

function firstText(result: JsonObject | undefined): string | undefined {
  const content = result?.['content']
  const blocks: readonly unknown[] = Array.isArray(content) ? content : []
  for (const block of blocks) {
    if (!isObject(block) || typeof block['text'] !== 'string') continue
    const { text } = block
    return text.length > MAX_DIAGNOSIS_CHARS ? `${text.slice(0, MAX_DIAGNOSIS_CHARS)} …` : text
  }
  return undefined
}

/** What a request is answered with. */
export type Reply = { readonly result: Record<string, unknown> } | { readonly error: RpcError }

/** `CreateTaskResult`. */
export function createdTask(task: TaskSnapshot): Reply {
  return { result: { task: taskOf(task) } }
}

/**
 * What the call itself would have returned: its result, or its JSON-RPC error. `undefined` while the
 * task goes on.
 */
export function outcomeOf(task: TaskSnapshot): Reply | undefined {
  switch (task.status) {
    case 'completed': {
      // `resultType` is of 2026-07-28.
      const { resultType: _, ...result } = task.result ?? { content: [] }
      return { result }
    }
    case 'failed':
      return { error: task.error ?? { code: INTERNAL_ERROR, message: 'Internal error' } }
    case 'cancelled':
      return { error: { code: INTERNAL_ERROR, message: 'The task was cancelled.' } }
    case 'working':
    case 'input_required':
      return undefined
  }
}

/** The same as the answer to `tasks/result`, which names its task in `_meta`. */
export function related(reply: Reply, taskId: string): Reply {
  if ('error' in reply) return reply
  const meta = isObject(reply.result['_meta']) ? reply.result['_meta'] : {}
  return { result: { ...reply.result, _meta: { ...meta, [META_RELATED_TASK]: { taskId } } } }
}

/** A response as it travels. */
export function responseText(id: RequestId, reply: Reply): string {
  return JSON.stringify({ jsonrpc: '2.0', id, ...reply })
}

/** `notifications/tasks/status`; the task id is in the parameters, so not in `_meta`. */
export function statusNotification(task: TaskSnapshot): string {
  return JSON.stringify({ jsonrpc: '2.0', method: 'notifications/tasks/status', params: taskOf(task) })
}

/**
 * A question, as the server request that this revision has for it.
 * @param relatedTo the task, when the client knows of it.
 */
export function question(id: string, { method, params = {} }: InputRequest, relatedTo?: string): string {
  const meta = isObject(params['_meta']) ? params['_meta'] : {}
  const isLink = method === 'elicitation/create' && params['mode'] === 'url'
  return JSON.stringify({
    jsonrpc: '2.0',
    id,
    method,
    params: {
      ...params,
      // 2025-11-25 requires one of every link; 2026-07-28 has none.
      ...(isLink && params['elicitationId'] === undefined && { elicitationId: id }),
      ...(relatedTo !== undefined && { _meta: { ...meta, [META_RELATED_TASK]: { taskId: relatedTo } } }),
    },
  })
}

/** Shorter lives than this are not given: somebody counts in seconds. */
const MIN_TTL_MS = 60_000

/** The time-to-live a client asks for in `params.task`, in milliseconds; `undefined`: the tool's own. */
export function requestedTtl(task: unknown): Checked<number | undefined> {
  if (!isObject(task)) return refuse(INVALID_PARAMS, 'Invalid params: "task" must be an object.')
  const { ttl } = task
  if (ttl === undefined || ttl === null) return ok(undefined)
  if (typeof ttl !== 'number' || !Number.isSafeInteger(ttl) || ttl < 0) {
    return refuse(INVALID_PARAMS, 'Invalid params: "task.ttl" must be a whole number of milliseconds.')
  }
  return ok(Math.max(ttl, MIN_TTL_MS))
}

/** What tasks can do here: calls of tools become tasks, and tasks can be cancelled. Not listed, that is a leak. */
const SERVER_TASKS: Json = { cancel: {}, requests: { tools: { call: {} } } }

/** `InitializeResult`, with the tasks of this revision instead of the extension of a later one. */
export function initialized(
  result: Record<string, unknown>,
  revision: LegacyRevision,
): Record<string, unknown> {
  const { extensions, ...capabilities } = isObject(result['capabilities']) ? result['capabilities'] : {}
  const { [TASKS_EXTENSION]: _, ...others } = isObject(extensions) ? extensions : {}
  return {
    ...result,
    protocolVersion: revision,
    capabilities: {
      ...capabilities,
      ...(Object.keys(others).length > 0 && { extensions: others }),
      ...(hasTasks(revision) && { tasks: SERVER_TASKS }),
    },
  }
}

/** `ListToolsResult`, each tool with what `execution.taskSupport` says of it. */
export function withTaskSupport(
  result: Record<string, unknown>,
  supportOf: (tool: string) => 'optional' | 'required' | undefined,
): Record<string, unknown> {
  const tools: readonly unknown[] = Array.isArray(result['tools']) ? result['tools'] : []
  return {
    ...result,
    tools: tools.map((tool) => {
      const support = isObject(tool) ? supportOf(String(tool['name'])) : undefined
      return isObject(tool) && support ? { ...tool, execution: { taskSupport: support } } : tool
    }),
  }
}

/** What a client declared, reduced to what decides about questions: it travels with every request. */
export function declared(capabilities: unknown): ClientCapabilities {
  if (!isObject(capabilities)) return {}
  const { elicitation, sampling, roots } = capabilities
  return {
    ...(isObject(elicitation) && {
      elicitation: {
        ...(isObject(elicitation['form']) && { form: {} }),
        ...(isObject(elicitation['url']) && { url: {} }),
      },
    }),
    ...(isObject(sampling) && {
      sampling: {
        ...(isObject(sampling['tools']) && { tools: {} }),
        ...(isObject(sampling['context']) && { context: {} }),
      },
    }),
    ...(isObject(roots) && { roots: {} }),
  }
}
