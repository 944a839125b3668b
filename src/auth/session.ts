/**
 * `Mcp-Session-Id` of the 2025 revisions, without sessions: a signed token that says which revision was
 * negotiated and what the client declared. Only so can a server that keeps nothing know that an old
 * client may be asked. It opens no door: every request is authenticated by itself.
 */
import { isLegacyRevision, type LegacyRevision } from '../protocol/legacy'
import type { ClientCapabilities } from '../protocol/modern'
import { isObject, type JsonObject } from '../json'
import type { SigningKeys } from './keys'
import { seal, unseal } from './seal'

export interface Session {
  /** Different for every client, and the same for all its requests. */
  readonly id: string
  readonly revision: LegacyRevision
  readonly capabilities: ClientCapabilities
}

/** As long as a task may live. After this the client is told to initialize again (HTTP 404). */
const SESSION_MS = 30 * 24 * 3_600_000

export function openSession(
  keys: SigningKeys,
  tenant: string,
  revision: LegacyRevision,
  capabilities: ClientCapabilities,
): Promise<string> {
  // Reduced by `declared` to objects of objects.
  const payload = { id: crypto.randomUUID(), revision, capabilities: capabilities as JsonObject }
  return seal(keys, 'session', [tenant], payload, Date.now() + SESSION_MS)
}

/** `undefined` when the token is damaged, expired, or of another tenant. */
export async function readSession(
  keys: SigningKeys,
  tenant: string,
  token: string,
): Promise<Session | undefined> {
  const opened = await unseal(keys, 'session', [tenant], token)
  const { id, revision, capabilities } = opened ?? {}
  if (typeof id !== 'string' || !isLegacyRevision(revision) || !isObject(capabilities)) return undefined
  return { id, revision, capabilities }
}
