/**
 * Callbacks: signed, single-purpose, expiring addresses at which an outside system finishes a wait, or
 * says how it gets on. Whoever has the address may deliver that one event, and nothing else. For the
 * systems on the other side, see `docs/callbacks.md`.
 */
import { z } from 'zod'
import { checkContentType, readBody } from '../auth/door'
import type { SigningKeys } from '../auth/keys'
import { openSealed, seal } from '../auth/seal'
import type { Json } from '../json'
import type { Services } from '../mcp/services'
import { progressText } from '../progress'
import { parseJson } from '../protocol/jsonrpc'
import { callTask } from '../run/stub'
import { describe, MAX_ENTRY_BYTES } from '../task/questions'

/** A job that repeats its call a little later than it should is told what became of the first. */
const GRACE_MS = 3_600_000

const report = z.object({
  message: z.string().min(1).max(500),
  done: z.number().min(0).optional(),
  total: z.number().min(0).optional(),
})

/** `event` can be delivered there until `expiresAt`, milliseconds since the epoch. */
export async function callbackUrl(
  keys: SigningKeys,
  baseUrl: string,
  taskId: string,
  event: string,
  expiresAt: number,
): Promise<string> {
  const token = await seal(keys, 'callback', [taskId], { event }, expiresAt + GRACE_MS)
  return `${baseUrl}/callbacks/${taskId}/${token}`
}

/** 204 when delivered (also the second time), else a JSON sentence that says why not. */
export async function answerCallback(
  request: Request,
  taskId: string,
  token: string,
  services: Services,
): Promise<Response> {
  const called = await read(request, taskId, token, services)
  if (called instanceof Response) return called
  const { event, body } = called
  const delivery = await callTask(services.stubs, taskId, (task) => task.deliver(event, body))
  if (delivery.ok) return new Response(null, { status: 204 })
  return delivery.reason === 'invalid'
    ? sentence(422, `The payload does not fit: ${delivery.problem}`)
    : tooLate(delivery.reason)
}

/** `POST …/progress`: 204 when it was taken, else a JSON sentence that says why not. */
export async function answerProgress(
  request: Request,
  taskId: string,
  token: string,
  services: Services,
): Promise<Response> {
  const called = await read(request, taskId, token, services)
  if (called instanceof Response) return called
  const { event, body } = called
  const checked = report.safeParse(body)
  if (!checked.success) return sentence(422, `The report does not fit: ${describe(checked.error)}`)
  const { message, done, total } = checked.data
  const counted = done !== undefined && total !== undefined
  const note = { message: progressText(counted ? { message, done, total } : message) }
  const reported = await callTask(services.stubs, taskId, (task) => task.report(event, note))
  if (reported.ok) return new Response(null, { status: 204 })
  if (reported.reason === 'busy') {
    const wait = String(Math.ceil(reported.retryAfterMs / 1_000))
    return sentence(429, 'Too many reports: once a second is enough.', { 'retry-after': wait })
  }
  return tooLate(reported.reason)
}

/** Somebody opened the address in a browser, or a link preview did. */
export function callbackMethods(): Response {
  const error =
    'This is the callback address of a task: POST the outcome as JSON to finish its wait, ' +
    'or { "message", "done"?, "total"? } to …/progress. See docs/callbacks.md.'
  return sentence(405, error, { allow: 'POST' })
}

/** The event and what was sent for it, or the refusal. Nothing is read before the address is known to be ours. */
async function read(
  request: Request,
  taskId: string,
  token: string,
  { keys, limits }: Services,
): Promise<{ readonly event: string; readonly body: Json } | Response> {
  const opened = await openSealed(keys, 'callback', [taskId], token)
  if (!opened.ok && opened.reason === 'expired') {
    return sentence(410, 'Too late: this callback address has expired, and the wait with it.')
  }
  const event = opened.ok ? opened.payload['event'] : undefined
  if (typeof event !== 'string') return sentence(404, 'This callback address is not valid.')
  const wrongType = checkContentType(request)
  if (wrongType) return sentence(wrongType.status, wrongType.message)
  const body = await readBody(request, Math.min(MAX_ENTRY_BYTES, limits.maxRequestBytes))
  if (typeof body !== 'string') {
    return sentence(body.status, `${body.message} Send where to find the rest.`)
  }
  const parsed = parseJson(body === '' ? '{}' : body)
  // It came out of JSON.parse.
  return parsed.ok ? { event, body: parsed.value as Json } : sentence(400, parsed.error.message)
}

function tooLate(reason: 'unknown' | 'received' | 'ended' | 'late'): Response {
  switch (reason) {
    case 'unknown':
      return sentence(404, 'There is no such task any more, or it does not wait for this event.')
    case 'received':
      return sentence(410, 'Too late: this event was delivered, so its progress is over.')
    case 'ended':
      return sentence(410, 'Too late: the task has ended.')
    case 'late':
      return sentence(410, 'Too late: the task no longer waits for this event.')
  }
}

function sentence(status: number, error: string, headers: Record<string, string> = {}): Response {
  return Response.json({ error }, { status, headers })
}
