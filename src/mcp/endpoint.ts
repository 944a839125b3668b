/**
 * `POST /mcp`: reads one message and sends it where it is answered. Task methods and calls of task
 * tools are ours; everything else is the SDK's.
 */
import type { McpHttpHandler } from '@modelcontextprotocol/server'
import type { Principal } from '../auth/principal'
import { isObject } from '../json'
import { asRequest, errorResponse, parseMessage, readableId } from '../protocol/jsonrpc'
import { speaksModern } from '../protocol/modern'
import { answerListen, listensToTasks } from '../push/listen'
import { answerToolCall } from './call'
import { authInfoOf } from './core'
import type { Services } from './services'
import { answerTaskMethod, isTaskMethod } from './tasks'

export async function answerMessage(
  request: Request,
  text: string,
  principal: Principal,
  services: Services,
  core: McpHttpHandler,
  waitUntil: (work: Promise<unknown>) => void,
): Promise<Response> {
  const parsed = parseMessage(text)
  if (!parsed.ok) return errorResponse(undefined, parsed.error)
  const body = parsed.value
  const { method } = body
  const toCore = () => core.fetch(request, { authInfo: authInfoOf(principal), parsedBody: body })

  // A notification is the SDK's to acknowledge, and so is every older revision.
  if (body['id'] === undefined || !speaksModern(body, request.headers)) return toCore()
  const params = isObject(body['params']) ? body['params'] : {}
  const tool = method === 'tools/call' ? services.taskTools.get(String(params['name'])) : undefined
  const listens = method === 'subscriptions/listen' && listensToTasks(params)
  if (!isTaskMethod(method) && !tool && !listens) return toCore()

  const rpc = asRequest(body)
  if (!rpc.ok) return errorResponse(readableId(body), rpc.error, 400)
  if (listens) return answerListen(rpc.value, request, principal, services, core)
  if (!tool) return answerTaskMethod(rpc.value, request.headers, principal, services)
  return answerToolCall(rpc.value, tool, {
    services,
    principal,
    baseUrl: services.env.PUBLIC_URL ?? new URL(request.url).origin,
    headers: request.headers,
    signal: request.signal,
    waitUntil,
  })
}
