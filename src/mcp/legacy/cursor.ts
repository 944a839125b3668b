/**
 * The event ids of our streams. Each is a signed description of the stream as it was after that event,
 * so that any isolate can take it up again (`GET` with `Last-Event-ID`) by following the task anew.
 */
import { seal, unseal } from '../../auth/seal'
import type { SigningKeys } from '../../auth/keys'
import type { RequestId } from '../../protocol/jsonrpc'

/** What a stream is for, and how far it is. */
export interface Cursor {
  readonly taskId: string
  /** The request that the stream answers. */
  readonly requestId: RequestId
  readonly method: 'tools/call' | 'tasks/result' | 'tasks/get'
  /** The name under which the stream carries questions; the same after it was resumed. */
  readonly stream: string
  /** Keys of questions that the client has received on it. */
  readonly asked: readonly string[]
  readonly progressToken?: RequestId
  /** The last progress value told. */
  readonly progress: number
  /** The response was sent: there is nothing to resume. */
  readonly ended: boolean
}

export function sealCursor(
  keys: SigningKeys,
  tenant: string,
  cursor: Cursor,
  expiresAt: number,
): Promise<string> {
  return seal(keys, 'stream', [tenant], { ...cursor }, expiresAt)
}

/** `undefined` when the id is damaged, expired, or of another tenant. */
export async function openCursor(
  keys: SigningKeys,
  tenant: string,
  eventId: string,
): Promise<Cursor | undefined> {
  // `sealCursor` is the only one to sign for this purpose.
  return (await unseal(keys, 'stream', [tenant], eventId)) as Cursor | undefined
}
