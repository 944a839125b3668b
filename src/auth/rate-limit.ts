/**
 * The platform's rate limiter, against abuse: it counts per location and approximately, so it is no quota.
 * Callers who are known are counted by tenant, others by address, so that guessing keys is slow.
 */
import type { OverLimit } from '../mcp/over-limit'

/** The limiter does not say how long is left of its period; the longest one is a minute. */
const RETRY_AFTER_MS = 60_000

export async function overRate(
  limiter: RateLimit | undefined,
  request: Request,
  tenant: string | undefined,
): Promise<OverLimit | undefined> {
  if (!limiter) return undefined
  const key =
    tenant === undefined ? `ip:${request.headers.get('cf-connecting-ip') ?? ''}` : `tenant:${tenant}`
  const { success } = await limiter.limit({ key })
  if (success) return undefined
  return { limit: 'requests', message: 'Too many requests. Wait a minute.', retryAfterMs: RETRY_AFTER_MS }
}
