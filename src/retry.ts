/** Back-off with full jitter, for steps, runs, re-sends and calls to an object. Pure but for the dice. */

export interface Backoff {
  readonly delayMs: number
  readonly maxDelayMs: number
}

/** Milliseconds before retry number `attempt` (1 for the first): anywhere up to the doubled delay. */
export function backoffMs({ delayMs, maxDelayMs }: Backoff, attempt: number, random = Math.random): number {
  const ceiling = Math.min(maxDelayMs, delayMs * 2 ** Math.min(attempt - 1, 30))
  return Math.round(random() * ceiling)
}
