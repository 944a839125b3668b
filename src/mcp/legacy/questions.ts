/**
 * Questions to clients of 2025 revisions are server requests on a stream; their answers come back as
 * JSON-RPC responses in requests of their own. The id of a question is a signed token that names task
 * and key, so that an answer finds its task wherever it arrives.
 */
import type { SigningKeys } from '../../auth/keys'
import { seal, unseal } from '../../auth/seal'
import { isObject, type JsonObject } from '../../json'
import { callTask } from '../../run/stub'
import type { Exchange } from '../incoming'

/** A fresh id each time a question goes out. */
export function questionId(
  keys: SigningKeys,
  tenant: string,
  taskId: string,
  key: string,
  expiresAt: number,
): Promise<string> {
  return seal(keys, 'question', [tenant], { taskId, key, nonce: crypto.randomUUID() }, expiresAt)
}

/** Whether a message is a JSON-RPC response. */
export function isResponse(body: Record<string, unknown>): boolean {
  return body['method'] === undefined && ('result' in body || 'error' in body)
}

/**
 * Takes an answer; HTTP 202. The first one counts, later ones are dropped like answers to what was
 * withdrawn. An error (`-32601`: the client has no handler) counts as a cancelled question.
 * @returns `undefined` when it answers no question of ours.
 */
export async function takeAnswer(
  body: Record<string, unknown>,
  { principal, services }: Exchange,
): Promise<Response | undefined> {
  const { id, result } = body
  const asked =
    typeof id === 'string'
      ? await unseal(services.keys, 'question', [principal.tenant], id).catch(() => undefined)
      : undefined
  const { taskId, key } = asked ?? {}
  if (typeof taskId !== 'string' || typeof key !== 'string') return undefined
  await callTask(services.stubs, taskId, (task) =>
    isObject(result)
      ? // It came out of JSON.parse.
        task.update(principal.tenant, { [key]: answerOf(result) as JsonObject })
      : task.giveUp(principal.tenant, key),
  )
  return new Response(null, { status: 202 })
}

/** Without the `_meta` that relates it to its task. */
function answerOf(result: Record<string, unknown>): Record<string, unknown> {
  const { _meta, ...answer } = result
  return answer
}
