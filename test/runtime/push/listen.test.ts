import { runInDurableObject } from 'cloudflare:test'
import { env } from 'cloudflare:workers'
import { expect, test, vi } from 'vitest'
import { ACME, ALL_CAPABILITIES, get, GLOBEX, rpc, send, start, untilEnded } from '../client'
import { Events } from '../events'

const listen = (taskIds: unknown, more: Record<string, unknown> = {}, key = ACME) =>
  send('subscriptions/listen', { notifications: { taskIds, ...more } }, { key })

const SUBSCRIPTION = 'io.modelcontextprotocol/subscriptionId'

test('a subscriber is acknowledged, told the state, told every change, and released at the end', async () => {
  const taskId = await start('count', { to: 3 })
  const response = await listen([taskId])
  expect(response.headers.get('content-type')).toBe('text/event-stream')
  expect(response.headers.get('x-accel-buffering')).toBe('no')
  const messages = await new Events(response).all()

  const [acknowledgement, ...rest] = messages
  expect(acknowledgement).toMatchObject({
    method: 'notifications/subscriptions/acknowledged',
    params: { notifications: { taskIds: [taskId] } },
  })
  const final = rest.pop()
  expect(final.result).toMatchObject({ resultType: 'complete', _meta: { [SUBSCRIPTION]: final.id } })
  for (const note of rest) {
    expect(note.method).toBe('notifications/tasks')
    expect(note.params._meta).toEqual({ [SUBSCRIPTION]: final.id })
    expect(note.params).not.toHaveProperty('resultType')
  }
  const texts = rest.map((note) => note.params.statusMessage)
  expect(texts).toContain('Counting (2/3)')
  expect(rest.at(-1).params.status).toBe('completed')
})

test('a notification is what tasks/get answers at that moment', async () => {
  const taskId = await start('greet', { name: 'Ada' })
  await untilEnded(taskId)
  const { resultType: _, _meta, ...task } = await get(taskId)
  const messages = await new Events(await listen([taskId])).all()
  const { _meta: _ignored, ...note } = messages[1].params
  expect(note).toEqual(task)
  expect(messages).toHaveLength(3)
})

test('the subscription id keeps the JSON type of the request id', async () => {
  const messages = await new Events(await listen([])).all()
  expect(messages.map((message) => typeof (message.params ?? message.result)._meta[SUBSCRIPTION])).toEqual([
    'number',
    'number',
  ])
})

test('foreign and unknown ids are left out without a word', async () => {
  const mine = await start('greet', { name: 'Ada' })
  const theirs = await start('greet', { name: 'Bob' }, { key: GLOBEX })
  const messages = await new Events(await listen([theirs, 'tsk_nonsense', mine])).all()
  expect(messages[0].params.notifications.taskIds).toEqual([mine])
  expect(
    messages
      .filter((message) => message.method === 'notifications/tasks')
      .every((m) => m.params.taskId === mine),
  ).toBe(true)
})

test('taskIds without the extension is -32021, a listen without them is not ours to refuse', async () => {
  const capabilities = { elicitation: {} }
  const refused = await rpc('subscriptions/listen', { notifications: { taskIds: [] } }, { capabilities })
  expect(refused).toMatchObject({ status: 400, body: { error: { code: -32021 } } })
  const response = await send(
    'subscriptions/listen',
    { notifications: { toolsListChanged: true } },
    { capabilities },
  )
  const events = new Events(response)
  expect((await events.next()).method).toBe('notifications/subscriptions/acknowledged')
  await events.cancel()
})

test.each([['nonsense'], [[1, 2]], [Array.from({ length: 101 }, (_, i) => `tsk_${i}`)]])(
  'malformed or too many task ids are refused: %j',
  async (taskIds) => {
    const { body } = await rpc('subscriptions/listen', { notifications: { taskIds } })
    expect(body.error.code).toBe(-32602)
  },
)

test('other filters keep working on the same stream, which then stays open', async () => {
  const taskId = await start('greet', { name: 'Ada' })
  await untilEnded(taskId)
  const others = { resourceSubscriptions: ['test://note'] }
  const events = new Events(await listen([taskId], others))
  const acknowledgement = await events.next()
  expect(acknowledgement.params.notifications).toEqual({ ...others, taskIds: [taskId] })
  expect((await events.next()).params.status).toBe('completed')
  const silence = await Promise.race([events.next(), scheduler.wait(500).then(() => 'silence')])
  expect(silence).toBe('silence')
  await events.cancel()
})

test('a filter that the server does not promise is not acknowledged and keeps no stream open', async () => {
  const taskId = await start('greet', { name: 'Ada' })
  const others = { toolsListChanged: true, resourcesListChanged: true }
  const messages = await new Events(await listen([taskId], others)).all()
  expect(messages[0].params.notifications).toEqual({ taskIds: [taskId] })
  expect(messages.at(-1).result.resultType).toBe('complete')
})

test('a result too large to push still arrives', async () => {
  const taskId = await start('big', { chars: 400_000 })
  const messages = await new Events(await listen([taskId])).all()
  const last = messages.at(-2)
  expect(last.params.status).toBe('completed')
  expect(last.params.result.content[0].text).toHaveLength(400_000)
})

test('a client without tasks in sight may subscribe before the question comes', async () => {
  const taskId = await start('ask')
  const events = new Events(await listen([taskId]))
  await events.next()
  let note = await events.next()
  while (note.params.status !== 'input_required') note = await events.next()
  expect(Object.keys(note.params.inputRequests)).toEqual(['sure'])
  await rpc(
    'tasks/update',
    { taskId, inputResponses: { sure: { action: 'decline' } } },
    { capabilities: ALL_CAPABILITIES },
  )
  const rest = await events.all()
  expect(rest.at(-2).params).toMatchObject({
    status: 'completed',
    result: { content: [{ text: '{"action":"decline"}' }] },
  })
})

test('a subscriber that vanishes leaves neither its sockets at the tasks nor its place behind', async () => {
  const tasks = await Promise.all([1, 2].map(() => start('ask', {}, { key: GLOBEX })))
  const objects = [...tasks.map((taskId) => env.TASKS.getByName(taskId)), env.TENANTS.getByName('globex')]
  const attached = () => Promise.all(objects.map((stub) => runInDurableObject(stub, openSockets)))
  const vanishing = new AbortController()
  const params = { notifications: { taskIds: tasks } }
  const response = await send('subscriptions/listen', params, { key: GLOBEX, signal: vanishing.signal })
  const events = new Events(response)
  await events.next()
  expect(await attached()).toEqual([1, 1, 1])
  vanishing.abort()
  await vi.waitUntil(async () => (await attached()).every((count) => count === 0), { timeout: 10_000 })
  await Promise.all(tasks.map((taskId) => rpc('tasks/cancel', { taskId }, { key: GLOBEX })))
})

const openSockets = (_: unknown, ctx: DurableObjectState) =>
  ctx.getWebSockets().filter((socket) => socket.readyState === WebSocket.OPEN).length
