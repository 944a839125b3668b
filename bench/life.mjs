/** What the platform bills for one task, from call to result: rows written and object requests. */
import { setTimeout as sleep } from 'node:timers/promises'
import { Client, TENANT } from './client.mjs'

/** By then the tenant's object has heard of the end, and has written what it puts off. */
const RELEASED_MS = 1_200

/** Puts the counting objects in the places of the plain ones. */
export function counted(options) {
  const { COUNTED_TASKS, COUNTED_TENANTS } = options.durableObjects
  return {
    ...options,
    durableObjects: { ...options.durableObjects, TASKS: COUNTED_TASKS, TENANTS: COUNTED_TENANTS },
  }
}

export async function measureLives({ url }) {
  const client = new Client(url)
  const bill = async (path) => (await fetch(new URL(`/bill/${path}`, url))).json()
  const live = async (tool) => {
    const taskId = await client.start(tool)
    await client.until(taskId, 'completed', 200)
    await sleep(RELEASED_MS)
    const task = await bill(`task/${taskId}`)
    const tenant = await bill(`tenant/${TENANT}`)
    // Polls are the client's choice; everything else is ours. Asking for the bill is nobody's.
    const { poll: polls, ...requests } = task.requests
    return {
      polls,
      rows: sum(task.rows) + sum(tenant.rows),
      requests: sum(requests) + sum(tenant.requests),
      rowsBy: { ...task.rows, ...tenant.rows },
      requestsBy: { ...requests, ...tenant.requests },
    }
  }
  // The first task of a tenant makes the tenant's tables.
  await live('one_step')
  const lives = { oneStep: await live('one_step'), hundredSteps: await live('hundred_steps') }
  return lives
}

function sum(counts) {
  return Object.values(counts).reduce((total, count) => total + count, 0)
}
