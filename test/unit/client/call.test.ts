import { describe, expect, test, vi } from 'vitest'
import {
  accept,
  createTasks,
  memoryStore,
  type Question,
  type TasksOptions,
  type Update,
} from '../../../src/client/index.ts'
import {
  completed,
  confirmation,
  created,
  type Handler,
  said,
  stubServer,
  TASK_ID,
  told,
} from '../../support/stub-server.ts'

const ACK = { resultType: 'complete' }

function clientOf(handlers: Record<string, Handler>, more: Partial<TasksOptions> = {}) {
  const server = stubServer({
    'tools/call': () => created({ pollIntervalMs: 1 }),
    'tasks/cancel': () => ACK,
    ...handlers,
  })
  const warnings: string[] = []
  const tasks = createTasks({
    url: 'http://server.test/mcp',
    fetch: server.fetch,
    push: [],
    poll: { minIntervalMs: 1 },
    onWarning: (message) => warnings.push(message),
    ...more,
  })
  return { server, tasks, warnings }
}

const quick = (status: string, more = {}) => told(status, { pollIntervalMs: 1, ...more })

/** Answers with these in turn, and then with the last for ever. */
function inTurn(...answers: readonly unknown[]): Handler {
  let n = 0
  return () => answers[Math.min(n++, answers.length - 1)]
}

async function all(updates: AsyncIterable<Update>): Promise<Update[]> {
  const list: Update[] = []
  for await (const update of updates) list.push(update)
  return list
}

describe('a call', () => {
  test('that is answered at once has a result and one update', async () => {
    const { tasks, server } = clientOf({ 'tools/call': () => said('hello', { isError: true }) })
    const call = await tasks.call('greet', { name: 'Ada' })
    expect(call.taskId).toBeUndefined()
    expect(await call.result()).toEqual({ content: [{ type: 'text', text: 'hello' }], isError: true })
    expect(await all(call)).toMatchObject([{ status: 'completed', outcome: { status: 'completed' } }])
    expect(server.of('tools/call')[0]?.params).toMatchObject({ name: 'greet', arguments: { name: 'Ada' } })
    expect(await tasks.references()).toEqual([])
  })

  test('that becomes a task tells each change once, and then the result', async () => {
    const { tasks } = clientOf({
      'tools/call': () => created({ pollIntervalMs: 1 }),
      'tasks/get': inTurn(
        quick('working'),
        quick('working', { statusMessage: 'Copying (1/2)' }),
        quick('working', { statusMessage: 'Copying (1/2)' }),
        quick('working', { statusMessage: 'Copying (2/2)' }),
        completed('done'),
      ),
    })
    const call = await tasks.call('copy')
    const updates = await all(call)
    expect(updates.map(({ status, progress }) => [status, progress?.done])).toEqual([
      ['working', undefined],
      ['working', 1],
      ['working', 2],
      ['completed', undefined],
    ])
    expect(updates[1]?.progress).toEqual({ done: 1, total: 2, label: 'Copying' })
    expect(await call.result()).toEqual({ content: [{ type: 'text', text: 'done' }] })
    // Whoever comes late gets the last word.
    expect(await all(call)).toMatchObject([{ status: 'completed' }])
  })

  test('that fails says with which error', async () => {
    const { tasks } = clientOf({
      'tasks/get': () => told('failed', { error: { code: 42, message: 'Disk full', data: { free: 0 } } }),
    })
    const call = await tasks.call('work')
    expect(await call.outcome()).toMatchObject({ status: 'failed', error: { code: 42, data: { free: 0 } } })
    await expect(call.result()).rejects.toMatchObject({
      code: 'task_failed',
      error: { message: 'Disk full' },
    })
  })

  test('whose task is over before the first look is looked at without a wait', async () => {
    const { tasks } = clientOf({
      'tools/call': () => created({ status: 'completed', pollIntervalMs: 3_600_000 }),
      'tasks/get': () => completed('quick'),
    })
    expect(await (await tasks.call('work')).result()).toMatchObject({ content: [{ text: 'quick' }] })
  })

  test('that the server refuses rejects, and keeps nothing', async () => {
    const { tasks } = clientOf({ 'tools/call': () => ({ error: { code: -32602, message: 'No such tool' } }) })
    await expect(tasks.call('nothing')).rejects.toMatchObject({ code: 'rpc', error: { code: -32602 } })
    expect(await tasks.references()).toEqual([])
  })

  test('is not made again when the connection breaks: the tool may have run', async () => {
    const { tasks, server } = clientOf({
      'tools/call': () => {
        throw new TypeError('socket hang up')
      },
    })
    await expect(tasks.call('work')).rejects.toMatchObject({ code: 'unreachable', transient: true })
    expect(server.received).toHaveLength(1)
  })

  test('is made again under a key of its own, by which the server knows it', async () => {
    vi.useFakeTimers()
    try {
      const { tasks, server } = clientOf({
        'tools/call': inTurn(new Response(null, { status: 502 }), said('hello')),
      })
      const making = tasks.call('work', {}, { idempotencyKey: 'order-7', meta: { trace: 't' } })
      await vi.advanceTimersByTimeAsync(5_000)
      expect(await (await making).result()).toMatchObject({ content: [{ text: 'hello' }] })
      const metas = server.received.map(({ params }) => params['_meta'])
      expect(metas).toHaveLength(2)
      for (const meta of metas) {
        expect(meta).toMatchObject({ 'longhaul.dev/idempotencyKey': 'order-7', trace: 't' })
      }
    } finally {
      vi.useRealTimers()
    }
  })

  test.each([-32_021, -32_003])(
    'names the missing capability, whichever of its numbers: %d',
    async (code) => {
      const requiredCapabilities = { elicitation: {} }
      const error = { code, message: 'Missing required client capability', data: { requiredCapabilities } }
      const { tasks } = clientOf({
        'tools/call': () => Response.json({ jsonrpc: '2.0', error }, { status: 400 }),
      })
      await expect(tasks.call('work')).rejects.toMatchObject({
        code: 'missing_capability',
        required: requiredCapabilities,
      })
    },
  )
})

describe('the reference of a task', () => {
  test('is kept before the first look, with what is needed to find the task again', async () => {
    const store = memoryStore()
    let keptAtFirstLook: unknown
    const { tasks } = clientOf(
      {
        'tools/call': () => created({ pollIntervalMs: 1, ttlMs: 5_000_000 }),
        'tasks/get': async () => {
          keptAtFirstLook ??= await store.list()
          return completed('done')
        },
      },
      { store },
    )
    const call = await tasks.call('work', { secret: 'x' })
    await call.result()
    expect(keptAtFirstLook).toEqual([
      {
        taskId: TASK_ID,
        endpoint: 'http://server.test/mcp',
        tool: 'work',
        createdAt: expect.any(Number),
        ttlMs: 5_000_000,
        status: 'working',
        cancelRequested: false,
        answered: [],
      },
    ])
    await vi.waitFor(async () => expect(await store.list()).toMatchObject([{ status: 'completed' }]))
    expect(await tasks.resume()).toEqual([])
  })

  test('that cannot be kept is warned about, and the call goes on', async () => {
    const full = { ...memoryStore(), put: () => Promise.reject(new Error('quota exceeded')) }
    const { tasks, warnings } = clientOf({ 'tasks/get': () => completed('done') }, { store: full })
    await (await tasks.call('work')).result()
    expect(warnings[0]).toContain('quota exceeded')
  })

  test('is forgotten when the server does not know the task', async () => {
    const { tasks } = clientOf({
      'tasks/get': () => ({ error: { code: -32602, message: 'Task not found.' } }),
    })
    const call = await tasks.call('work')
    await expect(call.outcome()).rejects.toMatchObject({ code: 'task_not_found', taskId: TASK_ID })
    await vi.waitFor(async () => expect(await tasks.references()).toEqual([]))
  })

  test('lets another client take up the task, at once and with what was said before', async () => {
    const store = memoryStore()
    const asking = { confirm: confirmation(), name: confirmation('Name?') }
    const first = clientOf(
      {
        'tasks/get': () => quick('input_required', { inputRequests: asking }),
        'tasks/update': () => ACK,
      },
      { store, capabilities: { elicitation: {} } },
    )
    const before = await first.tasks.call('work')
    for await (const { questions } of before) if (questions.length === 2) break
    await before.answer('confirm', accept({ confirm: true }))
    await before.cancel()
    first.tasks.close()

    const asked: string[] = []
    const second = clientOf(
      {
        'tasks/get': inTurn(quick('input_required', { inputRequests: asking }), completed('done')),
        'tasks/update': () => ACK,
      },
      {
        store,
        onQuestion: ({ key }) => {
          asked.push(key)
          return accept({})
        },
      },
    )
    const [after] = await second.tasks.resume()
    expect(after).toMatchObject({ taskId: TASK_ID, tool: 'work', latest: undefined })
    expect(await after?.outcome()).toMatchObject({ status: 'completed', completedAnyway: true })
    expect(asked).toEqual(['name'])
  })

  test('of another server is not resumed here', async () => {
    const store = memoryStore()
    const { tasks } = clientOf({}, { store })
    await tasks.call('work')
    tasks.close()
    const other = createTasks({ url: 'http://other.test/mcp', store, fetch: stubServer({}).fetch })
    expect(await other.resume()).toEqual([])
    expect(await store.list()).toHaveLength(1)
  })
})

describe('questions', () => {
  test('are asked once, however often the server repeats them, and answered in one request each', async () => {
    const asked: Question[] = []
    const inputRequests = { confirm: confirmation('Delete 47 files?') }
    const repeated = quick('input_required', { inputRequests })
    const { tasks, server } = clientOf(
      {
        // After the answer the server still lists the question for a while: acknowledgements come first.
        'tasks/get': inTurn(repeated, repeated, repeated, repeated, quick('working'), completed('done')),
        'tasks/update': () => ACK,
      },
      {
        onQuestion: async (question) => {
          asked.push(question)
          await new Promise((resolve) => setTimeout(resolve, 5))
          return accept({ confirm: true })
        },
      },
    )
    const call = await tasks.call('delete_files')
    await call.result()
    expect(asked).toMatchObject([
      {
        key: 'confirm',
        taskId: TASK_ID,
        tool: 'delete_files',
        kind: 'form',
        message: 'Delete 47 files?',
        schema: { properties: { confirm: { type: 'boolean' } } },
      },
    ])
    expect(server.of('tasks/update').map(({ params }) => params['inputResponses'])).toEqual([
      { confirm: { action: 'accept', content: { confirm: true } } },
    ])
  })

  test('that an update lists are those nobody answered', async () => {
    const both = { a: confirmation(), b: confirmation() }
    const { tasks } = clientOf({
      'tasks/get': () => quick('input_required', { inputRequests: both }),
      'tasks/update': () => ACK,
    })
    const call = await tasks.call('work')
    const seen: string[][] = []
    for await (const { questions, status } of call) {
      if (status === 'input_required') seen.push(questions.map(({ key }) => key))
      if (seen.length === 1) await call.answer('a', accept({}))
      if (seen.length === 2) break
    }
    expect(seen).toEqual([['a', 'b'], ['b']])
    tasks.close()
  })

  test('under a key that was used before are not asked, and the server is reported', async () => {
    const asked: string[] = []
    const { tasks, warnings } = clientOf(
      {
        'tasks/get': inTurn(
          quick('input_required', { inputRequests: { q: confirmation('First?') } }),
          quick('working'),
          quick('input_required', { inputRequests: { q: confirmation('Second?') } }),
          completed('done'),
        ),
        'tasks/update': () => ACK,
      },
      {
        onQuestion: ({ message }) => {
          asked.push(message)
          return accept({})
        },
      },
    )
    await (await tasks.call('work')).result()
    expect(asked).toEqual(['First?'])
    expect(warnings).toEqual([expect.stringContaining('"q"')])
  })

  test('are answered again when the answer got lost on the way', async () => {
    vi.useFakeTimers()
    try {
      let tries = 0
      const { tasks, server } = clientOf(
        {
          'tasks/get': () =>
            tries < 3 ? told('input_required', { inputRequests: { q: confirmation() } }) : completed('done'),
          'tasks/update': () => {
            tries += 1
            if (tries < 3) throw new TypeError('connection reset')
            return ACK
          },
        },
        { onQuestion: () => accept({}) },
      )
      const call = await tasks.call('work')
      await vi.advanceTimersByTimeAsync(60_000)
      expect(await call.result()).toMatchObject({ content: [{ text: 'done' }] })
      expect(server.of('tasks/update')).toHaveLength(3)
    } finally {
      vi.useRealTimers()
    }
  })

  test('answered elsewhere are taken back', async () => {
    let takenBack = false
    const { tasks } = clientOf(
      {
        'tasks/get': inTurn(
          quick('input_required', { inputRequests: { q: confirmation() } }),
          quick('working'),
          completed('done'),
        ),
      },
      {
        onQuestion: (_, { signal }) =>
          new Promise((_resolve, reject) => {
            signal.addEventListener('abort', () => {
              takenBack = true
              reject(new Error('the dialog was closed'))
            })
          }),
      },
    )
    expect(await (await tasks.call('work')).outcome()).toMatchObject({ status: 'completed' })
    expect(takenBack).toBe(true)
  })

  test('may be left open by the handler', async () => {
    const { tasks, server } = clientOf(
      {
        'tasks/get': inTurn(
          quick('input_required', { inputRequests: { q: confirmation() } }),
          completed('x'),
        ),
      },
      { onQuestion: () => undefined },
    )
    await (await tasks.call('work')).result()
    expect(server.of('tasks/update')).toEqual([])
  })

  test('whose handler fails end the following with that error, and the task can be resumed', async () => {
    const { tasks } = clientOf(
      { 'tasks/get': () => quick('input_required', { inputRequests: { q: confirmation() } }) },
      {
        onQuestion: () => {
          throw new RangeError('no terminal')
        },
      },
    )
    const call = await tasks.call('work')
    await expect(call.result()).rejects.toThrow('no terminal')
    await expect(all(call)).rejects.toThrow('no terminal')
    expect(await tasks.references()).toMatchObject([{ status: 'input_required' }])
  })
})

describe('input that a server wants before it begins', () => {
  const round = (key: string, requestState?: string) => ({
    resultType: 'input_required',
    inputRequests: { [key]: confirmation() },
    ...(requestState !== undefined && { requestState }),
  })

  test('is asked for like any other, and the call made again with it and the server’s state', async () => {
    const { tasks, server } = clientOf(
      {
        'tools/call': inTurn(round('name', 's1'), round('name', 's2'), created({ pollIntervalMs: 1 })),
        'tasks/get': () => completed('x'),
      },
      { onQuestion: ({ key, taskId }) => accept({ key, hasTask: taskId !== undefined }) },
    )
    const call = await tasks.call('work', { a: 1 }, { meta: { trace: 't' } })
    await call.result()
    const given = { name: accept({ key: 'name', hasTask: false }) }
    expect(server.of('tools/call').map(({ params: { _meta, ...params } }) => params)).toEqual([
      { name: 'work', arguments: { a: 1 } },
      { name: 'work', arguments: { a: 1 }, inputResponses: given, requestState: 's1' },
      { name: 'work', arguments: { a: 1 }, inputResponses: given, requestState: 's2' },
    ])
    expect(server.of('tools/call')[2]?.params).toMatchObject({ _meta: { trace: 't' } })
  })

  test('can be answered by hand, and without a state there is none in the next call', async () => {
    const both = { resultType: 'input_required', inputRequests: { a: confirmation(), b: confirmation() } }
    const { tasks, server } = clientOf({ 'tools/call': inTurn(both, said('done')) })
    const call = await tasks.call('work')
    expect(call.latest).toMatchObject({ status: 'input_required', taskId: undefined })
    await call.answer('a', accept({}))
    expect(call.latest?.questions.map(({ key }) => key)).toEqual(['b'])
    await call.answer('b', accept({}))
    expect(await call.result()).toMatchObject({ content: [{ text: 'done' }] })
    expect(server.of('tools/call')[1]?.params).not.toHaveProperty('requestState')
  })

  test('that never ends is an error', async () => {
    let n = 0
    const { tasks } = clientOf(
      { 'tools/call': () => round('q', `s${++n}`) },
      { onQuestion: () => accept({}) },
    )
    const call = await tasks.call('work')
    await expect(call.result()).rejects.toMatchObject({ code: 'too_many_rounds' })
    expect(n).toBe(11)
  })

  test('is not needed any more after a cancel, for nothing had begun', async () => {
    const { tasks, server } = clientOf({ 'tools/call': () => round('q') })
    const call = await tasks.call('work')
    await call.cancel()
    expect(await call.outcome()).toMatchObject({ status: 'cancelled' })
    expect(server.received).toHaveLength(1)
  })
})

describe('a cancellation', () => {
  test('is requested until the server says that it happened', async () => {
    let isCancelled = false
    const { tasks } = clientOf({
      'tasks/get': () => (isCancelled ? quick('cancelled', { statusMessage: 'Stopped' }) : quick('working')),
    })
    const call = await tasks.call('work')
    await call.cancel()
    expect(call.latest).toMatchObject({ status: 'working', cancelRequested: true, outcome: undefined })
    isCancelled = true
    expect(await call.outcome()).toMatchObject({ status: 'cancelled', message: 'Stopped' })
    await expect(call.result()).rejects.toMatchObject({ code: 'task_cancelled', message: 'Stopped' })
  })

  test('that came too late is told: the task completed all the same', async () => {
    const { tasks, server } = clientOf({
      'tools/call': () => created({ pollIntervalMs: 1 }),
      'tasks/get': () => (server.of('tasks/cancel').length > 0 ? completed('done') : quick('working')),
    })
    const call = await tasks.call('work')
    await call.cancel()
    const outcome = await call.outcome()
    expect(outcome).toMatchObject({ status: 'completed', completedAnyway: true })
    expect(await call.result()).toMatchObject({ content: [{ text: 'done' }] })
  })

  test('that the server did not hear of is not requested', async () => {
    const { tasks } = clientOf({
      'tasks/get': () => quick('working'),
      'tasks/cancel': () => ({ error: { code: -32600, message: 'Not today' } }),
    })
    const call = await tasks.call('work')
    await expect(call.cancel()).rejects.toThrow('Not today')
    expect(call.latest).toMatchObject({ cancelRequested: false })
    tasks.close()
  })

  test('after the end asks nobody', async () => {
    const { tasks, server } = clientOf({ 'tasks/get': () => completed('done') })
    const call = await tasks.call('work')
    await call.result()
    await call.cancel()
    expect(server.of('tasks/cancel')).toEqual([])
  })
})

describe('leaving', () => {
  test('by detach ends the updates quietly and keeps the reference', async () => {
    const { tasks } = clientOf({ 'tasks/get': () => quick('working') })
    const call = await tasks.call('work')
    const reading = all(call)
    call.detach()
    expect((await reading).map(({ status }) => status)).toEqual(['working'])
    await expect(call.result()).rejects.toMatchObject({ code: 'detached' })
    expect(await tasks.references()).toMatchObject([{ status: 'working' }])
  })

  test('by an abort signal rejects with its reason', async () => {
    const { tasks, server } = clientOf({ 'tasks/get': () => quick('working') })
    const controller = new AbortController()
    const call = await tasks.call('work', {}, { signal: controller.signal })
    controller.abort(new Error('the page was closed'))
    await expect(call.outcome()).rejects.toThrow('the page was closed')
    const looks = server.of('tasks/get').length
    await new Promise((resolve) => setTimeout(resolve, 30))
    expect(server.of('tasks/get').length).toBe(looks)
    await expect(tasks.call('work', {}, { signal: controller.signal })).rejects.toThrow('the page was closed')
  })

  test('while the call is under way gives up the request', async () => {
    const { tasks } = clientOf({ 'tools/call': () => new Promise(() => {}) })
    const controller = new AbortController()
    const calling = tasks.call('work', {}, { signal: controller.signal })
    controller.abort()
    await expect(calling).rejects.toThrow()
  })
})

describe('credentials', () => {
  test('from a function are renewed once when they are refused', async () => {
    const given = ['old', 'new']
    const { tasks, server } = clientOf(
      {
        'tools/call': ({ headers }) =>
          headers.get('authorization') === 'Bearer new' ? said('hello') : new Response(null, { status: 401 }),
      },
      { token: () => given.shift() },
    )
    expect(await (await tasks.call('work')).result()).toMatchObject({ content: [{ text: 'hello' }] })
    expect(server.received).toHaveLength(2)
  })

  test('that stay refused are an error of their own kind', async () => {
    const { tasks, server } = clientOf(
      { 'tools/call': () => new Response(null, { status: 401 }) },
      { token: 'wrong', headers: { 'x-tenant': 'acme' } },
    )
    await expect(tasks.call('work')).rejects.toMatchObject({ code: 'unauthorized', status: 401 })
    expect(server.received[0]?.headers.get('authorization')).toBe('Bearer wrong')
    expect(server.received[0]?.headers.get('x-tenant')).toBe('acme')
  })
})

describe('the tools of a server', () => {
  const tool = (name: string, property: Record<string, unknown> = { type: 'string' }) => ({
    name,
    inputSchema: { type: 'object', properties: { region: property } },
  })

  test('are listed over all pages, without those that break the rules', async () => {
    const { tasks, warnings } = clientOf({
      'tools/list': ({ params }) =>
        params['cursor'] === 'next'
          ? { ...ACK, tools: [tool('b'), tool('bad', { type: 'array', 'x-mcp-header': 'X' })] }
          : { ...ACK, tools: [tool('a')], nextCursor: 'next' },
      'tools/call': () => said('never'),
    })
    expect((await tasks.tools()).map(({ name }) => name)).toEqual(['a', 'b'])
    expect(warnings).toEqual([expect.stringContaining('bad')])
    await expect(tasks.call('bad')).rejects.toMatchObject({ code: 'invalid_tool' })
  })

  test('are looked up when a call lacks a mirrored header, and the call is made right', async () => {
    const mismatch = { error: { code: -32020, message: 'Header mismatch' } }
    const { tasks, server } = clientOf({
      'tools/list': () => ({ ...ACK, tools: [tool('a', { type: 'string', 'x-mcp-header': 'Region' })] }),
      'tools/call': ({ headers }) => (headers.get('mcp-param-region') === 'eu' ? said('hello') : mismatch),
    })
    expect(await (await tasks.call('a', { region: 'eu' })).result()).toMatchObject({
      content: [{ text: 'hello' }],
    })
    expect(server.received.map(({ method }) => method)).toEqual(['tools/call', 'tools/list', 'tools/call'])
    await expect(tasks.call('a', { region: 'us' })).rejects.toMatchObject({ code: 'rpc' })
  })
})

test('a server that asks for our revision gets it once more; one that does not have it is named', async () => {
  const unsupported = (supported: string[]) => ({
    error: { code: -32022, message: 'Unsupported protocol version', data: { supported } },
  })
  const same = clientOf({ 'tools/call': inTurn(unsupported(['2026-07-28']), said('hello')) })
  await same.tasks.call('work')
  expect(same.server.received).toHaveLength(2)
  const old = clientOf({ 'tools/call': () => unsupported(['2025-11-25']) })
  await expect(old.tasks.call('work')).rejects.toMatchObject({ code: 'unsupported_version' })
  expect(old.server.received).toHaveLength(1)
})
