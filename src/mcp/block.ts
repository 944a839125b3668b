/**
 * Clients without Tasks, revision 2026-07-28: the call becomes a task all the same, and the client
 * waits for it in legs of at most 50 seconds. A question, or the end of a leg, is answered with an
 * `InputRequiredResult` (SEP-2322) whose sealed `requestState` names the task; the client's retry brings
 * the answers and waits on.
 */
import { seal } from '../auth/seal'
import { isObject } from '../json'
import { fault } from '../observe/observer'
import {
  errorResponse,
  INTERNAL_ERROR,
  type RequestId,
  resultMessage,
  resultText,
  type RpcError,
} from '../protocol/jsonrpc'
import type { ModernRequest } from '../protocol/modern'
import { follow } from '../push/follow'
import { EventStream } from '../push/sse'
import { callTask } from '../run/stub'
import { hasEnded } from '../task/snapshot'
import type { TaskSnapshot } from '../task/types'
import { toolError } from '../tool'
import { idempotencyKeyOf } from './create'
import type { Incoming } from './incoming'
import { ProgressLine } from './progress'
import type { Services } from './services'

/** An answer that comes this soon is plain JSON; a longer wait is streamed with keepalives. */
const QUIET_MS = 2_000
/** `_meta` key: how many rounds the client is willing to go. */
const META_MAX_ROUNDS = 'longhaul.dev/maxRounds'

export interface Leg {
  readonly taskId: string
  /** 0 for the call itself, then one more for each retry. */
  readonly round: number
  /** What a `requestState` is bound to. */
  readonly audience: readonly string[]
}

type Reply = { readonly result: Record<string, unknown> } | { readonly error: RpcError }

/** Waits for the task of this call and answers, as JSON or as a stream. */
export async function answerBlocking(
  request: ModernRequest,
  leg: Leg,
  incoming: Incoming,
): Promise<Response> {
  const { services } = incoming
  const { id } = request
  const progressToken = isObject(request.params['_meta'])
    ? request.params['_meta']['progressToken']
    : undefined
  const streams = incoming.request.headers.get('accept')?.includes('text/event-stream') ?? false
  const watch = new Progress(progressToken)
  const gone = new AbortController()
  // Once the leg is over, its answer may have been taken: such a caller leaves, it does not vanish.
  const leave = () => {
    if (!watch.done) gone.abort()
  }
  incoming.request.signal.addEventListener('abort', leave, { once: true })
  gone.signal.addEventListener('abort', () => incoming.waitUntil(abandon(leg, incoming)))

  const replying = waitFor(request, leg, incoming, watch, gone.signal)
  const quick = await Promise.race([
    replying,
    streams ? scheduler.wait(watch.wanted ? 0 : QUIET_MS) : never(),
  ])
  if (quick) {
    return 'error' in quick
      ? errorResponse(id, quick.error, 200)
      : resultText(id, services.modern.result(quick.result))
  }
  const stream = new EventStream({
    keepaliveMs: services.limits.keepaliveMs,
    signal: incoming.request.signal,
  })
  stream.onEnd(leave)
  watch.attach((text) => stream.send(text))
  const finish = async () => {
    const reply = await replying
    if (reply) await stream.send(responseText(id, reply, services))
    stream.close()
  }
  finish().catch((error: unknown) => {
    fault({ event: 'blocking_call_failed', task: leg.taskId }, error)
    stream.close()
  })
  return stream.response
}

function responseText(id: RequestId, reply: Reply, { modern }: Services): string {
  return 'error' in reply
    ? JSON.stringify({ jsonrpc: '2.0', id, error: reply.error })
    : resultMessage(id, modern.result(reply.result))
}

/** How a leg ended; `undefined` when nobody is there any more to be told. */
async function waitFor(
  request: ModernRequest,
  leg: Leg,
  incoming: Incoming,
  watch: Progress,
  gone: AbortSignal,
): Promise<Reply | undefined> {
  const { services, principal } = incoming
  const signal = AbortSignal.any([gone, AbortSignal.timeout(legMs(incoming))])
  let task: TaskSnapshot | undefined
  for await (const snapshot of follow(services.feed(leg.taskId, principal.tenant), signal)) {
    // Written by the object itself.
    task = JSON.parse(snapshot) as TaskSnapshot
    await watch.see(task)
    if (task.status === 'input_required' || hasEnded(snapshot)) break
  }
  // A `requestState` that nobody receives must not take the work off its leash.
  if (gone.aborted) return undefined
  watch.done = true
  // The leg may have been too short to hear anything.
  task ??= await present(leg, incoming)
  return replyFor(task, request, leg, incoming)
}

async function present({ taskId }: Leg, incoming: Incoming): Promise<TaskSnapshot | undefined> {
  const { services, principal } = incoming
  const snapshot = await services.read(taskId, principal.tenant)
  return snapshot === null ? undefined : (JSON.parse(snapshot) as TaskSnapshot)
}

/** The caller's credentials are good for as long; it comes back with new ones. */
function legMs({ services, principal: { expiresAt = Infinity } }: Incoming): number {
  return Math.max(0, Math.min(services.limits.blockForMs, expiresAt - Date.now()))
}

async function replyFor(
  task: TaskSnapshot | undefined,
  request: ModernRequest,
  leg: Leg,
  incoming: Incoming,
): Promise<Reply> {
  switch (task?.status) {
    case 'completed':
      return { result: { ...task.result } }
    case 'failed':
      return { error: task.error ?? { code: INTERNAL_ERROR, message: 'Internal error' } }
    case 'cancelled':
      return { result: toolError('The work was cancelled.') }
    case undefined:
      return { result: toolError('The work is no longer there: its time-to-live is over.') }
    case 'working':
    case 'input_required':
      return goOn(task, request, leg, incoming)
  }
}

/** The work goes on: how the client comes back for it. */
async function goOn(
  task: TaskSnapshot,
  request: ModernRequest,
  leg: Leg,
  incoming: Incoming,
): Promise<Reply> {
  const { services, principal } = incoming
  const round = leg.round + 1
  if (round > maxRounds(request, services.limits.maxRounds)) return { result: toolError(lastWord(task)) }
  const expiresAt = Date.parse(task.createdAt) + task.ttlMs
  const payload = { taskId: leg.taskId, round, at: Date.now() }
  const requestState = await seal(services.keys, 'request-state', leg.audience, payload, expiresAt)
  // Whoever holds it can come back: the work is no longer on a leash.
  await callTask(services.stubs, leg.taskId, (object) => object.leash(principal.tenant, null))
  const asks = task.status === 'input_required' && { inputRequests: task.inputRequests }
  return { result: { resultType: 'input_required', ...asks, requestState } }
}

function maxRounds({ params }: ModernRequest, fallback: number): number {
  const wanted = isObject(params['_meta']) ? params['_meta'][META_MAX_ROUNDS] : undefined
  return typeof wanted === 'number' && Number.isInteger(wanted) && wanted > 0 ? wanted : fallback
}

function lastWord(task: TaskSnapshot): string {
  const waiting = task.status === 'input_required' ? 'waits for an answer' : 'goes on'
  return (
    `The work is not done and ${waiting} on the server (task ${task.taskId}). ` +
    'To join it again, retry this call with the last requestState or with the same idempotency key; ' +
    'a client that declares the Tasks extension can follow it directly.'
  )
}

/** The caller has gone. Without a `requestState` it cannot come back, and the work ends after a while. */
async function abandon(leg: Leg, incoming: Incoming): Promise<void> {
  const { services, principal } = incoming
  if (leg.round > 0 || idempotencyKeyOf(incoming) !== undefined) return
  await callTask(services.stubs, leg.taskId, (task) => task.leash(principal.tenant, services.limits.leashMs))
}

function never(): Promise<undefined> {
  return new Promise(() => undefined)
}

/** The progress of one leg, told once there is a stream to tell it on. */
class Progress {
  readonly #line: ProgressLine
  #send: ((message: string) => Promise<void>) | undefined
  #pending: TaskSnapshot | undefined
  done = false

  constructor(token: unknown) {
    this.#line = new ProgressLine(token)
  }

  get wanted(): boolean {
    return this.#line.wanted
  }

  attach(send: (message: string) => Promise<void>): void {
    this.#send = send
    if (this.#pending) void this.see(this.#pending)
  }

  async see(task: TaskSnapshot): Promise<void> {
    this.#pending = task
    const message = this.#send && this.#line.next(task)
    if (message !== undefined) await this.#send?.(message)
  }
}
