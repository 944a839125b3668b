/** HTTP 429: which limit was reached and how long to wait; nothing was done. */
import { errorResponse, INTERNAL_ERROR, type RequestId, type RpcError } from '../protocol/jsonrpc'

export type Limit =
  | 'live_tasks'
  | 'creations_per_minute'
  | 'subscriptions'
  | 'polls'
  /** The platform's rate limiter: requests of any kind. */
  | 'requests'

export interface OverLimit {
  readonly limit: Limit
  readonly message: string
  readonly retryAfterMs: number
}

export function overLimitError({ limit, message, retryAfterMs }: OverLimit): RpcError {
  return { code: INTERNAL_ERROR, message, data: { limit, retryAfterMs } }
}

export function overLimit(id: RequestId | undefined, over: OverLimit): Response {
  const headers = { 'retry-after': String(Math.ceil(over.retryAfterMs / 1_000)) }
  return errorResponse(id, overLimitError(over), 429, headers)
}
