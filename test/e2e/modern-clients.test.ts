/** Clients of revision 2026-07-28 that we did not write, over real HTTP. */
import {
  createTaskSessionEndpointId,
  createTaskSessionFromClient,
  type CreateTaskSessionFromClientOptions,
} from '@modelcontextprotocol/ext-tasks/client'
import type { JsonValue } from '@modelcontextprotocol/ext-tasks/core'
import {
  Client,
  type ClientOptions,
  SdkError,
  StreamableHTTPClientTransport,
} from '@modelcontextprotocol/client'
import { afterAll, beforeAll, describe, expect, test } from 'vitest'
import { headersOf, McpClient } from '../support/mcp'
import { Server } from '../support/server'

const REVISION = '2026-07-28'
const INFO = { name: 'somebody-else', version: '1.0.0' }
const YES = { action: 'accept' as const, content: { confirm: true } }

let server: Server
beforeAll(async () => {
  server = await Server.start({ config: 'test/e2e/clients/wrangler.toml' })
})
afterAll(() => server?.stop())

async function connect(options: ClientOptions = {}) {
  const client = new Client(INFO, {
    capabilities: { elicitation: {} },
    versionNegotiation: { mode: { pin: REVISION } },
    ...options,
  })
  const asked: string[] = []
  client.setRequestHandler('elicitation/create', async ({ params }) => {
    asked.push(params.message)
    return YES
  })
  await client.connect(new StreamableHTTPClientTransport(new URL(`${server.url}/mcp`)))
  return { client, asked }
}

describe('ext-tasks over SDK v2', () => {
  type RawDispatch = NonNullable<CreateTaskSessionFromClientOptions['rawDispatch']>

  /** The host's own way to the wire: the SDK's client does not pass task shapes through. */
  const rawDispatch: RawDispatch = async (request, { signal } = {}) => {
    // What ext-tasks frames.
    const { method, params } = request as { method: string; params: Record<string, string> }
    const response = await fetch(`${server.url}/mcp`, {
      method: 'POST',
      headers: headersOf(method, params),
      body: JSON.stringify({ jsonrpc: '2.0', id: crypto.randomUUID(), method, params }),
      ...(signal && { signal }),
    })
    // The codecs of ext-tasks check what it holds.
    const { result, error }: { result: JsonValue; error?: never } = await response.json()
    return error ? { kind: 'error', error } : { kind: 'result', result }
  }

  async function openSession() {
    const { client } = await connect()
    const asked: unknown[] = []
    const session = createTaskSessionFromClient(client, {
      endpointId: await createTaskSessionEndpointId('test', { url: server.url }),
      rawDispatch,
      v2RequestFraming: {
        protocolVersion: REVISION,
        clientInfo: INFO,
        clientCapabilities: { elicitation: {} },
      },
      onInputRequest: async (request) => {
        asked.push(request.params?.['message'])
        // The handler's type follows the kind of the request; only elicitation is declared.
        return YES as never
      },
    })
    const close = async () => {
      await session.close()
      await client.close()
    }
    return { session, asked, close }
  }

  test('a long call tells its progress and brings its structured result', async () => {
    const { session, close } = await openSession()
    const execution = await session.callTool('count', { to: 4, pauseMs: 400 })
    expect(execution.kind).toBe('task')
    const seen: (string | undefined)[] = []
    const { outcome } = await execution.settle({
      onEvent: (event) => void (event.type === 'task' && seen.push(event.task.statusMessage)),
    })
    expect(outcome).toMatchObject({ status: 'completed', result: { structuredContent: { counted: 4 } } })
    expect(seen.filter((text) => /^Counting \(\d\/4\)$/.test(text ?? '')).length).toBeGreaterThan(1)
    await close()
  })

  test('a question reaches the application once, and its answer the tool', async () => {
    const { session, asked, close } = await openSession()
    const execution = await session.callTool('confirm', { what: 'ship it' })
    const { outcome } = await execution.settle()
    expect(outcome).toMatchObject({
      status: 'completed',
      result: { content: [{ type: 'text', text: 'Did ship it.' }] },
    })
    expect(asked).toEqual(['Really ship it?'])
    await close()
  })

  test('a cancellation, a failure and an error of the tool are told apart', async () => {
    const { session, close } = await openSession()
    const long = await session.callTool('count', { to: 500, pauseMs: 100 })
    await long.cancel()
    expect((await long.settle()).outcome.status).toBe('cancelled')
    const broken = await (await session.callTool('fail')).settle()
    expect(broken.outcome).toMatchObject({
      status: 'failed',
      error: { code: -31_000, data: { part: 'axle' } },
    })
    const wrong = await (await session.callTool('reject')).settle()
    expect(wrong.outcome).toMatchObject({
      status: 'completed',
      result: { isError: true, content: [{ text: 'The disk is full.' }] },
    })
    await close()
  })

  test('a task is found again by its reference, by another client', async () => {
    const first = await openSession()
    const execution = await first.session.callTool('count', { to: 4, pauseMs: 300 })
    if (execution.kind !== 'task') throw new Error('not a task')
    let kept = ''
    await execution.handoff((reference) => void (kept = JSON.stringify(reference)))
    const second = await openSession()
    const { outcome } = await (await second.session.resumeTask(JSON.parse(kept))).settle()
    expect(outcome).toMatchObject({ status: 'completed', result: { structuredContent: { counted: 4 } } })
    await second.close()
    // Closing a session cancels what it began, even what it handed off, so it comes last.
    await first.close()
  })
})

describe('SDK v2 without Tasks', () => {
  const LONG = { name: 'survey', arguments: { to: 8, pauseMs: 400 } }

  /** Counts the requests that a client makes for its call. */
  function counting() {
    const calls: string[] = []
    const counted: typeof fetch = (input, init) => {
      if (typeof init?.body === 'string' && init.body.includes('"tools/call"')) calls.push(init.body)
      return fetch(input, init)
    }
    return { calls, counted }
  }

  test('a call that lasts for several legs, asks, and tells its progress, brings its result', async () => {
    const { calls, counted } = counting()
    const { client, asked } = await connect({ inputRequired: { maxRounds: 40 } })
    const transport = new StreamableHTTPClientTransport(new URL(`${server.url}/mcp`), { fetch: counted })
    await client.close()
    await client.connect(transport)
    const seen: string[] = []
    const result = await client.callTool(
      { ...LONG, arguments: { to: 8, pauseMs: 500 }, _meta: { 'longhaul.dev/maxRounds': 40 } },
      { onprogress: ({ message = '' }) => seen.push(message) },
    )
    expect(result).toMatchObject({ content: [{ text: 'Counted to 8.' }] })
    expect(asked).toEqual(['Go on?'])
    // The call, the answer, and what lies before and after it.
    expect(calls.length).toBeGreaterThan(3)
    const counts = seen.flatMap((text) => /^Counting \((\d)\/8\)$/.exec(text)?.[1] ?? []).map(Number)
    expect(counts.length).toBeGreaterThan(3)
    expect(counts).toEqual(counts.toSorted((a, b) => a - b))
    await client.close()
  })

  test('on its last round a call is told where the work goes on, and joins it by its idempotency key', async () => {
    const { client } = await connect({ inputRequired: { maxRounds: 2 } })
    const call = {
      name: 'count',
      arguments: { to: 10, pauseMs: 500 },
      _meta: { 'longhaul.dev/maxRounds': 2, 'longhaul.dev/idempotencyKey': 'order 7' },
    }
    const first = await client.callTool(call)
    expect(first.isError).toBe(true)
    const [said] = first.content
    const text = said?.type === 'text' ? said.text : ''
    expect(text).toMatch(/goes on on the server.*idempotency key.*declares the Tasks extension/)
    // A client that has Tasks can follow it by the id that the sentence names.
    const taskId = /\(task (\S+)\)/.exec(text)?.[1] ?? ''
    expect(await new McpClient(server.url).get(taskId)).toMatchObject({ taskId, status: 'working' })
    let again = await client.callTool(call)
    for (let i = 0; i < 5 && again.isError; i++) again = await client.callTool(call)
    expect(again.structuredContent).toEqual({ counted: 10 })
    expect(await new McpClient(server.url).get(taskId)).toMatchObject({ status: 'completed' })
    await client.close()
  })

  test('a client that gives up sooner than it said joins by its last requestState', async () => {
    const { client } = await connect({ inputRequired: { maxRounds: 1 } })
    const call = { name: 'count', arguments: { to: 6, pauseMs: 500 } }
    const gaveUp = await client.callTool(call).catch((error: unknown) => error)
    expect(gaveUp).toBeInstanceOf(SdkError)
    const { lastResult } = (gaveUp as SdkError).data as { lastResult: { requestState: string } }
    const patient = await connect()
    const params = { ...call, requestState: lastResult.requestState }
    const result = await patient.client.request({ method: 'tools/call', params })
    expect(result).toMatchObject({ structuredContent: { counted: 6 } })
    await client.close()
    await patient.client.close()
  })
})
