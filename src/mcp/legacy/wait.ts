/**
 * A request of a 2025 client that waits for its task: a call without Tasks, `tasks/result`, or a
 * `tasks/get` that brings a question along. Quick answers are plain JSON; a wait is a resumable stream
 * with progress, status and questions, for as long as the client stays.
 */
import { isObject } from '../../json'
import { fault } from '../../observe/observer'
import { errorResponse, resultText, type RequestId } from '../../protocol/jsonrpc'
import {
  outcomeOf,
  question,
  related,
  type Reply,
  responseText,
  statusNotification,
  taskOf,
} from '../../protocol/legacy'
import { UNKNOWN_TASK } from '../../protocol/modern'
import { follow } from '../../push/follow'
import { allows, askOf } from '../../run/asks'
import { callTask } from '../../run/stub'
import { isTerminal } from '../../task/machine'
import type { InputRequest, TaskSnapshot } from '../../task/types'
import { toolError } from '../../tool'
import type { Exchange } from '../incoming'
import { ProgressLine } from '../progress'
import type { Caller } from './caller'
import type { Cursor } from './cursor'
import { Outlet } from './outlet'
import { questionId } from './questions'
import { withTicks } from './ticks'

/** An answer that comes this soon is plain JSON. */
const QUIET_MS = 500
/** A client that only polls is asked by a poll after this many that found the question waiting. */
const POLLS_BEFORE_ASKING = 2

/** The start of a wait. */
export function newCursor(
  taskId: string,
  requestId: RequestId,
  method: Cursor['method'],
  params: Record<string, unknown>,
): Cursor {
  const token = isObject(params['_meta']) ? params['_meta']['progressToken'] : undefined
  return {
    taskId,
    requestId,
    method,
    stream: crypto.randomUUID(),
    asked: [],
    ...((typeof token === 'string' || typeof token === 'number') && { progressToken: token }),
    progress: 0,
    ended: false,
  }
}

/**
 * Waits for the task and answers. `resumed`: by a stream in any case. `kept`: the client can come back
 * for the result of its call anyway.
 */
export async function answerWaiting(
  cursor: Cursor,
  caller: Caller,
  exchange: Exchange,
  { resumed = false, kept = resumed }: { readonly resumed?: boolean; readonly kept?: boolean } = {},
): Promise<Response> {
  const gone = new AbortController()
  const outlet = new Outlet({
    cursor,
    caller,
    exchange,
    streams: resumed || acceptsStreams(exchange.request),
    onGone: () => gone.abort(),
    onResumable: () => {
      if (!kept) leash(cursor, null, exchange)
    },
  })
  exchange.request.signal.addEventListener('abort', () => gone.abort(), { once: true })
  gone.signal.addEventListener('abort', () => {
    if (!kept && !outlet.resumable) leash(cursor, exchange.services.limits.leashMs, exchange)
  })
  const wait = new Wait(outlet, caller, exchange, gone.signal, resumed)
  const replying = wait.reply()
  const quick = await Promise.race([
    replying,
    outlet.opened.then(() => undefined),
    outlet.streams ? scheduler.wait(QUIET_MS) : never(),
  ])
  const { requestId } = cursor
  if (quick && !outlet.isOpen && !resumed) {
    return 'error' in quick
      ? errorResponse(requestId, quick.error, 200)
      : resultText(requestId, JSON.stringify(quick.result))
  }
  const stream = await outlet.open()
  const finish = async () => {
    const reply = await replying
    if (reply) await outlet.send(responseText(requestId, reply), { ended: true })
    await outlet.close()
  }
  finish().catch((error: unknown) => {
    fault({ event: 'blocking_call_failed', task: cursor.taskId }, error)
    stream.close()
  })
  return stream.response
}

export function acceptsStreams(request: Request): boolean {
  return request.headers.get('accept')?.includes('text/event-stream') ?? false
}

/** The questions of a task that this client can be asked, by key. */
export function askable(
  { status, inputRequests = {} }: TaskSnapshot,
  { capabilities }: Caller,
): [string, InputRequest][] {
  if (status !== 'input_required') return []
  return Object.entries(inputRequests).filter(([, request]) => {
    const ask = askOf(request)
    return ask !== undefined && allows(capabilities, ask)
  })
}

/** Only the caller of a tool without Tasks is the one who can collect its result. */
function leash({ taskId, method }: Cursor, ms: number | null, exchange: Exchange): void {
  if (method !== 'tools/call') return
  const { services, principal } = exchange
  exchange.waitUntil(callTask(services.stubs, taskId, (task) => task.leash(principal.tenant, ms)))
}

function never(): Promise<undefined> {
  return new Promise(() => undefined)
}

class Wait {
  readonly #outlet: Outlet
  readonly #caller: Caller
  readonly #exchange: Exchange
  readonly #gone: AbortSignal
  readonly #patience: number
  readonly #progress: ProgressLine
  #told: string | undefined

  constructor(outlet: Outlet, caller: Caller, exchange: Exchange, gone: AbortSignal, resumed: boolean) {
    const { method, progressToken, progress } = outlet.cursor
    this.#outlet = outlet
    this.#caller = caller
    this.#exchange = exchange
    this.#gone = gone
    this.#patience = method === 'tasks/get' && !resumed ? POLLS_BEFORE_ASKING : 0
    this.#progress = new ProgressLine(progressToken, progress)
  }

  /** What the request is answered with; `undefined` when somebody else answers it, or nobody needs it. */
  async reply(): Promise<Reply | undefined> {
    const { services, principal } = this.#exchange
    const { taskId, method } = this.#outlet.cursor
    let task: TaskSnapshot | undefined
    for await (const news of withTicks(this.#snapshots(), services.limits.keepaliveMs)) {
      if (news !== undefined) {
        // Written by the object itself.
        task = JSON.parse(news) as TaskSnapshot
        this.#outlet.expiresAt = Date.parse(task.createdAt) + task.ttlMs
        await this.#tell(task)
      }
      if (task) await this.#ask(task)
    }
    if (task && method === 'tasks/get') return { result: taskOf(task) }
    if (task && isTerminal(task.status)) return this.#outcome(task)
    if (this.#gone.aborted) return undefined
    const left = await services.read(taskId, principal.tenant)
    // Still there: the stream goes on elsewhere.
    return left === null ? { error: UNKNOWN_TASK } : undefined
  }

  #snapshots(): AsyncGenerator<string, void, undefined> {
    const { services, principal } = this.#exchange
    const { taskId, method, stream } = this.#outlet.cursor
    if (method === 'tasks/get') return once(services.read(taskId, principal.tenant))
    const carries = this.#outlet.streams ? stream : undefined
    return follow(services.feed(taskId, principal.tenant, carries), this.#gone)
  }

  #outcome(task: TaskSnapshot): Reply | undefined {
    if (this.#outlet.cursor.method === 'tasks/result') {
      const reply = outcomeOf(task)
      return reply && related(reply, task.taskId)
    }
    return task.status === 'cancelled' ? { result: toolError('The work was cancelled.') } : outcomeOf(task)
  }

  /** What is new, in the way the request has for it. */
  async #tell(task: TaskSnapshot): Promise<void> {
    const { method } = this.#outlet.cursor
    if (isTerminal(task.status)) return
    if (method === 'tools/call' && this.#outlet.streams) {
      const message = this.#progress.next(task)
      if (message !== undefined) await this.#outlet.send(message, { progress: this.#progress.value })
    }
    if (method === 'tasks/result') {
      const state = `${task.status} ${task.statusMessage ?? ''}`
      if (this.#told !== undefined && this.#told !== state) await this.#outlet.send(statusNotification(task))
      this.#told = state
    }
  }

  /** Sends the questions that this client can be asked, was not asked here, and is not asked elsewhere. */
  async #ask(task: TaskSnapshot): Promise<void> {
    const { services, principal } = this.#exchange
    const { method, stream, asked } = this.#outlet.cursor
    if (!this.#outlet.streams) return
    const open = askable(task, this.#caller).filter(([key]) => !asked.includes(key))
    if (open.length === 0) return
    const granted = await callTask(services.stubs, task.taskId, (object) =>
      object.carry(principal.tenant, {
        keys: open.map(([key]) => key),
        stream,
        client: this.#caller.client,
        held: method !== 'tasks/get',
        patience: this.#patience,
      }),
    )
    for (const [key, request] of open.filter(([name]) => granted.includes(name))) {
      const { expiresAt } = this.#outlet
      const id = await questionId(services.keys, principal.tenant, task.taskId, key, expiresAt)
      const relatedTo = method === 'tools/call' ? undefined : task.taskId
      await this.#outlet.send(question(id, request, relatedTo), {
        asked: [...this.#outlet.cursor.asked, key],
      })
    }
  }
}

async function* once(snapshot: Promise<string | null>): AsyncGenerator<string, void, undefined> {
  const text = await snapshot
  if (text !== null) yield text
}
