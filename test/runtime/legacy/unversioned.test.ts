/** Requests that name no revision at all: some clients of 2025 send neither header nor session. */
import { expect, test } from 'vitest'
import * as modern from '../client'
import { Events, type Message } from '../events'
import { LegacyClient, RELATED } from './client'

const bare = async (method: string, params: Record<string, unknown>, key = modern.ACME): Promise<Message> => {
  const response = await modern.post(
    { jsonrpc: '2.0', id: 1, method, params },
    { authorization: `Bearer ${key}` },
  )
  return response.headers.get('content-type') === 'text/event-stream'
    ? (await new Events(response).all()).at(-1)
    : response.json()
}

test('a call that asks for a task is of 2025-11-25, and so is the task from then on', async () => {
  const call = { name: 'count', arguments: { to: 2 }, task: {} }
  const { result } = await bare('tools/call', call)
  const { taskId } = result.task
  const read = await bare('tasks/get', { taskId })
  expect(read.result).toMatchObject({ taskId, ttl: expect.any(Number) })
  expect(read.result).not.toHaveProperty('resultType')
  const collected = await bare('tasks/result', { taskId })
  expect(collected.result).toMatchObject({
    content: [{ text: 'Counted to 2.' }],
    _meta: { [RELATED]: { taskId } },
  })
  expect((await bare('tasks/cancel', { taskId })).error).toMatchObject({ code: -32602 })
})

test('a task is told in the dialect it was created in', async () => {
  const taskId = await modern.start('count', { to: 1_000 })
  expect((await bare('tasks/get', { taskId })).result).toMatchObject({
    resultType: 'complete',
    taskId,
    ttlMs: expect.any(Number),
  })
  expect((await bare('tasks/cancel', { taskId })).result).toMatchObject({ resultType: 'complete' })
  await modern.untilEnded(taskId)
  const client = await LegacyClient.connect()
  const old = await client.start('count', { to: 1_000 })
  expect((await bare('tasks/cancel', { taskId: old.taskId })).result).toMatchObject({ status: 'cancelled' })
})

test('unknown and foreign tasks are told in the words of every dialect', async () => {
  const taskId = await modern.start('greet', { name: 'Ada' })
  const unknown = { code: -32602, message: 'Task not found.' }
  expect((await bare('tasks/get', { taskId }, modern.GLOBEX)).error).toEqual(unknown)
  expect((await bare('tasks/cancel', { taskId: 'nonsense' })).error).toEqual(unknown)
})

test('a call of an optional tool waits for the result', async () => {
  const { result } = await bare('tools/call', { name: 'greet', arguments: { name: 'Ada' } })
  expect(result.content[0].text).toBe('Hello, Ada!')
})

test('a tool that may ask says that such a caller cannot be asked', async () => {
  const { error } = await bare('tools/call', { name: 'ask', arguments: {} })
  expect(error).toMatchObject({ code: -32602, message: expect.stringContaining('Mcp-Session-Id') })
})

test('an answer to a question needs no revision', async () => {
  const client = await LegacyClient.connect()
  const { taskId } = await client.start('ask')
  await client.until(taskId, ['input_required'])
  const events = await client.stream('tasks/result', { taskId })
  const { id } = await events.next()
  const response = await modern.post(
    { jsonrpc: '2.0', id, result: { action: 'decline' } },
    { authorization: `Bearer ${modern.ACME}` },
  )
  expect(response.status).toBe(202)
  expect((await events.all()).at(-1).result.content[0].text).toBe('{"action":"decline"}')
})
