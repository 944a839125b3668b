/** A task that a test runs itself, call by call, in the place of the queue consumer. */
import { runInDurableObject } from 'cloudflare:test'
import { env } from 'cloudflare:workers'
import { expect } from 'vitest'
import { SigningKeys } from '../../src/auth/keys'
import { TaskIds } from '../../src/auth/task-id'
import type { CreateTask, TaskApi } from '../../src/task/types'
import { stub } from './inside'

export const mint = (tenant = 'acme') =>
  new TaskIds(new SigningKeys(env.SIGNING_KEYS ?? ''), 3_600_000).mint(tenant)

export type Instance = TaskApi & DurableObject

export function command(
  taskId: string,
  args: Record<string, unknown>,
  more: Partial<CreateTask> = {},
): CreateTask {
  return {
    taskId,
    principal: { tenant: 'acme', subject: 'acme', scopes: [] },
    dialect: '2026-07-28',
    capabilities: {},
    tool: 'scripted',
    input: JSON.stringify(args),
    gathered: {},
    baseUrl: 'http://localhost',
    lineage: taskId,
    tenantHash: 'acme',
    policy: {
      ttlMs: 60_000,
      retentionMs: 60_000,
      pollMinMs: 100,
      pollMaxMs: 1_000,
      retryLimit: 2,
      retryDelayMs: 1,
      retryMaxDelayMs: 1,
      queue: 'work',
      maxResultBytes: 1_000_000,
    },
    ...more,
  }
}

/** Creates a task and calls it before anything else, a queue for instance, gets a turn. */
export async function created<T>(
  args: Record<string, unknown>,
  first: (task: Instance) => Promise<T>,
  more: Partial<CreateTask> = {},
): Promise<{ taskId: string; answer: T }> {
  const taskId = await mint()
  const answer = await runInDurableObject(stub(taskId), async (instance: Instance) => {
    // Both run to their end in this turn.
    const creating = instance.create(command(taskId, args, more))
    const answering = first(instance)
    await creating
    return answering
  })
  return { taskId, answer }
}

/** A task whose first dispatch this test has claimed, under the token `mine`. */
export async function held(args: Record<string, unknown>, more: Partial<CreateTask> = {}): Promise<string> {
  const { taskId, answer } = await created(args, (task) => task.claim(1, 'mine'), more)
  expect(answer).toMatchObject({ ok: true, tool: 'scripted', attempts: 0, journal: [] })
  return taskId
}
