import { afterAll, beforeAll, expect, test, vi } from 'vitest'
import { McpClient } from '../support/mcp'
import { Server } from '../support/server'

/** Another course of events: `CHAOS_SEED=7 npx vitest run test/e2e/kill.test.ts`. */
const SEED = Number(process.env['CHAOS_SEED'] ?? 1)
const KILLS = 3
const WORKERS = 6
const STEPS = 20
const STEP_MS = 400

/** Rows that `import_batch` brings in, each of them once. */
const RECORDS = Array.from({ length: 8_000 }, (_, i) => JSON.stringify({ number: i, text: 'x'.repeat(80) }))

let server: Server
let client: McpClient

beforeAll(async () => {
  server = await Server.start({
    config: 'test/e2e/wrangler.toml',
    vars: { TASK_LEASE_MS: 4_000, TASK_RESEND_MS: 1_000, TASK_SLOW_SLICE_MS: 5_000 },
  })
  client = new McpClient(server.url)
  await client.rpc('tools/call', { name: 'prepare', arguments: {} })
})

afterAll(() => server?.stop())

test('whenever the runtime is killed, every task ends as it should, by itself, and nothing is done twice', async () => {
  const random = randomFrom(SEED)
  const workers = await Promise.all(
    Array.from({ length: WORKERS }, () => client.start('work', { steps: STEPS, ms: STEP_MS })),
  )
  const sleepers = await Promise.all([3_000, 9_000, 15_000].map((ms) => client.start('sleeper', { ms })))
  const [asker, listener] = await Promise.all([client.start('asker'), client.start('listener')])
  const doomed = await client.start('work', { steps: 10_000, ms: STEP_MS })
  // One step at a time, with a rest after each, over all the kills.
  const migration = await client.start('run_migration', { name: 'create_users', pauseMs: 1_500 })
  let imported = ''
  await client.until(asker, ['input_required'])

  for (let kill = 1; kill <= KILLS; kill++) {
    await sleep(500 + random() * 1_500)
    // Its creation is all that anybody has heard of this one when the power goes.
    workers.push(await client.start('work', { steps: 3, ms: STEP_MS }))
    if (kill === 1) imported = await startImport()
    if (kill === 2) await client.rpc('tasks/cancel', { taskId: doomed })
    await server.kill()
    await server.restart()
    const [done] = await query<{ count: number }>('SELECT count(*) AS count FROM effects')
    expect(done?.count, `kill ${kill} came in the middle of the work`).toBeLessThan(WORKERS * STEPS)
  }

  const callbacks = await query<{ task: string; url: string }>('SELECT * FROM callbacks')
  expect(callbacks.map(({ task }) => task)).toEqual([listener])
  const posted = await fetch(callbacks[0]?.url ?? '', {
    method: 'POST',
    headers: { 'content-type': 'application/json' },
    body: JSON.stringify({ headline: 'It is raining.' }),
  })
  expect(posted.status).toBe(204)
  await client.rpc('tasks/update', {
    taskId: asker,
    inputResponses: { colour: { action: 'accept', content: { colour: 'blue' } } },
  })

  // Watched through the database only: a poll would wake the objects, and they must wake by themselves.
  const expected = [
    ...workers.flatMap((task, i) => names(i < WORKERS ? STEPS : 3).map((step) => `${task} ${step}`)),
    ...[...sleepers, asker, listener].flatMap((task) => [`${task} before`, `${task} after`]),
  ].toSorted()
  const isThere = async () => {
    const [done] = await query("SELECT 1 FROM migrations WHERE name = 'create_users'").catch(() => [])
    return done !== undefined && (await effectsWithout(doomed)).length >= expected.length
  }
  await vi.waitUntil(isThere, { timeout: 120_000, interval: 500 }).catch(() => undefined)

  const states = await Promise.all(
    [...workers, ...sleepers, migration, imported].map((task) => client.get(task)),
  )
  expect(states).toEqual(states.map(() => expect.objectContaining({ status: 'completed' })))
  const text = (value: string) => ({ status: 'completed', result: { content: [{ text: value }] } })
  expect(await client.get(asker)).toMatchObject(text('blue'))
  expect(await client.get(listener)).toMatchObject(text('It is raining.'))
  expect(await client.get(doomed)).toMatchObject({ status: 'cancelled' })
  expect(await effectsWithout(doomed)).toEqual(expected)
  expect(await stepsBegunAfterTheirRecord()).toEqual([])
  expect(await query('SELECT count(*) AS users FROM users')).toEqual([{ users: 4 }])
  expect(await query('SELECT count(*) AS sessions FROM legacy_sessions')).toEqual([{ sessions: 240 }])
  expect(await query('SELECT count(*) AS records FROM imported_records')).toEqual([
    { records: RECORDS.length },
  ])
}, 300_000)

/** Rows of the database of the server; touches no task. */
async function query<Row = unknown>(sql: string): Promise<Row[]> {
  const { body } = await client.rpc('tools/call', { name: 'inspect', arguments: { sql } })
  return JSON.parse(body.result.content[0].text) as Row[]
}

/** Starts an import, and sees that it has begun to write. */
async function startImport(): Promise<string> {
  const task = await client.start('import_batch', {
    table: 'imported_records',
    format: 'ndjson',
    text: RECORDS.join('\n'),
  })
  await vi.waitUntil(
    async () => (await query('SELECT 1 FROM imported_records LIMIT 1').catch(() => [])).length > 0,
    {
      timeout: 20_000,
    },
  )
  return task
}

function names(steps: number): string[] {
  return Array.from({ length: steps }, (_, i) => `step ${i + 1}`)
}

/** Every effect that is there, as often as it is there. */
async function effectsWithout(without: string): Promise<string[]> {
  const effects = await query<{ task: string; step: string }>('SELECT task, step FROM effects')
  return effects
    .filter(({ task }) => task !== without)
    .map(({ task, step }) => `${task} ${step}`)
    .toSorted()
}

/** A step may begin again when the power goes before its record; never after it. */
async function stepsBegunAfterTheirRecord(): Promise<string[]> {
  const recorded = new Set<string>()
  const wrong: string[] = []
  const log = await query<{ task: string; step: string; what: string }>('SELECT * FROM log ORDER BY id')
  for (const { task, step, what } of log) {
    if (what === 'recorded') recorded.add(`${task} ${step}`)
    else if (recorded.has(`${task} ${step}`)) wrong.push(`${task} ${step}`)
  }
  return wrong
}

function sleep(ms: number): Promise<void> {
  return new Promise((resolve) => {
    setTimeout(resolve, ms)
  })
}

/** Numbers from 0 to 1 that are the same for the same seed (mulberry32). */
function randomFrom(seed: number): () => number {
  let state = seed
  return () => {
    state = (state + 0x6d2b79f5) | 0
    let t = Math.imul(state ^ (state >>> 15), 1 | state)
    t = (t + Math.imul(t ^ (t >>> 7), 61 | t)) ^ t
    return ((t ^ (t >>> 14)) >>> 0) / 2 ** 32
  }
}
