/** The ids of a tenant's live tasks, then of each new one, from the tenant's own object. */
import { backoffMs } from '../retry'
import { Inbox } from './inbox'

const RECONNECT = { delayMs: 200, maxDelayMs: 5_000 }

/** Each id once. Connects again when the object restarts; ends when `signal` aborts. */
export async function* followTenant(
  env: Cloudflare.Env,
  tenant: string,
  signal: AbortSignal,
): AsyncGenerator<string, void, undefined> {
  const seen = new Set<string>()
  for (let attempt = 0; !signal.aborted; attempt++) {
    if (attempt > 0) {
      await scheduler.wait(50 + backoffMs(RECONNECT, attempt), { signal }).catch(() => undefined)
    }
    const socket = await connect(env, tenant).catch(() => null)
    if (!socket) continue
    const inbox = new Inbox(socket, signal, 'all')
    try {
      for (let news = await inbox.next(); news.kind === 'message'; news = await inbox.next()) {
        attempt = 0
        if (seen.has(news.text)) continue
        seen.add(news.text)
        yield news.text
      }
    } finally {
      inbox.close()
    }
  }
}

async function connect(env: Cloudflare.Env, tenant: string): Promise<WebSocket | null> {
  const response = await env.TENANTS.getByName(tenant).fetch('https://tenant/feed', {
    headers: { upgrade: 'websocket' },
  })
  return response.webSocket
}
