/**
 * The `requestState` of multi-round-trip requests that the SDK serves (SEP-2322): sealed when a
 * handler asks, checked before a handler sees it again. Task tools seal their own, in `call.ts`.
 */
import type { ServerContext } from '@modelcontextprotocol/server'
import type { SigningKeys } from '../auth/keys'
import { seal, unseal } from '../auth/seal'
import type { Json, JsonObject } from '../json'
import { decodeHeaderValue } from '../protocol/modern'

/** A round is answered within this time, or the request starts again. */
export const REQUEST_STATE_TTL_MS = 15 * 60_000

/**
 * Makes the `requestState` of an `input_required` result. It is good for 15 minutes, for this caller and
 * this tool, prompt or resource only; anything else is answered with `-32602` before the handler
 * runs. The handler reads it with `context.mcpReq.requestState()`. Signed, not encrypted.
 *
 * @example
 * return inputRequired({ inputRequests, requestState: await sealState(context, { name }) })
 */
export type SealState = (context: ServerContext, state: JsonObject) => Promise<string>

/** Both halves, for the requests of one tenant. */
export function requestStateOf(keys: SigningKeys, tenant: string) {
  const sealState: SealState = (context, state) =>
    seal(keys, 'request-state', audience(tenant, context), { state }, Date.now() + REQUEST_STATE_TTL_MS)

  const verify = async (token: string, context: ServerContext): Promise<Json> => {
    const opened = await unseal(keys, 'request-state', audience(tenant, context), token)
    if (opened?.['state'] === undefined) throw new Error('damaged, expired, or of another request')
    return opened['state']
  }
  return { sealState, verify }
}

/** The name is what `Mcp-Name` says, which the SDK has compared with the body; the context has no other. */
function audience(tenant: string, { mcpReq, http }: ServerContext): string[] {
  const name = http?.req?.headers.get('mcp-name')?.trim() ?? ''
  return [tenant, mcpReq.method, decodeHeaderValue(name) ?? name]
}
