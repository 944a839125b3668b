/** Looks into Task objects from the side, and speaks to them as a run does. */
import { evictDurableObject, runDurableObjectAlarm, runInDurableObject } from 'cloudflare:test'
import { env } from 'cloudflare:workers'
import { vi } from 'vitest'
import type { TaskApi } from '../../src/task/types'

export const stub = (taskId: string) => env.TASKS.getByName(taskId)

/** The object's methods; its generated RPC types exceed the compiler's depth (workerd#3063). */
export const object = (taskId: string) => stub(taskId) as unknown as TaskApi

/** The one row of `task`, by its columns. */
export function row(taskId: string) {
  return runInDurableObject(stub(taskId), (_, { storage }) => storage.sql.exec('SELECT * FROM task').one())
}

export function journal(taskId: string) {
  return runInDurableObject(stub(taskId), (_, { storage }) =>
    storage.sql.exec('SELECT * FROM journal ORDER BY seq').toArray(),
  )
}

/** What an object that holds nothing has: no table, no key, no alarm. */
export const NOTHING = { tables: [], keys: 0, alarm: null }

export function left(taskId: string) {
  return runInDurableObject(stub(taskId), async (_, { storage }) => ({
    tables: storage.sql.exec('SELECT name FROM sqlite_master').toArray(),
    keys: (await storage.list()).size,
    alarm: await storage.getAlarm(),
  }))
}

/** Resolves when no run holds the task and none is due: it waits. */
export async function untilWaiting(taskId: string) {
  await vi.waitUntil(async () => (await row(taskId))['phase'] === 'waiting', {
    timeout: 10_000,
    interval: 20,
  })
}

/** Lets the time pass that a waiting task waits for: its sleeps, time-outs and back-offs are due now. */
export async function letTimePass(taskId: string) {
  await untilWaiting(taskId)
  await runInDurableObject(stub(taskId), (_, { storage }) => {
    storage.sql.exec('UPDATE task SET wake_at = 1 WHERE wake_at IS NOT NULL')
    storage.sql.exec('UPDATE journal SET at = 1 WHERE at IS NOT NULL')
  })
  // What it keeps in memory says otherwise.
  await evictDurableObject(stub(taskId))
  await runDurableObjectAlarm(stub(taskId))
}
