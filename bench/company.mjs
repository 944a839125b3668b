/** How long a short task takes, from the call to a poll that sees it completed: alone, and beside long ones. */
import { setTimeout as sleep } from 'node:timers/promises'
import { Client } from './client.mjs'
import { median } from './rounds.mjs'

const LONG_TASKS = 12
const SHORT_TASKS = 20
/** The long tasks have used up their first slices by then. */
const SETTLED_MS = 4_000

export async function measureCompany({ url }) {
  const client = new Client(url)
  await shortTasks(client)
  const before = await shortTasks(client)
  const long = await client.startAll('long_work', LONG_TASKS)
  await sleep(SETTLED_MS)
  const beside = await shortTasks(client)
  for (const taskId of long) {
    const { status } = await client.get(taskId)
    if (status !== 'working') throw new Error(`A long task ended early, ${status}: there was no company.`)
    await client.cancel(taskId)
  }
  for (const taskId of long) await client.until(taskId, 'cancelled')
  const after = await shortTasks(client)
  return { longTasks: LONG_TASKS, alone: summary([...before, ...after]), beside: summary(beside) }
}

/** Milliseconds of each, one after the other. */
async function shortTasks(client) {
  const times = []
  for (let i = 0; i < SHORT_TASKS; i++) {
    const startedAt = performance.now()
    const taskId = await client.start('one_step')
    await client.until(taskId, 'completed', 1)
    times.push(performance.now() - startedAt)
    await sleep(100)
  }
  return times
}

const summary = (times) => ({ medianMs: median(times), worstMs: Math.max(...times) })
