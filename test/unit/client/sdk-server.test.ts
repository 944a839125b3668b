/**
 * The library against a server of the official SDK: its checks of headers and metadata, its envelopes, its
 * multi-round-trip questions, and task methods registered the way the SDK offers.
 */
import { acceptedContent, createMcpHandler, inputRequired, McpServer } from '@modelcontextprotocol/server'
import { TASKS_EXTENSION_ID_V2 } from '@modelcontextprotocol/ext-tasks/core/v2'
import { expect, test } from 'vitest'
import { z } from 'zod'
import { accept, createTasks, type TasksOptions } from '../../../src/client/index.ts'

const Name = z.object({ name: z.string() })
const Reference = z.object({ taskId: z.string() })

const question = {
  method: 'elicitation/create',
  params: { mode: 'form', message: 'Go?', requestedSchema: { type: 'object', properties: {} } },
}

/** One task: asks, and completes once it was answered. */
function sdkServer() {
  const times = { createdAt: '2026-11-29T12:00:00Z', lastUpdatedAt: '2026-11-29T12:00:00Z' }
  const task = { taskId: 'task-1', ...times, ttlMs: 60_000, pollIntervalMs: 1 }
  let answer: unknown
  return createMcpHandler(() => {
    const mcp = new McpServer(
      { name: 'sdk', version: '1' },
      { capabilities: { tools: {}, extensions: { [TASKS_EXTENSION_ID_V2]: {} } } },
    )
    mcp.registerTool('add', { inputSchema: z.object({ a: z.number(), b: z.number() }) }, ({ a, b }) => ({
      content: [{ type: 'text', text: String(a + b) }],
    }))
    mcp.registerTool('greet', { description: 'Asks who you are.' }, ({ mcpReq }) => {
      const given = acceptedContent(mcpReq.inputResponses, 'who', Name)
      if (given) return { content: [{ type: 'text', text: `Hello, ${given.name}!` }] }
      const who = inputRequired.elicit({ message: 'Who are you?', requestedSchema: Name })
      return inputRequired({ inputRequests: { who } })
    })
    mcp.registerTool('work', { description: 'Becomes a task.' }, () => {
      // The SDK has no type for the result of the extension, and passes it through.
      return { resultType: 'task', status: 'working', ...task } as never
    })
    mcp.server.setRequestHandler('tasks/get', { params: Reference }, ({ taskId }) => {
      if (taskId !== task.taskId) throw new Error('unknown task')
      if (answer === undefined) return { ...task, status: 'input_required', inputRequests: { go: question } }
      const result = { resultType: 'complete', content: [{ type: 'text', text: JSON.stringify(answer) }] }
      return { ...task, status: 'completed', result }
    })
    // The SDK takes the responses out of the parameters, as it does for its own rounds of questions.
    mcp.server.setRequestHandler('tasks/update', { params: Reference }, (_params, { mcpReq }) => {
      answer = mcpReq.inputResponses?.['go']
      return {}
    })
    return mcp
  })
}

function clientOf(more: Partial<TasksOptions> = {}) {
  const server = sdkServer()
  return createTasks({
    url: 'http://localhost/mcp',
    fetch: (url, init) => server.fetch(new Request(url, init)),
    poll: { minIntervalMs: 1 },
    onQuestion: ({ key }) => accept(key === 'who' ? { name: 'Ada' } : {}),
    ...more,
  })
}

test('it lists tools and calls them', async () => {
  const tasks = clientOf()
  expect((await tasks.tools()).map(({ name }) => name)).toEqual(['add', 'greet', 'work'])
  const call = await tasks.call('add', { a: 2, b: 3 })
  expect(await call.result()).toMatchObject({ content: [{ text: '5' }] })
})

test('it answers questions that come before the result', async () => {
  const call = await clientOf().call('greet')
  expect(await call.result()).toMatchObject({ content: [{ text: 'Hello, Ada!' }] })
})

test('it follows a task, though the SDK’s own listening knows of none', async () => {
  const call = await clientOf().call('work')
  expect(await call.result()).toMatchObject({ content: [{ text: '{"action":"accept","content":{}}' }] })
})

test('it hears of errors as such', async () => {
  await expect(clientOf().call('nothing')).rejects.toMatchObject({ code: 'rpc', error: { code: -32602 } })
})
