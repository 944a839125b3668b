/** What operators can see and do. */
import { evictDurableObject, runDurableObjectAlarm, runInDurableObject } from 'cloudflare:test'
import { env, exports } from 'cloudflare:workers'
import { expect, test, vi } from 'vitest'
import { createObserver } from '../../src/observe/observer'
import { get, GLOBEX, rpc, start, untilEnded } from './client'
import { effects, world } from './tools/operate-tools'

const ops = (path: string, method = 'GET', key = 'operator-key-operator-key') =>
  exports.default.fetch(
    new Request(`http://localhost/ops/tasks/${path}`, {
      method,
      headers: { authorization: `Bearer ${key}` },
    }),
  )

test('a dead task shows the operator what went wrong and how far it had come, and nothing else', async () => {
  world.mended = false
  const taskId = await start('mortal', { name: 'secret-argument' })
  await untilEnded(taskId)
  const response = await ops(taskId)
  const text = await response.text()
  expect(JSON.parse(text)).toMatchObject({
    taskId,
    tool: 'mortal',
    status: 'failed',
    attempts: 0,
    lastError: { message: 'The disk is full.', recorded: 1, lastEntry: 'first' },
    journal: [{ kind: 'step', name: 'first', state: 'done' }],
  })
  expect(text).not.toContain('secret-argument')
  expect(text).not.toContain('acme')
})

test('a replay goes on where the dead task stopped, as a new task of the same owner', async () => {
  world.mended = false
  const dead = await start('mortal', { name: 'replayed' })
  await untilEnded(dead)
  world.mended = true
  const response = await ops(`${dead}/replay`, 'POST')
  expect(response.status).toBe(201)
  const { taskId } = await response.json<{ taskId: string }>()
  expect(taskId).not.toBe(dead)
  const task = await untilEnded(taskId)
  expect(task.status).toBe('completed')
  expect(effects.get('replayed')).toBe(1)
  // Effects of the old task and of the new one are known by the same keys.
  expect(JSON.parse(task.result.content[0].text)).toEqual({ key: `${dead}/first`, second: `${dead}/second` })
  expect((await rpc('tasks/get', { taskId }, { key: GLOBEX })).body.error.code).toBe(-32602)
})

test('only dead tasks are replayed', async () => {
  const alive = await start('ask')
  expect((await ops(`${alive}/replay`, 'POST')).status).toBe(409)
  const done = await start('greet', { name: 'Ada' })
  await untilEnded(done)
  expect((await ops(`${done}/replay`, 'POST')).status).toBe(409)
  expect((await ops('tsk_nonsense/replay', 'POST')).status).toBe(404)
})

test('the operator’s endpoint has a key of its own', async () => {
  const taskId = await start('greet', { name: 'Ada' })
  expect((await ops(taskId, 'GET', 'acme-key-acme-key')).status).toBe(401)
  expect((await ops(taskId, 'GET', '')).status).toBe(401)
})

test('healthz says versions and bindings', async () => {
  const response = await exports.default.fetch('http://localhost/healthz')
  expect(await response.json()).toEqual({
    status: 'ok',
    server: { name: 'runtime-tests', version: '1.0.0' },
    protocol: ['2026-07-28', '2025-11-25', '2025-06-18'],
    bindings: {
      TASKS: true,
      TENANTS: true,
      WORK_QUEUE: true,
      SLOW_QUEUE: true,
      RESULTS: true,
      METRICS: false,
    },
  })
})

test('a large result is kept in the bucket, read as if it were not, and deleted with its task', async () => {
  const taskId = await start('big', { chars: 2_000_000 })
  const task = await untilEnded(taskId)
  expect(task.result.content[0].text).toHaveLength(2_000_000)
  expect(Object.keys(task).some((key) => key.startsWith('longhaul'))).toBe(false)
  const stored = await env.RESULTS?.list({ prefix: `results/${taskId}/` })
  expect(stored?.objects).toHaveLength(1)

  const stub = env.TASKS.getByName(taskId)
  await runInDurableObject(stub, (_, { storage }) => void storage.sql.exec('UPDATE task SET ttl_ms = 0'))
  await evictDurableObject(stub)
  await runDurableObjectAlarm(stub)
  expect(await get(taskId)).toBeUndefined()
  expect((await env.RESULTS?.list({ prefix: `results/${taskId}/` }))?.objects).toEqual([])
})

test('one line for each thing that happens, with hashes for tenants and no content', () => {
  const lines: string[] = []
  const points: AnalyticsEngineDataPoint[] = []
  const log = vi.spyOn(console, 'log').mockImplementation((line: string) => void lines.push(line))
  const observer = createObserver({
    METRICS: { writeDataPoint: (point) => void (point && points.push(point)) },
  })
  const about = { task: 't', tool: 'greet', tenant: 'abc123' }
  observer.occurred({
    event: 'task_settled',
    ...about,
    cause: 'complete',
    status: 'completed',
    ms: 5,
    dispatch: 1,
    attempts: 0,
    polls: 2,
  })
  createObserver({ LOG_LEVEL: 'error' }).occurred({ event: 'task_created', ...about })
  log.mockRestore()
  expect(lines.map((line) => JSON.parse(line).event)).toEqual(['task_settled'])
  expect(points).toEqual([
    { indexes: ['greet'], blobs: ['task_settled', 'greet', 'completed', 'abc123'], doubles: [1, 5, 0, 0, 2] },
  ])
})

test('the trace of a call travels with its task', async () => {
  const traceparent = '00-0af7651916cd43dd8448eb211c80319c-b7ad6b7169203331-01'
  const { body } = await rpc(
    'tools/call',
    { name: 'greet', arguments: { name: 'Ada' } },
    { meta: { traceparent } },
  )
  const head = await runInDurableObject(env.TASKS.getByName(body.result.taskId), (_, { storage }) =>
    JSON.parse(storage.sql.exec('SELECT head FROM task').one()['head'] as string),
  )
  expect(head.traceparent).toBe(traceparent)
})
