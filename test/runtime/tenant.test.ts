/** What the tenant's own object is for: quotas and idempotency keys. */
import { evictDurableObject, runDurableObjectAlarm, runInDurableObject } from 'cloudflare:test'
import { env } from 'cloudflare:workers'
import { expect, test, vi } from 'vitest'
import type { TenantApi } from '../../src/tenant/object'
import { get, GLOBEX, rpc, start, untilEnded } from './client'

const keyed = (key: string, args: Record<string, unknown>, options = {}) =>
  rpc(
    'tools/call',
    { name: 'greet', arguments: args },
    { meta: { 'longhaul.dev/idempotencyKey': key }, ...options },
  )

// The object implements TenantApi; the generated RPC types of it exceed the compiler's depth.
const tenant = (name: string) => env.TENANTS.getByName(name) as unknown as TenantApi

const reservation = (n: number, more = {}) => ({
  taskId: `tsk_01KB7Q000000000000000000${String(n).padStart(2, '0')}`,
  expiresAt: Date.now() + 60_000,
  maxLive: 3,
  maxPerMinute: 100,
  ...more,
})

/** Until the object's next alarm is its last one. */
async function untilOnlyDeletionIsLeft(taskId: string) {
  const { createdAt, ttlMs } = await get(taskId)
  const stub = env.TASKS.getByName(taskId)
  const nextAlarm = () => runInDurableObject(stub, (_, { storage }) => storage.getAlarm())
  await vi.waitUntil(async () => (await nextAlarm()) === Date.parse(createdAt) + ttlMs)
}

test('a retried call with the same key gets the same task, also when it has ended', async () => {
  const first = await keyed('k1', { name: 'Ada' })
  const { taskId } = first.body.result
  const second = await keyed('k1', { name: 'Ada' })
  expect(second.body.result.taskId).toBe(taskId)
  await untilEnded(taskId)
  const third = await keyed('k1', { name: 'Ada' })
  expect(third.body.result).toMatchObject({ resultType: 'task', taskId, status: 'completed' })
  expect(third.body.result).not.toHaveProperty('result')
})

test('the header is another way to give the key', async () => {
  const headers = { 'idempotency-key': '"k2"' }
  const first = await rpc('tools/call', { name: 'greet', arguments: { name: 'Ada' } }, { headers })
  const second = await keyed('k2', { name: 'Ada' })
  expect(second.body.result.taskId).toBe(first.body.result.taskId)
})

test('the same key with other arguments is refused, for another tenant it is another key', async () => {
  const first = await keyed('k3', { name: 'Ada' })
  expect((await keyed('k3', { name: 'Bob' })).body.error).toMatchObject({ code: -32602 })
  const theirs = await keyed('k3', { name: 'Bob' }, { key: GLOBEX })
  expect(theirs.body.result.taskId).not.toBe(first.body.result.taskId)
})

test('two concurrent first calls create one task', async () => {
  const answers = await Promise.all(Array.from({ length: 8 }, () => keyed('k4', { name: 'Ada' })))
  expect(new Set(answers.map(({ body }) => body.result.taskId)).size).toBe(1)
})

test('a task stops counting when it ends', async () => {
  const taskId = await start('greet', { name: 'Ada' })
  await untilEnded(taskId)
  await vi.waitUntil(async () => !(await tenant('acme').live()).includes(taskId))
  // Nothing is said again.
  await untilOnlyDeletionIsLeft(taskId)
  expect((await get(taskId)).status).toBe('completed')
})

test('a tenant that has not heard of the end of a task is told again, also by another instance', async () => {
  const taskId = await start('greet', { name: 'Ada' })
  await untilEnded(taskId)
  await untilOnlyDeletionIsLeft(taskId)
  const stub = env.TASKS.getByName(taskId)
  // As it is when the object went away before it was heard, half a minute ago.
  await tenant('acme').reserve(reservation(1, { taskId, maxLive: 1_000 }))
  await runInDurableObject(stub, (_, { storage }) =>
    storage.sql.exec('UPDATE task SET release_at = 1').toArray(),
  )
  await evictDurableObject(stub)
  await runDurableObjectAlarm(stub)
  await vi.waitUntil(async () => !(await tenant('acme').live()).includes(taskId))
  await untilOnlyDeletionIsLeft(taskId)
})

test('a reservation is remembered by the next instance, one with a key at once', async () => {
  const idempotency = { key: 'k', digest: 'd' }
  await tenant('moved').reserve(reservation(1))
  await new Promise((resolve) => setTimeout(resolve, 1_200))
  await tenant('moved').reserve(reservation(2, { idempotency }))
  await evictDurableObject(env.TENANTS.getByName('moved'))
  expect(await tenant('moved').live()).toEqual([reservation(1).taskId, reservation(2).taskId])
  expect(await tenant('moved').reserve(reservation(3, { idempotency }))).toEqual({
    ok: true,
    taskId: reservation(2).taskId,
    existing: true,
  })
})

test('a task that ends at once is never written down by its tenant', async () => {
  await tenant('quick').reserve(reservation(1))
  await tenant('quick').release(reservation(1).taskId, 0)
  await tenant('quick').reserve(reservation(2))
  await new Promise((resolve) => setTimeout(resolve, 1_200))
  await evictDurableObject(env.TENANTS.getByName('quick'))
  expect(await tenant('quick').live()).toEqual([reservation(2).taskId])
})

test('at the limit of live tasks nothing more is reserved, however many ask at once', async () => {
  const asked = await Promise.all([1, 2, 3, 4, 5, 6].map((n) => tenant('crowd').reserve(reservation(n))))
  expect(asked.filter((reserved) => reserved.ok)).toHaveLength(3)
  expect(asked.find((reserved) => !reserved.ok)).toMatchObject({
    reason: 'live_tasks',
    retryAfterMs: expect.any(Number),
  })
  await tenant('crowd').release(reservation(1).taskId, 0)
  expect((await tenant('crowd').reserve(reservation(7))).ok).toBe(true)
})

test('reservations whose task was never created do not shut a tenant out', async () => {
  // Ids whose time lies back: their Worker died between reserving and creating.
  for (const n of [1, 2, 3]) await tenant('crashed').reserve(reservation(n))
  expect((await tenant('crashed').reserve(reservation(4))).ok).toBe(false)
  await vi.waitUntil(async () => (await tenant('crashed').reserve(reservation(5))).ok, { timeout: 5_000 })
})

test('creations in a minute are limited, and the refusal says when to come back', async () => {
  const many = await Promise.all(
    [1, 2, 3, 4, 5].map((n) => tenant('eager').reserve(reservation(n, { maxLive: 100, maxPerMinute: 2 }))),
  )
  expect(many.filter((reserved) => reserved.ok)).toHaveLength(2)
  const refused = many.find((reserved) => !reserved.ok && reserved.reason === 'creations_per_minute')
  const retryAfterMs = refused && 'retryAfterMs' in refused ? refused.retryAfterMs : 0
  expect(retryAfterMs).toBeGreaterThan(0)
  expect(retryAfterMs).toBeLessThanOrEqual(60_000)
})

test('a client that hammers one task is told to wait; polling at a sane pace never is', async () => {
  const taskId = await start('greet', { name: 'Ada' })
  await untilEnded(taskId)
  const statuses: number[] = []
  for (let i = 0; i < 200; i++) statuses.push((await rpc('tasks/get', { taskId })).status)
  expect(statuses.slice(0, 100).every((status) => status === 200)).toBe(true)
  const last = await rpc('tasks/get', { taskId })
  expect(last).toMatchObject({
    status: 429,
    body: { error: { data: { limit: 'polls', retryAfterMs: expect.any(Number) } } },
  })
})
