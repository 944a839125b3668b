/**
 * A place among a tenant's open event streams: a socket to the tenant's object that lives as long as the
 * stream. It hibernates there, and when the Worker dies it closes, so that the count cannot drift.
 */
import type { OverLimit } from '../mcp/over-limit'

export type Place = { readonly ok: true; leave(): void } | { readonly ok: false; readonly over: OverLimit }

const RETRY_AFTER_MS = 5_000

export async function takePlace(
  tenants: DurableObjectNamespace,
  tenant: string,
  max: number,
): Promise<Place> {
  const response = await tenants.getByName(tenant).fetch(`https://tenant/subscription?max=${max}`, {
    headers: { upgrade: 'websocket' },
  })
  const { webSocket } = response
  if (!webSocket) {
    const message = `Too many subscriptions: ${max} streams are open. Close one, or poll.`
    return { ok: false, over: { limit: 'subscriptions', message, retryAfterMs: RETRY_AFTER_MS } }
  }
  webSocket.accept()
  return { ok: true, leave: () => webSocket.close(1000) }
}
