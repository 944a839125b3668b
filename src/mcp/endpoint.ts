/**
 * `POST /mcp`: reads one message and sends it where it is answered. Task methods, calls of task tools
 * and subscriptions to tasks are ours, in the dialect they speak; everything else is the SDK's.
 */
import { covers, scopesFor } from '../auth/scopes'
import { asRequest, errorResponse, parseMessage, readableId } from '../protocol/jsonrpc'
import { dialectOf } from '../protocol/dialect'
import { answerListen, listensToTasks } from '../push/listen'
import { answerArticle, refuseWithoutTasks } from './article'
import { answerToolCall } from './call'
import { type Incoming, paramsOf, taskToolOf, toCore } from './incoming'
import { answer2025, answerUnversionedCall } from './legacy/endpoint'
import { refuseScopes } from './refuse'
import { answerStored } from './stored'
import { answerTaskMethod, isTaskMethod } from './tasks'

export async function answerMessage(text: string, rest: Omit<Incoming, 'body'>): Promise<Response> {
  const parsed = parseMessage(text)
  if (!parsed.ok) return errorResponse(undefined, parsed.error)
  const incoming = { ...rest, body: parsed.value }
  const { body, principal, request, services } = incoming
  // Before anything else looks at the message, whatever it speaks.
  const needed = scopesFor(body, services.tools)
  if (!covers(principal.scopes, needed)) return refuseScopes(request, readableId(body), needed, services)
  switch (dialectOf(body, request.headers)) {
    case 'modern':
      return answerModern(incoming)
    case '2025':
      return answer2025(incoming)
    case 'article':
      return answerArticle(incoming)
    case 'stored':
      return answerStored(incoming)
    case 'core':
      return answerUnversioned(incoming)
  }
}

/** Nothing says which protocol it is: the SDK's, unless it calls a tool that runs as a task. */
async function answerUnversioned(incoming: Incoming): Promise<Response> {
  const id = readableId(incoming.body)
  const tool = taskToolOf(incoming)
  if (id === undefined || !tool) return toCore(incoming)
  return tool.task?.support === 'required'
    ? refuseWithoutTasks(id, tool)
    : answerUnversionedCall(tool, incoming)
}

async function answerModern(incoming: Incoming): Promise<Response> {
  const { body } = incoming
  // A notification is the SDK's to acknowledge.
  if (body['id'] === undefined) return toCore(incoming)
  const rpc = asRequest(body)
  if (!rpc.ok) return errorResponse(readableId(body), rpc.error, 400)
  const tool = taskToolOf(incoming)
  const listens = body['method'] === 'subscriptions/listen' && listensToTasks(paramsOf(incoming))
  if (!isTaskMethod(body['method']) && !tool && !listens) return toCore(incoming)

  if (tool) return answerToolCall(rpc.value, tool, incoming)
  return listens ? answerListen(rpc.value, incoming) : answerTaskMethod(rpc.value, incoming)
}
