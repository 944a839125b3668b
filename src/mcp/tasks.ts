/** `tasks/get`, `tasks/update` and `tasks/cancel` of revision 2026-07-28: straight to the object. */
import { isObject, type JsonObject } from '../json'
import {
  errorResponse,
  INVALID_PARAMS,
  refuse,
  type RequestId,
  resultText,
  type RpcRequest,
} from '../protocol/jsonrpc'
import {
  checkEnvelope,
  declaresTasks,
  type ModernRequest,
  tasksRequired,
  UNKNOWN_TASK,
} from '../protocol/modern'
import { callTask } from '../run/stub'
import type { Throttled } from '../task/types'
import type { Incoming } from './incoming'
import { overLimit } from './over-limit'

export type TaskMethod = 'tasks/get' | 'tasks/update' | 'tasks/cancel'

export function isTaskMethod(method: unknown): method is TaskMethod {
  return method === 'tasks/get' || method === 'tasks/update' || method === 'tasks/cancel'
}

export async function answerTaskMethod(rpc: RpcRequest, incoming: Incoming): Promise<Response> {
  const { request, principal, services } = incoming
  const checked = checkEnvelope(rpc, request.headers, 'taskId')
  if (!checked.ok) return errorResponse(rpc.id, checked.error, 400)
  const { params, capabilities, id } = checked.value
  if (!declaresTasks(capabilities) && !(await keepsOldTask(checked.value, incoming))) {
    return errorResponse(id, tasksRequired().error)
  }
  const taskId = params['taskId']
  if (typeof taskId !== 'string') return invalid(rpc, '"taskId" must be a string.')
  const responses = params['inputResponses']
  if (rpc.method === 'tasks/update' && !isObject(responses)) {
    return invalid(rpc, '"inputResponses" must be an object of responses by key.')
  }
  const { tenant } = principal
  if (!(await services.ids.accept(tenant, taskId))) return errorResponse(id, UNKNOWN_TASK)

  if (rpc.method === 'tasks/get') {
    const polled = await services.poll(taskId, tenant)
    if (polled === null) return errorResponse(id, UNKNOWN_TASK)
    return typeof polled === 'string' ? resultText(id, services.modern.detailed(polled)) : tooFast(id, polled)
  }
  const known = await callTask(services.stubs, taskId, (task) =>
    rpc.method === 'tasks/cancel'
      ? task.cancel(tenant)
      : // It came out of JSON.parse and was just seen to be an object.
        task.update(tenant, responses as JsonObject),
  )
  return known ? resultText(id, services.modern.acknowledgement()) : errorResponse(id, UNKNOWN_TASK)
}

/** A client that polls far faster than it was asked to. */
export function tooFast(id: RequestId, { retryAfterMs }: Throttled): Response {
  const message = 'Too many polls of this task: poll at the interval that it suggests.'
  return overLimit(id, { limit: 'polls', message, retryAfterMs })
}

/**
 * A client that knows only the experimental tasks of 2025-11-25 may be upgraded in the middle of one:
 * it goes on reading and cancelling the tasks that were made that way.
 */
async function keepsOldTask(
  { method, params, capabilities }: ModernRequest,
  { principal, services }: Incoming,
): Promise<boolean> {
  const { taskId } = params
  if (method === 'tasks/update' || !isObject(capabilities['tasks']) || typeof taskId !== 'string')
    return false
  if (!(await services.ids.accept(principal.tenant, taskId))) return false
  const stored = await callTask(services.stubs, taskId, (task) => task.readStored(principal.tenant))
  return stored?.dialect === '2025-11-25'
}

function invalid({ id }: RpcRequest, problem: string): Response {
  return errorResponse(id, refuse(INVALID_PARAMS, `Invalid params: ${problem}`).error)
}
