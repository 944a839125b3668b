/**
 * `POST /mcp`: reads one message and sends it where it is answered. Task methods, calls of task tools
 * and subscriptions to tasks are ours, in the dialect they speak; everything else is the SDK's.
 */
import { asRequest, errorResponse, parseMessage, readableId } from '../protocol/jsonrpc'
import { dialectOf } from '../protocol/dialect'
import { answerListen, listensToTasks } from '../push/listen'
import { answerToolCall } from './call'
import { type Incoming, paramsOf, taskToolOf, toCore } from './incoming'
import { answerTaskMethod, isTaskMethod } from './tasks'

export async function answerMessage(text: string, rest: Omit<Incoming, 'body'>): Promise<Response> {
  const parsed = parseMessage(text)
  if (!parsed.ok) return errorResponse(undefined, parsed.error)
  const incoming = { ...rest, body: parsed.value }
  switch (dialectOf(incoming.body, incoming.request.headers)) {
    case 'modern':
      return answerModern(incoming)
    case '2025':
    case 'article':
    case 'stored':
    case 'core':
      return toCore(incoming)
  }
}

async function answerModern(incoming: Incoming): Promise<Response> {
  const { body } = incoming
  // A notification is the SDK's to acknowledge.
  if (body['id'] === undefined) return toCore(incoming)
  const tool = taskToolOf(incoming)
  const listens = body['method'] === 'subscriptions/listen' && listensToTasks(paramsOf(incoming))
  if (!isTaskMethod(body['method']) && !tool && !listens) return toCore(incoming)

  const rpc = asRequest(body)
  if (!rpc.ok) return errorResponse(readableId(body), rpc.error, 400)
  if (tool) return answerToolCall(rpc.value, tool, incoming)
  return listens ? answerListen(rpc.value, incoming) : answerTaskMethod(rpc.value, incoming)
}
