/** `tasks/get`, `tasks/result` and `tasks/cancel` of revision 2025-11-25. Errors travel on HTTP 200. */
import {
  errorResponse,
  INVALID_PARAMS,
  METHOD_NOT_FOUND,
  refuse,
  type RequestId,
  resultText,
  type RpcRequest,
} from '../../protocol/jsonrpc'
import { hasTasks, outcomeOf, related, responseText, taskOf } from '../../protocol/legacy'
import { UNKNOWN_TASK } from '../../protocol/modern'
import { callTask } from '../../run/stub'
import type { TaskSnapshot } from '../../task/types'
import type { Exchange } from '../incoming'
import { tooFast } from '../tasks'
import type { Caller } from './caller'
import { acceptsStreams, answerWaiting, askable, newCursor } from './wait'

/** `task` in the parameters of these methods is tolerated: some clients send an empty one along. */
export async function answerLegacyTaskMethod(
  rpc: RpcRequest,
  caller: Caller,
  exchange: Exchange,
): Promise<Response> {
  const { id, method, params = {} } = rpc
  const { services, principal } = exchange
  // Listing is not offered: without sessions it could only list a tenant's, whoever asks.
  const known = method === 'tasks/get' || method === 'tasks/result' || method === 'tasks/cancel'
  if (!known || !hasTasks(caller.revision)) {
    return errorResponse(id, refuse(METHOD_NOT_FOUND, `Method not found: ${method}.`).error, 200)
  }
  const { taskId } = params
  if (typeof taskId !== 'string') {
    return errorResponse(id, refuse(INVALID_PARAMS, 'Invalid params: "taskId" must be a string.').error, 200)
  }
  if (!(await services.ids.accept(principal.tenant, taskId))) return unknown(id)
  if (method === 'tasks/cancel') return answerCancel(id, taskId, exchange)

  const snapshot = await (method === 'tasks/get'
    ? services.poll(taskId, principal.tenant)
    : services.read(taskId, principal.tenant))
  if (snapshot === null) return unknown(id)
  if (typeof snapshot !== 'string') return tooFast(id, snapshot)
  // Written by the object itself.
  const task = JSON.parse(snapshot) as TaskSnapshot
  if (method === 'tasks/result') {
    const outcome = outcomeOf(task)
    if (outcome) return json(responseText(id, related(outcome, taskId)))
  } else if (!acceptsStreams(exchange.request) || askable(task, caller).length === 0) {
    return resultText(id, JSON.stringify(taskOf(task)))
  }
  return answerWaiting(newCursor(taskId, id, method, params), caller, exchange)
}

/** `cancelled` before the answer, which is the task. */
export async function answerCancel(id: RequestId, taskId: string, exchange: Exchange): Promise<Response> {
  const { services, principal } = exchange
  const cancelled = await callTask(services.stubs, taskId, (task) => task.cancelNow(principal.tenant))
  if (cancelled.ok) {
    // Written by the object itself.
    return resultText(id, JSON.stringify(taskOf(JSON.parse(cancelled.snapshot) as TaskSnapshot)))
  }
  if (cancelled.reason === 'unknown') return unknown(id)
  return errorResponse(id, refuse(INVALID_PARAMS, 'Cannot cancel: the task has already ended.').error, 200)
}

function unknown(id: RequestId): Response {
  return errorResponse(id, UNKNOWN_TASK, 200)
}

function json(text: string): Response {
  return new Response(text, { headers: { 'content-type': 'application/json' } })
}
