import { afterAll, afterEach, beforeAll, expect, test } from 'vitest'
import { McpClient } from '../support/mcp'
import { Server } from '../support/server'

/** A minute, in steps of a second. The local queues run one batch at a time. */
const LONG = { steps: 60, ms: 1_000 }

let server: Server
let client: McpClient
/** The long tasks of a test; they are cancelled at its end. */
const long: string[] = []

beforeAll(async () => {
  server = await Server.start({ config: 'test/e2e/wrangler.toml' })
  client = new McpClient(server.url)
  await client.rpc('tools/call', { name: 'prepare', arguments: {} })
})

afterEach(async () => {
  for (const taskId of long) await client.rpc('tasks/cancel', { taskId })
  for (const taskId of long.splice(0)) await client.until(taskId, ['cancelled'])
})
afterAll(() => server?.stop())

test('a short task does not wait for the long one before it', async () => {
  long.push(await client.start('work', LONG))
  const short = await client.start('work', { steps: 1, ms: 0 })
  expect(await client.untilEnded(short)).toMatchObject({ status: 'completed' })
  expect(await statesOf(long)).toEqual(['working'])
})

test('nor for a dozen of them, well into their work', async () => {
  await startDozen()
  const short = await client.start('work', { steps: 1, ms: 0 })
  expect(await client.untilEnded(short)).toMatchObject({ status: 'completed' })
  expect(await statesOf(long)).toEqual(long.map(() => 'working'))
})

test('a task that asked or slept goes on beside a dozen long ones', async () => {
  await startDozen()
  const [asker, sleeper] = await Promise.all([client.start('asker'), client.start('sleeper', { ms: 3_000 })])
  await client.until(asker, ['input_required'])
  const colour = { action: 'accept', content: { colour: 'blue' } }
  await client.rpc('tasks/update', { taskId: asker, inputResponses: { colour } })
  expect(await client.untilEnded(asker)).toMatchObject({ status: 'completed' })
  expect(await client.untilEnded(sleeper)).toMatchObject({ status: 'completed' })
  expect(await statesOf(long)).toEqual(long.map(() => 'working'))
})

test('ten tasks called for at once all end, each with its own result', async () => {
  const tasks = await Promise.all(
    Array.from({ length: 10 }, (_, i) => client.start('work', { steps: i + 1, ms: 10 })),
  )
  expect(new Set(tasks).size).toBe(10)
  for (const [i, task] of tasks.entries()) {
    const result = { content: [{ text: `${i + 1} steps done.` }] }
    expect(await client.untilEnded(task)).toMatchObject({ status: 'completed', result })
  }
})

/** Twelve long tasks, and their first slices are over. */
async function startDozen(): Promise<void> {
  long.push(...(await Promise.all(Array.from({ length: 12 }, () => client.start('work', LONG)))))
  await expect.poll(() => progressOf(long), { timeout: 20_000 }).toContain('Working (3/60)')
}

function statesOf(tasks: readonly string[]): Promise<string[]> {
  return Promise.all(tasks.map(async (task) => (await client.get(task)).status))
}

function progressOf(tasks: readonly string[]): Promise<string[]> {
  return Promise.all(tasks.map(async (task) => (await client.get(task)).statusMessage))
}
