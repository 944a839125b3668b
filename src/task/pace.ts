/** The suggested poll interval follows the pace of the task: the median gap between its changes. */

const REMEMBERED_GAPS = 9

/** The most recent gaps between visible changes, in milliseconds, oldest first. */
export type Gaps = readonly number[]

export function withGap(gaps: Gaps, gapMs: number): Gaps {
  return [...gaps, Math.max(0, Math.round(gapMs))].slice(-REMEMBERED_GAPS)
}

/** Milliseconds, within the tool's bounds; the lower bound while nothing is known yet. */
export function pollInterval(gaps: Gaps, minMs: number, maxMs: number): number {
  if (gaps.length === 0) return minMs
  const sorted = gaps.toSorted((a, b) => a - b)
  const median = sorted[Math.floor(sorted.length / 2)] ?? minMs
  return Math.min(Math.max(median, minMs), Math.max(minMs, maxMs))
}
