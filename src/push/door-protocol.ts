/**
 * What is spoken at a task's own door (`GET /mcp/tasks/:taskId`, WebSocket): JSON-RPC text frames of
 * revision 2026-07-28. The server acknowledges, sends the state, then one notification per change; the
 * client may send `tasks/get`, `tasks/update` and `tasks/cancel` for this one task. Pure.
 */
import { isObject } from '../json'
import {
  asRequest,
  INTERNAL_ERROR,
  INVALID_PARAMS,
  INVALID_REQUEST,
  METHOD_NOT_FOUND,
  parseMessage,
  readableId,
  refuse,
  resultMessage,
  type RequestId,
  type RpcError,
} from '../protocol/jsonrpc'
import { acknowledged, ModernCodec, taskNotification, UNKNOWN_TASK } from '../protocol/modern'
import type { DoorProtocol, DoorTask } from '../task/listeners'
import { resultKeyOf } from '../task/snapshot'

/** Frames carry no server identity of their own: the connection was made to this server. */
const codec = new ModernCodec()
const TOO_LARGE = {
  code: INTERNAL_ERROR,
  message: 'The result is too large for this connection: poll over HTTP.',
}
const MAX_FRAME_CHARS = 1024 * 1024

export const modernDoor: DoorProtocol = {
  greeting: (taskId, snapshot) => [
    acknowledged(taskId, { taskIds: [taskId] }),
    taskNotification(taskId, snapshot),
  ],
  change: taskNotification,
  answer: async (frame, task) => {
    if (typeof frame !== 'string')
      return failure(undefined, refuse(INVALID_REQUEST, 'Send text frames.').error)
    if (frame.length > MAX_FRAME_CHARS)
      return failure(undefined, refuse(INVALID_REQUEST, 'The frame is too large.').error)
    const parsed = parseMessage(frame)
    if (!parsed.ok) return failure(undefined, parsed.error)
    // A notification needs no answer.
    if (parsed.value['id'] === undefined) return undefined
    const request = asRequest(parsed.value)
    if (!request.ok) return failure(readableId(parsed.value), request.error)
    const { id, method, params = {} } = request.value
    return answerRequest(id, method, params, task)
  },
}

async function answerRequest(
  id: RequestId,
  method: string,
  params: Record<string, unknown>,
  task: DoorTask,
): Promise<string> {
  if (method !== 'tasks/get' && method !== 'tasks/update' && method !== 'tasks/cancel') {
    return failure(id, refuse(METHOD_NOT_FOUND, `Method not found: ${method}.`).error)
  }
  // One door, one task.
  if (params['taskId'] !== task.taskId) return failure(id, UNKNOWN_TASK)
  if (method === 'tasks/get') {
    const snapshot = await task.read()
    if (snapshot === null) return failure(id, UNKNOWN_TASK)
    return resultKeyOf(snapshot) === undefined
      ? resultMessage(id, codec.detailed(snapshot))
      : failure(id, TOO_LARGE)
  }
  const responses = params['inputResponses']
  if (method === 'tasks/update' && !isObject(responses)) {
    return failure(id, refuse(INVALID_PARAMS, 'Invalid params: "inputResponses" must be an object.').error)
  }
  const known = method === 'tasks/cancel' ? await task.cancel() : await task.update(responses)
  return known ? resultMessage(id, codec.acknowledgement()) : failure(id, UNKNOWN_TASK)
}

function failure(id: RequestId | undefined, error: RpcError): string {
  return JSON.stringify(id === undefined ? { jsonrpc: '2.0', error } : { jsonrpc: '2.0', id, error })
}
