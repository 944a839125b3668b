/**
 * Everything a request or a message needs, put together once per isolate from the options of
 * `createLonghaul` and the bindings of the Worker.
 */
import { z } from 'zod'
import { type AuthEnv, type Authority, createAuthority } from '../auth/authenticate'
import { ConfigurationError, SigningKeys } from '../auth/keys'
import { type ProtectedResource, protectedResource } from '../auth/resource'
import { allScopes } from '../auth/scopes'
import { TaskIds } from '../auth/task-id'
import { digest } from '../auth/seal'
import { type Duration, toMs } from '../duration'
import { createObserver, type Observer } from '../observe/observer'
import { ModernCodec, type ServerInfo } from '../protocol/modern'
import { type ParamHeader, paramHeadersOf } from '../protocol/param-headers'
import type { SlackEnv } from '../outside/slack'
import type { TaskFeed } from '../push/follow'
import { callObject, callTask, type TaskStubs } from '../run/stub'
import type { TaskEnv } from '../task/object'
import { resultKeyOf, withResult } from '../task/snapshot'
import type { TaskApi, TaskPolicy, Throttled } from '../task/types'
import { type TenantLimits, tenantLimits } from '../tenant/limits'
import type { TenantApi } from '../tenant/object'
import { type TaskTool, type Tool, toolError } from '../tool'

/** Bindings and variables the system itself needs; tools add their own. */
export interface LonghaulEnv extends AuthEnv, TaskEnv, SlackEnv {
  readonly TASKS: DurableObjectNamespace
  readonly TENANTS: DurableObjectNamespace
  /** `<id>:<secret>[,…]`, see `auth/keys.ts`. Optional in local development only. */
  readonly SIGNING_KEYS?: string
  /** JSON object of tenant to limits, where they differ from the server's; see `tenant/limits.ts`. */
  readonly TENANT_LIMITS?: string
  /** Cuts off callers that send far too many requests, whatever they ask. Optional. */
  readonly RATE_LIMITER?: RateLimit
  /** Turns on `/ops`. */
  readonly OPERATOR_KEY?: string
  /** Origin for callback URLs, when it is not the one requests arrive at. */
  readonly PUBLIC_URL?: string
  /** Host names this Worker answers to, separated by commas. Default: any. */
  readonly ALLOWED_HOSTS?: string
  /** Origins of web pages that may call it, separated by commas. Default: its own. */
  readonly ALLOWED_ORIGINS?: string
  /** How long a run may start new steps: first slices, and continuations. Defaults 1000 and 30000. */
  readonly TASK_WORK_SLICE_MS?: string | number
  readonly TASK_SLOW_SLICE_MS?: string | number
  /** Between comments on event streams. Default, and at most, 25000. */
  readonly SSE_KEEPALIVE_MS?: string | number
}

declare global {
  // How `wrangler types` and `@cloudflare/workers-types` name the bindings of a Worker.
  namespace Cloudflare {
    interface Env extends LonghaulEnv {}
  }
}

export interface Limits {
  /** Cap on every tool's time-to-live. Default 30 days. */
  readonly maxTtl?: Duration
  /** Tasks of one tenant that have not ended. Default 1000. */
  readonly liveTasks?: number
  /** Tasks that one tenant may create in a minute. Default 600. */
  readonly creationsPerMinute?: number
  /** Open event streams of one tenant that listen to tasks. Default 200. */
  readonly subscriptions?: number
  /** JSON text of the arguments of one call. Default: what a request may have. */
  readonly maxArgumentBytes?: number
  /** Default 4 MiB; larger bodies are refused with HTTP 413. */
  readonly maxRequestBytes?: number
  /** Default 8 MiB; a larger result fails its task with a sentence that says what to do. */
  readonly maxResultBytes?: number
  /** How long a call without Tasks blocks. Default, and at most, 50 seconds. */
  readonly blockFor?: Duration
  /** How long the work of a caller goes on that went away and cannot come back. Default 1 minute. */
  readonly leash?: Duration
  /** Rounds of a multi-round-trip call that clients without Tasks go through. Default 10, as the SDK's client. */
  readonly maxRounds?: number
}

export interface Services {
  readonly env: Cloudflare.Env
  readonly tools: ReadonlyMap<string, Tool>
  readonly taskTools: ReadonlyMap<string, TaskTool>
  readonly paramHeaders: ReadonlyMap<string, readonly ParamHeader[]>
  readonly authenticate: Authority['authenticate']
  readonly localMode: boolean
  /** Scopes a client should ask for to begin with; empty when scopes are not looked at. */
  readonly scopes: readonly string[]
  readonly keys: SigningKeys
  readonly ids: TaskIds
  readonly stubs: TaskStubs
  tenant(name: string): TenantApi
  /** The task as its owner sees it, wherever the result is; `null` for everybody else. */
  read(taskId: string, tenant: string): Promise<string | null>
  /** {@link read} for clients that poll, within limits. */
  poll(taskId: string, tenant: string): Promise<string | null | Throttled>
  /** Follows a task on behalf of a tenant; `stream` names a stream that carries questions to a client. */
  feed(taskId: string, tenant: string, stream?: string): TaskFeed
  readonly server: ServerInfo
  readonly modern: ModernCodec
  readonly observer: Observer
  /** What operators see instead of a tenant's name. */
  tenantHash(tenant: string): Promise<string>
  readonly limits: {
    readonly maxRequestBytes: number
    readonly blockForMs: number
    readonly leashMs: number
    readonly maxRounds: number
    readonly keepaliveMs: number
  }
  limitsOf(tenant: string): TenantLimits
  policyOf(tool: TaskTool, tenant: string): TaskPolicy
  /** Origin of this server as others reach it. */
  originOf(request: Request): string
  /** This server as an OAuth protected resource, when it accepts tokens. */
  resourceOf(request: Request): ProtectedResource | undefined
}

const MIB = 1024 * 1024
const DEFAULT_TTL_MS = toMs('24 hours')
const DEFAULT_RETENTION_MS = toMs('1 hour')
const DEFAULT_MAX_TTL_MS = toMs('30 days')
const MAX_KEEPALIVE_MS = 25_000
const MAX_BLOCK_MS = toMs('50 seconds')
/** Signs ids on a developer's own machine, where nobody else is. */
const LOCAL_SIGNING_KEYS = '0:longhaul-local-development-key'

/** @throws ConfigurationError */
export function createServices(
  env: Cloudflare.Env,
  server: ServerInfo,
  tools: readonly Tool[],
  limits: Limits,
): Services {
  const byName = new Map(tools.map((tool) => [tool.name, tool]))
  const { authenticate, localMode, issuer, scopes } = createAuthority(env, allScopes(byName))
  const signingKeys = env.SIGNING_KEYS ?? (localMode ? LOCAL_SIGNING_KEYS : undefined)
  if (signingKeys === undefined) {
    throw new ConfigurationError(
      'SIGNING_KEYS is not set. Set it to "1:<secret>" (`openssl rand -base64 32`, then `wrangler secret put SIGNING_KEYS`).',
    )
  }
  const maxTtlMs = toMs(limits.maxTtl ?? DEFAULT_MAX_TTL_MS)
  const maxRequestBytes = limits.maxRequestBytes ?? 4 * MIB
  const limitsOf = tenantLimits(
    {
      liveTasks: limits.liveTasks ?? 1_000,
      creationsPerMinute: limits.creationsPerMinute ?? 600,
      subscriptions: limits.subscriptions ?? 200,
      argumentBytes: limits.maxArgumentBytes ?? maxRequestBytes,
      resultBytes: limits.maxResultBytes ?? 8 * MIB,
      ttlMs: maxTtlMs,
    },
    env.TENANT_LIMITS,
  )
  const keys = new SigningKeys(signingKeys)
  const taskTools = new Map(
    tools.flatMap((tool) => (tool.kind === 'task' ? [[tool.name, tool] as const] : [])),
  )
  // The object implements TaskApi; the generated RPC types of it exceed the compiler's depth (workerd#3063).
  const stubs: TaskStubs = (taskId) => env.TASKS.getByName(taskId) as unknown as TaskApi
  const whole = (snapshot: string) => {
    const key = resultKeyOf(snapshot)
    return key === undefined ? snapshot : fetchResult(env.RESULTS, key, snapshot)
  }
  const read = async (taskId: string, tenant: string) => {
    const snapshot = await callTask(stubs, taskId, (task) => task.read(tenant))
    return snapshot === null ? null : whole(snapshot)
  }
  const retentions = [...taskTools.values()].map((tool) => retentionMs(tool))
  const publicOrigin = env.PUBLIC_URL ? URL.parse(env.PUBLIC_URL)?.origin : undefined
  if (env.PUBLIC_URL && publicOrigin === undefined) {
    throw new ConfigurationError('PUBLIC_URL must be an address like "https://mcp.example.com".')
  }
  const originOf = (request: Request) => publicOrigin ?? new URL(request.url).origin
  return {
    env,
    tools: byName,
    taskTools,
    paramHeaders: new Map(
      [...taskTools].map(([name, tool]) => [
        name,
        paramHeadersOf(z.toJSONSchema(tool.input, { io: 'input' })),
      ]),
    ),
    authenticate,
    localMode,
    scopes,
    keys,
    ids: new TaskIds(keys, maxTtlMs + Math.max(DEFAULT_RETENTION_MS, ...retentions)),
    stubs,
    tenant: (name) => tenantOf(env.TENANTS, name),
    feed: (taskId, tenant, stream) => ({
      open: async () => (await connect(env, taskId, 'feed', tenant, undefined, stream)).webSocket,
      read: () => read(taskId, tenant),
      whole,
    }),
    read,
    poll: async (taskId, tenant) => {
      const polled = await callTask(stubs, taskId, (task) => task.poll(tenant))
      return typeof polled === 'string' ? whole(polled) : polled
    },
    server,
    modern: new ModernCodec(server),
    observer: createObserver(env),
    tenantHash: async (tenant) => (await digest(`longhaul tenant ${tenant}`)).slice(0, 12),
    limits: {
      maxRequestBytes,
      blockForMs: Math.min(toMs(limits.blockFor ?? MAX_BLOCK_MS), MAX_BLOCK_MS),
      leashMs: toMs(limits.leash ?? '1 minute'),
      maxRounds: limits.maxRounds ?? 10,
      keepaliveMs: Math.min(Number(env.SSE_KEEPALIVE_MS ?? MAX_KEEPALIVE_MS), MAX_KEEPALIVE_MS),
    },
    limitsOf,
    policyOf: ({ task = {}, ...tool }, tenant) => ({
      ttlMs: Math.min(toMs(task.ttl ?? DEFAULT_TTL_MS), limitsOf(tenant).ttlMs),
      retentionMs: retentionMs({ ...tool, task }),
      pollMinMs: toMs(task.poll?.min ?? '1 second'),
      pollMaxMs: toMs(task.poll?.max ?? '30 seconds'),
      retryLimit: task.retry?.limit ?? 3,
      retryDelayMs: toMs(task.retry?.delay ?? '2 seconds'),
      retryMaxDelayMs: toMs(task.retry?.maxDelay ?? '5 minutes'),
      queue: task.queue ?? 'work',
      maxResultBytes: limitsOf(tenant).resultBytes,
    }),
    originOf,
    resourceOf: (request) =>
      protectedResource(originOf(request), { name: server.title ?? server.name, issuer, scopes }),
  }
}

function retentionMs({ task }: Pick<TaskTool, 'task'>): number {
  return toMs(task?.retention ?? DEFAULT_RETENTION_MS)
}

/** The object implements TenantApi; see `stubs`. */
function tenantOf(namespace: DurableObjectNamespace, name: string): TenantApi {
  const call = <T>(method: (tenant: TenantApi) => Promise<T>) =>
    callObject(() => namespace.getByName(name) as unknown as TenantApi, method)
  return {
    reserve: (reservation) => call((tenant) => tenant.reserve(reservation)),
    confirm: (taskId, expiresAt) => call((tenant) => tenant.confirm(taskId, expiresAt)),
    release: (taskId, expiresAt) => call((tenant) => tenant.release(taskId, expiresAt)),
    live: () => call((tenant) => tenant.live()),
  }
}

/** A large result, from the bucket into the snapshot. */
async function fetchResult(bucket: R2Bucket | undefined, key: string, snapshot: string): Promise<string> {
  const stored = await bucket?.get(key)
  const gone = { ...toolError('The stored result is no longer available.'), resultType: 'complete' }
  return withResult(snapshot, stored ? await stored.text() : JSON.stringify(gone))
}

/**
 * A WebSocket to the object, by a request of our own: nothing of the client's request reaches it but
 * who is asking and until when.
 */
export function connect(
  env: Cloudflare.Env,
  taskId: string,
  kind: 'feed' | 'door',
  tenant: string,
  expiresAt?: number,
  stream?: string,
): Promise<Response> {
  return env.TASKS.getByName(taskId).fetch(`https://task/${kind}`, {
    headers: {
      upgrade: 'websocket',
      'x-longhaul-tenant': encodeURIComponent(tenant),
      ...(expiresAt !== undefined && { 'x-longhaul-expires': String(expiresAt) }),
      ...(stream !== undefined && { 'x-longhaul-stream': stream }),
    },
  })
}
