/** Intervals, deadlines and delays: the arithmetic of time. */
import * as fc from 'fast-check'
import { expect, test } from 'vitest'
import { type Duration, toMs } from '../../../src/duration'
import { backoffMs } from '../../../src/retry'
import { type Deadlines, nextDeadline } from '../../../src/task/deadlines'
import { resendDelayMs } from '../../../src/task/outbox'
import { pollInterval, withGap } from '../../../src/task/pace'

const ms = fc.nat(10_000_000)

test('a poll interval stays within the bounds of the tool, whatever the gaps and the order of the bounds', () => {
  fc.assert(
    fc.property(fc.array(ms), ms, ms, (gaps, min, max) => {
      const interval = pollInterval(gaps, min, max)
      expect(interval).toBeGreaterThanOrEqual(min)
      expect(interval).toBeLessThanOrEqual(Math.max(min, max))
      expect(Number.isInteger(interval)).toBe(true)
    }),
  )
})

test('a poll interval is the lower bound while nothing is known, and then the median gap', () => {
  expect(pollInterval([], 1_000, 30_000)).toBe(1_000)
  expect(pollInterval([2_000, 9_000, 3_000], 1_000, 30_000)).toBe(3_000)
  expect(pollInterval([90_000], 1_000, 30_000)).toBe(30_000)
})

test('one long gap among short ones does not slow the polling down', () => {
  expect(pollInterval([1_500, 1_500, 3_600_000, 1_500, 1_500], 1_000, 30_000)).toBe(1_500)
})

test('only the latest gaps are remembered, as whole milliseconds that are not negative', () => {
  fc.assert(
    fc.property(fc.array(fc.double({ min: -1e6, max: 1e9, noNaN: true })), (gaps) => {
      const kept = gaps.reduce<readonly number[]>(withGap, [])
      expect(kept.length).toBe(Math.min(9, gaps.length))
      for (const gap of kept) {
        expect(Number.isInteger(gap)).toBe(true)
        expect(gap).toBeGreaterThanOrEqual(0)
      }
      expect(kept.at(-1) ?? 0).toBe(gaps.length === 0 ? 0 : Math.max(0, Math.round(gaps.at(-1) ?? 0)))
    }),
  )
})

const time = fc.option(ms, { nil: null })
const deadlines: fc.Arbitrary<Deadlines> = fc.record({
  phase: fc.constantFrom('queued', 'running', 'waiting', 'ended'),
  expiresAt: ms,
  leaseUntil: time,
  resendAt: time,
  wakeAt: time,
  leashAt: time,
  releaseAt: time,
})

test('the next deadline is never after the end of the task, and never one of another phase', () => {
  fc.assert(
    fc.property(deadlines, (task) => {
      const next = nextDeadline(task)
      expect(next).toBeLessThanOrEqual(task.expiresAt)
      const { phase, expiresAt, leaseUntil, resendAt, wakeAt, leashAt, releaseAt } = task
      const mine = { queued: resendAt, running: leaseUntil, waiting: wakeAt, ended: releaseAt }[phase]
      const leash = phase === 'ended' ? null : leashAt
      expect(next).toBe(Math.min(expiresAt, mine ?? Infinity, leash ?? Infinity))
    }),
  )
})

const backoff = fc.record({ delayMs: ms, maxDelayMs: ms })

test('a back-off lies between nothing and the doubled delay, and never past its maximum', () => {
  fc.assert(
    fc.property(backoff, fc.integer({ min: 1, max: 5_000 }), (policy, attempt) => {
      const ceiling = Math.min(policy.maxDelayMs, policy.delayMs * 2 ** Math.min(attempt - 1, 30))
      expect(backoffMs(policy, attempt, () => 0)).toBe(0)
      expect(backoffMs(policy, attempt, () => 1)).toBe(Math.round(ceiling))
      const drawn = backoffMs(policy, attempt)
      expect(Number.isInteger(drawn)).toBe(true)
      expect(drawn).toBeLessThanOrEqual(policy.maxDelayMs)
    }),
  )
})

test('the first retry waits up to the delay, each later one up to twice as long', () => {
  const ceilings = [1, 2, 3, 4].map((attempt) =>
    backoffMs({ delayMs: 100, maxDelayMs: 500 }, attempt, () => 1),
  )
  expect(ceilings).toEqual([100, 200, 400, 500])
})

test('a message is sent again no sooner than it is taken for lost, and at least about once a minute', () => {
  fc.assert(
    fc.property(fc.integer({ min: 1, max: 60_000 }), fc.integer({ min: 1, max: 1_000 }), (first, sends) => {
      const delay = resendDelayMs(first, sends)
      // Rounded twice.
      expect(delay).toBeGreaterThanOrEqual(first - 1)
      expect(delay).toBeLessThanOrEqual(60_000 + first / 2 + 1)
    }),
  )
})

const units = {
  millisecond: 1,
  second: 1_000,
  minute: 60_000,
  hour: 3_600_000,
  day: 86_400_000,
  week: 604_800_000,
}
const unit = fc.constantFrom(...(Object.keys(units) as (keyof typeof units)[]))

test('a duration is a number with a unit, singular or plural, or milliseconds', () => {
  fc.assert(
    fc.property(fc.nat(10_000), unit, fc.boolean(), (n, name, plural) => {
      expect(toMs(`${n} ${name}${plural ? 's' : ''}` as Duration)).toBe(n * units[name])
      expect(toMs(n)).toBe(n)
    }),
  )
  expect(toMs('1.5 hours')).toBe(5_400_000)
  expect(toMs(1.4)).toBe(1)
})

test.each([
  '',
  '5',
  's',
  '5 s',
  '5  seconds',
  ' 5 seconds',
  '-5 seconds',
  '1e3 seconds',
  '5 fortnights',
  '5 SECONDS',
])('%j is no duration', (text) => {
  expect(() => toMs(text as Duration)).toThrow(TypeError)
})

test.each([-1, Number.NaN, Number.POSITIVE_INFINITY])('%d milliseconds are no duration', (n) => {
  expect(() => toMs(n)).toThrow(TypeError)
})
