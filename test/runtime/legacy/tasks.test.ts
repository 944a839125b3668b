/** The experimental tasks of revision 2025-11-25. */
import { env } from 'cloudflare:workers'
import { runInDurableObject } from 'cloudflare:test'
import { CreateTaskResultV1Schema, GetTaskResultV1Schema } from '@modelcontextprotocol/ext-tasks/core/v1'
import { beforeAll, expect, test, vi } from 'vitest'
import * as modern from '../client'
import { LegacyClient, RELATED } from './client'

let client: LegacyClient
beforeAll(async () => {
  client = await LegacyClient.connect()
})

const refusal = async (method: string, params: Record<string, unknown>, by = client) => {
  const { status, body } = await by.rpc(method, params)
  // The clients of this revision take no other status for an answer.
  expect(status).toBe(200)
  return body.error
}

test('a call that asks for a task gets one, in the shape of its revision', async () => {
  const { body } = await client.rpc('tools/call', { name: 'greet', arguments: { name: 'Ada' }, task: {} })
  expect(CreateTaskResultV1Schema.parse(body.result)).toEqual(body.result)
  expect(Object.keys(body.result)).toEqual(['task'])
  expect(body.result.task).toMatchObject({
    status: 'working',
    ttl: 24 * 3_600_000,
    pollInterval: expect.any(Number),
  })
  const task = await client.until(body.result.task.taskId, ['completed'])
  expect(GetTaskResultV1Schema.parse(task)).toEqual(task)
  expect(task).not.toHaveProperty('result')
})

test('the result is collected apart, names its task and has nothing of later revisions', async () => {
  const { taskId } = await client.start('greet', { name: 'Ada' })
  const { body } = await client.rpc('tasks/result', { taskId, task: {} })
  expect(body.result).toEqual({
    content: [{ type: 'text', text: 'Hello, Ada!' }],
    _meta: { [RELATED]: { taskId } },
  })
  const again = await client.rpc('tasks/result', { taskId })
  expect(again.body.result).toEqual(body.result)
})

test('a time-to-live is honoured within limits', async () => {
  const ttlOf = async (ttl: unknown) => (await client.start('greet', { name: 'Ada' }, { ttl })).ttl
  expect(await ttlOf(300_000)).toBe(300_000)
  expect(await ttlOf(300)).toBe(60_000)
  expect(await ttlOf(400 * 24 * 3_600_000)).toBe(30 * 24 * 3_600_000)
  const call = { name: 'greet', arguments: { name: 'Ada' } }
  for (const task of [{ ttl: 1.5 }, { ttl: -1 }, { ttl: 'soon' }, 'yes', []]) {
    expect(await refusal('tools/call', { ...call, task })).toMatchObject({ code: -32602 })
  }
})

test('a result that is an error is failed here and completed in 2026-07-28', async () => {
  const { taskId } = await client.start('reject')
  const task = await client.until(taskId, ['failed', 'completed'])
  expect(task).toMatchObject({ status: 'failed', statusMessage: 'The disk is full.' })
  const { body } = await client.rpc('tasks/result', { taskId })
  expect(body.result).toMatchObject({ isError: true, content: [{ text: 'The disk is full.' }] })
  expect(await modern.get(taskId)).toMatchObject({ status: 'completed', result: { isError: true } })
})

test('a JSON-RPC error is failed, and the result is that error', async () => {
  const { taskId } = await client.start('protocol_error')
  expect(await client.until(taskId, ['failed'])).toMatchObject({
    statusMessage: expect.stringContaining('No such branch.'),
  })
  expect(await refusal('tasks/result', { taskId })).toMatchObject({
    code: -32602,
    message: expect.stringContaining('No such branch.'),
    data: { branch: 'main' },
  })
})

test('a cancelled task is cancelled when the answer comes, and the answer is the task', async () => {
  const { taskId } = await client.start('count', { to: 1_000, pauseMs: 20 })
  const { body } = await client.rpc('tasks/cancel', { taskId })
  expect(GetTaskResultV1Schema.parse(body.result)).toEqual(body.result)
  expect(body.result).toMatchObject({ taskId, status: 'cancelled' })
  expect(await client.get(taskId)).toEqual(body.result)
  expect(await refusal('tasks/result', { taskId })).toMatchObject({ code: -32603 })
  expect(await refusal('tasks/cancel', { taskId })).toMatchObject({ code: -32602 })
})

test('a run at work is fenced off by the cancellation', async () => {
  const { taskId } = await client.start('busy', { ms: 1_500 })
  await vi.waitUntil(async () => (await phaseOf(taskId)) === 'running', { timeout: 10_000 })
  await client.rpc('tasks/cancel', { taskId })
  await scheduler.wait(2_000)
  expect(await client.get(taskId)).toMatchObject({ status: 'cancelled' })
})

test('a completed task cannot be cancelled', async () => {
  const { taskId } = await client.start('greet', { name: 'Ada' })
  await client.until(taskId, ['completed'])
  expect(await refusal('tasks/cancel', { taskId })).toMatchObject({ code: -32602 })
  expect(await client.get(taskId)).toMatchObject({ status: 'completed' })
})

test('unknown, foreign and malformed ids get the same words', async () => {
  const { taskId } = await client.start('greet', { name: 'Ada' })
  const stranger = await LegacyClient.connect({ key: modern.GLOBEX })
  const unknown = { code: -32602, message: 'Task not found.' }
  for (const method of ['tasks/get', 'tasks/result', 'tasks/cancel']) {
    expect(await refusal(method, { taskId }, stranger)).toEqual(unknown)
    expect(await refusal(method, { taskId: 'nonsense' })).toEqual(unknown)
    expect(await refusal(method, {})).toMatchObject({ code: -32602 })
  }
})

test('tasks are not listed, and have no methods of later revisions', async () => {
  for (const method of ['tasks/list', 'tasks/update', 'tasks/create']) {
    expect(await refusal(method, {})).toMatchObject({ code: -32601 })
  }
})

test('a tool that needs a task is refused without, and a plain tool with', async () => {
  expect(await refusal('tools/call', { name: 'needs_tasks', arguments: {} })).toMatchObject({ code: -32601 })
  expect(await refusal('tools/call', { name: 'plain', arguments: {}, task: {} })).toMatchObject({
    code: -32601,
  })
  const { body } = await client.rpc('tools/call', { name: 'plain', arguments: {} })
  expect(body.result.content[0].text).toBe('plain result')
})

test('arguments that do not fit are an error when a task was asked for, as nothing else could be read', async () => {
  const call = { name: 'greet', arguments: { name: 7 } }
  expect(await refusal('tools/call', { ...call, task: {} })).toMatchObject({
    code: -32602,
    message: expect.stringContaining('name'),
  })
  const { body } = await client.rpc('tools/call', call)
  expect(body.result).toMatchObject({ isError: true })
})

test('revision 2025-06-18 knows no tasks: the request for one is ignored', async () => {
  const older = await LegacyClient.connect({ revision: '2025-06-18' })
  const { body } = await older.rpc('tools/call', { name: 'greet', arguments: { name: 'Ada' }, task: {} })
  expect(body.result.content[0].text).toBe('Hello, Ada!')
  const { taskId } = await client.start('greet', { name: 'Ada' })
  expect(await refusal('tasks/get', { taskId }, older)).toMatchObject({ code: -32601 })
})

test('a tool that would ask what the client did not declare is refused before any work', async () => {
  const mute = await LegacyClient.connect({ capabilities: {} })
  for (const task of [undefined, {}]) {
    const error = await refusal('tools/call', { name: 'ask', arguments: {}, ...(task && { task }) }, mute)
    expect(error).toMatchObject({ code: -32602, message: expect.stringContaining('elicitation') })
  }
  const formOnly = await LegacyClient.connect({ capabilities: { elicitation: {} } })
  expect(await refusal('tools/call', { name: 'link', arguments: {}, task: {} }, formOnly)).toMatchObject({
    code: -32602,
  })
})

test('each era reads the tasks of the other, in its own words', async () => {
  const old = await client.start('greet', { name: 'Ada' })
  expect(await modern.untilEnded(old.taskId)).toMatchObject({
    status: 'completed',
    result: { resultType: 'complete', content: [{ text: 'Hello, Ada!' }] },
  })
  const taskId = await modern.start('greet', { name: 'Bob' })
  const { body } = await client.rpc('tasks/result', { taskId })
  expect(body.result.content[0].text).toBe('Hello, Bob!')
  expect(body.result).not.toHaveProperty('resultType')
})

test('a modern client that only knows the old tasks keeps those that the old API made', async () => {
  const options = { capabilities: { tasks: {} } }
  const old = await client.start('greet', { name: 'Ada' })
  expect(await modern.untilEnded(old.taskId, 10_000, options)).toMatchObject({ status: 'completed' })
  const cancelled = await modern.rpc('tasks/cancel', { taskId: old.taskId }, options)
  expect(cancelled.body.result).toMatchObject({ resultType: 'complete' })
  const taskId = await modern.start('greet', { name: 'Bob' })
  expect((await modern.rpc('tasks/get', { taskId }, options)).body.error).toMatchObject({ code: -32021 })
  const none = await modern.rpc('tasks/get', { taskId: old.taskId }, { capabilities: {} })
  expect(none.body.error).toMatchObject({ code: -32021 })
})

function phaseOf(taskId: string): Promise<unknown> {
  return runInDurableObject(
    env.TASKS.getByName(taskId),
    (_, { storage }) => storage.sql.exec('SELECT phase FROM task').one()['phase'],
  )
}
