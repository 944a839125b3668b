/** Questions to clients of the 2025 revisions: server requests on a stream, each once. */
import { TaskStatusNotificationV1Schema } from '@modelcontextprotocol/ext-tasks/core/v1'
import { expect, test } from 'vitest'
import { GLOBEX } from '../client'
import { Events } from '../events'
import { LegacyClient, RELATED, YES } from './client'

const ACCEPTED = JSON.stringify(YES)

/** A task that waits for an answer, and its client. */
async function waiting(name = 'ask', capabilities?: Record<string, unknown>) {
  const client = await LegacyClient.connect(capabilities && { capabilities })
  const { taskId } = await client.start(name)
  await client.until(taskId, ['input_required'])
  return { client, taskId }
}

/** A poll: the messages it was answered with. */
async function poll(client: LegacyClient, taskId: string) {
  const response = await client.send('tasks/get', { taskId })
  return response.headers.get('content-type') === 'text/event-stream'
    ? new Events(response).all()
    : [await response.json()]
}

test('a question comes on the stream that waits for the result, and so does the result', async () => {
  const { client, taskId } = await waiting()
  const events = await client.stream('tasks/result', { taskId })
  const question = await events.next()
  expect(question).toMatchObject({
    jsonrpc: '2.0',
    id: expect.any(String),
    method: 'elicitation/create',
    params: {
      message: 'Sure?',
      requestedSchema: { type: 'object' },
      _meta: { [RELATED]: { taskId } },
    },
  })
  expect(await client.answer(question, YES)).toBe(202)
  const rest = await events.all()
  expect(rest.at(-1).result).toMatchObject({
    content: [{ text: ACCEPTED }],
    _meta: { [RELATED]: { taskId } },
  })
})

test('changes are told on that stream in the shape of the revision', async () => {
  const client = await LegacyClient.connect()
  const { taskId } = await client.start('count', { to: 3, pauseMs: 400 })
  const events = await client.stream('tasks/result', { taskId })
  const messages = await events.all()
  const notifications = messages.slice(0, -1)
  expect(notifications.length).toBeGreaterThan(0)
  for (const note of notifications) expect(TaskStatusNotificationV1Schema.parse(note)).toEqual(note)
  expect(notifications.at(-1).params).toMatchObject({ taskId, status: 'working' })
})

test('with two streams a question is on one of them only', async () => {
  const { client, taskId } = await waiting()
  const [one, two] = [
    await client.stream('tasks/result', { taskId }),
    await client.stream('tasks/result', { taskId }),
  ]
  const question = await one.next()
  await client.answer(question, YES)
  const [first, second] = await Promise.all([one.all(), two.all()])
  expect([...first, ...second].filter(({ method }) => method === 'elicitation/create')).toEqual([])
  expect(first.at(-1).result.content).toEqual(second.at(-1).result.content)
})

test('when its stream is gone a question goes out again under a fresh id, and the first answer counts', async () => {
  const { client, taskId } = await waiting()
  const one = await client.stream('tasks/result', { taskId })
  const question = await one.next()
  await one.cancel()
  const two = await client.stream('tasks/result', { taskId })
  const again = await two.next()
  expect(again).toMatchObject({ method: 'elicitation/create' })
  expect(again.id).not.toBe(question.id)
  expect(await client.answer(question, YES)).toBe(202)
  expect(await client.answer(again, { action: 'decline' })).toBe(202)
  expect((await two.all()).at(-1).result.content[0].text).toBe(ACCEPTED)
})

test('a stream that was open beside it takes the question over', async () => {
  const { client, taskId } = await waiting()
  const [one, two] = [
    await client.stream('tasks/result', { taskId }),
    await client.stream('tasks/result', { taskId }),
  ]
  const question = await one.next()
  await one.cancel()
  const again = await two.next()
  expect(again).toMatchObject({ method: 'elicitation/create' })
  expect(again.id).not.toBe(question.id)
  await client.answer(again, YES)
  expect((await two.all()).at(-1).result.content[0].text).toBe(ACCEPTED)
})

test('a client that only polls is asked by the third poll, once', async () => {
  const client = await LegacyClient.connect()
  const { taskId } = await client.start('ask')
  let messages = await poll(client, taskId)
  let plain = 0
  for (let i = 0; i < 300 && messages.length === 1; i++) {
    if (messages[0].result.status === 'input_required') plain++
    await scheduler.wait(20)
    messages = await poll(client, taskId)
  }
  expect(plain).toBe(2)
  const [question, answer] = messages
  expect(question).toMatchObject({
    method: 'elicitation/create',
    params: { _meta: { [RELATED]: { taskId } } },
  })
  expect(answer.result).toMatchObject({ taskId, status: 'input_required' })
  for (let i = 0; i < 6; i++) expect(await poll(client, taskId)).toHaveLength(1)
  await client.answer(question, YES)
  expect(await client.until(taskId, ['completed'])).toMatchObject({ taskId })
})

test('polls are patient while a stream carries the question', async () => {
  const { client, taskId } = await waiting()
  const events = await client.stream('tasks/result', { taskId })
  const question = await events.next()
  for (let i = 0; i < 6; i++) expect(await poll(client, taskId)).toHaveLength(1)
  await client.answer(question, YES)
  await events.all()
})

test('another client of the tenant that takes the task over is asked as well', async () => {
  const { client, taskId } = await waiting()
  for (let i = 0; i < 2; i++) await poll(client, taskId)
  const heir = await LegacyClient.connect()
  const seen = []
  for (let i = 0; i < 4; i++) seen.push(...(await poll(heir, taskId)))
  const question = seen.find(({ method }) => method === 'elicitation/create')
  await heir.answer(question, YES)
  await heir.until(taskId, ['completed'])
})

test('a client that takes no streams, or declared nothing, is not asked', async () => {
  const { client, taskId } = await waiting()
  const mute = await LegacyClient.connect({ capabilities: {} })
  for (let i = 0; i < 4; i++) {
    const body = { jsonrpc: '2.0', id: 1, method: 'tasks/get', params: { taskId } }
    const response = await client.post(body, { accept: 'application/json' })
    expect(response.headers.get('content-type')).toBe('application/json')
    expect(await poll(mute, taskId)).toHaveLength(1)
  }
})

test('an answer that does not fit is asked again', async () => {
  const { client, taskId } = await waiting()
  const events = await client.stream('tasks/result', { taskId })
  await client.answer(await events.next(), { action: 'accept', content: { confirm: 'perhaps' } })
  const again = await events.next()
  expect(again).toMatchObject({
    method: 'elicitation/create',
    params: { message: expect.stringContaining('did not fit') },
  })
  await client.answer(again, YES)
  expect((await events.all()).at(-1).result.content[0].text).toBe(ACCEPTED)
})

test('a client without a handler has cancelled the question', async () => {
  const { client, taskId } = await waiting()
  const events = await client.stream('tasks/result', { taskId })
  const { id } = await events.next()
  const error = { code: -32601, message: 'Method not found' }
  expect((await client.post({ jsonrpc: '2.0', id, error })).status).toBe(202)
  expect((await events.all()).at(-1).result.content[0].text).toBe('{"action":"cancel"}')
})

test('the model is asked, and its answer or its failure reaches the tool', async () => {
  const reply = { role: 'assistant', model: 'm', content: { type: 'text', text: 'Hello' } }
  const first = await waiting('sample')
  let events = await first.client.stream('tasks/result', { taskId: first.taskId })
  const question = await events.next()
  expect(question).toMatchObject({ method: 'sampling/createMessage', params: { maxTokens: 10 } })
  await first.client.answer(question, { ...reply, _meta: { [RELATED]: { taskId: first.taskId } } })
  expect(JSON.parse((await events.all()).at(-1).result.content[0].text)).toEqual(reply)

  const second = await waiting('sample')
  events = await second.client.stream('tasks/result', { taskId: second.taskId })
  const { id } = await events.next()
  await second.client.post({ jsonrpc: '2.0', id, error: { code: -1, message: 'The user refused' } })
  expect((await events.all()).at(-1).error).toMatchObject({ code: -32603 })
})

test('a link comes with the id that this revision wants', async () => {
  const { client, taskId } = await waiting('link', { elicitation: { url: {} } })
  const events = await client.stream('tasks/result', { taskId })
  const question = await events.next()
  expect(question.params).toMatchObject({ mode: 'url', elicitationId: expect.any(String) })
  await client.answer(question, { action: 'accept' })
  expect((await events.all()).at(-1).result.content[0].text).toBe('{"action":"accept"}')
})

test('what a tool settles before it works is asked by the task, since the call cannot come back', async () => {
  const { client, taskId } = await waiting('prepared')
  const events = await client.stream('tasks/result', { taskId })
  const question = await events.next()
  expect(question).toMatchObject({ method: 'elicitation/create', params: { message: 'Where?' } })
  const there = { action: 'accept', content: { city: 'Oslo' } }
  await client.answer(question, there)
  expect((await events.all()).at(-1).result.content[0].text).toBe(JSON.stringify(there))
})

test('only the tenant itself answers', async () => {
  const { client, taskId } = await waiting()
  const events = await client.stream('tasks/result', { taskId })
  const question = await events.next()
  const stranger = await LegacyClient.connect({ key: GLOBEX })
  expect(await stranger.answer(question, YES)).toBe(202)
  expect(await client.get(taskId)).toMatchObject({ status: 'input_required' })
  const forged = { id: `${String(question.id).slice(0, -2)}xx` }
  expect(await client.answer(forged, YES)).toBe(202)
  expect(await client.get(taskId)).toMatchObject({ status: 'input_required' })
  await events.cancel()
})
