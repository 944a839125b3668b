/**
 * Requests of the 2025 revisions (`docs/migrating.md`): calls of task tools, the experimental tasks of
 * 2025-11-25 and the answers to questions are ours; everything else is the SDK's.
 */
import { covers, scopesFor } from '../../auth/scopes'
import {
  asRequest,
  errorResponse,
  INVALID_REQUEST,
  readableId,
  type RpcRequest,
} from '../../protocol/jsonrpc'
import { type Exchange, type Incoming, paramsOf, taskToolOf, toCore } from '../incoming'
import { refuseScopes } from '../refuse'
import type { TaskTool } from '../../tool'
import { answerLegacyCall, asksForTask, refuseAsTask } from './call'
import { type Caller, callerOf, UNVERSIONED } from './caller'
import { openCursor } from './cursor'
import { answerInitialize, answerToolsList } from './handshake'
import { isResponse, takeAnswer } from './questions'
import { answerLegacyTaskMethod } from './tasks'
import { answerWaiting } from './wait'

export async function answer2025(incoming: Incoming): Promise<Response> {
  const { body } = incoming
  if (body['method'] === 'initialize') {
    return withRequest(incoming, (rpc) => answerInitialize(rpc, incoming))
  }
  const caller = await callerOf(incoming)
  if (caller instanceof Response) return caller
  if (isResponse(body)) return (await takeAnswer(body, incoming)) ?? toCore(incoming)
  // `notifications/cancelled` too: it never cancels a task.
  if (body['id'] === undefined) return toCore(incoming)
  return withRequest(incoming, (rpc) => answerRequest(rpc, caller, incoming))
}

/** A call of an optional task tool that names no revision at all: it blocks. */
export function answerUnversionedCall(tool: TaskTool, incoming: Incoming): Promise<Response> {
  return withRequest(incoming, (rpc) => answerLegacyCall(rpc, tool, UNVERSIONED, incoming))
}

/** `GET` with `Last-Event-ID`: takes up a stream where the client was cut off. */
export async function answerResume(eventId: string, exchange: Exchange): Promise<Response> {
  const { services, principal } = exchange
  const cursor = await openCursor(services.keys, principal.tenant, eventId)
  if (!cursor) {
    const message = 'This Last-Event-ID is damaged, or too old to be resumed.'
    return errorResponse(undefined, { code: INVALID_REQUEST, message }, 400)
  }
  // Clients that have seen an error response ask again; 405 is what makes them stop.
  if (cursor.ended) return noStream()
  const needed = scopesFor({ method: cursor.method }, services.tools)
  if (!covers(principal.scopes, needed)) return refuseScopes(exchange.request, undefined, needed, services)
  const caller = await callerOf(exchange)
  if (caller instanceof Response) return caller
  return answerWaiting(cursor, caller, exchange, { resumed: true })
}

/** There is no stream that belongs to no request. */
export function noStream(): Response {
  const message = 'Method not allowed: send messages by POST; GET resumes a stream by its Last-Event-ID.'
  return errorResponse(undefined, { code: INVALID_REQUEST, message }, 405, { allow: 'GET, POST' })
}

function answerRequest(rpc: RpcRequest, caller: Caller, incoming: Incoming): Promise<Response> {
  if (rpc.method === 'tools/list') return answerToolsList(incoming, caller)
  if (rpc.method.startsWith('tasks/')) return answerLegacyTaskMethod(rpc, caller, incoming)
  const tool = taskToolOf(incoming)
  if (tool) return answerLegacyCall(rpc, tool, caller, incoming)
  return rpc.method === 'tools/call' && asksForTask(paramsOf(incoming), caller)
    ? Promise.resolve(refuseAsTask(rpc))
    : toCore(incoming)
}

async function withRequest(
  { body }: Incoming,
  answer: (rpc: RpcRequest) => Promise<Response>,
): Promise<Response> {
  const rpc = asRequest(body)
  return rpc.ok ? answer(rpc.value) : errorResponse(readableId(body), rpc.error, 400)
}
