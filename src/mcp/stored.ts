/**
 * `tasks/get` and `tasks/cancel` from clients that name no revision: each task is told in the dialect
 * it was created in. No checks of an envelope apply, since none was promised.
 */
import { asRequest, errorResponse, readableId, resultText } from '../protocol/jsonrpc'
import { taskOf } from '../protocol/legacy'
import { UNKNOWN_TASK } from '../protocol/modern'
import { callTask } from '../run/stub'
import type { TaskSnapshot } from '../task/types'
import { answerTask } from './article'
import type { Incoming } from './incoming'
import { answerCancel } from './legacy/tasks'
import { tooFast } from './tasks'

export async function answerStored(incoming: Incoming): Promise<Response> {
  const { body, principal, services } = incoming
  const rpc = asRequest(body)
  if (!rpc.ok) return errorResponse(readableId(body), rpc.error, 400)
  const { id, method, params = {} } = rpc.value
  const { taskId } = params
  const { tenant } = principal
  if (typeof taskId !== 'string' || !(await services.ids.accept(tenant, taskId))) {
    return errorResponse(id, UNKNOWN_TASK)
  }
  const stored = await callTask(services.stubs, taskId, (task) => task.readStored(tenant))
  if (!stored) return errorResponse(id, UNKNOWN_TASK)
  const { dialect } = stored
  if (dialect === 'article') return answerTask(rpc.value, incoming)
  if (method === 'tasks/cancel') {
    if (dialect === '2025-11-25') return answerCancel(id, taskId, incoming)
    await callTask(services.stubs, taskId, (task) => task.cancel(tenant))
    return resultText(id, services.modern.acknowledgement())
  }
  const polled = await services.poll(taskId, tenant)
  if (polled === null) return errorResponse(id, UNKNOWN_TASK)
  if (typeof polled !== 'string') return tooFast(id, polled)
  if (dialect === '2026-07-28') return resultText(id, services.modern.detailed(polled))
  // Written by the object itself.
  return resultText(id, JSON.stringify(taskOf(JSON.parse(polled) as TaskSnapshot)))
}
