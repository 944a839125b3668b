/** The routes. Nothing but routing: what is behind a route lives elsewhere. */
import type { McpHttpHandler } from '@modelcontextprotocol/server'
import { Hono } from 'hono'
import { corsHeaders, isPreflight, preflightResponse } from './auth/cors'
import { checkContentType, checkOrigin, readBody, type Refusal } from './auth/door'
import { METADATA_PATH } from './auth/resource'
import { overRate } from './auth/rate-limit'
import { answerMessage } from './mcp/endpoint'
import { overLimit } from './mcp/over-limit'
import { answerResume, noStream } from './mcp/legacy/endpoint'
import { refuseCaller } from './mcp/refuse'
import type { Services } from './mcp/services'
import { fault } from './observe/observer'
import { health, inspectTask, refuseStranger, replayTask } from './ops/routes'
import { errorResponse, INTERNAL_ERROR, INVALID_REQUEST } from './protocol/jsonrpc'
import { answerMethods, answerQuestion, showQuestion } from './outside/answer-link'
import { answerCallback, answerProgress, callbackMethods } from './outside/callback'
import { answerSlack } from './outside/slack'
import { answerDoor } from './push/door'

/** What a request is served with; made by `createLonghaul`, once per isolate. */
export interface Serving {
  readonly services: Services
  readonly core: McpHttpHandler
}

type AppEnv = { Bindings: Cloudflare.Env; Variables: { serving: Serving } }

/** @param serve may throw a ConfigurationError, which is answered as such. */
export function createApp(serve: (env: Cloudflare.Env) => Serving): Hono<AppEnv> {
  const app = new Hono<AppEnv>()

  app.use(async (c, next) => {
    let serving: Serving
    try {
      serving = serve(c.env)
    } catch (error) {
      const message = `This server is not configured: ${error instanceof Error ? error.message : String(error)}`
      return errorResponse(undefined, { code: INTERNAL_ERROR, message }, 503)
    }
    const { env, localMode } = serving.services
    const refusal = checkOrigin(c.req.raw, {
      localOnly: localMode,
      allowedHosts: env.ALLOWED_HOSTS,
      allowedOrigins: env.ALLOWED_ORIGINS,
      // What may be done there is in the address: a visitor's browser adds nothing to it.
      nullOrigin: c.req.path.startsWith('/approvals/'),
    })
    if (refusal) return refused(refusal)
    if (isPreflight(c.req.raw)) return preflightResponse(c.req.raw)
    c.set('serving', serving)
    await next()
    // A WebSocket has no CORS, and its response cannot be touched.
    if (c.res.status === 101) return
    const origin = c.req.raw.headers.get('origin')
    // Not from a web page, and no cache keeps the answer to a POST. Hono copies a response to change it.
    if (origin === null && c.req.method === 'POST') return
    const cors = corsHeaders(origin)
    for (const [name, value] of Object.entries(cors)) c.header(name, value)
    c.header('vary', 'Origin', { append: true })
  })

  app.post('/mcp', async (c) => {
    const { services, core } = c.get('serving')
    const request = c.req.raw
    const wrongType = checkContentType(request)
    if (wrongType) return refused(wrongType)
    const caller = await services.authenticate(request)
    const tenant = caller.ok ? caller.principal.tenant : undefined
    const over = await overRate(services.env.RATE_LIMITER, request, tenant)
    if (over) return overLimit(undefined, over)
    if (!caller.ok) return refuseCaller(request, caller, services)
    const body = await readBody(request, services.limits.maxRequestBytes)
    if (typeof body !== 'string') return refused(body)
    const { principal } = caller
    return answerMessage(body, {
      request,
      principal,
      services,
      core,
      waitUntil: (work) => c.executionCtx.waitUntil(work),
    })
  })

  app.post('/callbacks/:taskId/:token', (c) =>
    answerCallback(c.req.raw, c.req.param('taskId'), c.req.param('token'), c.get('serving').services),
  )

  app.post('/callbacks/:taskId/:token/progress', (c) =>
    answerProgress(c.req.raw, c.req.param('taskId'), c.req.param('token'), c.get('serving').services),
  )

  app.all('/callbacks/:taskId/:token', callbackMethods)
  app.all('/callbacks/:taskId/:token/progress', callbackMethods)

  app.get('/healthz', (c) => health(c, c.get('serving').services.server))

  app.use('/ops/*', async (c, next) => (await refuseStranger(c.req.raw, c.env.OPERATOR_KEY)) ?? next())
  app.get('/ops/tasks/:taskId', (c) => inspectTask(c.req.param('taskId'), c.get('serving').services))
  app.post('/ops/tasks/:taskId/replay', (c) => replayTask(c.req.param('taskId'), c.get('serving').services))

  app.get('/approvals/:taskId/:token', (c) =>
    showQuestion(c.req.param('taskId'), c.req.param('token'), c.get('serving').services),
  )

  app.post('/approvals/:taskId/:token', (c) =>
    answerQuestion(c.req.raw, c.req.param('taskId'), c.req.param('token'), c.get('serving').services),
  )

  app.all('/approvals/:taskId/:token', answerMethods)

  app.post('/slack/interactions', (c) =>
    answerSlack(c.req.raw, c.get('serving').services, (work) => c.executionCtx.waitUntil(work)),
  )

  app.get('/mcp/tasks/:taskId', (c) =>
    answerDoor(c.req.raw, c.req.param('taskId'), c.get('serving').services),
  )

  app.get('/mcp', async (c) => {
    const eventId = c.req.header('last-event-id')
    if (eventId === undefined) return noStream()
    const { services, core } = c.get('serving')
    const request = c.req.raw
    const caller = await services.authenticate(request)
    if (!caller.ok) return refuseCaller(request, caller, services)
    return answerResume(eventId, {
      request,
      principal: caller.principal,
      services,
      core,
      waitUntil: (work) => c.executionCtx.waitUntil(work),
    })
  })

  // DELETE too: a session is a signed token, there is nothing to end.
  app.all('/mcp', () => noStream())

  // At the path of the endpoint, and at the root (MCP 2026-07-28, Protected Resource Metadata Discovery).
  app.on('GET', [`${METADATA_PATH}/mcp`, METADATA_PATH], (c) => {
    const resource = c.get('serving').services.resourceOf(c.req.raw)
    if (resource) return Response.json(resource.metadata, { headers: { 'cache-control': 'max-age=300' } })
    return Response.json(
      { error: 'This server takes no access tokens: OIDC_ISSUER is not set.' },
      { status: 404 },
    )
  })

  app.notFound(() => Response.json({ error: 'Not found. The MCP endpoint is POST /mcp.' }, { status: 404 }))

  app.onError((error, c) => {
    // The first segment only: what follows may be a token.
    fault({ event: 'request_failed', path: `/${c.req.path.split('/')[1] ?? ''}` }, error)
    return errorResponse(undefined, { code: INTERNAL_ERROR, message: 'Internal error.' }, 500)
  })

  return app
}

function refused({ status, message }: Refusal): Response {
  return errorResponse(undefined, { code: INVALID_REQUEST, message }, status)
}
