/** The Worker under measurement: the real system on `/mcp`, and beside it what it is measured against. */
import { createLonghaul } from '../src/index'
import { createServices, type Services } from '../src/mcp/services'
import { constructions } from './counted'
import type { BenchEnv } from './env'
import { createFloor } from './floor'
import { answerBySdk, createSdkOnly } from './sdk-only'
import { tools } from './tools'

export { TaskObject, TenantObject } from '../src/index'
export { CountedTaskObject, CountedTenantObject } from './counted'
export { FloorObject } from './floor'

const server = { name: 'bench', version: '1.0.0' }
/** One tenant does everything here. */
const limits = { liveTasks: 1_000_000, creationsPerMinute: 1_000_000, subscriptions: 1_000 }
const longhaul = createLonghaul({ ...server, tools, limits })

let services: Services | undefined
const servicesFor = (env: BenchEnv): Services => (services ??= createServices(env, server, tools, {}))

const beside = createFloor(servicesFor)
let sdk: ReturnType<typeof createSdkOnly> | undefined
beside.post('/sdk', ({ env, req }) =>
  answerBySdk(req.raw, servicesFor(env), (sdk ??= createSdkOnly(servicesFor(env)))),
)
beside.get('/constructions', ({ json }) => json(constructions()))
beside.get('/bill/task/:taskId', async ({ env, req, json }) =>
  json(await env.COUNTED_TASKS.getByName(req.param('taskId')).bill()),
)
beside.get('/bill/tenant/:tenant', async ({ env, req, json }) =>
  json(await env.COUNTED_TENANTS.getByName(req.param('tenant')).bill()),
)

export default {
  fetch: async (request: Request, env: BenchEnv, ctx: ExecutionContext) =>
    new URL(request.url).pathname.startsWith('/mcp')
      ? longhaul.fetch(request, env, ctx)
      : beside.fetch(request, env, ctx),
  queue: async (batch: MessageBatch, env: BenchEnv, ctx: ExecutionContext) => longhaul.queue(batch, env, ctx),
}
