import { afterEach, beforeEach, describe, expect, test, vi } from 'vitest'
import { type Clock, createTasks, type TasksOptions } from '../../../src/client/index.ts'
import { systemClock } from '../../../src/client/clock.ts'
import { completed, created, type Received, said, stubServer, told } from '../../support/stub-server.ts'

const START = Date.parse('2026-11-29T12:00:00.000Z')

beforeEach(() => {
  vi.useFakeTimers({ now: START })
})
afterEach(() => {
  vi.useRealTimers()
})

/** A client that only looks, with chance fixed. */
function looking(fetch: typeof globalThis.fetch, random = 0, more: Partial<TasksOptions> = {}) {
  const clock: Clock = { ...systemClock, random: () => random }
  return createTasks({ url: 'http://server.test/mcp', fetch, clock, push: [], ...more })
}

const gaps = (looks: readonly Received[]) =>
  looks.map(({ at }, index) => at - (looks[index - 1]?.at ?? START))

/** Makes each look tell something new, so that nothing backs off. */
function changing(more = {}) {
  let n = 0
  return () => told('working', { statusMessage: `step ${++n}`, ...more })
}

describe('the pace of looks', () => {
  test.each([
    { random: 0, expected: 1_100 },
    { random: 0.5, expected: 1_150 },
    { random: 0.999_999, expected: 1_200 },
  ])('is the server’s interval and 10 to 20 per cent: $expected ms at chance $random', async (given) => {
    const server = stubServer({ 'tools/call': () => created(), 'tasks/get': changing() })
    await looking(server.fetch, given.random).call('work')
    await vi.advanceTimersByTimeAsync(20_000)
    for (const gap of gaps(server.of('tasks/get')))
      expect(Math.abs(gap - given.expected)).toBeLessThanOrEqual(1)
  })

  test('follows the interval when the server changes it, from the next look on', async () => {
    const server = stubServer({
      'tools/call': () => created(),
      'tasks/get': ({ at }) =>
        told('working', { statusMessage: `${at}`, pollIntervalMs: at < START + 3_000 ? 1_000 : 5_000 }),
    })
    await looking(server.fetch).call('work')
    await vi.advanceTimersByTimeAsync(16_000)
    expect(gaps(server.of('tasks/get'))).toEqual([1_100, 1_100, 1_100, 5_500, 5_500])
  })

  test('counts from the answer to the last look, not from its question', async () => {
    const server = stubServer({
      'tools/call': () => created(),
      'tasks/get': async ({ at }) => {
        await new Promise((resolve) => setTimeout(resolve, 3_000))
        return told('working', { statusMessage: `${at}` })
      },
    })
    await looking(server.fetch).call('work')
    await vi.advanceTimersByTimeAsync(13_000)
    expect(gaps(server.of('tasks/get'))).toEqual([1_100, 4_100, 4_100])
  })

  test('a wish of the caller only makes it slower', async () => {
    const server = stubServer({ 'tools/call': () => created(), 'tasks/get': changing() })
    await looking(server.fetch, 0, { poll: { minIntervalMs: 100 } }).call('work')
    await vi.advanceTimersByTimeAsync(4_000)
    expect(gaps(server.of('tasks/get'))).toEqual([1_100, 1_100, 1_100])
  })

  test('a server that suggests nothing, or zero, is not hammered', async () => {
    for (const pollIntervalMs of [undefined, 0, -1, 'soon']) {
      const server = stubServer({
        'tools/call': () => ({ ...created(), pollIntervalMs }),
        'tasks/get': changing({ pollIntervalMs }),
      })
      const tasks = looking(server.fetch)
      await tasks.call('work')
      await vi.advanceTimersByTimeAsync(10_000)
      tasks.close()
      expect(server.of('tasks/get').length).toBeLessThanOrEqual(10_000 / 250)
      expect(server.of('tasks/get').length).toBeGreaterThan(2)
    }
  })

  test('backs off while the task only works on, and is quick again after a change', async () => {
    const server = stubServer({
      'tools/call': () => created(),
      'tasks/get': ({ at }) => told('working', { statusMessage: at < START + 30_000 ? 'a' : 'b' }),
    })
    await looking(server.fetch).call('work')
    await vi.advanceTimersByTimeAsync(45_000)
    const waits = gaps(server.of('tasks/get')).map((gap) => Math.round(gap / 110) / 10)
    expect(waits.slice(0, 7)).toEqual([1, 1, 1, 1.5, 2.3, 3.4, 5.1])
    // The look that sees the change is followed by one at the plain interval.
    const changeAt = server.of('tasks/get').findIndex(({ at }) => at >= START + 30_000)
    expect(waits[changeAt + 1]).toBe(1)
  })

  test('is quick again after an answer was given', async () => {
    const server = stubServer({
      'tools/call': () => created(),
      'tasks/get': () =>
        told('input_required', { inputRequests: { name: { method: 'elicitation/create', params: {} } } }),
      'tasks/update': () => ({ resultType: 'complete' }),
    })
    const call = await looking(server.fetch).call('work')
    await vi.advanceTimersByTimeAsync(26_000)
    await call.answer('name', { action: 'decline' })
    const answeredAt = Date.now()
    await vi.advanceTimersByTimeAsync(2_000)
    const after = server.of('tasks/get').filter(({ at }) => at > answeredAt)
    expect(after.length).toBeGreaterThanOrEqual(1)
    for (const gap of gaps(server.of('tasks/get')).slice(1)) expect(gap).toBeGreaterThanOrEqual(1_100)
  })

  test('nothing is asked after the end', async () => {
    const server = stubServer({ 'tools/call': () => created(), 'tasks/get': () => completed('done') })
    const call = await looking(server.fetch).call('work')
    await vi.advanceTimersByTimeAsync(600_000)
    expect(server.of('tasks/get')).toHaveLength(1)
    expect(await call.result()).toMatchObject({ content: [{ text: 'done' }] })
    expect(vi.getTimerCount()).toBe(0)
  })

  test('a wait longer than a timer can count is waited out', async () => {
    const pollIntervalMs = 40 * 24 * 3_600_000
    const server = stubServer({
      'tools/call': () => created({ pollIntervalMs }),
      'tasks/get': () => completed('done'),
    })
    await looking(server.fetch).call('work')
    await vi.advanceTimersByTimeAsync(pollIntervalMs)
    expect(server.of('tasks/get')).toHaveLength(0)
    await vi.advanceTimersByTimeAsync(pollIntervalMs)
    expect(server.of('tasks/get')).toHaveLength(1)
  })
})

describe('a server in trouble', () => {
  const busy = (retryAfter: string) => () =>
    new Response('busy', { status: 429, headers: { 'retry-after': retryAfter } })

  test.each(['7', new Date(START + 1_100 + 7_000).toUTCString()])(
    'is asked again when it said, and a little later: Retry-After %s',
    async (retryAfter) => {
      let looks = 0
      const server = stubServer({
        'tools/call': () => created(),
        'tasks/get': () => (++looks === 1 ? busy(retryAfter)() : completed('done')),
      })
      const call = await looking(server.fetch, 0.5).call('work')
      await vi.advanceTimersByTimeAsync(20_000)
      await call.result()
      const [, second = 0] = gaps(server.of('tasks/get'))
      // A date has no fractions of a second, so it may be up to one sooner.
      expect(second).toBeGreaterThanOrEqual(6_000 * 1.1)
      expect(second).toBeLessThanOrEqual(7_000 * 1.2)
    },
  )

  test('may put off looks for as long as it likes', async () => {
    let looks = 0
    const server = stubServer({
      'tools/call': () => created(),
      'tasks/get': () => (++looks <= 50 ? busy('30')() : completed('done')),
    })
    const call = await looking(server.fetch).call('work')
    await vi.advanceTimersByTimeAsync(50 * 40_000)
    expect(await call.outcome()).toMatchObject({ status: 'completed' })
  })

  test('is given time, and its task is not given up, while a few looks fail', async () => {
    let looks = 0
    const server = stubServer({
      'tools/call': () => created(),
      'tasks/get': () => {
        looks += 1
        if (looks < 6) throw new TypeError('connection refused')
        return completed('done')
      },
    })
    const call = await looking(server.fetch).call('work')
    await vi.advanceTimersByTimeAsync(120_000)
    expect(await call.result()).toMatchObject({ content: [{ text: 'done' }] })
    expect(gaps(server.of('tasks/get')).map((gap) => Math.round(gap / 1_100))).toEqual([1, 2, 4, 8, 16, 32])
  })

  test('is given up after so many failures in a row, and the task can be resumed', async () => {
    let isDown = true
    const server = stubServer({
      'tools/call': () => created(),
      'tasks/get': () => {
        if (isDown) throw new TypeError('connection refused')
        return completed('done')
      },
    })
    const tasks = looking(server.fetch, 0, { poll: { maxFailures: 3 } })
    const call = await tasks.call('work')
    await vi.advanceTimersByTimeAsync(600_000)
    await expect(call.result()).rejects.toMatchObject({ code: 'unreachable' })
    expect(server.of('tasks/get')).toHaveLength(3)

    isDown = false
    const [resumed] = await tasks.resume()
    await vi.advanceTimersByTimeAsync(1)
    expect(await resumed?.result()).toMatchObject({ content: [{ text: 'done' }] })
  })

  test('that never answers a look is asked again', async () => {
    let looks = 0
    const server = stubServer({
      'tools/call': () => created(),
      'tasks/get': () => (++looks === 1 ? new Promise(() => {}) : completed('done')),
    })
    const call = await looking(server.fetch, 0, { poll: { timeoutMs: 5_000 } }).call('work')
    await vi.advanceTimersByTimeAsync(1_100 + 5_000 + 2_200)
    expect(await call.result()).toMatchObject({ content: [{ text: 'done' }] })
  })
})

describe('limits of time', () => {
  test('the caller’s deadline ends following, and only that', async () => {
    const server = stubServer({ 'tools/call': () => created(), 'tasks/get': changing() })
    const tasks = looking(server.fetch)
    const call = await tasks.call('work', {}, { deadlineMs: 10_000 })
    await vi.advanceTimersByTimeAsync(10_000)
    await expect(call.result()).rejects.toMatchObject({ code: 'deadline' })
    expect(await tasks.references()).toMatchObject([{ taskId: 'tsk_1', status: 'working' }])
    expect(vi.getTimerCount()).toBe(0)
  })

  test('the time-to-live is a backstop: the task is looked at once more, then given up', async () => {
    const server = stubServer({
      'tools/call': () => created({ ttlMs: 60_000, pollIntervalMs: 50_000 }),
      'tasks/get': () => told('working', { ttlMs: 60_000, pollIntervalMs: 50_000 }),
    })
    const call = await looking(server.fetch).call('work')
    await vi.advanceTimersByTimeAsync(300_000)
    await expect(call.outcome()).rejects.toMatchObject({ code: 'task_expired' })
    const last = server.of('tasks/get').at(-1)?.at ?? 0
    expect(last).toBeGreaterThan(START + 60_000)
  })

  test('a time-to-live that the server extends is the new one', async () => {
    const server = stubServer({
      'tools/call': () => created({ ttlMs: 10_000 }),
      'tasks/get': ({ at }) =>
        at < START + 60_000
          ? told('working', { statusMessage: `${at}`, ttlMs: at - START + 10_000 })
          : completed('late'),
    })
    const call = await looking(server.fetch).call('work')
    await vi.advanceTimersByTimeAsync(90_000)
    expect(await call.result()).toMatchObject({ content: [{ text: 'late' }] })
  })

  test('no time-to-live, no backstop', async () => {
    const server = stubServer({
      'tools/call': () => created({ ttlMs: null, pollIntervalMs: 600_000 }),
      'tasks/get': ({ at }) =>
        at < START + 86_400_000 ? told('working', { pollIntervalMs: 600_000 }) : completed('next day'),
    })
    const call = await looking(server.fetch).call('work')
    await vi.advanceTimersByTimeAsync(90_000_000)
    expect(await call.result()).toMatchObject({ content: [{ text: 'next day' }] })
  })
})

test('a call that the server puts off is made again when it said', async () => {
  let calls = 0
  const server = stubServer({
    'tools/call': () =>
      ++calls === 1 ? new Response(null, { status: 503, headers: { 'retry-after': '5' } }) : said('hello'),
  })
  const making = looking(server.fetch).call('work')
  await vi.advanceTimersByTimeAsync(10_000)
  expect(await (await making).result()).toMatchObject({ content: [{ text: 'hello' }] })
  expect(gaps(server.of('tools/call'))).toEqual([0, 5_500])
})
