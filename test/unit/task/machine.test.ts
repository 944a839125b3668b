import * as fc from 'fast-check'
import { expect, test } from 'vitest'
import {
  INITIAL,
  isTerminal,
  type MachineEvent,
  type MachineState,
  move,
  type Status,
} from '../../../src/task/machine'

/** A step of a history. Tokens and dispatch numbers are chosen when it is played: often right, sometimes stale. */
type Play = (state: MachineState, chance: { token: string; n: number }) => MachineEvent

const token = fc.constantFrom('a', 'b', 'c')
const limit = fc.nat(3)
const count = fc.nat(3)

const plays: fc.Arbitrary<Play> = fc.oneof(
  fc.constant<Play>((_, { n, token: by }) => ({ type: 'claim', n, token: by })),
  fc.constant<Play>((_, { token: by }) => ({ type: 'record', token: by })),
  count.map<Play>((c) => (_, { token: by }) => ({ type: 'ask', token: by, count: c })),
  count.map<Play>((c) => () => ({ type: 'answer', count: c })),
  fc.boolean().map<Play>((ready) => (_, { token: by }) => ({ type: 'suspend', token: by, ready })),
  fc.constant<Play>((_, { token: by }) => ({ type: 'yield', token: by })),
  fc.constant<Play>(() => ({ type: 'wake' })),
  fc.tuple(limit, fc.boolean()).map<Play>(([l, final]) => (_, { token: by }) => ({
    type: 'throw',
    token: by,
    limit: l,
    final,
  })),
  limit.map<Play>((l) => () => ({ type: 'lapse', limit: l })),
  fc.constant<Play>((_, { token: by }) => ({ type: 'complete', token: by })),
  fc.constant<Play>((_, { token: by }) => ({ type: 'stop', token: by })),
  fc.constant<Play>(() => ({ type: 'cancel' })),
  fc.constant<Play>(() => ({ type: 'cancelNow' })),
  fc.constant<Play>((_, { n }) => ({ type: 'deadLetter', n })),
)
/** Rare, for it ends every history. */
const expiry = fc.constant<Play>(() => ({ type: 'expire' }))

const histories = fc.array(
  fc.record({
    play: fc.oneof({ weight: 40, arbitrary: plays }, { weight: 1, arbitrary: expiry }),
    stale: fc.boolean(),
    token,
    behind: fc.integer({ min: -1, max: 2 }),
  }),
  { minLength: 1, maxLength: 60 },
)

interface Moment {
  readonly before: MachineState
  readonly event: MachineEvent
  readonly moved: ReturnType<typeof move>
  readonly after: MachineState
}

/** Half of the time the right token and number, otherwise whatever comes. */
function playAll(
  history: readonly { play: Play; stale: boolean; token: string; behind: number }[],
): Moment[] {
  let state = INITIAL
  return history.map(({ play, stale, token: other, behind }) => {
    const chance = stale
      ? { token: other, n: state.dispatch - behind }
      : { token: state.token ?? other, n: state.dispatch }
    const event = play(state, chance)
    const moved = move(state, event)
    const before = state
    if (moved.ok) state = moved.state
    return { before, event, moved, after: state }
  })
}

const always = (check: (moment: Moment) => void) =>
  fc.assert(
    fc.property(histories, (history) => playAll(history).forEach(check)),
    { numRuns: 2_000 },
  )

const TABLE: Record<Status, readonly Status[]> = {
  working: ['working', 'input_required', 'completed', 'failed', 'cancelled'],
  // `completed` by way of `working`: the questions are withdrawn by the same move.
  input_required: ['input_required', 'working', 'completed', 'failed', 'cancelled'],
  completed: ['completed'],
  failed: ['failed'],
  cancelled: ['cancelled'],
}

test('no history leaves the table', () => {
  always(({ before, after }) => expect(TABLE[before.status]).toContain(after.status))
})

test('a state is whole: what is shown, where the work is, and who holds it agree', () => {
  always(({ after }) => {
    expect(isTerminal(after.status)).toBe(after.phase === 'ended')
    expect(after.token !== null).toBe(after.phase === 'running')
    expect(after.openQuestions > 0).toBe(after.status === 'input_required')
    expect(after.openQuestions).toBeGreaterThanOrEqual(0)
  })
})

test('what has ended never changes again', () => {
  always(({ before, moved }) => {
    if (before.phase === 'ended') expect(moved).toEqual({ ok: false, refusal: 'ended' })
  })
})

test('an end is announced by exactly the move that brings it', () => {
  always(({ before, moved, after }) => {
    const ends = before.phase !== 'ended' && after.phase === 'ended'
    expect(moved.ok && moved.ended !== undefined).toBe(ends)
    if (moved.ok && ends) {
      expect(moved.ended).toBe(after.status)
      expect(moved.dispatched).toBe(false)
    }
  })
})

test('only a run that holds the task completes it', () => {
  always(({ before, event, after }) => {
    if (after.status !== 'completed' || before.status === 'completed') return
    expect(event.type).toBe('complete')
    expect(before.phase).toBe('running')
    expect('token' in event && event.token).toBe(before.token)
  })
})

test('the writes of any other run are refused', () => {
  always(({ before, event, moved }) => {
    if (!('token' in event) || event.type === 'claim' || event.token === before.token) return
    expect(moved.ok).toBe(false)
  })
})

test('only the present dispatch can be claimed, once', () => {
  always(({ before, event, moved }) => {
    if (event.type !== 'claim') return
    expect(moved.ok).toBe(before.phase === 'queued' && event.n === before.dispatch)
  })
})

test('dispatches count up by one, each announced, and none follows an end', () => {
  always(({ before, moved, after }) => {
    const dispatched = moved.ok && moved.dispatched
    expect(after.dispatch).toBe(before.dispatch + (dispatched ? 1 : 0))
    if (dispatched) {
      expect(before.phase).not.toBe('ended')
      expect(after.phase).toBe('queued')
    }
  })
})

test('a task that is to be cancelled is never dispatched again, and whatever ends its run ends it', () => {
  always(({ before, event, moved, after }) => {
    if (!before.cancelRequested || before.phase === 'ended') return
    // Somebody runs: otherwise the wish itself would have ended it.
    expect(before.phase).toBe('running')
    if (!moved.ok) return
    expect(moved.dispatched).toBe(false)
    const goesOn = ['record', 'ask', 'answer', 'cancel'].includes(event.type)
    expect(after.phase).toBe(goesOn ? 'running' : 'ended')
  })
})

test('a refused move changes nothing and says why', () => {
  always(({ before, moved, after }) => {
    if (moved.ok) return
    expect(after).toBe(before)
    expect(['ended', 'stale', 'phase']).toContain(moved.refusal)
  })
})

test('a run that fails past the limit of retries fails its task, and not before', () => {
  always(({ before, event, moved, after }) => {
    if ((event.type !== 'throw' && event.type !== 'lapse') || !moved.ok || before.cancelRequested) return
    const final = event.type === 'throw' && event.final
    expect(after.status === 'failed').toBe(final || before.attempts >= event.limit)
  })
})

test('attempts count up by one failed run at a time, and start anew with progress', () => {
  always(({ before, event, moved, after }) => {
    if (!moved.ok) return
    if (event.type === 'record') expect(after.attempts).toBe(0)
    else expect(after.attempts - before.attempts).toBeOneOf([0, 1])
  })
})

test('from every living state there is a way to the end', () => {
  always(({ after }) => {
    if (after.phase === 'ended') return
    const cancelled = move(after, { type: 'cancel' })
    const stopped = cancelled.ok ? move(cancelled.state, { type: 'lapse', limit: 9 }) : cancelled
    const last = cancelled.ok && cancelled.state.phase === 'ended' ? cancelled : stopped
    expect(last.ok && last.state.status).toBe('cancelled')
    const expired = move(after, { type: 'expire' })
    expect(expired.ok && expired.state.status).toBe('failed')
  })
})

test('an answer that settles nothing wakes nobody', () => {
  always(({ before, event, moved }) => {
    if (event.type !== 'answer' || event.count > 0) return
    expect(moved).toMatchObject(before.phase === 'ended' ? { ok: false } : { ok: true, dispatched: false })
  })
})
