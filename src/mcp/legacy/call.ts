/**
 * `tools/call` of a task tool, revisions of 2025: as a task when the client asks for one, else it blocks.
 * Everything that can be refused is refused before a task exists.
 */
import { isObject } from '../../json'
import {
  errorResponse,
  INVALID_PARAMS,
  METHOD_NOT_FOUND,
  refuse,
  type RequestId,
  resultText,
  type RpcError,
  type RpcRequest,
} from '../../protocol/jsonrpc'
import { createdTask, hasTasks, requestedTtl } from '../../protocol/legacy'
import { missingAsks } from '../../run/asks'
import type { TaskSnapshot } from '../../task/types'
import { type TaskTool, toolError } from '../../tool'
import { createTask, type Created, idempotencyKeyOf, misfitOf, refusedCreation } from '../create'
import type { Incoming } from '../incoming'
import type { Caller } from './caller'
import { answerWaiting, newCursor } from './wait'

/** Whether this revision has tasks and the call asks to be one. */
export function asksForTask(params: Record<string, unknown>, { revision }: Caller): boolean {
  return hasTasks(revision) && params['task'] !== undefined
}

/** `-32601`: the tool cannot be called as a task. */
export function refuseAsTask(rpc: RpcRequest): Response {
  const name = String(rpc.params?.['name'])
  return refused(
    rpc.id,
    refuse(METHOD_NOT_FOUND, `${name} is no tool that runs as a task: leave "task" out.`).error,
  )
}

export async function answerLegacyCall(
  rpc: RpcRequest,
  tool: TaskTool,
  caller: Caller,
  incoming: Incoming,
): Promise<Response> {
  const { id, params = {} } = rpc
  const asTask = asksForTask(params, caller)
  if (!asTask && tool.task?.support === 'required') return refused(id, taskRequired(tool, caller))
  const { arguments: args = {} } = params
  if (!isObject(args)) {
    return refused(id, refuse(INVALID_PARAMS, 'Invalid params: "arguments" must be an object.').error)
  }
  const missing = missingAsks(tool, caller.capabilities)
  if (missing.length > 0) {
    const sentence =
      `${tool.name} may ask for ${missing.join(', ')}, which the client did not declare: ` +
      'declare it at initialize and send the Mcp-Session-Id.'
    return refused(id, refuse(INVALID_PARAMS, sentence).error)
  }
  const misfit = await misfitOf(tool, args)
  if (misfit !== undefined) {
    // A caller that expects a task can read nothing but a task or an error.
    return asTask
      ? refused(id, refuse(INVALID_PARAMS, misfit).error)
      : resultText(id, JSON.stringify(toolError(misfit)))
  }
  const task = {
    dialect: '2025-11-25',
    capabilities: caller.capabilities,
    input: JSON.stringify(args),
  } as const
  if (!asTask) {
    const created = await createTask(tool, { ...task, leashMs: incoming.services.limits.leashMs }, incoming)
    if (!created.ok) return refusedHere(id, created)
    const kept = idempotencyKeyOf(incoming) !== undefined
    return answerWaiting(newCursor(created.taskId, id, 'tools/call', params), caller, incoming, { kept })
  }
  const ttl = requestedTtl(params['task'])
  if (!ttl.ok) return refused(id, ttl.error)
  const created = await createTask(
    tool,
    { ...task, ...(ttl.value !== undefined && { ttlMs: ttl.value }) },
    incoming,
  )
  if (!created.ok) return refusedHere(id, created)
  // Written by the object itself.
  return Response.json({ jsonrpc: '2.0', id, ...createdTask(JSON.parse(created.snapshot) as TaskSnapshot) })
}

function taskRequired(tool: TaskTool, { revision }: Caller): RpcError {
  const how = hasTasks(revision)
    ? 'send "task" with the call'
    : `revision ${revision} has no tasks; a newer one has`
  return refuse(METHOD_NOT_FOUND, `${tool.name} runs as a task only: ${how}.`).error
}

/** HTTP 429 says more than an error could; everything else travels as the others do. */
function refusedHere(id: RequestId, refusal: Extract<Created, { ok: false }>): Response {
  return refusedCreation(id, refusal, refusal.status === 429 ? 429 : 200)
}

/** JSON-RPC errors of these revisions travel on HTTP 200. */
function refused(id: RequestId, error: RpcError): Response {
  return errorResponse(id, error, 200)
}
