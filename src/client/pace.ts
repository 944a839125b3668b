/**
 * How long to wait between two looks at a task. The server's interval is a floor and never
 * undercut; on top of it comes a random 10 to 20 %, so that many clients do not march in step,
 * and a growing distance while nothing happens or nothing answers. Pure.
 */

export interface PollOptions {
  /** While the server suggests no interval. Default 2000. */
  readonly defaultIntervalMs: number
  /** Whatever the server suggests, not more often than this. Default 250. */
  readonly minIntervalMs: number
  /** Where backing off ends; a server that asks for more gets more. Default 60000. */
  readonly maxIntervalMs: number
  /** For one look. Default 30000. */
  readonly timeoutMs: number
  /** So many looks may fail in a row before following is given up. Default 12. */
  readonly maxFailures: number
}

export const DEFAULT_POLL: PollOptions = {
  defaultIntervalMs: 2_000,
  minIntervalMs: 250,
  maxIntervalMs: 60_000,
  timeoutMs: 30_000,
  maxFailures: 12,
}

/** While nothing changes, looks drift apart to at most this many intervals. */
const MOST_INTERVALS = 8

/** No two looks at a task are closer than this. */
export function floorMs(suggestedMs: number | undefined, options: PollOptions): number {
  return Math.max(suggestedMs ?? options.defaultIntervalMs, options.minIntervalMs)
}

/**
 * The wait after a look, before jitter.
 *
 * @param unchanged looks in a row that told nothing new.
 * @param failures looks in a row that failed.
 */
export function intervalMs(floor: number, unchanged: number, failures: number, options: PollOptions): number {
  const factor = failures > 0 ? 2 ** failures : Math.min(1.5 ** Math.max(0, unchanged - 1), MOST_INTERVALS)
  return Math.max(floor, Math.min(floor * factor, options.maxIntervalMs))
}

/** A factor between 1.1 and 1.2: waits get longer by it, never shorter. */
export function jitter(random: number): number {
  return 1.1 + 0.1 * random
}

const FIRST_RETRY_MS = 1_000
const LAST_RETRY_MS = 60_000

/** The wait before attempt `attempt` (1, 2, …) to do something again that failed. */
export function retryMs(attempt: number, random: number): number {
  return Math.min(FIRST_RETRY_MS * 2 ** (attempt - 1), LAST_RETRY_MS) * jitter(random)
}
