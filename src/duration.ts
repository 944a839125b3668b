/**
 * Durations as people write them. Everything inside the system is integer
 * milliseconds and says so in its name (`ttlMs`); configuration accepts `'24 hours'`.
 */

const UNIT_MS = {
  millisecond: 1,
  second: 1_000,
  minute: 60_000,
  hour: 3_600_000,
  day: 86_400_000,
  week: 604_800_000,
} as const

type Unit = keyof typeof UNIT_MS

/** Milliseconds, or a number with a unit: `1500`, `'90 seconds'`, `'1 day'`. */
export type Duration = number | `${number} ${Unit}` | `${number} ${Unit}s`

/**
 * A duration in whole milliseconds.
 *
 * @throws TypeError when the text is not a number with a unit, or the value is negative or not finite.
 * @example toMs('24 hours') // 86400000
 */
export function toMs(duration: Duration): number {
  const ms = typeof duration === 'number' ? duration : parse(duration)
  if (!Number.isFinite(ms) || ms < 0) {
    throw new TypeError(
      `${JSON.stringify(duration)} is not a duration: use milliseconds or a text such as "90 seconds".`,
    )
  }
  return Math.round(ms)
}

function parse(text: string): number {
  const match = /^(\d+(?:\.\d+)?) (millisecond|second|minute|hour|day|week)s?$/.exec(text)
  // The second group is one of the alternatives above, each a key of UNIT_MS.
  return match ? Number(match[1]) * UNIT_MS[match[2] as Unit] : Number.NaN
}
