/** Each JSON example of the introductory article, request and answer. Its requests name no revision. */
import { expect, test, vi } from 'vitest'
import { ACME, GLOBEX, post, start } from './client'
import { Events } from './events'

const TASKS_DECLARED = {
  'io.modelcontextprotocol/clientCapabilities': { extensions: { 'io.modelcontextprotocol/tasks': {} } },
}

const ask = (body: unknown, key = ACME) => post(body, { authorization: `Bearer ${key}` })

async function say(method: string, params: Record<string, unknown>, id: number = 1, key = ACME) {
  const response = await ask({ jsonrpc: '2.0', id, method, params }, key)
  expect(response.status).toBe(200)
  // The wire is what is under test: nothing is assumed about it.
  // oxlint-disable-next-line typescript/no-explicit-any
  return (await response.json()) as any
}

const call = (name: string, args: Record<string, unknown> = {}) =>
  say('tools/call', { name, arguments: args, _meta: TASKS_DECLARED })

async function untilStatus(taskId: string, status: string) {
  return vi.waitUntil(
    async () => {
      const { result } = await say('tasks/get', { taskId })
      return result.status === status ? result : undefined
    },
    { timeout: 10_000 },
  )
}

test('a call is answered with a nested task', async () => {
  const answer = await call('article_pipeline', { commit: 'abc123' })
  expect(answer).toEqual({
    jsonrpc: '2.0',
    id: 1,
    result: {
      resultType: 'task',
      task: {
        taskId: expect.stringMatching(/^tsk_01/),
        status: 'working',
        ttlMs: 3_600_000,
        pollIntervalMs: 2_000,
      },
    },
  })
})

test('a poll in flight, and the terminal one', async () => {
  const { result } = await call('article_pipeline', { commit: 'abc123' })
  const { taskId } = result.task
  const working = await vi.waitUntil(async () => {
    const answer = await say('tasks/get', { taskId }, 2)
    return answer.result.statusMessage === undefined ? undefined : answer
  })
  expect(working).toEqual({
    jsonrpc: '2.0',
    id: 2,
    result: { taskId, status: 'working', statusMessage: 'Running tests (128/342)' },
  })
  const done = await untilStatus(taskId, 'completed')
  const { statusMessage: _, ...rest } = done
  expect(rest).toEqual({
    taskId,
    status: 'completed',
    result: { content: [{ type: 'text', text: 'All 342 tests passed in 4m12s' }] },
  })
})

test('a question, a plain answer, its acknowledgement, and the same answer again', async () => {
  const { result } = await call('article_clean_up')
  const { taskId } = result.task
  expect(await untilStatus(taskId, 'input_required')).toEqual({
    taskId,
    status: 'input_required',
    inputRequests: {
      confirm_delete: {
        type: 'elicitation',
        message: 'Delete 47 files matching *.tmp?',
        schema: { type: 'object', properties: { confirm: { type: 'boolean' } } },
      },
    },
  })
  const inputResponses = { confirm_delete: { confirm: true } }
  const acknowledgement = { jsonrpc: '2.0', id: 5, result: {} }
  expect(await say('tasks/update', { taskId, inputResponses }, 5)).toEqual(acknowledgement)
  expect(await say('tasks/update', { taskId, inputResponses }, 5)).toEqual(acknowledgement)
  const done = await untilStatus(taskId, 'completed')
  expect(done.result.content[0].text).toBe('{"action":"accept","content":{"confirm":true}}')
})

test('an answer that says what the user did is taken as that', async () => {
  const { result } = await call('article_clean_up')
  const { taskId } = result.task
  await untilStatus(taskId, 'input_required')
  await say('tasks/update', { taskId, inputResponses: { confirm_delete: { action: 'decline' } } })
  const done = await untilStatus(taskId, 'completed')
  expect(done.result.content[0].text).toBe('{"action":"decline"}')
})

test('cancellation is acknowledged, and acknowledged again after the end', async () => {
  const { result } = await call('article_clean_up')
  const { taskId } = result.task
  await untilStatus(taskId, 'input_required')
  const acknowledgement = { jsonrpc: '2.0', id: 9, result: {} }
  expect(await say('tasks/cancel', { taskId }, 9)).toEqual(acknowledgement)
  expect((await untilStatus(taskId, 'cancelled')).taskId).toBe(taskId)
  expect(await say('tasks/cancel', { taskId }, 9)).toEqual(acknowledgement)
})

test('a subscription without ids hears of all the caller’s tasks, present and future, and of nobody else’s', async () => {
  const before = (await call('article_clean_up')).result.task.taskId
  await untilStatus(before, 'input_required')
  const request = {
    jsonrpc: '2.0',
    id: 3,
    method: 'subscriptions/listen',
    params: { notifications: ['notifications/tasks'] },
  }
  const events = new Events(await ask(request))
  const theirs = await start('greet', { name: 'Eve' }, { key: GLOBEX })
  const after = (await call('article_pipeline', { commit: 'abc123' })).result.task.taskId
  const heard: { taskId: string; status: string }[] = []
  while (!heard.some((task) => task.taskId === after && task.status === 'completed')) {
    const message = await events.next()
    expect(message.method).toBe('notifications/tasks')
    heard.push(message.params.task)
  }
  await events.cancel()
  expect(heard.map((task) => task.taskId)).toContain(before)
  expect(heard.map((task) => task.taskId)).not.toContain(theirs)
  expect(heard.at(-1)).toMatchObject({
    result: { content: [{ type: 'text', text: 'All 342 tests passed in 4m12s' }] },
  })
})

test('a required tool without the extension is refused in the article’s words', async () => {
  const { error } = await say('tools/call', { name: 'article_pipeline', arguments: { commit: 'abc123' } })
  expect(error).toEqual({ code: -32603, message: 'article_pipeline requires Tasks extension' })
})

test('unknown, foreign and malformed ids share one answer', async () => {
  const foreign = await start('greet', { name: 'Eve' }, { key: GLOBEX })
  const answers = await Promise.all([foreign, 'tsk_01HZY7', ''].map((taskId) => say('tasks/get', { taskId })))
  expect(new Set(answers.map((answer) => JSON.stringify(answer))).size).toBe(1)
  expect(answers[0].error.code).toBe(-32602)
})
