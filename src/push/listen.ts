/**
 * `subscriptions/listen` with `taskIds` (SEP-2663): one event stream per request, fed by one socket per
 * task. Filters of the core in the same request are served by the SDK, whose stream is woven in.
 */
import { isObject } from '../json'
import { authInfoOf } from '../mcp/core'
import { fault } from '../observe/observer'
import type { Incoming } from '../mcp/incoming'
import type { Services } from '../mcp/services'
import {
  errorResponse,
  INVALID_PARAMS,
  refuse,
  type RequestId,
  resultMessage,
  type RpcRequest,
} from '../protocol/jsonrpc'
import {
  acknowledged,
  checkEnvelope,
  declaresTasks,
  META_SUBSCRIPTION_ID,
  tasksRequired,
  taskNotification,
} from '../protocol/modern'
import { overLimit } from '../mcp/over-limit'
import { takePlace } from '../tenant/subscription'
import { follow, type TaskFeed } from './follow'
import { EventStream } from './sse'

/** Each id is a connection to an object. */
export const MAX_TASK_IDS = 100

/** Whether a listen request asks for tasks; without them it is the SDK's alone. */
export function listensToTasks(params: Record<string, unknown>): boolean {
  return isObject(params['notifications']) && 'taskIds' in params['notifications']
}

export async function answerListen(
  rpc: RpcRequest,
  { request, principal, services, core }: Incoming,
): Promise<Response> {
  const checked = checkEnvelope(rpc, request.headers)
  if (!checked.ok) return errorResponse(rpc.id, checked.error, 400)
  const { id, params, capabilities } = checked.value
  if (!declaresTasks(capabilities)) return errorResponse(id, tasksRequired().error)
  // `listensToTasks` has seen that it is an object.
  const { taskIds, ...others } = params['notifications'] as Record<string, unknown>
  if (!isStrings(taskIds)) return invalid(id, '"taskIds" must be an array of task ids.')
  const wanted = [...new Set(taskIds)]
  if (wanted.length > MAX_TASK_IDS) return invalid(id, `at most ${MAX_TASK_IDS} task ids per stream.`)

  const { subscriptions } = services.limitsOf(principal.tenant)
  const place = await takePlace(services.env.TENANTS, principal.tenant, subscriptions)
  if (!place.ok) return overLimit(id, place.over)
  // From here on the place is given back when the client leaves, whatever happens.
  const stream = new EventStream({
    keepaliveMs: services.limits.keepaliveMs,
    signal: request.signal,
    expiresAt: principal.expiresAt,
  })
  stream.onEnd(() => place.leave())
  let rest: Response | undefined
  if (Object.keys(others).length > 0) {
    const body = { ...rpc, params: { ...params, notifications: others } }
    rest = await core.fetch(request, { authInfo: authInfoOf(principal), parsedBody: body })
    if (!rest.headers.get('content-type')?.startsWith('text/event-stream')) {
      stream.close()
      return rest
    }
  }
  let tasks: readonly OpenTask[]
  try {
    const opened = await Promise.all(wanted.map((taskId) => open(taskId, principal.tenant, services)))
    tasks = opened.filter((task) => task !== undefined)
  } catch (error) {
    stream.close()
    throw error
  }
  serve(stream, id, tasks, rest, services).catch((error: unknown) => {
    fault({ event: 'listen_failed' }, error)
    stream.close()
  })
  return stream.response
}

interface OpenTask {
  readonly taskId: string
  readonly feed: TaskFeed
  readonly socket: WebSocket
}

/** The caller's own and live tasks; others are left out without a word. */
async function open(taskId: string, tenant: string, services: Services): Promise<OpenTask | undefined> {
  if (!(await services.ids.accept(tenant, taskId))) return undefined
  const feed = services.feed(taskId, tenant)
  const socket = await feed.open()
  return socket ? { taskId, feed, socket } : undefined
}

async function serve(
  stream: EventStream,
  id: RequestId,
  tasks: readonly OpenTask[],
  rest: Response | undefined,
  services: Services,
): Promise<void> {
  const core = rest?.body ? frames(rest.body, stream.signal) : undefined
  const coreFilters = core ? filtersIn((await core.next()).value) : {}
  const taskIds = tasks.map(({ taskId }) => taskId)
  await stream.send(acknowledged(id, { ...coreFilters, taskIds }))
  const ended = Promise.all(
    tasks.map(async ({ feed, socket }) => {
      for await (const snapshot of follow(feed, stream.signal, socket)) {
        await stream.send(taskNotification(id, snapshot))
      }
    }),
  )
  if (core && Object.keys(coreFilters).length > 0) {
    // The stream lives as long as the core's part of it, whose last frame is the final response.
    for await (const frame of core) stream.raw(`${frame}\n\n`)
    await ended
  } else {
    await ended
    const result = services.modern.result({ _meta: { [META_SUBSCRIPTION_ID]: id } })
    await stream.send(resultMessage(id, result))
  }
  stream.close()
}

/** The frames of an event stream, without the blank line that ends them. Comments are our own business. */
async function* frames(body: ReadableStream<Uint8Array>, signal: AbortSignal): AsyncGenerator<string, void> {
  const reader = body.pipeThrough(new TextDecoderStream()).getReader()
  signal.addEventListener('abort', () => void reader.cancel().catch(() => undefined), { once: true })
  let buffered = ''
  for (;;) {
    const { done, value } = await reader.read()
    if (done) return
    const parts = (buffered + value).split('\n\n')
    buffered = parts.pop() ?? ''
    for (const frame of parts) if (!frame.startsWith(':')) yield frame
  }
}

/** What the core agreed to, from its acknowledgement. */
function filtersIn(frame: string | void): Record<string, unknown> {
  const data = /^data: (.*)$/m.exec(frame ?? '')?.[1]
  const message: unknown = data === undefined ? undefined : JSON.parse(data)
  const params = isObject(message) ? message['params'] : undefined
  return isObject(params) && isObject(params['notifications']) ? params['notifications'] : {}
}

function isStrings(value: unknown): value is readonly string[] {
  return Array.isArray(value) && value.every((item) => typeof item === 'string')
}

function invalid(id: RequestId, problem: string): Response {
  return errorResponse(id, refuse(INVALID_PARAMS, `Invalid params: ${problem}`).error)
}
