/** Puts the parts together: tools and options in, a Worker out. */
import { createApp, type Serving } from './app'
import { type Configure, createCore } from './mcp/core'
import { createServices, type Limits } from './mcp/services'
import { answerUrl } from './outside/answer-link'
import { callbackUrl } from './outside/callback'
import { consume } from './run/consumer'
import type { RunDeps } from './run/run'
import type { Tool } from './tool'

export interface LonghaulOptions {
  /** How this server introduces itself to clients. */
  readonly name: string
  readonly version: string
  readonly title?: string
  readonly tools: readonly Tool[]
  /** Adds prompts, resources or further tools with the SDK's own API; called for every request. */
  readonly configure?: Configure
  readonly limits?: Limits
}

/** A module Worker: `export default createLonghaul({ … })`, beside `export { TaskObject }`. */
export interface Longhaul {
  fetch(request: Request, env: Cloudflare.Env, ctx: ExecutionContext): Promise<Response>
  queue(batch: MessageBatch, env: Cloudflare.Env, ctx: ExecutionContext): Promise<void>
}

const WORK_SLICE_MS = 1_000
const SLOW_SLICE_MS = 30_000

/**
 * @throws TypeError when two tools have the same name.
 * @example
 * export { TaskObject } from 'longhaul'
 * export default createLonghaul({ name: 'my-tools', version: '1.0.0', tools: [greet] })
 */
export function createLonghaul(options: LonghaulOptions): Longhaul {
  const names = options.tools.map((tool) => tool.name)
  const twice = names.find((name, index) => names.indexOf(name) !== index)
  if (twice !== undefined) throw new TypeError(`Two tools are named ${JSON.stringify(twice)}.`)

  const { name, version, title } = options
  const server = { name, version, ...(title !== undefined && { title }) }
  const perEnv = new WeakMap<object, Serving>()
  const serve = (env: Cloudflare.Env): Serving => {
    const known = perEnv.get(env)
    if (known) return known
    const services = createServices(env, server, options.tools, options.limits ?? {})
    const serving = { services, core: createCore(server, services, options.configure) }
    perEnv.set(env, serving)
    return serving
  }
  const app = createApp(serve)

  return {
    fetch: async (request, env, ctx) => app.fetch(request, env, ctx),
    queue: async (batch, env) => {
      const { services } = serve(env)
      const depsFor = (queue: 'work' | 'slow'): RunDeps => ({
        tools: services.taskTools,
        env,
        stubs: services.stubs,
        observer: services.observer,
        sliceMs:
          queue === 'work'
            ? Number(services.env.TASK_WORK_SLICE_MS ?? WORK_SLICE_MS)
            : Number(services.env.TASK_SLOW_SLICE_MS ?? SLOW_SLICE_MS),
        callbackUrl: ({ baseUrl, taskId, ...task }, event, expiresAt) =>
          callbackUrl(services.keys, baseUrl, taskId, event, Math.min(expiresAt, task.expiresAt)),
        answerUrl: ({ baseUrl, taskId, ...task }, question, expiresAt = Infinity, holder) =>
          answerUrl(services.keys, baseUrl, taskId, {
            question,
            expiresAt: Math.min(expiresAt, task.expiresAt),
            holder,
          }),
      })
      await consume(batch, { depsFor, stubs: services.stubs, observer: services.observer })
    },
  }
}
