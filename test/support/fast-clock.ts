/** The clock of the library, some times faster than the real one: a minute's wait is over in a moment. */
import type { Clock } from '../../src/client/index.ts'

export function fastClock(times: number): Clock {
  const start = Date.now()
  const now = () => (performance.now() - begun) * times
  const begun = performance.now()
  return {
    now,
    date: () => start + now(),
    setTimeout: (callback, ms) => setTimeout(callback, ms / times),
    // What `setTimeout` returned.
    clearTimeout: (timer) => clearTimeout(timer as NodeJS.Timeout),
    random: Math.random,
  }
}
