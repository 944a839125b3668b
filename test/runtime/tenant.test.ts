/** What the tenant's own object is for: quotas and idempotency keys. */
import {
  createExecutionContext,
  evictDurableObject,
  runDurableObjectAlarm,
  runInDurableObject,
} from 'cloudflare:test'
import { env } from 'cloudflare:workers'
import { expect, test, vi } from 'vitest'
import { createLonghaul } from '../../src/index'
import type { TenantApi } from '../../src/tenant/object'
import { ACME, ALL_CAPABILITIES, get, GLOBEX, rpc, start, untilEnded } from './client'
import { tools } from './tools'

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

test('a confirmed reservation is remembered by the next instance, one with a key at once', async () => {
  const idempotency = { key: 'k', digest: 'd' }
  const first = reservation(1)
  await tenant('moved').reserve(first)
  await tenant('moved').confirm(first.taskId, first.expiresAt)
  await tenant('moved').reserve(reservation(2, { idempotency }))
  await tenant('moved').reserve(reservation(3))
  await evictDurableObject(env.TENANTS.getByName('moved'))
  // The third one's Worker never came to create the task.
  expect(await tenant('moved').live()).toEqual([first.taskId, reservation(2).taskId])
  expect(await tenant('moved').reserve(reservation(4, { idempotency }))).toEqual({
    ok: true,
    taskId: reservation(2).taskId,
    existing: true,
  })
})

test('a task that ends before its reservation is confirmed is not counted again', async () => {
  const { taskId, expiresAt } = reservation(1)
  await tenant('quick').reserve(reservation(1))
  await tenant('quick').release(taskId, 0)
  await tenant('quick').confirm(taskId, expiresAt)
  expect(await tenant('quick').live()).toEqual([])
})

test('a created task is written down by its tenant before the caller hears of it', async () => {
  const taskId = await start('ask')
  await evictDurableObject(env.TENANTS.getByName('acme'))
  expect(await tenant('acme').live()).toContain(taskId)
  await rpc('tasks/cancel', { taskId })
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

/** The Worker with other variables. */
const withEnv = (more: Partial<Cloudflare.Env>) => {
  const worker = createLonghaul({ name: 'limits', version: '1.0.0', tools })
  const other = { ...env, ...more }
  return async (method: string, params: Record<string, unknown>) => {
    const headers = {
      'content-type': 'application/json',
      accept: 'application/json, text/event-stream',
      authorization: `Bearer ${ACME}`,
      'mcp-protocol-version': '2026-07-28',
      'mcp-method': method,
      ...(typeof params['name'] === 'string' && { 'mcp-name': params['name'] }),
    }
    const meta = {
      'io.modelcontextprotocol/protocolVersion': '2026-07-28',
      'io.modelcontextprotocol/clientCapabilities': ALL_CAPABILITIES,
    }
    const body = JSON.stringify({ jsonrpc: '2.0', id: 1, method, params: { ...params, _meta: meta } })
    const ctx = createExecutionContext()
    const request = new Request('http://localhost/mcp', { method: 'POST', headers, body })
    return worker.fetch(request, other, ctx)
  }
}

test('limits may differ for a tenant; arguments that are too large are refused and nothing is created', async () => {
  const call = withEnv({ TENANT_LIMITS: '{"acme":{"argumentBytes":50}}' })
  const response = await call('tools/call', { name: 'greet', arguments: { name: 'x'.repeat(100) } })
  expect(await response.json()).toMatchObject({
    error: { code: -32602, data: { limit: 'argument_bytes', max: 50 } },
  })
  const fits = await call('tools/call', { name: 'greet', arguments: { name: 'Ada' } })
  expect(await fits.json()).toMatchObject({ result: { resultType: 'task' } })
})

test.each([
  ['not JSON', 'nonsense'],
  ['an unknown limit', '{"acme":{"liveTask":1}}'],
  ['not a number', '{"acme":{"liveTasks":"many"}}'],
])('limits that are %s are said to be wrong, and nobody is served', async (_, TENANT_LIMITS) => {
  const response = await withEnv({ TENANT_LIMITS })('tools/list', {})
  expect(response.status).toBe(503)
  expect(await response.text()).toContain('TENANT_LIMITS')
})

test('open streams of a tenant are limited, and a closed one makes room', async () => {
  const listen = withEnv({ TENANT_LIMITS: '{"acme":{"subscriptions":2}}' })
  const taskId = await start('ask')
  const open = () => listen('subscriptions/listen', { notifications: { taskIds: [taskId] } })
  const streams = [await open(), await open()]
  const refused = await open()
  expect(refused.status).toBe(429)
  expect(refused.headers.get('retry-after')).not.toBeNull()
  expect(await refused.json()).toMatchObject({ error: { data: { limit: 'subscriptions' } } })
  await streams[0]?.body?.cancel()
  const again = await vi.waitUntil(async () => {
    const response = await open()
    return response.status === 200 ? response : undefined
  })
  for (const response of [streams[1], again]) await response?.body?.cancel()
  await rpc('tasks/cancel', { taskId })
})

test('the platform’s limiter cuts off a tenant that sends far too much, and strangers by address', async () => {
  const RATE_LIMITER = env.TIGHT_LIMITER
  const known = withEnv({ RATE_LIMITER })
  const stranger = withEnv({ RATE_LIMITER, API_KEYS: '{"other":"other-key-other-key"}' })
  // Two in a minute, each.
  const statuses = []
  for (const send of [known, known, known, stranger, stranger, stranger]) {
    statuses.push((await send('tools/list', {})).status)
  }
  expect(statuses).toEqual([200, 200, 429, 401, 401, 429])
  const response = await known('tools/list', {})
  expect(response.headers.get('retry-after')).toBe('60')
  expect(await response.json()).toMatchObject({ error: { data: { limit: 'requests' } } })
})
