/** From a checked call to a durable task: the same for every dialect. */
import { digest } from '../auth/seal'
import { type JsonObject, utf8Bytes } from '../json'
import { fault } from '../observe/observer'
import { traceparentOf } from '../observe/trace'
import { errorResponse, INVALID_PARAMS, refuse, type RequestId, type RpcError } from '../protocol/jsonrpc'
import { META_IDEMPOTENCY_KEY } from '../protocol/names'
import { callTask } from '../run/stub'
import { describe } from '../task/questions'
import type { Dialect } from '../task/types'
import type { TenantLimits } from '../tenant/limits'
import type { Reserved } from '../tenant/object'
import type { TaskTool } from '../tool'
import { baseUrlOf, type Incoming, metaOf } from './incoming'
import { overLimitError } from './over-limit'

const MAX_KEY_CHARS = 255
/** They share the row of the task, which may have 2 MB, with much else. */
const MAX_KEPT_BYTES = 256 * 1024

/** Why the arguments do not fit, in words for the model (SEP-1303), or `undefined` when they do. */
export async function misfitOf(tool: TaskTool, args: Record<string, unknown>): Promise<string | undefined> {
  const parsed = await tool.input.safeParseAsync(args)
  return parsed.success ? undefined : `Invalid arguments for ${tool.name}: ${describe(parsed.error)}`
}

export interface NewTask {
  readonly dialect: Dialect
  readonly capabilities: Readonly<Record<string, unknown>>
  /** JSON text of the validated arguments. */
  readonly input: string
  readonly gathered?: JsonObject
  /** For a caller who cannot come back; see {@link CreateTask.leashMs}. */
  readonly leashMs?: number
  /** Instead of the tool's own, within the server's limit. */
  readonly ttlMs?: number
}

export type Created =
  | { readonly ok: true; readonly taskId: string; readonly snapshot: string }
  | { readonly ok: false; readonly error: RpcError; readonly status: number; readonly retryAfterMs?: number }

/**
 * Reserves room with the tenant's object, then creates the task, durable when this returns. A call with
 * the idempotency key of an earlier one gets that one's task; creating it again changes nothing.
 */
export async function createTask(tool: TaskTool, task: NewTask, incoming: Incoming): Promise<Created> {
  const { services, principal } = incoming
  const { dialect, capabilities, input, gathered = {}, leashMs, ttlMs } = task
  const key = idempotencyKeyOf(incoming)
  const traceparent = traceparentOf(metaOf(incoming), incoming.request.headers)
  if (key !== undefined && (key === '' || key.length > MAX_KEY_CHARS)) {
    const { error } = refuse(
      INVALID_PARAMS,
      `Invalid params: an idempotency key has 1 to ${MAX_KEY_CHARS} characters.`,
    )
    return { ok: false, error, status: 400 }
  }
  const kept = utf8Bytes(JSON.stringify({ capabilities, gathered }))
  if (kept > MAX_KEPT_BYTES) {
    const { error } = refuse(
      INVALID_PARAMS,
      `Invalid params: client capabilities and gathered answers have ${kept} bytes; at most ${MAX_KEPT_BYTES} are kept with a task.`,
    )
    return { ok: false, error, status: 200 }
  }
  const limits = services.limitsOf(principal.tenant)
  const bytes = utf8Bytes(input)
  if (bytes > limits.argumentBytes) {
    const { error } = refuse(
      INVALID_PARAMS,
      `Invalid params: the arguments have ${bytes} bytes; at most ${limits.argumentBytes} are accepted. Put large data where the tool can fetch it.`,
      { limit: 'argument_bytes', max: limits.argumentBytes },
    )
    return { ok: false, error, status: 200 }
  }
  const toolPolicy = services.policyOf(tool, principal.tenant)
  const policy = ttlMs === undefined ? toolPolicy : { ...toolPolicy, ttlMs: Math.min(ttlMs, limits.ttlMs) }
  const expiresAt = Date.now() + policy.ttlMs
  const tenant = services.tenant(principal.tenant)
  const reserved = await tenant.reserve({
    taskId: await services.ids.mint(principal.tenant),
    expiresAt,
    maxLive: limits.liveTasks,
    maxPerMinute: limits.creationsPerMinute,
    ...(key !== undefined && { idempotency: { key, digest: await digest(`${tool.name}\n${input}`) } }),
  })
  const tenantHash = await services.tenantHash(principal.tenant)
  if (!reserved.ok) {
    services.observer.occurred({
      event: 'creation_refused',
      tool: tool.name,
      tenant: tenantHash,
      reason: reserved.reason,
    })
    return refusal(reserved, limits)
  }
  const { taskId } = reserved
  const creating = callTask(services.stubs, taskId, (object) =>
    object.create({
      taskId,
      principal,
      dialect,
      // Out of JSON.parse, or out of our own signed session: JSON.
      capabilities: capabilities as JsonObject,
      tool: tool.name,
      input,
      gathered,
      baseUrl: baseUrlOf(incoming),
      lineage: taskId,
      tenantHash,
      ...(traceparent !== undefined && { traceparent }),
      policy,
      // Whoever has a key can come back.
      ...(leashMs !== undefined && key === undefined && { leashMs }),
    }),
  )
  // With a key the reservation is written already; without one it is written beside the task.
  const confirming = key === undefined ? tenant.confirm(taskId, expiresAt) : undefined
  // A task that does not count is better than an answer that never comes.
  const confirmed = confirming?.catch((error: unknown) =>
    fault({ event: 'tenant_unreachable', task: taskId }, error),
  )
  const [snapshot] = await Promise.all([creating, confirmed])
  return { ok: true, taskId, snapshot }
}

/** The error response of a creation that was refused, and when to try again. */
export function refusedCreation(
  id: RequestId,
  refused: Extract<Created, { ok: false }>,
  status = refused.status,
): Response {
  const headers: Record<string, string> =
    refused.retryAfterMs === undefined
      ? {}
      : { 'retry-after': String(Math.ceil(refused.retryAfterMs / 1_000)) }
  return errorResponse(id, refused.error, status, headers)
}

function refusal(
  reserved: Extract<Reserved, { ok: false }>,
  { liveTasks, creationsPerMinute }: TenantLimits,
): Created {
  if (reserved.reason === 'idempotency_conflict') {
    const message =
      'Invalid params: this idempotency key was used for a call with another tool or other arguments.'
    return { ok: false, error: refuse(INVALID_PARAMS, message).error, status: 200 }
  }
  const { reason: limit, retryAfterMs } = reserved
  const message =
    limit === 'live_tasks'
      ? `Too many tasks: ${liveTasks} have not ended yet. Wait for one, or cancel one.`
      : `Too many calls: at most ${creationsPerMinute} tasks may be created in a minute.`
  return { ok: false, error: overLimitError({ limit, message, retryAfterMs }), status: 429, retryAfterMs }
}

/** From `_meta`, or from the header, which may be quoted (draft-ietf-httpapi-idempotency-key-header). */
export function idempotencyKeyOf(incoming: Incoming): string | undefined {
  const inMeta = metaOf(incoming)[META_IDEMPOTENCY_KEY]
  if (typeof inMeta === 'string') return inMeta
  return (
    incoming.request.headers
      .get('idempotency-key')
      ?.trim()
      .replace(/^"(.*)"$/, '$1') ?? undefined
  )
}
