/**
 * Callbacks: signed, single-purpose, expiring addresses at which an outside system delivers an event
 * to a waiting task. Whoever has the address may deliver that one event, and nothing else.
 */
import { seal, unseal } from '../auth/seal'
import type { SigningKeys } from '../auth/keys'
import type { Services } from '../mcp/services'
import { parseMessage } from '../protocol/jsonrpc'
import { callTask } from '../run/stub'
import type { Json } from '../json'

export async function callbackUrl(
  keys: SigningKeys,
  baseUrl: string,
  taskId: string,
  event: string,
  expiresAt: number,
): Promise<string> {
  return `${baseUrl}/callbacks/${taskId}/${await seal(keys, 'callback', [taskId], { event }, expiresAt)}`
}

/** 204 when delivered (also the second time), else a JSON sentence that says why not. */
export async function answerCallback(
  taskId: string,
  token: string,
  body: string,
  services: Services,
): Promise<Response> {
  const opened = await unseal(services.keys, 'callback', [taskId], token)
  if (typeof opened?.['event'] !== 'string')
    return sentence(404, 'This callback address is not valid, or no longer.')
  const parsed = parseMessage(body === '' ? '{}' : body)
  if (!parsed.ok) return sentence(400, parsed.error.message)
  const event = opened['event']
  // It came out of JSON.parse.
  const payload = parsed.value as Json
  const delivery = await callTask(services.stubs, taskId, (task) => task.deliver(event, payload))
  if (delivery.ok) return new Response(null, { status: 204 })
  switch (delivery.reason) {
    case 'unknown':
      return sentence(404, 'This callback address is not valid, or no longer.')
    case 'ended':
      return sentence(410, 'Too late: the task has ended.')
    case 'late':
      return sentence(410, 'Too late: the task no longer waits for this event.')
    case 'invalid':
      return sentence(422, `The payload does not fit: ${delivery.problem}`)
  }
}

function sentence(status: number, error: string): Response {
  return Response.json({ error }, { status })
}
