/**
 * Who carries a question to a client that is asked over a stream (revisions of 2025). A question is on
 * one stream at a time: sent on two, the user would be asked twice. Pure.
 */
import { isObject } from '../json'
import type { JournalRow } from './store'
import type { Carrying } from './types'

interface Carrier {
  readonly stream: string
  readonly client: string
  /** The stream stays open for what follows; one that does not has done its part when it ends. */
  readonly held: boolean
  /** Milliseconds since the epoch. */
  readonly at: number
}

/** A client that was asked by a poll and still polls after this time has lost the question. */
const ASK_AGAIN_MS = 5 * 60_000

/** Whether the question of this row may go out on that stream. */
export function isFree(
  row: JournalRow,
  by: Carrying,
  now: number,
  isOpen: (stream: string) => boolean,
): boolean {
  const known = carrierOf(row)
  // The stream itself knows what its client has received.
  if (!known || known.stream === by.stream) return true
  if (known.held) return !isOpen(known.stream)
  return known.client !== by.client || now - known.at >= ASK_AGAIN_MS
}

/** The row, carried. Rows of questions hold objects. */
export function carriedBy(row: JournalRow, { stream, client, held }: Carrying, at: number): JournalRow {
  const carrier: Carrier = { stream, client, held, at }
  return { ...row, data: { ...(isObject(row.data) ? row.data : {}), carrier: { ...carrier } } }
}

/** What `carriedBy` wrote. */
function carrierOf({ data }: JournalRow): Carrier | undefined {
  const carrier = isObject(data) ? data['carrier'] : undefined
  return isObject(carrier) ? (carrier as unknown as Carrier) : undefined
}
