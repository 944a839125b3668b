/** One message on its way through the endpoint, with everything its answer may need. */
import type { McpHttpHandler } from '@modelcontextprotocol/server'
import type { Principal } from '../auth/principal'
import { isObject } from '../json'
import type { TaskTool } from '../tool'
import { authInfoOf } from './core'
import type { Services } from './services'

/** An authenticated HTTP request, and what it is served with. */
export interface Exchange {
  readonly request: Request
  readonly principal: Principal
  readonly services: Services
  readonly core: McpHttpHandler
  waitUntil(work: Promise<unknown>): void
}

export interface Incoming extends Exchange {
  /** The JSON-RPC message. */
  readonly body: Record<string, unknown>
}

export function paramsOf({ body }: Incoming): Record<string, unknown> {
  return isObject(body['params']) ? body['params'] : {}
}

export function metaOf(incoming: Incoming): Record<string, unknown> {
  const meta = paramsOf(incoming)['_meta']
  return isObject(meta) ? meta : {}
}

/** The task tool that a `tools/call` names. */
export function taskToolOf(incoming: Incoming): TaskTool | undefined {
  if (incoming.body['method'] !== 'tools/call') return undefined
  const name = paramsOf(incoming)['name']
  // A name that is no string has no scopes either: it must not find a tool here.
  return typeof name === 'string' ? incoming.services.taskTools.get(name) : undefined
}

/** Leaves the message to the SDK. */
export function toCore({ request, body, principal, core }: Incoming): Promise<Response> {
  // Only a subscription outlives the credentials it came with; other work is done when it is done.
  const signal =
    body['method'] === 'subscriptions/listen' ? untilExpiry(request.signal, principal) : request.signal
  return core.fetch(withoutCredentials(request, signal), {
    authInfo: authInfoOf(principal),
    parsedBody: body,
  })
}

/** For longer than this no timer waits. */
const LONGEST_TIMER_MS = 2 ** 31 - 1

function untilExpiry(signal: AbortSignal, { expiresAt }: Principal): AbortSignal {
  if (expiresAt === undefined) return signal
  const ms = Math.min(Math.max(0, expiresAt - Date.now()), LONGEST_TIMER_MS)
  return AbortSignal.any([signal, AbortSignal.timeout(ms)])
}

/** A plain tool sees the request; the token in it is for us only, and must not be passed on. */
function withoutCredentials(request: Request, signal: AbortSignal): Request {
  const headers = new Headers(request.headers)
  for (const name of ['authorization', 'cookie', 'cf-access-jwt-assertion', 'cf-access-client-secret']) {
    headers.delete(name)
  }
  // Its body has been read already and travels beside it.
  return new Request(request.url, { method: request.method, headers, signal })
}

/** Origin of this server as the caller, or its operator, sees it. */
export function baseUrlOf({ request, services }: Exchange): string {
  return services.originOf(request)
}
