/**
 * The floors: the least that any server has to do for the same request. Authenticate the caller, read
 * and parse the body, check or make the signed id, call one object, answer; each with the functions that
 * the real routes use. No rule of the protocol is checked and nothing is kept.
 */
import { DurableObject } from 'cloudflare:workers'
import { Hono } from 'hono'
import { readBody } from '../src/auth/door'
import type { Services } from '../src/mcp/services'
import { parseMessage, resultText } from '../src/protocol/jsonrpc'
import type { BenchEnv } from './env'

/** About as long as the snapshot of a small task. */
const CONSTANT = JSON.stringify({
  resultType: 'complete',
  taskId: 'tsk_01K0000000000000000000000010000000000000000',
  status: 'working',
  createdAt: '2026-11-17T00:00:00.000Z',
  lastUpdatedAt: '2026-11-17T00:00:00.000Z',
  ttlMs: 86_400_000,
  pollIntervalMs: 1_000,
  _meta: { 'io.modelcontextprotocol/serverInfo': { name: 'bench', version: '1.0.0' } },
})

export class FloorObject extends DurableObject {
  async constant(): Promise<string> {
    return CONSTANT
  }

  /** One write; the answer leaves when it is on disk. */
  async write(text: string): Promise<string> {
    this.ctx.storage.kv.put('task', text)
    return CONSTANT
  }
}

interface Body {
  readonly id: number
  readonly params: { readonly taskId: string }
}

export function createFloor(servicesFor: (env: BenchEnv) => Services): Hono<{ Bindings: BenchEnv }> {
  const app = new Hono<{ Bindings: BenchEnv }>()

  app.post('/floor/get', async ({ env, req }) => {
    const services = servicesFor(env)
    const { tenant, body } = await received(req.raw, services)
    const { taskId } = body.params
    if (!(await services.ids.accept(tenant, taskId))) return new Response(null, { status: 404 })
    return resultText(body.id, await env.FLOOR.getByName(taskId).constant())
  })

  app.post('/floor/create', async ({ env, req }) => {
    const services = servicesFor(env)
    const { tenant, body } = await received(req.raw, services)
    const taskId = await services.ids.mint(tenant)
    return resultText(body.id, await env.FLOOR.getByName(taskId).write(JSON.stringify(body.params)))
  })

  return app
}

async function received(request: Request, { authenticate, limits }: Services) {
  const caller = await authenticate(request)
  const text = await readBody(request, limits.maxRequestBytes)
  const parsed = typeof text === 'string' ? parseMessage(text) : undefined
  if (!caller.ok || !parsed?.ok) throw new Error('The bench sent a bad request.')
  // The bench's own client sends nothing else.
  return { tenant: caller.principal.tenant, body: parsed.value as unknown as Body }
}
