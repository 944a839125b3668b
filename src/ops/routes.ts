/**
 * What operators ask of a task, behind a key of their own (`OPERATOR_KEY`): what went wrong and how far it
 * had come, and starting a new task where a dead one stopped. Arguments, results and answers are not shown.
 */
import type { Context } from 'hono'
import { challengeHeader } from '../auth/challenge'
import { bearerOf } from '../auth/principal'
import type { Services } from '../mcp/services'
import { callTask } from '../run/stub'

const MIN_KEY_CHARS = 16

/** `undefined` when the caller is the operator. Without a key there is no such endpoint. */
export async function refuseStranger(
  request: Request,
  key: string | undefined,
): Promise<Response | undefined> {
  if (key === undefined || key.length < MIN_KEY_CHARS) {
    const error = `Not available: set the secret OPERATOR_KEY (at least ${MIN_KEY_CHARS} characters).`
    return Response.json({ error }, { status: 404 })
  }
  const [a, b] = await Promise.all([sha256(bearerOf(request) ?? ''), sha256(key)])
  if (crypto.subtle.timingSafeEqual(a, b)) return undefined
  const headers = { 'www-authenticate': challengeHeader({ realm: 'operators' }) }
  return Response.json(
    { error: 'Send the operator key as "Authorization: Bearer <key>".' },
    { status: 401, headers },
  )
}

export async function inspectTask(taskId: string, { stubs, ids }: Services): Promise<Response> {
  const inspection = ids.isWellFormed(taskId) ? await callTask(stubs, taskId, (task) => task.inspect()) : null
  return inspection ? Response.json(inspection) : notFound()
}

/** Starts a new task from the dead one's arguments and journal, for the same owner. */
export async function replayTask(taskId: string, services: Services): Promise<Response> {
  const { stubs, ids } = services
  if (!ids.isWellFormed(taskId)) return notFound()
  const replay = await callTask(stubs, taskId, (task) => task.replay())
  if (!replay.ok) {
    if (replay.reason === 'unknown') return notFound()
    const state = replay.reason === 'alive' ? 'has not ended' : 'completed'
    return Response.json({ error: `Nothing to replay: the task ${state}.` }, { status: 409 })
  }
  const { command } = replay
  const { tenant } = command.principal
  const newId = await ids.mint(tenant)
  // The operator's decision stands above the tenant's quota; the task counts like any other.
  const expiresAt = Date.now() + command.policy.ttlMs
  await services.tenant(tenant).confirm(newId, expiresAt)
  await callTask(stubs, newId, (task) => task.create({ ...command, taskId: newId }))
  return Response.json({ taskId: newId, replayOf: taskId }, { status: 201 })
}

/** Versions and bindings, and nothing else. */
export function health(c: Context, server: { readonly name: string; readonly version: string }): Response {
  const bindings = ['TASKS', 'TENANTS', 'WORK_QUEUE', 'SLOW_QUEUE', 'RESULTS', 'METRICS'] as const
  const env = c.env as Record<string, unknown>
  return Response.json({
    status: 'ok',
    server,
    protocol: ['2026-07-28', '2025-11-25', '2025-06-18'],
    bindings: Object.fromEntries(bindings.map((name) => [name, env[name] !== undefined])),
  })
}

function notFound(): Response {
  return Response.json({ error: 'Task not found.' }, { status: 404 })
}

function sha256(text: string): Promise<ArrayBuffer> {
  return crypto.subtle.digest('SHA-256', new TextEncoder().encode(text))
}
