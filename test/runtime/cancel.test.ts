/** Cancelling is an intent: always acknowledged, never a way out of the state machine. */
import { evictDurableObject } from 'cloudflare:test'
import { expect, test, vi } from 'vitest'
import { z } from 'zod'
import { get, rpc, start, until, untilEnded } from './client'
import { journal, object, row, stub, untilWaiting } from './inside'
import { created, held } from './held'
import { script, whenever } from './tools/scripted'
import type { TaskApi } from '../../src/task/types'

const confirm = z.object({ confirm: z.boolean() })

async function cancel(taskId: string) {
  const { status, body } = await rpc('tasks/cancel', { taskId })
  expect(status).toBe(200)
  expect(body.result).toEqual({ resultType: 'complete', _meta: expect.anything() })
}

async function answer(taskId: string) {
  const { body } = await rpc('tasks/update', {
    taskId,
    inputResponses: { sure: { action: 'accept', content: { confirm: true } } },
  })
  expect(body.result).toEqual({ resultType: 'complete', _meta: expect.anything() })
}

/** Waits for an answer to `sure`, then for nothing else. */
async function asking() {
  let runs = 0
  const taskId = await start(
    'scripted',
    script(async ({ step }) => {
      runs++
      return JSON.stringify(await step.elicit('sure', { message: 'Sure?', schema: confirm }))
    }),
  )
  await until(taskId, ['input_required'])
  await untilWaiting(taskId)
  return { taskId, runs: () => runs }
}

test('before any run has begun: cancelled at once, and no run begins', async () => {
  let runs = 0
  const args = script(async () => `${++runs}`)
  const { taskId, answer: known } = await created(args, (task) => task.cancel('acme'))
  expect(known).toBe(true)
  expect(await get(taskId)).toMatchObject({ status: 'cancelled' })
  expect(await object(taskId).claim(1, 'late')).toEqual({ ok: false, reason: 'ended' })
  await scheduler.wait(700)
  expect(runs).toBe(0)
})

test('during a step: its signal is aborted within about a second, and the task ends as cancelled', async () => {
  const seen: string[] = []
  let running = false
  let after = false
  const taskId = await start(
    'scripted',
    script(async ({ step, signal }) => {
      await step.do('long', { retry: { limit: 5, delay: 1 } }, async ({ signal: own }) => {
        running = true
        await scheduler.wait(15_000, { signal: own }).catch(() => undefined)
        seen.push(String(own.reason), String(signal.reason))
        throw own.reason
      })
      after = true
      return 'never'
    }),
  )
  await vi.waitUntil(() => running)
  await cancel(taskId)
  const task = await untilEnded(taskId)
  expect(task.status).toBe('cancelled')
  expect(task).not.toHaveProperty('result')
  expect(task).not.toHaveProperty('error')
  expect(seen).toEqual(Array(2).fill('CancelledError: The task was cancelled.'))
  expect(after).toBe(false)
  // An attempt that was cancelled says nothing about the step.
  expect(await journal(taskId)).toEqual([])
})

test('a tool may finish all the same: then it is completed', async () => {
  let running = false
  const taskId = await start(
    'scripted',
    script(async ({ step, signal }) => {
      running = true
      await whenever(() => signal.aborted)
      await step.do('tidy up', () => 1).catch(() => undefined)
      return 'finished anyway'
    }),
  )
  await vi.waitUntil(() => running)
  await cancel(taskId)
  expect(await untilEnded(taskId)).toMatchObject({
    status: 'completed',
    result: { content: [{ text: 'finished anyway' }] },
  })
})

test.each([
  ['waits', (task: TaskApi) => task.suspend('mine', ['long'])],
  ['uses up its slice', (task: TaskApi) => task.proceed('mine')],
  ['throws', (task: TaskApi) => task.throwError('mine', { code: -32603, message: 'once' }, false)],
  ['stops', (task: TaskApi) => task.stop('mine')],
])('a cancelled run that %s leaves a cancelled task, and no other run', async (_, end) => {
  const taskId = await held(script(async () => 'never'))
  await object(taskId).record('mine', { kind: 'sleep', name: 'long', at: 1 })
  await cancel(taskId)
  expect((await get(taskId)).status).toBe('working')
  expect(await end(object(taskId))).toMatchObject({ lost: false })
  expect((await get(taskId)).status).toBe('cancelled')
  expect(await row(taskId)).toMatchObject({ phase: 'ended', dispatch: 1 })
})

test('during a wait for input: cancelled at once, the question is gone, a late answer is acknowledged', async () => {
  const { taskId, runs } = await asking()
  await cancel(taskId)
  const task = await get(taskId)
  expect(task.status).toBe('cancelled')
  expect(task).not.toHaveProperty('inputRequests')
  await answer(taskId)
  await evictDurableObject(stub(taskId))
  await answer(taskId)
  expect(await get(taskId)).toEqual(task)
  expect(runs()).toBe(1)
})

test('during a sleep: cancelled at once, and the sleep wakes nobody', async () => {
  let runs = 0
  const taskId = await start(
    'scripted',
    script(async ({ step }) => {
      runs++
      await step.sleep('long', '1 hour')
      return 'never'
    }),
  )
  await untilWaiting(taskId)
  await cancel(taskId)
  expect((await get(taskId)).status).toBe('cancelled')
  expect(await row(taskId)).toMatchObject({
    phase: 'ended',
    wake_at: null,
    lease_until: null,
    resend_at: null,
  })
  expect(runs).toBe(1)
})

test('during the back-off of a failed run: cancelled at once', async () => {
  const taskId = await held(script(async () => 'never'))
  await object(taskId).throwError('mine', { code: -32603, message: 'once' }, false)
  await cancel(taskId)
  expect((await get(taskId)).status).toBe('cancelled')
})

test('after completion: acknowledged, and nothing changes', async () => {
  const taskId = await start('greet', { name: 'Ada' })
  const task = await untilEnded(taskId)
  await cancel(taskId)
  await evictDurableObject(stub(taskId))
  await cancel(taskId)
  expect(await get(taskId)).toEqual(task)
})

test('after failure: acknowledged, and nothing changes', async () => {
  const taskId = await held(script(async () => 'never'))
  await object(taskId).throwError('mine', { code: -32603, message: 'for good' }, true)
  const task = await get(taskId)
  await cancel(taskId)
  expect(task.status).toBe('failed')
  expect(await get(taskId)).toEqual(task)
})

test('twice and many times at once: each is acknowledged, the task ends once', async () => {
  const { taskId } = await asking()
  await Promise.all([cancel(taskId), cancel(taskId), cancel(taskId), cancel(taskId)])
  const task = await get(taskId)
  expect(task.status).toBe('cancelled')
  await cancel(taskId)
  expect(await get(taskId)).toEqual(task)
})

test('before the last answer: cancelled, and the answer changes nothing', async () => {
  const { taskId, runs } = await asking()
  await Promise.all([cancel(taskId), answer(taskId)])
  expect((await get(taskId)).status).toBe('cancelled')
  expect(runs()).toBe(1)
})

test('after the last answer: the task ends, as completed or cancelled, and never runs afterwards', async () => {
  const { taskId, runs } = await asking()
  await Promise.all([answer(taskId), cancel(taskId)])
  const task = await untilEnded(taskId)
  expect(['completed', 'cancelled']).toContain(task.status)
  const before = runs()
  await scheduler.wait(700)
  expect(runs()).toBe(before)
  expect(await get(taskId)).toEqual(task)
})

test('a cancelled run that dies leaves a cancelled task', async () => {
  const taskId = await held(script(async () => 'never'))
  await cancel(taskId)
  expect((await get(taskId)).status).toBe('working')
  expect(await object(taskId).beat('mine')).toEqual({ lost: false, cancelRequested: true })
  // Nobody beats any more; the lease of the tests is three seconds.
  expect((await untilEnded(taskId)).status).toBe('cancelled')
})

test('an event that comes after the cancellation is told so', async () => {
  const taskId = await start(
    'scripted',
    script(async ({ step }) => JSON.stringify(await step.waitForEvent('build'))),
  )
  await untilWaiting(taskId)
  await cancel(taskId)
  expect(await object(taskId).deliver('build', {})).toEqual({ ok: false, reason: 'ended' })
})
