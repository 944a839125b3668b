/**
 * JSON-RPC 2.0 as MCP uses it over HTTP: parsing a request body within limits, error
 * codes, and the responses. Knows neither tasks nor tools.
 */
import { isObject, type Json } from '../json'
import {
  HEADER_MISMATCH,
  INTERNAL_ERROR,
  INVALID_PARAMS,
  INVALID_REQUEST,
  METHOD_NOT_FOUND,
  MISSING_CLIENT_CAPABILITY,
  PARSE_ERROR,
  UNSUPPORTED_PROTOCOL_VERSION,
} from './names'

export {
  HEADER_MISMATCH,
  INTERNAL_ERROR,
  INVALID_PARAMS,
  INVALID_REQUEST,
  METHOD_NOT_FOUND,
  MISSING_CLIENT_CAPABILITY,
  PARSE_ERROR,
  UNSUPPORTED_PROTOCOL_VERSION,
}

export type RequestId = string | number

/** An error as it travels, and as a failed task keeps it. */
export interface RpcError {
  readonly code: number
  readonly message: string
  readonly data?: Json
}

/** One request: a message with a method and an id. */
export interface RpcRequest {
  readonly jsonrpc: '2.0'
  readonly id: RequestId
  readonly method: string
  readonly params?: Record<string, unknown>
}

/** Either a value, or the error to answer with. */
export type Checked<T> =
  | { readonly ok: true; readonly value: T }
  | { readonly ok: false; readonly error: RpcError }

export const ok = <T>(value: T): Checked<T> => ({ ok: true, value })

export const refuse = (code: number, message: string, data?: Json): { ok: false; error: RpcError } => ({
  ok: false,
  error: data === undefined ? { code, message } : { code, message, data },
})

/** Nesting past this is refused: no honest request has it, and recursive code would pay for it. */
export const MAX_DEPTH = 64

/** Parses a request body that may be any JSON, within the limit of depth. */
export function parseJson(text: string): Checked<unknown> {
  if (deeperThan(text, MAX_DEPTH)) {
    return refuse(INVALID_REQUEST, `Invalid request: the body is nested deeper than ${MAX_DEPTH} levels.`)
  }
  try {
    return ok(JSON.parse(text))
  } catch {
    return refuse(PARSE_ERROR, 'Parse error: the body is not valid JSON.')
  }
}

/**
 * Parses a request body: one JSON object. Batches are not part of MCP since 2025-06-18.
 */
export function parseMessage(text: string): Checked<Record<string, unknown>> {
  const parsed = parseJson(text)
  if (!parsed.ok) return parsed
  const body = parsed.value
  if (Array.isArray(body)) {
    return refuse(
      INVALID_REQUEST,
      'Invalid request: batches are not supported; send one message per request.',
    )
  }
  if (!isObject(body)) {
    return refuse(INVALID_REQUEST, 'Invalid request: the body must be a JSON-RPC object.')
  }
  return ok(body)
}

/** Counts brackets outside strings; cheaper than finding out by recursion. */
function deeperThan(text: string, limit: number): boolean {
  if (text.length <= limit) return false
  let depth = 0
  let inString = false
  for (let i = 0; i < text.length; i++) {
    const unit = text.charCodeAt(i)
    if (inString) {
      if (unit === BACKSLASH) i++
      else if (unit === QUOTE) inString = false
    } else if (unit === QUOTE) {
      inString = true
    } else if (unit === OPEN_BRACE || unit === OPEN_BRACKET) {
      if (++depth > limit) return true
    } else if (unit === CLOSE_BRACE || unit === CLOSE_BRACKET) {
      depth--
    }
  }
  return false
}

const QUOTE = 0x22
const BACKSLASH = 0x5c
const OPEN_BRACKET = 0x5b
const CLOSE_BRACKET = 0x5d
const OPEN_BRACE = 0x7b
const CLOSE_BRACE = 0x7d

/** The id when it can be echoed, that is, when the message is a request with a readable one. */
export function readableId(body: Record<string, unknown>): RequestId | undefined {
  return isRequestId(body['id']) ? body['id'] : undefined
}

function isRequestId(id: unknown): id is RequestId {
  return typeof id === 'string' || (typeof id === 'number' && Number.isFinite(id))
}

/** Checks the shape of a request. The caller has seen that it has a method and an id. */
export function asRequest(body: Record<string, unknown>): Checked<RpcRequest> {
  if (body['jsonrpc'] !== '2.0') return refuse(INVALID_REQUEST, 'Invalid request: "jsonrpc" must be "2.0".')
  if (!isRequestId(body['id']))
    return refuse(INVALID_REQUEST, 'Invalid request: "id" must be a string or a number.')
  if (typeof body['method'] !== 'string')
    return refuse(INVALID_REQUEST, 'Invalid request: "method" must be a string.')
  const params = body['params']
  if (params !== undefined && !isObject(params)) {
    return refuse(INVALID_PARAMS, 'Invalid params: "params" must be an object.')
  }
  return ok({
    jsonrpc: '2.0',
    id: body['id'],
    method: body['method'],
    ...(params !== undefined && { params }),
  })
}

/**
 * HTTP status of an error, by its code (MCP 2026-07-28, Streamable HTTP): the request's own
 * faults are 400, an unknown method is 404, anything else travels on 200.
 */
export function httpStatus(code: number): number {
  switch (code) {
    case PARSE_ERROR:
    case INVALID_REQUEST:
    case HEADER_MISMATCH:
    case MISSING_CLIENT_CAPABILITY:
    case UNSUPPORTED_PROTOCOL_VERSION:
      return 400
    case METHOD_NOT_FOUND:
      return 404
    default:
      return 200
  }
}

const JSON_HEADERS = { 'content-type': 'application/json' }

/** The message with a result that is already JSON text: polling answers are spliced, not rebuilt. */
export function resultMessage(id: RequestId, resultJson: string): string {
  return `{"jsonrpc":"2.0","id":${JSON.stringify(id)},"result":${resultJson}}`
}

/** {@link resultMessage} as an HTTP response. */
export function resultText(id: RequestId, resultJson: string): Response {
  return new Response(resultMessage(id, resultJson), { headers: JSON_HEADERS })
}

/** An error response. Without a readable request id the member is left out. */
export function errorResponse(
  id: RequestId | undefined,
  error: RpcError,
  status = httpStatus(error.code),
  headers: Record<string, string> = {},
): Response {
  return Response.json(id === undefined ? { jsonrpc: '2.0', error } : { jsonrpc: '2.0', id, error }, {
    status,
    headers,
  })
}
