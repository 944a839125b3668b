/** Clients of the 2025 revisions that we did not write, over real HTTP. */
import {
  createTaskSessionEndpointId,
  createTaskSessionFromClient,
  toolDeclarationFromMcpTool,
} from '@modelcontextprotocol/ext-tasks/client'
import {
  Client as ModernSdkClient,
  StreamableHTTPClientTransport as ModernSdkTransport,
} from '@modelcontextprotocol/client'
import { Client } from '@modelcontextprotocol/sdk/client/index.js'
import { StreamableHTTPClientTransport } from '@modelcontextprotocol/sdk/client/streamableHttp.js'
import { CallToolResultSchema, ElicitRequestSchema } from '@modelcontextprotocol/sdk/types.js'
import { afterAll, beforeAll, expect, test } from 'vitest'
import { Server } from '../support/server'

const INFO = { name: 'somebody-else', version: '1.0.0' }
const CAPABILITIES = { elicitation: {} }
const YES = { action: 'accept' as const, content: { confirm: true } }

let server: Server
beforeAll(async () => {
  server = await Server.start({ config: 'test/e2e/clients/wrangler.toml' })
})
afterAll(() => server?.stop())

/** The SDK of the first generation. `asked` collects the questions its user saw. */
async function connectV1(fetchFn?: typeof fetch) {
  const client = new Client(INFO, { capabilities: CAPABILITIES })
  const asked: string[] = []
  client.setRequestHandler(ElicitRequestSchema, async ({ params }) => {
    asked.push(params.message)
    return YES
  })
  const transport = new StreamableHTTPClientTransport(new URL(`${server.url}/mcp`), {
    ...(fetchFn && { fetch: fetchFn }),
  })
  await client.connect(transport)
  await client.listTools()
  return { client, transport, asked }
}

/** Everything a stream of the experimental client yields. */
async function collect<T>(stream: AsyncIterable<T>): Promise<T[]> {
  const all: T[] = []
  for await (const message of stream) all.push(message)
  return all
}

test('SDK v1: a call with progress and a question runs to its result without tasks', async () => {
  const { client, asked } = await connectV1()
  const result = await client.callTool({ name: 'confirm', arguments: { what: 'delete it' } })
  expect(result.content).toEqual([{ type: 'text', text: 'Did delete it.' }])
  expect(asked).toEqual(['Really delete it?'])
  const seen: number[] = []
  const counted = await client.callTool({ name: 'count', arguments: { to: 3, pauseMs: 300 } }, undefined, {
    onprogress: ({ progress }) => seen.push(progress),
  })
  expect(counted.structuredContent).toEqual({ counted: 3 })
  expect(seen.length).toBeGreaterThan(0)
  await client.close()
})

test('SDK v1: a task that asks is asked once and brings its result home', async () => {
  const { client, asked } = await connectV1()
  const messages = await collect(
    client.experimental.tasks.callToolStream({ name: 'confirm', arguments: { what: 'ship it' } }, undefined, {
      task: { ttl: 120_000 },
    }),
  )
  expect(messages[0]).toMatchObject({ type: 'taskCreated', task: { status: 'working', ttl: 120_000 } })
  expect(messages.at(-1)).toMatchObject({
    type: 'result',
    result: { content: [{ type: 'text', text: 'Did ship it.' }] },
  })
  expect(asked).toEqual(['Really ship it?'])
  await client.close()
})

test('SDK v1: a long task is polled and its structured result passes the output schema', async () => {
  const { client } = await connectV1()
  const call = { name: 'count', arguments: { to: 4, pauseMs: 300 } }
  const messages = await collect(client.experimental.tasks.callToolStream(call, undefined, { task: {} }))
  expect(messages.filter(({ type }) => type === 'taskStatus').length).toBeGreaterThan(1)
  expect(messages.at(-1)).toMatchObject({ type: 'result', result: { structuredContent: { counted: 4 } } })
  await client.close()
})

test('SDK v1: a required tool runs as a task by itself, and what it reports as an error has failed', async () => {
  const { client } = await connectV1()
  await expect(client.callTool({ name: 'reject', arguments: {} })).rejects.toThrow(/task/i)
  const messages = await collect(
    client.experimental.tasks.callToolStream({ name: 'reject', arguments: {} }, undefined, { task: {} }),
  )
  const status = messages.findLast(({ type }) => type === 'taskStatus')
  expect(status).toMatchObject({ task: { status: 'failed', statusMessage: 'The disk is full.' } })
  const taskId = status?.type === 'taskStatus' ? status.task.taskId : ''
  expect(await client.experimental.tasks.getTaskResult(taskId, CallToolResultSchema)).toMatchObject({
    isError: true,
  })
  await client.close()
})

test('SDK v1: a cancelled task is cancelled at once, and its errors are told apart', async () => {
  const { client } = await connectV1()
  const call = { name: 'count', arguments: { to: 500, pauseMs: 100 } }
  const stream = client.experimental.tasks.callToolStream(call, undefined, { task: {} })
  const first = (await stream.next()).value
  const taskId = first?.type === 'taskCreated' ? first.task.taskId : ''
  expect(await client.experimental.tasks.cancelTask(taskId)).toMatchObject({ taskId, status: 'cancelled' })
  expect(await client.experimental.tasks.getTask(taskId)).toMatchObject({ status: 'cancelled' })
  await expect(client.experimental.tasks.cancelTask(taskId)).rejects.toMatchObject({ code: -32602 })
  await expect(client.experimental.tasks.getTaskResult(taskId, CallToolResultSchema)).rejects.toMatchObject({
    code: -32603,
  })
  await expect(client.experimental.tasks.getTask('tsk_nonsense')).rejects.toMatchObject({ code: -32602 })
  await expect(client.experimental.tasks.listTasks()).rejects.toMatchObject({ code: -32601 })
  await client.close()
})

test('SDK v1: a stream that drops is resumed, and the call gets its result', async () => {
  let dropped = 0
  const cutting: typeof fetch = async (input, init) => {
    const response = await fetch(input, init)
    const isCall = typeof init?.body === 'string' && init.body.includes('tools/call')
    if (!isCall || !response.body || !response.headers.get('content-type')?.includes('event-stream')) {
      return response
    }
    dropped++
    // The first chunk arrives, then the line is dead.
    const reader = response.body.getReader()
    const { value } = await reader.read()
    await reader.cancel()
    const body = new ReadableStream({
      start(controller) {
        controller.enqueue(value)
        setTimeout(() => controller.error(new Error('line dropped')), 50)
      },
    })
    return new Response(body, { status: response.status, headers: response.headers })
  }
  const { client, asked } = await connectV1(cutting)
  const result = await client.callTool({ name: 'count', arguments: { to: 8, pauseMs: 400 } })
  expect(result.structuredContent).toEqual({ counted: 8 })
  expect(dropped).toBe(1)
  const confirmed = await client.callTool({ name: 'confirm', arguments: { what: 'mend it' } })
  expect(confirmed.content).toEqual([{ type: 'text', text: 'Did mend it.' }])
  expect(dropped).toBe(2)
  expect(asked).toEqual(['Really mend it?'])
  await client.close()
})

test('SDK v1: giving up on a request neither cancels the task nor loses its result', async () => {
  const { client, transport } = await connectV1()
  const stream = client.experimental.tasks.callToolStream(
    { name: 'count', arguments: { to: 6, pauseMs: 400 } },
    undefined,
    { task: {} },
  )
  const first = (await stream.next()).value
  const taskId = first?.type === 'taskCreated' ? first.task.taskId : ''
  await expect(
    client.experimental.tasks.getTaskResult(taskId, CallToolResultSchema, { timeout: 300 }),
  ).rejects.toThrow(/timed out/i)
  expect(await client.experimental.tasks.getTaskResult(taskId, CallToolResultSchema)).toMatchObject({
    structuredContent: { counted: 6 },
  })
  // There is no session to end, which the client takes for an answer.
  await transport.terminateSession()
  await client.close()
})

test('ext-tasks over SDK v2 at 2025-11-25: a client that only polls is asked once', async () => {
  const client = new ModernSdkClient(INFO, { capabilities: CAPABILITIES })
  await client.connect(new ModernSdkTransport(new URL(`${server.url}/mcp`)))
  const asked: unknown[] = []
  const session = createTaskSessionFromClient(client, {
    endpointId: await createTaskSessionEndpointId('test', { url: server.url }),
    onInputRequest: async (request) => {
      asked.push(request.params)
      // The handler's type follows the kind of the request; only elicitation is declared.
      return YES as never
    },
  })
  expect(session.capabilities).toMatchObject({ execution: true, cancellation: true })
  const execution = await session.callTool(
    'confirm',
    { what: 'poll it' },
    { task: { preference: 'require' }, declaration: await declarationOf(client, 'confirm') },
  )
  expect(execution.kind).toBe('task')
  const { outcome } = await execution.settle()
  expect(outcome).toMatchObject({
    status: 'completed',
    result: { content: [{ type: 'text', text: 'Did poll it.' }] },
  })
  expect(asked).toHaveLength(1)
  await session.close()
  await client.close()
})

test('ext-tasks over SDK v2 at 2025-11-25: failure and cancellation are told as such', async () => {
  const client = new ModernSdkClient(INFO, { capabilities: CAPABILITIES })
  await client.connect(new ModernSdkTransport(new URL(`${server.url}/mcp`)))
  const session = createTaskSessionFromClient(client, {
    endpointId: await createTaskSessionEndpointId('test', { url: server.url }),
  })
  const failing = await session.callTool('reject', {}, { declaration: await declarationOf(client, 'reject') })
  expect(failing.kind).toBe('task')
  const { outcome } = await failing.settle()
  expect(outcome.status === 'failed' && outcome.error.message).toContain('The disk is full.')
  const long = await session.callTool(
    'count',
    { to: 500, pauseMs: 100 },
    { task: { preference: 'require' }, declaration: await declarationOf(client, 'count') },
  )
  await long.cancel()
  expect((await long.settle()).outcome.status).toBe('cancelled')
  await session.close()
  await client.close()
})

test('SDK v2 in the old era: a call blocks, is asked on its stream, and ends', async () => {
  const client = new ModernSdkClient(INFO, { capabilities: CAPABILITIES })
  const asked: string[] = []
  client.setRequestHandler('elicitation/create', async ({ params }) => {
    asked.push(params.message)
    return YES
  })
  await client.connect(new ModernSdkTransport(new URL(`${server.url}/mcp`)))
  expect(client.getServerCapabilities()?.extensions).toBeUndefined()
  const result = await client.callTool({ name: 'confirm', arguments: { what: 'ask it' } })
  expect(result.content).toEqual([{ type: 'text', text: 'Did ask it.' }])
  expect(asked).toEqual(['Really ask it?'])
  const quick = await client.callTool({ name: 'greet', arguments: { name: 'Ada' } })
  expect(quick.content).toEqual([{ type: 'text', text: 'Hello, Ada!' }])
  await client.close()
})

/** What `tools/list` says of a tool, as ext-tasks wants it. */
async function declarationOf(client: ModernSdkClient, name: string) {
  const { tools } = await client.listTools()
  const tool = tools.find((candidate) => candidate.name === name)
  if (!tool) throw new Error(`no tool ${name}`)
  return toolDeclarationFromMcpTool(tool)
}
