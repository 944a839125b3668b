/** How much `tasks/get` costs: over the least it could cost, and by the SDK's entry alone. */
import { Client, getTaskBytes } from './client.mjs'
import { compare, inTurns, typical } from './rounds.mjs'

/**
 * Polled in turn, as many clients would. A task answers only so many polls in ten seconds, whatever the
 * speed of the machine: all rounds together stay below that.
 */
const TASKS = 96
const OPTIONS = { rounds: 80, withinMs: 30_000, warmUp: { requests: 800 }, amount: { requests: 150 } }

export async function measurePolling(runtime) {
  const client = new Client(runtime.url)
  const working = await client.startAll('rest', TASKS)
  const done = await client.startAll('one_step', TASKS)
  for (const taskId of done) await client.until(taskId, 'completed')

  const poll = (name, taskIds, path, status) => {
    const requests = taskIds.map((taskId) => getTaskBytes(runtime.url, path, taskId))
    return {
      name,
      request: (i) => requests[i % requests.length],
      check: (body) => {
        if (JSON.parse(body).result?.status !== status) throw new Error(`${name} answered ${body}`)
      },
    }
  }
  const samples = await inTurns(
    runtime,
    [
      poll('floor', working, '/floor/get', 'working'),
      poll('working', working, '/mcp', 'working'),
      poll('completed', done, '/mcp', 'completed'),
      poll('sdk', working, '/sdk', 'working'),
    ],
    OPTIONS,
  )
  const way = (name) => ({
    ...typical(samples.get(name)),
    toFloor: compare(samples.get(name), samples.get('floor')),
    toSdk: compare(samples.get(name), samples.get('sdk')),
  })
  return { floor: way('floor'), working: way('working'), completed: way('completed'), sdk: way('sdk') }
}
