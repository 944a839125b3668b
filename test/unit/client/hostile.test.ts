import * as fc from 'fast-check'
import { afterEach, describe, expect, test } from 'vitest'
import { accept, createTasks, type TasksOptions } from '../../../src/client/index.ts'
import { fastClock } from '../../support/fast-clock.ts'
import {
  type Exchange,
  type HostileOptions,
  type HostileServer,
  hostileServer,
} from '../../support/hostile-server.ts'
import { bodyOf, confirmation, said, told } from '../../support/stub-server.ts'

let running: HostileServer[] = []
afterEach(async () => {
  await Promise.all(running.map((server) => server.close()))
  running = []
})

async function against(options: HostileOptions, more: Partial<TasksOptions> = {}) {
  const server = await hostileServer(options)
  running.push(server)
  const warnings: string[] = []
  const tasks = createTasks({
    url: server.url,
    push: [],
    clock: fastClock(20),
    poll: { minIntervalMs: 20, timeoutMs: 2_000 },
    onWarning: (message) => warnings.push(message),
    ...more,
  })
  return { server, tasks, warnings }
}

/** Tells that the task is done at the first look that is answered honestly. */
function finishing(server: HostileServer, text = 'done'): void {
  server.set('tsk_1', 'completed', { result: said(text) })
}

const html = ({ response }: Exchange) => {
  response.writeHead(200, { 'content-type': 'text/html' })
  response.end('<h1>Please log in to the hotel network</h1>')
}
const cutBeforeAnswer = ({ request }: Exchange) => void request.socket.destroy()
const cutInsideAnswer = ({ response, request }: Exchange) => {
  response.writeHead(200, { 'content-type': 'application/json', 'content-length': '1000' })
  response.write('{"jsonrpc":"2.0","id":')
  setTimeout(() => request.socket.destroy(), 5)
}
const halfJson = ({ response }: Exchange) => {
  response.writeHead(200, { 'content-type': 'application/json' })
  response.end('{"jsonrpc":"2.0",')
}
const badGateway = ({ response }: Exchange) => void response.writeHead(502).end('upstream failed')
const unavailable = ({ answer }: Exchange) =>
  answer({ error: { code: -32603, message: 'Overloaded' } }, 503, { 'retry-after': '1' })
const internal = ({ answer }: Exchange) => answer({ error: { code: -32603, message: 'Database is locked' } })
const ownCode = ({ answer }: Exchange) => answer({ error: { code: -31_999, message: 'Try later' } })
const limited = ({ response }: Exchange) =>
  void response.writeHead(429, { 'retry-after': '2', 'content-type': 'text/plain' }).end('slow down')
const silent = () => {}
const answerToOther = ({ response }: Exchange) => {
  response.writeHead(200, { 'content-type': 'application/json' })
  response.end(JSON.stringify({ jsonrpc: '2.0', id: 'other', result: told('working') }))
}
const streamWithoutAnswer = ({ response }: Exchange) => {
  response.writeHead(200, { 'content-type': 'text/event-stream' })
  response.end(': nothing\n\n')
}

const passing = {
  html,
  cutBeforeAnswer,
  cutInsideAnswer,
  halfJson,
  badGateway,
  unavailable,
  internal,
  ownCode,
  limited,
  silent,
  answerToOther,
  streamWithoutAnswer,
}

describe('trouble that passes does not cost the result', () => {
  test.each(Object.entries(passing))('%s, three times', async (_, hostility) => {
    const { server, tasks } = await against({
      on: { 'tasks/get': (exchange) => (exchange.n <= 3 ? hostility(exchange) : exchange.honestly()) },
    })
    const call = await tasks.call('work')
    finishing(server)
    expect(await call.result()).toMatchObject({ content: [{ text: 'done' }] })
    expect(server.count('tasks/get')).toBe(4)
  })

  test('in any mixture', { timeout: 60_000 }, async () => {
    const mixture = fc.array(fc.constantFrom(...Object.values(passing)), { maxLength: 6 })
    await fc.assert(
      fc.asyncProperty(mixture, async (troubles) => {
        const { server, tasks } = await against(
          {
            on: {
              'tasks/get': (exchange) => {
                const trouble = troubles[exchange.n - 1]
                return trouble ? trouble(exchange) : exchange.honestly()
              },
            },
          },
          { clock: fastClock(50), poll: { minIntervalMs: 20, timeoutMs: 10_000 } },
        )
        const call = await tasks.call('work')
        finishing(server)
        expect(await call.result()).toMatchObject({ content: [{ text: 'done' }] })
        // The first honest look may come before the task is done.
        expect(server.count('tasks/get')).toBeLessThanOrEqual(troubles.length + 2)
      }),
      { numRuns: 12 },
    )
  })

  test('an answer that comes as a stream is an answer', async () => {
    const { server, tasks } = await against({
      on: {
        'tools/call': ({ response, params }) => {
          response.writeHead(200, { 'content-type': 'text/event-stream; charset=utf-8' })
          response.write(': hello\n\n')
          response.write('data: {"jsonrpc":"2.0","method":"notifications/message","params":{}}\n\n')
          void params
          setTimeout(() => {
            response.end(
              `data: ${JSON.stringify({ jsonrpc: '2.0', id: lastId, result: said('streamed') })}\n\n`,
            )
          }, 10)
        },
      },
    })
    // Ids are numbers that grow; a second client in this process has the next.
    const lastId = await idOfNextRequest(server.url)
    expect(await (await tasks.call('work')).result()).toMatchObject({ content: [{ text: 'streamed' }] })
  })
})

/** Learns the id that the library's next request will have. */
async function idOfNextRequest(url: string): Promise<number> {
  let id = 0
  const spy = createTasks({
    url,
    push: [],
    fetch: async (_url, init) => {
      id = (JSON.parse(bodyOf(init)) as { id: number }).id
      return Response.json({ jsonrpc: '2.0', id, result: { resultType: 'complete', tools: [] } })
    },
  })
  await spy.tools()
  return id + 1
}

describe('trouble that stays ends the following, in time and with the right error', () => {
  test.each(['html', 'cutBeforeAnswer', 'badGateway', 'internal', 'silent'] as const)(
    '%s, for ever',
    async (kind) => {
      const { server, tasks } = await against(
        { on: { 'tasks/get': passing[kind] } },
        { poll: { minIntervalMs: 20, maxIntervalMs: 200, timeoutMs: 500, maxFailures: 5 } },
      )
      const call = await tasks.call('work')
      await expect(call.outcome()).rejects.toMatchObject({ transient: true })
      expect(server.count('tasks/get')).toBe(5)
      // The task may be well: whoever comes back later finds it.
      expect(await tasks.references()).toMatchObject([{ taskId: 'tsk_1', status: 'working' }])
    },
  )

  test('a task that vanishes', async () => {
    const { server, tasks } = await against({
      on: {
        'tasks/get': ({ n, honestly, answer }) =>
          n < 3 ? honestly() : answer({ error: { code: -32602, message: 'Task not found.' } }),
      },
    })
    const call = await tasks.call('work')
    await expect(call.outcome()).rejects.toMatchObject({ code: 'task_not_found', taskId: 'tsk_1' })
    expect(server.count('tasks/get')).toBe(3)
  })

  test.each([-32_003, -32_021])('a capability that is missing all of a sudden: %d', async (code) => {
    const data = { requiredCapabilities: { extensions: { 'io.modelcontextprotocol/tasks': {} } } }
    const { server, tasks } = await against({
      on: { 'tasks/get': ({ answer }) => answer({ error: { code, message: 'Missing', data } }, 400) },
    })
    const call = await tasks.call('work')
    await expect(call.outcome()).rejects.toMatchObject({
      code: 'missing_capability',
      required: data.requiredCapabilities,
    })
    expect(server.count('tasks/get')).toBe(1)
  })

  test.each([
    ['a snapshot of another task', told('completed', { taskId: 'tsk_9', result: said('not yours') })],
    ['a result that does not say what it is', { ...told('working', { taskId: 'tsk_1' }), resultType: null }],
    ['a completed task without its result', told('completed', { taskId: 'tsk_1' })],
  ])('%s', async (_, result) => {
    const { server, tasks } = await against({ on: { 'tasks/get': ({ answer }) => answer({ result }) } })
    const call = await tasks.call('work')
    await expect(call.outcome()).rejects.toMatchObject({ code: 'invalid_response', transient: false })
    expect(server.count('tasks/get')).toBe(1)
  })

  test('an answer without an end', async () => {
    const { tasks } = await against(
      {
        on: {
          'tools/call': ({ response }) => {
            response.writeHead(200, { 'content-type': 'application/json' })
            const more = setInterval(() => response.write('x'.repeat(64 * 1024)), 1)
            response.on('close', () => clearInterval(more))
          },
        },
      },
      { maxResponseBytes: 1024 * 1024 },
    )
    await expect(tasks.call('work')).rejects.toMatchObject({ code: 'invalid_response' })
  })

  test('a call that is not answered', async () => {
    const { server, tasks } = await against({ on: { 'tools/call': silent } }, { callTimeoutMs: 1_000 })
    await expect(tasks.call('work')).rejects.toMatchObject({ code: 'unreachable' })
    expect(server.count('tools/call')).toBe(1)
  })
})

describe('a server that changes its mind', () => {
  test('about the time-to-live: the latest counts', async () => {
    const { server, tasks } = await against({
      on: {
        'tasks/get': ({ n, answer }) =>
          answer({
            result: told('working', {
              taskId: 'tsk_1',
              pollIntervalMs: 500,
              ttlMs: [60_000, 3_600_000][n - 1] ?? 2_000,
            }),
          }),
      },
    })
    const call = await tasks.call('work')
    await expect(call.outcome()).rejects.toMatchObject({ code: 'task_expired' })
    // Two seconds and the grace; not a minute, and not an hour.
    expect(server.count('tasks/get')).toBeLessThan(20)
  })

  test('about a key: nobody is asked under it twice, and the end is reached', async () => {
    const asked: string[] = []
    const { tasks, warnings } = await against(
      {
        on: {
          'tasks/get': ({ n, answer }) => {
            const ask = (message: string) =>
              told('input_required', { inputRequests: { q: confirmation(message) } })
            const results = [
              ask('First?'),
              told('working'),
              ask('Second?'),
              told('completed', { result: said('x') }),
            ]
            answer({ result: { ...results[Math.min(n, 4) - 1], taskId: 'tsk_1', pollIntervalMs: 50 } })
          },
        },
      },
      {
        onQuestion: ({ message }) => {
          asked.push(message)
          return accept({ confirm: true })
        },
      },
    )
    expect(await (await tasks.call('work')).result()).toMatchObject({ content: [{ text: 'x' }] })
    expect(asked).toEqual(['First?'])
    expect(warnings).toHaveLength(1)
  })
})

test('an answer to a question gets through a network that loses it', async () => {
  const { server, tasks } = await against(
    {
      on: {
        'tasks/update': (exchange) => (exchange.n < 3 ? cutBeforeAnswer(exchange) : exchange.honestly()),
      },
    },
    { onQuestion: () => accept({ confirm: true }) },
  )
  const call = await tasks.call('work')
  server.set('tsk_1', 'input_required', { inputRequests: { q: confirmation() } })
  await expect.poll(() => server.count('tasks/update'), { timeout: 5_000 }).toBe(3)
  finishing(server)
  await call.result()
})
