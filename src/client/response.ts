/**
 * Reads an HTTP response as the answer to one JSON-RPC request: its result, or a typed error that
 * says whether asking again may help. Nothing about it is believed unseen.
 */
import { isObject, type Json, type JsonObject } from '../json.ts'
import type { Clock } from './clock.ts'
import {
  fromRpcError,
  HttpError,
  InvalidResponseError,
  TasksError,
  UnauthorizedError,
  UnreachableError,
} from './errors.ts'
import { readEvents } from './sse.ts'
import type { RpcError } from './wire.ts'

const ERROR_BODY_BYTES = 64 * 1024

/** @throws TasksError */
export async function readResponse(
  response: Response,
  id: number,
  maxBytes: number,
  clock: Clock,
): Promise<JsonObject> {
  if (!response.ok) throw await readRefusal(response, clock)
  const type = mediaType(response)
  try {
    if (type === 'application/json') return readMessage(parse(await readText(response, maxBytes)), id)
    if (type === 'text/event-stream' && response.body) {
      for await (const item of readEvents(response.body, maxBytes)) {
        const message = item.kind === 'event' ? parse(item.data) : undefined
        if (isObject(message) && !('method' in message)) return readMessage(message, id)
      }
      throw new UnreachableError('The stream ended before the answer.')
    }
  } catch (error) {
    if (error instanceof TasksError) throw error
    throw new UnreachableError(`The connection broke during the answer: ${explain(error)}`, error)
  }
  response.body?.cancel().catch(() => {})
  const problem = `The server answered with the content type ${type || '(none)'}, not with JSON.`
  throw new InvalidResponseError(problem, { transient: true })
}

/** What a status that is no success means. */
async function readRefusal(response: Response, clock: Clock): Promise<TasksError> {
  const { status } = response
  const retryAfterMs = readRetryAfter(response, clock)
  const text = await readText(response, ERROR_BODY_BYTES).catch(() => '')
  const error = readError(parse(text))
  if (error) return fromRpcError(error, status, retryAfterMs)
  if (status === 401 || status === 403) {
    return new UnauthorizedError(status, `The server refused the credentials (HTTP ${status}).`)
  }
  return new HttpError(status, `The server answered with HTTP status ${status}.`, retryAfterMs)
}

/** `Retry-After`, in seconds or as a date (RFC 9110, 10.2.3). */
function readRetryAfter(response: Response, clock: Clock): number | undefined {
  const value = response.headers.get('retry-after')?.trim()
  if (value === undefined || value === '') return undefined
  const ms = /^\d+$/.test(value) ? Number(value) * 1_000 : Date.parse(value) - clock.date()
  return Number.isFinite(ms) ? Math.max(0, ms) : undefined
}

function readMessage(message: unknown, id: number): JsonObject {
  const error = readError(message)
  if (error) throw fromRpcError(error, 200, undefined)
  if (!isObject(message) || message['id'] !== id || !isObject(message['result'])) {
    throw new InvalidResponseError('The server did not answer with a JSON-RPC response to the request.', {
      transient: true,
    })
  }
  // Parsed from JSON.
  return message['result'] as JsonObject
}

function readError(message: unknown): RpcError | undefined {
  const error = isObject(message) ? message['error'] : undefined
  if (!isObject(error) || typeof error['code'] !== 'number') return undefined
  // Parsed from JSON.
  const data = error['data'] as Json | undefined
  return {
    code: error['code'],
    message: typeof error['message'] === 'string' ? error['message'] : 'The server gave no reason.',
    ...(data !== undefined && { data }),
  }
}

export function mediaType(response: Response): string {
  return (response.headers.get('content-type') ?? '').split(';', 1)[0]?.trim().toLowerCase() ?? ''
}

/** JSON, or `undefined` for what is none. */
export function parse(text: string): unknown {
  try {
    return JSON.parse(text)
  } catch {
    return undefined
  }
}

async function readText(response: Response, maxBytes: number): Promise<string> {
  if (!response.body) return ''
  const decoder = new TextDecoder()
  const reader = response.body.getReader()
  let text = ''
  let bytes = 0
  for (;;) {
    const { done, value } = await reader.read()
    if (done) return text + decoder.decode()
    bytes += value.byteLength
    if (bytes > maxBytes) {
      reader.cancel().catch(() => {})
      throw new InvalidResponseError(`The server's answer is larger than ${maxBytes} bytes.`)
    }
    text += decoder.decode(value, { stream: true })
  }
}

/** Why a network call failed; its own message often says no more than that it did. */
export function explain(error: unknown): string {
  if (!(error instanceof Error)) return String(error)
  return error.cause instanceof Error && error.cause.message ? error.cause.message : error.message
}
