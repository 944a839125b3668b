/**
 * Refusals for want of identity or scope, as HTTP wants them: status and challenge, with a JSON-RPC
 * error as the body.
 *
 * @see MCP 2026-07-28, Authorization, Error Handling
 */
import { challengeHeader } from '../auth/challenge'
import type { AuthenticationRefusal } from '../auth/principal'
import { errorResponse, INTERNAL_ERROR, INVALID_REQUEST, type RequestId } from '../protocol/jsonrpc'
import type { Services } from './services'

/** Nobody known is calling, or it cannot be told now. */
export function refuseCaller(request: Request, refusal: AuthenticationRefusal, services: Services): Response {
  const { status, message, error, retryAfterSeconds } = refusal
  const challenge = challengeHeader({
    ...(error && { error, description: message }),
    // The message has not been read, so this is what any client needs to begin with.
    scopes: services.scopes,
    metadataUrl: services.resourceOf(request)?.metadataUrl,
    realm: services.server.name,
  })
  return errorResponse(
    undefined,
    { code: status === 503 ? INTERNAL_ERROR : INVALID_REQUEST, message },
    status,
    {
      ...(status === 401 && { 'www-authenticate': challenge }),
      ...(retryAfterSeconds !== undefined && { 'retry-after': String(retryAfterSeconds) }),
    },
  )
}

/** The caller is known, and may not do this: it can ask its user for more (step-up). */
export function refuseScopes(
  request: Request,
  id: RequestId | undefined,
  needed: readonly string[],
  services: Services,
): Response {
  const message = `This needs the ${needed.length === 1 ? 'scope' : 'scopes'} ${needed.join(' ')}.`
  const challenge = challengeHeader({
    error: 'insufficient_scope',
    description: message,
    scopes: needed,
    metadataUrl: services.resourceOf(request)?.metadataUrl,
    realm: services.server.name,
  })
  return errorResponse(id, { code: INVALID_REQUEST, message, data: { requiredScopes: needed } }, 403, {
    'www-authenticate': challenge,
  })
}
