import { afterEach, describe, expect, test } from 'vitest'
import {
  type Call,
  createTasks,
  type Tasks,
  type TasksOptions,
  type Update,
} from '../../../src/client/index.ts'
import { fastClock } from '../../support/fast-clock.ts'
import { type HostileOptions, type HostileServer, hostileServer } from '../../support/hostile-server.ts'
import { said } from '../../support/stub-server.ts'

const cleanups: (() => void | Promise<void>)[] = []
afterEach(async () => {
  for (const cleanup of cleanups.splice(0).toReversed()) await cleanup()
})

/** Ten times as fast, with an interval that a look never reaches unless it must. */
async function against(options: HostileOptions, more: Partial<TasksOptions> = {}) {
  const server = await hostileServer(options)
  const tasks = createTasks({ url: server.url, clock: fastClock(10), ...more })
  cleanups.push(
    () => server.close(),
    () => tasks.close(),
  )
  return { server, tasks }
}

const RARELY = { pollIntervalMs: 3_600_000 }
const OFTEN = { pollIntervalMs: 300 }

function step(server: HostileServer, n: number, more = RARELY, taskId = 'tsk_1'): void {
  server.set(taskId, 'working', { statusMessage: `step ${n}`, ...more })
}

function finish(server: HostileServer, taskId = 'tsk_1'): void {
  server.set(taskId, 'completed', { result: said(`${taskId} done`) })
}

/** Reads updates into a list that grows; the last is that of the end. */
function reading(updates: AsyncIterable<Update>): Update[] {
  const list: Update[] = []
  void (async () => {
    for await (const update of updates) list.push(update)
  })().catch(() => {})
  return list
}

/** The result, once the reader has it too. */
async function resultOf(call: Call, updates: readonly Update[]) {
  const result = await call.result()
  await expect.poll(() => updates.at(-1)?.status).toBe('completed')
  return result
}

const seen = (updates: readonly Update[], text: string) =>
  expect.poll(() => updates.at(-1)?.message, { timeout: 8_000, interval: 5 }).toBe(text)

async function startRarely(tasks: Tasks, server: HostileServer) {
  const call = await tasks.call('work')
  step(server, 0, RARELY, call.taskId)
  const updates = reading(call)
  await seen(updates, 'step 0')
  return { call, updates }
}

describe('a server with the door for sockets', () => {
  test('tells each change over it, and is not looked at', async () => {
    const { server, tasks } = await against({ seed: RARELY, websocket: 'door', sse: true })
    const { call, updates } = await startRarely(tasks, server)
    for (let n = 1; n <= 5; n++) step(server, n)
    finish(server)
    expect(await resultOf(call, updates)).toMatchObject({ content: [{ text: 'tsk_1 done' }] })
    expect(updates.slice(-6).map(({ message, via }) => message ?? via)).toEqual([
      'step 1',
      'step 2',
      'step 3',
      'step 4',
      'step 5',
      'websocket',
    ])
    expect(server.count('tasks/get')).toBe(0)
    expect(server.count('subscriptions/listen')).toBe(0)
    await expect.poll(() => server.sockets.size).toBe(0)
  })

  test('gets the token as a subprotocol', async () => {
    let offered: string | undefined
    const { server, tasks } = await against(
      {
        seed: RARELY,
        websocket: 'door',
        onSocket: (_, request) => (offered = request.headers['sec-websocket-protocol']),
      },
      { token: 'key/with+odd=signs' },
    )
    await startRarely(tasks, server)
    const token = offered?.match(/^mcp, ?longhaul\.bearer\.([\w-]+)$/)?.[1] ?? ''
    expect(Buffer.from(token, 'base64url').toString()).toBe('key/with+odd=signs')
  })

  test('that breaks is covered by looks, and used again: nothing is lost and nothing told twice', async () => {
    const { server, tasks } = await against({ websocket: 'door' })
    const call = await tasks.call('work')
    const updates = reading(call)
    step(server, 0, OFTEN)
    await seen(updates, 'step 0')
    const viaSocket = server.sockets.size
    server.dropPush()
    step(server, 1, OFTEN)
    await seen(updates, 'step 1')
    await expect.poll(() => server.sockets.size, { timeout: 8_000 }).toBe(viaSocket)
    step(server, 2, OFTEN)
    await seen(updates, 'step 2')
    finish(server)
    await resultOf(call, updates)
    const messages = updates.map(({ message, status }) => message ?? status)
    expect(messages.filter((message) => message !== 'working')).toEqual([
      'step 0',
      'step 1',
      'step 2',
      'completed',
    ])
    expect(server.count('upgrade')).toBeGreaterThanOrEqual(2)
  })

  test('may say that a task is too large to push; then it is looked at', async () => {
    const { server, tasks } = await against({
      websocket: 'door',
      onSocket: (socket) => setTimeout(() => socket.close(1009), 20),
    })
    const call = await tasks.call('work')
    step(server, 0, OFTEN)
    await expect.poll(() => server.count('tasks/get'), { timeout: 8_000 }).toBeGreaterThan(0)
    finish(server)
    expect(await call.result()).toMatchObject({ content: [{ text: 'tsk_1 done' }] })
    expect(server.count('upgrade')).toBe(1)
  })

  test('whose socket dies without a word is noticed', async () => {
    const { server, tasks } = await against({
      seed: RARELY,
      websocket: 'door',
      onSocket: (socket) => socket.removeAllListeners('message'),
    })
    const { updates } = await startRarely(tasks, server)
    // No answer to the ping within half a minute: another socket.
    await expect.poll(() => server.count('upgrade'), { timeout: 8_000 }).toBeGreaterThan(1)
    step(server, 1)
    await seen(updates, 'step 1')
  })
})

describe('a server with streams only', () => {
  test('is asked for a socket once, whatever the number of calls', async () => {
    const { server, tasks } = await against({ seed: RARELY, sse: true })
    const calls = await Promise.all([1, 2, 3, 4].map(() => tasks.call('work')))
    for (const { taskId = '' } of calls) step(server, 0, RARELY, taskId)
    await Promise.all(calls.map((call) => seen(reading(call), 'step 0')))
    await startRarely(tasks, server)
    expect(server.count('upgrade')).toBe(1)
  })

  test('tells tasks that began together over one stream, and each its own', async () => {
    const { server, tasks } = await against({ seed: RARELY, sse: true }, { push: ['sse'] })
    const calls = await Promise.all([1, 2, 3].map(() => tasks.call('work')))
    for (const { taskId = '' } of calls) step(server, 0, RARELY, taskId)
    const updates = calls.map(reading)
    await Promise.all(updates.map((list) => seen(list, 'step 0')))
    for (const { taskId = '' } of calls) finish(server, taskId)
    const results = await Promise.all(calls.map((call) => call.result()))
    expect(results.map(({ content }) => content[0]?.['text'])).toEqual(
      calls.map(({ taskId }) => `${taskId} done`),
    )
    expect(server.count('subscriptions/listen')).toBeLessThanOrEqual(2)
    expect(server.count('tasks/get')).toBe(0)
    expect(updates.flat().every(({ via }) => via !== 'poll')).toBe(true)
  })

  test('goes on telling an earlier task when a later one joins', async () => {
    const { server, tasks } = await against({ seed: RARELY, sse: true }, { push: ['sse'] })
    const first = await startRarely(tasks, server)
    const second = await tasks.call('work')
    step(server, 0, RARELY, 'tsk_2')
    await seen(reading(second), 'step 0')
    step(server, 1)
    await seen(first.updates, 'step 1')
    finish(server)
    await first.call.result()
    step(server, 1, RARELY, 'tsk_2')
    finish(server, 'tsk_2')
    await second.result()
    expect(server.count('subscriptions/listen')).toBe(2)
    expect(server.count('tasks/get')).toBe(0)
  })

  test('that break are covered by looks, and opened again', async () => {
    const { server, tasks } = await against({ seed: RARELY, sse: true }, { push: ['sse'] })
    const call = await tasks.call('work')
    const updates = reading(call)
    step(server, 0, OFTEN)
    await seen(updates, 'step 0')
    server.dropPush()
    step(server, 1, OFTEN)
    await seen(updates, 'step 1')
    await expect.poll(() => server.count('subscriptions/listen'), { timeout: 8_000 }).toBe(2)
    finish(server)
    await resultOf(call, updates)
    expect(updates.map(({ message }) => message).filter(Boolean)).toEqual(['step 0', 'step 1'])
  })
})

describe('push that is not what it seems', () => {
  test('a server without any is looked at, and asked for each way once', async () => {
    const { server, tasks } = await against({})
    const call = await tasks.call('work')
    step(server, 0, OFTEN)
    await expect.poll(() => server.count('tasks/get'), { timeout: 8_000 }).toBeGreaterThan(2)
    finish(server)
    expect(await call.result()).toMatchObject({ content: [{ text: 'tsk_1 done' }] })
    expect([server.count('upgrade'), server.count('subscriptions/listen')]).toEqual([1, 1])
  })

  test('a stream that is agreed but tells nothing is found out by a look', async () => {
    const { server, tasks } = await against(
      { seed: OFTEN, websocket: 'door', tells: false },
      { clock: fastClock(100) },
    )
    const call = await tasks.call('work')
    const updates = reading(call)
    await expect.poll(() => server.sockets.size, { timeout: 8_000 }).toBe(1)
    step(server, 1, OFTEN)
    await seen(updates, 'step 1')
    finish(server)
    expect(await call.result()).toMatchObject({ content: [{ text: 'tsk_1 done' }] })
    await expect.poll(() => updates.at(-1)?.via).toBe('poll')
  })

  test.each([
    ['an error', ({ answer }) => answer({ error: { code: -32602, message: 'Bad params' } })],
    ['JSON', ({ answer }) => answer({ result: { resultType: 'complete' } })],
    [
      'a web page',
      ({ response }) => void response.writeHead(200, { 'content-type': 'text/html' }).end('<p>'),
    ],
    ['status 405', ({ response }) => void response.writeHead(405).end()],
    ['status 500', ({ response }) => void response.writeHead(500).end()],
    ['nothing', ({ request }) => void request.socket.destroy()],
    [
      'a stream of nonsense',
      ({ response }) => {
        response.writeHead(200, { 'content-type': 'text/event-stream' })
        response.end('data: {"jsonrpc":\n\ndata: 5\n\n')
      },
    ],
    [
      'a task that is none',
      ({ response }) => {
        response.writeHead(200, { 'content-type': 'text/event-stream' })
        const ack = {
          method: 'notifications/subscriptions/acknowledged',
          params: { notifications: { taskIds: ['tsk_1'] } },
        }
        response.write(`data: ${JSON.stringify(ack)}\n\n`)
        response.write(
          'data: {"method":"notifications/tasks","params":{"taskId":"tsk_1","status":"odd"}}\n\n',
        )
      },
    ],
  ] satisfies [string, NonNullable<HostileOptions['on']>[string]][])(
    'listening is answered with %s: looks reach the end',
    async (_, hostility) => {
      const { server, tasks } = await against(
        { on: { 'subscriptions/listen': hostility } },
        { push: ['sse'] },
      )
      const call = await tasks.call('work')
      step(server, 0, OFTEN)
      await expect.poll(() => server.count('tasks/get'), { timeout: 8_000 }).toBeGreaterThan(1)
      finish(server)
      expect(await call.result()).toMatchObject({ content: [{ text: 'tsk_1 done' }] })
      expect(server.count('subscriptions/listen')).toBeLessThan(10)
    },
  )
})

test('leaving closes sockets and streams', async () => {
  const { server, tasks } = await against({ seed: RARELY, websocket: 'door' })
  await startRarely(tasks, server)
  expect(server.sockets.size).toBe(1)
  tasks.close()
  await expect.poll(() => server.sockets.size).toBe(0)
})

test('with a fetch or headers of one’s own, a socket that would go around them is not tried', async () => {
  for (const own of [{ fetch: globalThis.fetch.bind(globalThis) }, { headers: { 'x-api-key': 'k' } }]) {
    const { server, tasks } = await against({ seed: RARELY, websocket: 'door', sse: true }, own)
    await startRarely(tasks, server)
    expect(server.count('upgrade')).toBe(0)
  }
})
