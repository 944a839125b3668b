import { afterAll, beforeAll, expect, test, vi } from 'vitest'
import { McpClient } from '../support/mcp'
import { Server } from '../support/server'

/** Another course of events: `CHAOS_SEED=7 npx vitest run test/e2e/kill.test.ts`. */
const SEED = Number(process.env['CHAOS_SEED'] ?? 1)
const KILLS = 3
const STEPS = 30

interface Seen {
  readonly effects: readonly { readonly task: string; readonly step: string }[]
  readonly log: readonly {
    readonly id: number
    readonly task: string
    readonly step: string
    readonly what: string
  }[]
  readonly callbacks: readonly { readonly task: string; readonly url: string }[]
}

let server: Server
let client: McpClient

beforeAll(async () => {
  server = await Server.start({
    config: 'test/e2e/wrangler.toml',
    vars: { TASK_LEASE_MS: 4_000, TASK_RESEND_MS: 1_000, TASK_SLOW_SLICE_MS: 1_000 },
  })
  client = new McpClient(server.url)
  await client.rpc('tools/call', { name: 'prepare', arguments: {} })
})

afterAll(() => server?.stop())

test('whenever the runtime is killed, every task ends as it should, by itself, and nothing is done twice', async () => {
  const random = randomFrom(SEED)
  const workers = await Promise.all(
    Array.from({ length: 8 }, () => client.start('work', { steps: STEPS, ms: 150 })),
  )
  const sleepers = await Promise.all([3_000, 9_000, 15_000].map((ms) => client.start('sleeper', { ms })))
  const [asker, listener] = await Promise.all([client.start('asker'), client.start('listener')])
  const doomed = await client.start('work', { steps: 10_000, ms: 150 })
  await client.until(asker, ['input_required'])

  for (let kill = 1; kill <= KILLS; kill++) {
    await sleep(500 + random() * 1_500)
    // Its creation is all that anybody has heard of this one when the power goes.
    workers.push(await client.start('work', { steps: 3, ms: 150 }))
    if (kill === 2) await client.rpc('tasks/cancel', { taskId: doomed })
    await server.kill()
    await server.restart()
    const { effects } = await inspect()
    expect(effects.length, `kill ${kill} came in the middle of the work`).toBeLessThan(8 * STEPS)
  }

  const { callbacks } = await inspect()
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
    ...workers.flatMap((task, i) => names(i < 8 ? STEPS : 3).map((step) => `${task} ${step}`)),
    ...[...sleepers, asker, listener].flatMap((task) => [`${task} before`, `${task} after`]),
  ].toSorted()
  const isThere = async () => effectsWithout(await inspect(), doomed).length >= expected.length
  await vi.waitUntil(isThere, { timeout: 120_000, interval: 500 }).catch(() => undefined)

  const states = await Promise.all([...workers, ...sleepers].map((task) => client.get(task)))
  expect(states).toEqual(states.map(() => expect.objectContaining({ status: 'completed' })))
  const text = (value: string) => ({ status: 'completed', result: { content: [{ text: value }] } })
  expect(await client.get(asker)).toMatchObject(text('blue'))
  expect(await client.get(listener)).toMatchObject(text('It is raining.'))
  expect(await client.get(doomed)).toMatchObject({ status: 'cancelled' })
  expect(effectsWithout(await inspect(), doomed)).toEqual(expected)
  expect(stepsBegunAfterTheirRecord(await inspect())).toEqual([])
}, 300_000)

async function inspect(): Promise<Seen> {
  const { body } = await client.rpc('tools/call', { name: 'inspect', arguments: {} })
  return JSON.parse(body.result.content[0].text) as Seen
}

function names(steps: number): string[] {
  return Array.from({ length: steps }, (_, i) => `step ${i + 1}`)
}

/** Every effect that is there, as often as it is there. */
function effectsWithout({ effects }: Seen, without: string): string[] {
  return effects
    .filter(({ task }) => task !== without)
    .map(({ task, step }) => `${task} ${step}`)
    .toSorted()
}

/** A step may begin again when the power goes before its record; never after it. */
function stepsBegunAfterTheirRecord({ log }: Seen): string[] {
  const recorded = new Set<string>()
  const wrong: string[] = []
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
