/** The client: makes calls, follows tasks, and finds them again after a crash. */
import type { JsonObject } from '../json.ts'
import type { Call, Invocation } from './call.ts'
import { type Clock, systemClock } from './clock.ts'
import type { CallContext, QuestionHandler } from './context.ts'
import { Endpoint, type Token } from './endpoint.ts'
import { LiveCall } from './live-call.ts'
import { DEFAULT_POLL, type PollOptions } from './pace.ts'
import { SsePush } from './push-sse.ts'
import { type SocketConstructor, WebSocketPush } from './push-websocket.ts'
import type { PushSource } from './push.ts'
import { isLongGone, memoryStore, type TaskReference, type TaskStore } from './store.ts'
import { Toolbox } from './toolbox.ts'
import type { ToolDefinition } from './tools.ts'
import { isTerminal } from './wire.ts'

export interface TasksOptions {
  /** The MCP endpoint, such as `https://example.com/mcp`. */
  readonly url: string | URL
  /** Sent as `Authorization: Bearer …`. A function is asked again when the server refuses what it gave. */
  readonly token?: Token
  /** Further headers for every request. A WebSocket cannot carry them: with these alone it is not tried. */
  readonly headers?: Readonly<Record<string, string>>
  /** Instead of the global one; for a service binding, a proxy, or a test. */
  readonly fetch?: typeof fetch
  /** Instead of the global one; with a `fetch` of your own it must be given too, or sockets are not tried. */
  readonly WebSocket?: SocketConstructor
  /** Where references to tasks are kept. Default: in memory, which does not survive the process. */
  readonly store?: TaskStore
  /** Keep the arguments with the reference. Default false: they may hold secrets. */
  readonly rememberArguments?: boolean
  /**
   * What this client can be asked for. Default: `{ elicitation: {} }` when there is an `onQuestion`, nothing
   * otherwise; a server then refuses at once what would need an answer.
   */
  readonly capabilities?: JsonObject
  readonly onQuestion?: QuestionHandler
  /** Told what went wrong without consequence for the outcome. Default: `console.warn`. */
  readonly onWarning?: (message: string) => void
  /** Ways of push to try, best first. Default `['websocket', 'sse']`; `[]` only looks. */
  readonly push?: readonly ('websocket' | 'sse')[]
  readonly poll?: Partial<PollOptions>
  /** For the answer to `tools/call`, which a tool without a task may take long for. Default 2 minutes. */
  readonly callTimeoutMs?: number
  readonly maxResponseBytes?: number
  readonly clientInfo?: { readonly name: string; readonly version: string }
  readonly clock?: Clock
}

export interface CallOptions {
  /** Gives up following after this time; the task goes on, and can be resumed. Default: never. */
  readonly deadlineMs?: number
  /** Aborting it stops following, as `detach` does. */
  readonly signal?: AbortSignal
  /** Instead of the client's. */
  readonly onQuestion?: QuestionHandler
}

export interface ToolCallOptions extends CallOptions {
  /**
   * Names the call, so that it can be made again when nobody knows whether it arrived: a Longhaul server answers the
   * same key with the same task. With it, a call is repeated when the connection breaks; other servers may not
   * know it, and do the work twice.
   */
  readonly idempotencyKey?: string
  /** Further members of the request's `_meta`. */
  readonly meta?: JsonObject
}

export interface Tasks {
  /**
   * Calls a tool. Resolves when the server has taken the call: with an answer, a task, or questions.
   *
   * @throws TasksError when it did not. After an `UnreachableError` the tool may have been called all the same.
   */
  call(tool: string, args?: JsonObject, options?: ToolCallOptions): Promise<Call>
  /** Follows a task by its id, whoever began it. */
  follow(taskId: string, options?: CallOptions): Promise<Call>
  /** Follows every task of this endpoint that the store has and that is not known to have ended. */
  resume(options?: CallOptions): Promise<Call[]>
  /** The references of this endpoint that the store has. Those of tasks long gone are removed. */
  references(): Promise<TaskReference[]>
  /** The tools that the server offers and that may be called. */
  tools(): Promise<ToolDefinition[]>
  /** Stops following everything; the tasks go on. */
  close(): void
}

const CALL_TIMEOUT_MS = 120_000
const MAX_RESPONSE_BYTES = 64 * 1024 * 1024

/**
 * A client for the tools of one MCP endpoint.
 *
 * @example
 * const tasks = createTasks({ url: 'https://example.com/mcp', token, store: localStorageStore() })
 * const call = await tasks.call('run_migration', { name: 'add-index' })
 * for await (const { status, message } of call) console.log(status, message)
 * console.log(await call.result())
 */
export function createTasks(options: TasksOptions): Tasks {
  const {
    store = memoryStore(),
    clock = systemClock,
    onQuestion,
    onWarning = (message) => console.warn(message),
    rememberArguments = false,
  } = options
  const endpoint = new Endpoint({
    url: new URL(options.url).href,
    fetch: options.fetch ?? globalThis.fetch.bind(globalThis),
    headers: options.headers ?? {},
    token: options.token,
    capabilities: options.capabilities ?? (onQuestion ? { elicitation: {} } : {}),
    clientInfo: options.clientInfo ?? { name: 'longhaul-client', version: '0.1.0' },
    maxResponseBytes: options.maxResponseBytes ?? MAX_RESPONSE_BYTES,
    clock,
  })
  const toolbox = new Toolbox(endpoint, options.callTimeoutMs ?? CALL_TIMEOUT_MS, onWarning)
  const sources = pushSources(options, endpoint)
  const poll = { ...DEFAULT_POLL, ...options.poll }
  const live = new Set<Call>()

  // One write after the other: a later state must not be overtaken by an earlier one.
  let writing: Promise<void> = Promise.resolve()
  const write = (work: () => void | Promise<void>) => {
    writing = writing.then(work).catch((error: unknown) => {
      onWarning(`The reference of a task could not be kept: ${String(error)}`)
    })
    return writing
  }

  function contextOf(call: CallOptions): CallContext {
    return {
      endpoint,
      sources,
      poll,
      onQuestion: call.onQuestion ?? onQuestion,
      rememberArguments,
      deadlineMs: call.deadlineMs,
      signal: call.signal,
      callTool: (invocation, more, signal) => toolbox.call(invocation, more, signal),
      put: (reference) => write(() => store.put(reference)),
      forget: (taskId) => write(() => store.delete(endpoint.url, taskId)),
      warn: onWarning,
      ended: (ended) => live.delete(ended),
    }
  }

  async function begin(subject: Invocation | TaskReference, call: CallOptions): Promise<Call> {
    call.signal?.throwIfAborted()
    const begun = new LiveCall(contextOf(call), subject)
    live.add(begun)
    await begun.begin()
    return begun
  }

  async function references(): Promise<TaskReference[]> {
    const now = clock.date()
    const here = (await store.list()).filter((reference) => reference.endpoint === endpoint.url)
    const gone = here.filter((reference) => isLongGone(reference, now))
    await write(async () => {
      for (const { taskId } of gone) await store.delete(endpoint.url, taskId)
    })
    return here.filter((reference) => !gone.includes(reference))
  }

  return {
    call: (tool, args = {}, { meta, idempotencyKey, ...call } = {}) =>
      begin({ tool, args, meta, idempotencyKey }, call),

    async follow(taskId, call = {}) {
      const known = await store.get(endpoint.url, taskId)
      const reference = known ?? newReference(taskId, endpoint.url, clock.date())
      if (!known) await write(() => store.put(reference))
      return begin(reference, call)
    },

    async resume(call = {}) {
      const open = (await references()).filter(({ status }) => !isTerminal(status))
      return Promise.all(open.map((reference) => begin(reference, call)))
    },

    references,
    tools: () => toolbox.list(),

    close() {
      for (const call of live) call.detach()
    },
  }
}

function newReference(taskId: string, endpoint: string, createdAt: number): TaskReference {
  const nothing = { ttlMs: null, status: 'working', cancelRequested: false, answered: [] } as const
  return { taskId, endpoint, createdAt, ...nothing }
}

function pushSources(options: TasksOptions, endpoint: Endpoint): PushSource[] {
  const { push = ['websocket', 'sse'], headers, token } = options
  // The global one goes around a fetch of somebody's own, and cannot send their headers.
  const reachesTheSame = !options.fetch && (token !== undefined || Object.keys(headers ?? {}).length === 0)
  // Older runtimes have none; those that do agree on what is used of it.
  const { WebSocket: global } = globalThis as { WebSocket?: SocketConstructor }
  const Socket = options.WebSocket ?? (reachesTheSame ? global : undefined)
  return push.flatMap((way): PushSource[] => {
    if (way === 'sse') return [new SsePush(endpoint)]
    const { url, clock } = endpoint
    return Socket ? [new WebSocketPush({ url, WebSocket: Socket, token: () => endpoint.token(), clock })] : []
  })
}
