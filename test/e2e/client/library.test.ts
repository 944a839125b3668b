import { mkdtempSync, rmSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { afterAll, afterEach, beforeAll, describe, expect, test } from 'vitest'
import {
  accept,
  type Call,
  createTasks,
  type Tasks,
  type TasksOptions,
  type Update,
} from '../../../src/client/index.ts'
import { sqliteStore } from '../../../src/client/node.ts'
import { Server } from '../../support/server.ts'

let server: Server
const clients: Tasks[] = []
const folder = mkdtempSync(join(tmpdir(), 'longhaul-client-'))

beforeAll(async () => {
  server = await Server.start({ config: 'test/e2e/client/wrangler.toml' })
})
afterAll(async () => {
  await server.stop()
  rmSync(folder, { recursive: true })
})
afterEach(() => {
  for (const tasks of clients.splice(0)) tasks.close()
})

function client(options: Partial<TasksOptions> = {}): Tasks {
  const tasks = createTasks({ url: `${server.url}/mcp`, token: 'acme-key-acme-key', ...options })
  clients.push(tasks)
  return tasks
}

async function all(call: Call): Promise<Update[]> {
  const updates: Update[] = []
  for await (const update of call) updates.push(update)
  return updates
}

const text = async (call: Call) => (await call.result()).content[0]?.['text']

describe.each([
  ['websocket', ['websocket']],
  ['sse', ['sse']],
  ['poll', []],
] as const)('followed by %s', (via, push) => {
  test('a task tells how far it is, forwards and never twice, and then its result', async () => {
    const call = await client({ push }).call('count', { to: 12, ms: 100 })
    const updates = await all(call)
    const steps = updates.map(({ progress }) => progress?.done).filter((done) => done !== undefined)
    expect(steps.length).toBeGreaterThan(1)
    expect(steps).toEqual([...new Set(steps)].toSorted((a, b) => a - b))
    expect(updates.at(-1)).toMatchObject({ status: 'completed', via })
    expect(await text(call)).toBe('Counted to 12.')
  })

  test('a question reaches its handler, and the answer reaches the tool', async () => {
    const tasks = client({ push, onQuestion: () => accept({ confirm: true, copies: 3 }) })
    expect(await text(await tasks.call('confirm', { files: 3 }))).toBe('true 3')
  })

  test('a cancellation is requested, and then happens', async () => {
    const call = await client({ push }).call('count', { to: 1_000, ms: 100 })
    const reading = all(call)
    await call.cancel()
    expect(await call.outcome()).toMatchObject({ status: 'cancelled' })
    const requested = (await reading).filter(({ cancelRequested }) => cancelRequested)
    expect(requested.map(({ status }) => status)).toContain('working')
  })
})

describe('every kind of answer', () => {
  test('at once, without a task', async () => {
    const call = await client().call('add', { a: 2, b: 3 })
    expect(call.taskId).toBeUndefined()
    expect(await text(call)).toBe('5')
  })

  test('an error of the tool is a result; a failure is none', async () => {
    const tasks = client()
    const wrong = await tasks.call('failing', { as: 'error' })
    expect(await wrong.result()).toMatchObject({ isError: true, content: [{ text: 'It went wrong.' }] })
    const broken = await tasks.call('failing', { as: 'failure' })
    expect(await broken.outcome()).toMatchObject({
      status: 'failed',
      error: { code: -31_000, message: expect.stringContaining('It broke.'), data: { part: 'axle' } },
    })
  })

  test('arguments that do not fit are an error of the tool', async () => {
    const call = await client().call('count', { to: 'many' })
    expect(await call.result()).toMatchObject({ isError: true })
  })

  test('questions before the task, put again until they fit', async () => {
    const messages: string[] = []
    const tasks = client({
      onQuestion: ({ message, taskId }) => {
        messages.push(message)
        expect(taskId).toBeUndefined()
        return accept({ colour: messages.length === 1 ? 'x' : 'red' })
      },
    })
    expect(await text(await tasks.call('prepared'))).toBe('red')
    expect(messages).toEqual(['Which colour?', expect.stringContaining('did not fit')])
  })

  test('an answer that does not fit brings the question back under a new key', async () => {
    const keys: string[] = []
    const tasks = client({
      onQuestion: ({ key }) => {
        keys.push(key)
        return accept(keys.length === 1 ? { confirm: 'perhaps' } : { confirm: false })
      },
    })
    expect(await text(await tasks.call('confirm'))).toMatch(/^false/)
    expect(keys).toHaveLength(2)
    expect(new Set(keys).size).toBe(2)
  })
})

describe('what the server insists on', () => {
  test('a client that answers no questions is refused at once what would ask some', async () => {
    await expect(client().call('confirm')).rejects.toMatchObject({
      code: 'missing_capability',
      required: { elicitation: {} },
    })
  })

  test('arguments that must travel in headers do', async () => {
    const tasks = client()
    // Without knowing the tool: the library finds out. Knowing it: at the first attempt.
    expect(await text(await tasks.call('routed', { region: 'Île-de-France' }))).toBe('In Île-de-France.')
    expect(await text(await tasks.call('routed', { region: 'eu' }))).toBe('In eu.')
  })

  test('a wrong key is an error of its own, and the task of another tenant is unknown', async () => {
    await expect(client({ token: 'wrong' }).call('add', { a: 1, b: 1 })).rejects.toMatchObject({
      code: 'unauthorized',
    })
    const { taskId = '' } = await client().call('count', { to: 1 })
    const foreign = await client({ token: 'globex-key-globex-key' }).follow(taskId)
    await expect(foreign.outcome()).rejects.toMatchObject({ code: 'task_not_found' })
  })

  test('a call under a key of its own, made twice, is one task', async () => {
    const tasks = client()
    const options = { idempotencyKey: 'order 7' }
    const [one, two] = await Promise.all([
      tasks.call('count', { to: 2 }, options),
      tasks.call('count', { to: 2 }, options),
    ])
    expect(one.taskId).toBe(two.taskId)
    expect(await text(two)).toBe('Counted to 2.')
  })
})

describe('when things break', () => {
  test('a task that was begun by a process that is gone is found again in its store', async () => {
    const path = join(folder, 'tasks.db')
    const before = client({ store: sqliteStore(path) })
    const { taskId } = await before.call('count', { to: 8, ms: 100 })
    before.close()
    const [call, ...others] = await client({ store: sqliteStore(path) }).resume()
    expect(others).toEqual([])
    expect(call?.taskId).toBe(taskId)
    expect(call && (await text(call))).toBe('Counted to 8.')
  })

  test(
    'a server that is killed and comes back costs neither the task nor its news',
    { timeout: 180_000 },
    async () => {
      const tasks = client({ poll: { maxFailures: 50, maxIntervalMs: 2_000 } })
      const call = await tasks.call('count', { to: 60, ms: 100 })
      const reading = all(call)
      await expect.poll(() => call.latest?.progress?.done ?? 0, { timeout: 20_000 }).toBeGreaterThan(5)
      await server.kill()
      const before = call.latest?.progress?.done ?? 0
      await server.restart()
      expect(await text(call)).toBe('Counted to 60.')
      const steps = (await reading).map(({ progress }) => progress?.done).filter((done) => done !== undefined)
      expect(steps.at(-1)).toBeGreaterThan(before)
      expect(steps.filter((step, index) => step === steps[index - 1])).toEqual([])
    },
  )
})
