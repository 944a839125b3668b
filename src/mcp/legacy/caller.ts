/** Who speaks a 2025 revision: which one, what may be asked of it, and how its requests belong together. */
import { readSession } from '../../auth/session'
import { errorResponse, INVALID_REQUEST } from '../../protocol/jsonrpc'
import { isLegacyRevision, LEGACY_REVISIONS, type LegacyRevision } from '../../protocol/legacy'
import type { ClientCapabilities } from '../../protocol/modern'
import type { Exchange } from '../incoming'

export const SESSION_HEADER = 'mcp-session-id'

export interface Caller {
  readonly revision: LegacyRevision
  /** As declared at `initialize`. None without a session: then nothing is asked. */
  readonly capabilities: ClientCapabilities
  /** The session, or the empty text. */
  readonly client: string
}

/** A caller that names no revision at all: nothing is expected of it. */
export const UNVERSIONED: Caller = { revision: '2025-06-18', capabilities: {}, client: '' }

/** The caller, or the HTTP refusal that the transport has for it. */
export async function callerOf({ request, principal, services }: Exchange): Promise<Caller | Response> {
  const version = request.headers.get('mcp-protocol-version')?.trim()
  if (version !== undefined && !isLegacyRevision(version)) {
    const supported = LEGACY_REVISIONS.join(', ')
    return refused(400, `Unsupported protocol version: ${version} (supported here: ${supported}).`)
  }
  const token = request.headers.get(SESSION_HEADER)
  if (token === null) return { revision: version ?? '2025-11-25', capabilities: {}, client: '' }
  const session = await readSession(services.keys, principal.tenant, token)
  if (!session) return refused(404, 'The session is not known here, or no longer: initialize again.')
  return { revision: session.revision, capabilities: session.capabilities, client: session.id }
}

function refused(status: 400 | 404, message: string): Response {
  return errorResponse(undefined, { code: INVALID_REQUEST, message }, status)
}
