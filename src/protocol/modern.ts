/**
 * Codec of revision 2026-07-28: the checks every request passes, in the order the
 * specification gives them, and the shapes of the Tasks extension (SEP-2663).
 * Pure: no storage, no bindings.
 *
 * @see https://modelcontextprotocol.io/specification/2026-07-28/basic/transports/streamable-http
 * @see https://modelcontextprotocol.github.io/ext-tasks/specification/2026-07-28/tasks.html
 */
import { isObject, type Json } from '../json'
import { statusOf } from '../task/snapshot'
import type { TaskSnapshot } from '../task/types'
import {
  type Checked,
  HEADER_MISMATCH,
  INVALID_PARAMS,
  MISSING_CLIENT_CAPABILITY,
  ok,
  refuse,
  type RequestId,
  type RpcRequest,
  UNSUPPORTED_PROTOCOL_VERSION,
} from './jsonrpc'
import {
  META_CLIENT_CAPABILITIES,
  META_PROTOCOL_VERSION,
  META_SERVER_INFO,
  META_SUBSCRIPTION_ID,
  REVISION,
  TASKS_EXTENSION,
} from './names'

export {
  META_CLIENT_CAPABILITIES,
  META_PROTOCOL_VERSION,
  META_SERVER_INFO,
  META_SUBSCRIPTION_ID,
  REVISION,
  TASKS_EXTENSION,
}

/** What a client can do, as it declared with this request. */
export type ClientCapabilities = Readonly<Record<string, unknown>>

/** A request of this revision that passed the checks of the envelope. */
export interface ModernRequest extends RpcRequest {
  readonly params: Record<string, unknown>
  readonly capabilities: ClientCapabilities
}

/** Whether a message speaks this revision or a later one: its `_meta` or its version header says so. */
export function speaksModern(body: Record<string, unknown>, headers: Headers): boolean {
  const meta = isObject(body['params']) ? body['params']['_meta'] : undefined
  if (isObject(meta) && META_PROTOCOL_VERSION in meta) return true
  const header = headers.get('mcp-protocol-version')?.trim()
  return header !== undefined && header >= REVISION
}

/**
 * The checks of the envelope: version, header agreement, `_meta`, `Mcp-Method`, `Mcp-Name`.
 * `nameParam` is the parameter that `Mcp-Name` mirrors, for methods that have one.
 */
export function checkEnvelope(
  request: RpcRequest,
  headers: Headers,
  nameParam?: 'name' | 'taskId',
): Checked<ModernRequest> {
  const params = request.params ?? {}
  const meta = isObject(params['_meta']) ? params['_meta'] : undefined
  const version = meta?.[META_PROTOCOL_VERSION]
  const headerVersion = headers.get('mcp-protocol-version')?.trim()

  // Two that differ name no version at all, supported or not.
  if (typeof version === 'string' && headerVersion !== undefined && version !== headerVersion) {
    return mismatch('MCP-Protocol-Version', headerVersion, version)
  }
  const named = typeof version === 'string' ? version : headerVersion
  if (named !== undefined && named !== REVISION) {
    return refuse(UNSUPPORTED_PROTOCOL_VERSION, `Unsupported protocol version: ${named}`, {
      supported: [REVISION],
      requested: named,
    })
  }
  if (headerVersion === undefined) return missingHeader('MCP-Protocol-Version', REVISION)
  if (meta === undefined) return badMeta('_meta', 'missing')
  if (version === undefined) return badMeta(META_PROTOCOL_VERSION, 'missing')
  if (typeof version !== 'string') return badMeta(META_PROTOCOL_VERSION, 'expected a string')
  const capabilities = meta[META_CLIENT_CAPABILITIES]
  if (capabilities === undefined) return badMeta(META_CLIENT_CAPABILITIES, 'missing')
  if (!isObject(capabilities)) return badMeta(META_CLIENT_CAPABILITIES, 'expected an object')

  const method = headers.get('mcp-method')?.trim()
  if (method === undefined) return missingHeader('Mcp-Method', request.method)
  if (method !== request.method) return mismatch('Mcp-Method', method, request.method)

  if (nameParam !== undefined) {
    const name = params[nameParam]
    const header = headers.get('mcp-name')
    if (header === null) return missingHeader('Mcp-Name', `params.${nameParam}`)
    const decoded = decodeHeaderValue(header.trim())
    if (decoded === undefined) {
      return refuse(HEADER_MISMATCH, 'Header mismatch: Mcp-Name is not valid Base64 of UTF-8.')
    }
    if (typeof name === 'string' && decoded !== name) return mismatch('Mcp-Name', decoded, name)
  }
  return ok({ ...request, params, capabilities })
}

function badMeta(key: string, problem: string) {
  return refuse(INVALID_PARAMS, `Invalid params: _meta for revision ${REVISION}: ${key}: ${problem}`, {
    envelope: { key, problem },
  })
}

function missingHeader(header: string, expected: string) {
  return refuse(HEADER_MISMATCH, `Header mismatch: ${header} is missing; it must equal ${expected}.`, {
    mismatch: { header, body: expected },
  })
}

function mismatch(header: string, value: string, expected: string) {
  return refuse(
    HEADER_MISMATCH,
    `Header mismatch: ${header} is "${value}" but the body says "${expected}".`,
    {
      mismatch: { header: value, body: expected },
    },
  )
}

const SENTINEL = /^=\?base64\?((?:[A-Za-z0-9+/]{4})*(?:[A-Za-z0-9+/]{2}==|[A-Za-z0-9+/]{3}=)?)\?=$/

/**
 * A header value as it was meant: plain, or in the Base64 form that values outside printable
 * ASCII travel in. `undefined` when that form is damaged.
 */
export function decodeHeaderValue(value: string): string | undefined {
  if (!(value.startsWith('=?base64?') && value.endsWith('?='))) return value
  const encoded = SENTINEL.exec(value)?.[1]
  if (encoded === undefined) return undefined
  try {
    const bytes = Uint8Array.from(atob(encoded), (char) => char.charCodeAt(0))
    return new TextDecoder('utf-8', { fatal: true, ignoreBOM: true }).decode(bytes)
  } catch {
    return undefined
  }
}

/** Whether the client declared the Tasks extension with this request. */
export function declaresTasks(capabilities: ClientCapabilities): boolean {
  const extensions = capabilities['extensions']
  return isObject(extensions) && isObject(extensions[TASKS_EXTENSION])
}

/** `-32021`, naming what the client must declare. */
export function missingCapability(requiredCapabilities: Json, what: string) {
  return refuse(MISSING_CLIENT_CAPABILITY, `Missing required client capability: ${what}`, {
    requiredCapabilities,
  })
}

/** `-32021` for the extension itself. */
export function tasksRequired() {
  return missingCapability({ extensions: { [TASKS_EXTENSION]: {} } }, TASKS_EXTENSION)
}

/** Server identity, which every result of this revision carries in `_meta`. */
export interface ServerInfo {
  readonly name: string
  readonly version: string
  readonly title?: string
}

/**
 * Encodes results of this revision. A snapshot arrives as the JSON text of a detailed task
 * and is spliced into the envelope without being parsed: polling is the hot path.
 */
export class ModernCodec {
  readonly #meta: Record<string, ServerInfo>
  readonly #metaText: string

  constructor(server?: ServerInfo) {
    this.#meta = server ? { [META_SERVER_INFO]: server } : {}
    this.#metaText = server ? `,"_meta":${JSON.stringify(this.#meta)}` : ''
  }

  /** `CreateTaskResult`: flat, marked `task`; what is asked or came out is for `tasks/get` to say. */
  created(snapshot: string): string {
    if (statusOf(snapshot) !== 'working') snapshot = withoutDetails(snapshot)
    return `{"resultType":"task"${this.#metaText},${snapshot.slice(1)}`
  }

  /** The answer to `tasks/get`. */
  detailed(snapshot: string): string {
    return `{"resultType":"complete"${this.#metaText},${snapshot.slice(1)}`
  }

  /** The empty acknowledgement of `tasks/update` and `tasks/cancel`. */
  acknowledgement(): string {
    return `{"resultType":"complete"${this.#metaText}}`
  }

  /** Any other result; `complete` unless it says otherwise. */
  result(result: Record<string, unknown>): string {
    const meta = isObject(result['_meta']) ? result['_meta'] : {}
    return JSON.stringify({
      resultType: 'complete',
      ...result,
      _meta: { ...meta, ...this.#meta },
    })
  }
}

/** A retried call may find its task further on. */
function withoutDetails(snapshot: string): string {
  // `snapshotText` wrote it.
  const task = JSON.parse(snapshot) as TaskSnapshot
  const { taskId, status, statusMessage, createdAt, lastUpdatedAt, ttlMs, pollIntervalMs } = task
  return JSON.stringify({ taskId, status, statusMessage, createdAt, lastUpdatedAt, ttlMs, pollIntervalMs })
}

/** Unknown, foreign, malformed and expired ids all get this: an id must not tell whether it exists. */
export const UNKNOWN_TASK = refuse(INVALID_PARAMS, 'Task not found.').error

/** The first message of a subscription: what the server agreed to send. */
export function acknowledged(subscriptionId: RequestId, notifications: Record<string, unknown>): string {
  return JSON.stringify({
    jsonrpc: '2.0',
    method: 'notifications/subscriptions/acknowledged',
    params: { notifications, _meta: { [META_SUBSCRIPTION_ID]: subscriptionId } },
  })
}

/** `notifications/tasks`: the complete detailed task, as `tasks/get` would answer, without `resultType`. */
export function taskNotification(subscriptionId: RequestId, snapshot: string): string {
  const meta = JSON.stringify({ [META_SUBSCRIPTION_ID]: subscriptionId })
  return `{"jsonrpc":"2.0","method":"notifications/tasks","params":{"_meta":${meta},${snapshot.slice(1)}}`
}
