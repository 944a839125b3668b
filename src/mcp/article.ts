/**
 * Requests in the shapes of the introductory article: calls, polls, answers, cancellation, and a
 * subscription to all of the caller's own tasks. No capability gate on `tasks/*`; errors travel on
 * HTTP 200.
 */
import { isObject, type JsonObject } from '../json'
import { fault } from '../observe/observer'
import { answersOf, createdTask, polledTask, taskPush } from '../protocol/article'
import {
  asRequest,
  errorResponse,
  INTERNAL_ERROR,
  INVALID_PARAMS,
  readableId,
  refuse,
  type RequestId,
  resultText,
  type RpcError,
  type RpcRequest,
} from '../protocol/jsonrpc'
import { META_CLIENT_CAPABILITIES, UNKNOWN_TASK } from '../protocol/modern'
import { follow } from '../push/follow'
import { takePlace } from '../tenant/subscription'
import { overLimit } from './over-limit'
import { EventStream } from '../push/sse'
import { followTenant } from '../push/tenant-feed'
import { callTask } from '../run/stub'
import type { TaskSnapshot } from '../task/types'
import { type TaskTool, toolError } from '../tool'
import { createTask, misfitOf, refusedCreation } from './create'
import { tooFast } from './tasks'
import { type Incoming, paramsOf, taskToolOf, toCore } from './incoming'

const BORN_TRIES = 10
const BORN_WAIT_MS = 200

export async function answerArticle(incoming: Incoming): Promise<Response> {
  const { body } = incoming
  if (body['id'] === undefined) return toCore(incoming)
  const rpc = asRequest(body)
  if (!rpc.ok) return errorResponse(readableId(body), rpc.error, 200)
  switch (rpc.value.method) {
    case 'tools/call': {
      const tool = taskToolOf(incoming)
      return tool ? call(rpc.value, tool, incoming) : toCore(incoming)
    }
    case 'subscriptions/listen':
      return listen(rpc.value, incoming)
    default:
      return answerTask(rpc.value, incoming)
  }
}

/** A required tool, called by somebody who did not declare the extension. */
export function refuseWithoutTasks(id: RequestId, tool: TaskTool): Response {
  return failed(id, { code: INTERNAL_ERROR, message: `${tool.name} requires Tasks extension` })
}

async function call(rpc: RpcRequest, tool: TaskTool, incoming: Incoming): Promise<Response> {
  const params = paramsOf(incoming)
  const { arguments: args = {} } = params
  if (!isObject(args)) return invalid(rpc.id, '"arguments" must be an object.')
  const misfit = await misfitOf(tool, args)
  if (misfit !== undefined) return result(rpc.id, toolError(misfit))
  if (tool.gather)
    return invalid(rpc.id, `${tool.name} asks before it starts, which needs protocol revision 2026-07-28.`)
  const meta = isObject(params['_meta']) ? params['_meta'] : {}
  const declared = isObject(meta[META_CLIENT_CAPABILITIES]) ? meta[META_CLIENT_CAPABILITIES] : {}
  // Its clients are asked without having declared that they can be.
  const capabilities = { elicitation: {}, ...declared }
  const created = await createTask(
    tool,
    { dialect: 'article', capabilities, input: JSON.stringify(args) },
    incoming,
  )
  return created.ok
    ? result(rpc.id, createdTask(parse(created.snapshot)))
    : refusedCreation(rpc.id, created, created.status === 429 ? 429 : 200)
}

/** `tasks/get`, `tasks/update` and `tasks/cancel`. */
export async function answerTask({ id, method }: RpcRequest, incoming: Incoming): Promise<Response> {
  const { services, principal } = incoming
  const { tenant } = principal
  const params = paramsOf(incoming)
  const taskId = params['taskId']
  const responses = params['inputResponses']
  if (typeof taskId !== 'string') return invalid(id, '"taskId" must be a string.')
  if (method === 'tasks/update' && !isObject(responses))
    return invalid(id, '"inputResponses" must be an object.')
  const mine = await services.ids.accept(tenant, taskId)
  const read = () => (method === 'tasks/get' ? services.poll(taskId, tenant) : services.read(taskId, tenant))
  const snapshot = mine ? await read() : null
  if (snapshot === null) return failed(id, UNKNOWN_TASK)
  if (typeof snapshot !== 'string') return tooFast(id, snapshot)
  if (method === 'tasks/get') return result(id, polledTask(parse(snapshot)))
  const known = await callTask(services.stubs, taskId, (task) =>
    method === 'tasks/cancel'
      ? task.cancel(tenant)
      : // It came out of JSON.parse and was just seen to be an object.
        task.update(tenant, answersOf(responses as JsonObject, parse(snapshot).inputRequests)),
  )
  return known ? result(id, {}) : failed(id, UNKNOWN_TASK)
}

/** All of the caller's own tasks, present and future, until the caller goes away. */
async function listen({ id }: RpcRequest, incoming: Incoming): Promise<Response> {
  const { services, principal, request } = incoming
  const wanted = paramsOf(incoming)['notifications']
  if (!Array.isArray(wanted) || !wanted.includes('notifications/tasks')) {
    return invalid(id, 'subscribe to ["notifications/tasks"].')
  }
  const { subscriptions } = services.limitsOf(principal.tenant)
  const place = await takePlace(services.env.TENANTS, principal.tenant, subscriptions)
  if (!place.ok) return overLimit(id, place.over)
  const stream = new EventStream({
    keepaliveMs: services.limits.keepaliveMs,
    signal: request.signal,
    expiresAt: principal.expiresAt,
  })
  stream.onEnd(() => place.leave())
  const followOne = async (taskId: string) => {
    let heard = false
    // The tenant's object knows of a task a moment before its own object does.
    for (let tries = 0; tries < BORN_TRIES && !heard && !stream.signal.aborted; tries++) {
      if (tries > 0) await scheduler.wait(BORN_WAIT_MS)
      for await (const snapshot of follow(services.feed(taskId, principal.tenant), stream.signal)) {
        heard = true
        await stream.send(taskPush(parse(snapshot)))
      }
    }
  }
  const followAll = async () => {
    stream.raw(': listening\n\n')
    for await (const taskId of followTenant(services.env, principal.tenant, stream.signal)) {
      void followOne(taskId).catch(() => undefined)
    }
  }
  followAll().catch((error: unknown) => {
    fault({ event: 'listen_failed' }, error)
    stream.close()
  })
  return stream.response
}

/** Written by the object itself. */
function parse(snapshot: string): TaskSnapshot {
  return JSON.parse(snapshot) as TaskSnapshot
}

function result(id: RequestId, value: Record<string, unknown>): Response {
  return resultText(id, JSON.stringify(value))
}

function failed(id: RequestId, error: RpcError): Response {
  return errorResponse(id, error, 200)
}

function invalid(id: RequestId, problem: string): Response {
  return failed(id, refuse(INVALID_PARAMS, `Invalid params: ${problem}`).error)
}
