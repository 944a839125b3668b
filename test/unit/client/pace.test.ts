import * as fc from 'fast-check'
import { expect, test } from 'vitest'
import { DEFAULT_POLL, floorMs, intervalMs, jitter, retryMs } from '../../../src/client/pace.ts'

const suggestion = fc.option(fc.integer({ min: 0, max: 3_600_000 }), { nil: undefined })
const count = fc.nat(200)
const chance = fc.double({ min: 0, max: 1, maxExcluded: true, noNaN: true })

test('whatever happens, a look never comes before the server’s interval and its jitter', () => {
  fc.assert(
    fc.property(suggestion, count, count, chance, (suggested, unchanged, failures, random) => {
      const floor = floorMs(suggested, DEFAULT_POLL)
      const wait = intervalMs(floor, unchanged, failures, DEFAULT_POLL) * jitter(random)
      expect(wait).toBeGreaterThanOrEqual(1.1 * (suggested ?? DEFAULT_POLL.defaultIntervalMs))
      expect(wait).toBeGreaterThanOrEqual(1.1 * DEFAULT_POLL.minIntervalMs)
    }),
  )
})

test('jitter lengthens by 10 to 20 per cent', () => {
  fc.assert(
    fc.property(chance, (random) => {
      expect(jitter(random)).toBeGreaterThanOrEqual(1.1)
      expect(jitter(random)).toBeLessThan(1.2 + 1e-9)
    }),
  )
})

test('waits grow while nothing changes, and end at a limit that a slow server may exceed', () => {
  fc.assert(
    fc.property(suggestion, count, count, (suggested, unchanged, failures) => {
      const floor = floorMs(suggested, DEFAULT_POLL)
      const wait = intervalMs(floor, unchanged, failures, DEFAULT_POLL)
      expect(intervalMs(floor, unchanged + 1, failures, DEFAULT_POLL)).toBeGreaterThanOrEqual(wait)
      expect(wait).toBeLessThanOrEqual(Math.max(floor, DEFAULT_POLL.maxIntervalMs))
    }),
  )
})

test('the first two looks that tell nothing new do not slow down, the third does', () => {
  const waits = [0, 1, 2, 3].map((unchanged) => intervalMs(1_000, unchanged, 0, DEFAULT_POLL))
  expect(waits).toEqual([1_000, 1_000, 1_500, 2_250])
})

test('failed looks double the wait', () => {
  const waits = [1, 2, 3, 10].map((failures) => intervalMs(1_000, 0, failures, DEFAULT_POLL))
  expect(waits).toEqual([2_000, 4_000, 8_000, 60_000])
})

test('retries start at a second and end at a minute', () => {
  expect([1, 2, 3, 20].map((attempt) => Math.round(retryMs(attempt, 0)))).toEqual([
    1_100, 2_200, 4_400, 66_000,
  ])
})
