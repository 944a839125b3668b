/** `run_ci_pipeline` of the deployable Worker, against a CI server that is really there (or really is not). */
import { createTestHarness, type TestHarness } from 'wrangler'
import { afterAll, afterEach, beforeAll, describe, expect, test, vi } from 'vitest'
import { deliver, type Job, JobServer, type JobServerOptions } from '../support/job-server'

const KEY = 'acme-key-acme-key'
const COMMIT = '0a1b2c3d'
const PASSED = { status: 'passed', tests: { total: 342, failed: 0 }, durationMs: 252_000 }

let worker: TestHarness
let url: URL
/** Where the Worker looks for the CI server; somebody listens there only while a test wants it. */
let port: number
let ci: JobServer | undefined

beforeAll(async () => {
  // A port that was free a moment ago.
  const reserved = await JobServer.start({ outcome: () => undefined })
  port = reserved.port
  await reserved.stop()
  worker = createTestHarness({
    workers: [
      {
        configPath: new URL('../../wrangler.toml', import.meta.url),
        vars: {
          SIGNING_KEYS: '1:signing-key-of-the-tests',
          API_KEYS: JSON.stringify({ acme: KEY }),
          CI_ENDPOINT: `http://127.0.0.1:${port}/jobs`,
          CI_TOKEN: 'token-of-the-tests',
        },
      },
    ],
  })
  ;({ url } = await worker.listen())
})

afterEach(async () => {
  await ci?.stop()
  ci = undefined
})

afterAll(() => worker.close())

async function startCi(options: JobServerOptions): Promise<void> {
  ci = await JobServer.start({ ...options, port })
}

// The wire is what is under test: nothing is assumed about it.
// oxlint-disable-next-line typescript/no-explicit-any
async function rpc(method: string, params: Record<string, unknown>): Promise<any> {
  const response = await fetch(new URL('/mcp', url), {
    method: 'POST',
    headers: {
      'content-type': 'application/json',
      accept: 'application/json, text/event-stream',
      authorization: `Bearer ${KEY}`,
      'mcp-protocol-version': '2026-07-28',
      'mcp-method': method,
      'mcp-name': String(params['name'] ?? params['taskId']),
    },
    body: JSON.stringify({
      jsonrpc: '2.0',
      id: 1,
      method,
      params: {
        ...params,
        _meta: {
          'io.modelcontextprotocol/protocolVersion': '2026-07-28',
          'io.modelcontextprotocol/clientCapabilities': {
            extensions: { 'io.modelcontextprotocol/tasks': {} },
          },
        },
      },
    }),
  })
  return response.json<unknown>()
}

async function runPipeline(): Promise<string> {
  const { result } = await rpc('tools/call', { name: 'run_ci_pipeline', arguments: { commit: COMMIT } })
  expect(result, JSON.stringify(result)).toMatchObject({ resultType: 'task' })
  return result.taskId
}

async function untilEnded(taskId: string) {
  return vi.waitUntil(
    async () => {
      const { result } = await rpc('tasks/get', { taskId })
      return ['completed', 'failed', 'cancelled'].includes(result?.status) ? result : undefined
    },
    { timeout: 40_000, interval: 200 },
  )
}

const textOf = (task: { result: { content: { text: string }[] } }) => task.result.content[0]?.text

/** A job, once the CI server has it. */
async function jobOf(server: JobServer | undefined, index = 0): Promise<Job> {
  return vi.waitUntil(() => [...(server?.jobs.values() ?? [])][index], { timeout: 20_000, interval: 50 })
}

describe('run_ci_pipeline', () => {
  test('starts a job, waits for its event, and reports that the tests passed', async () => {
    await startCi({ outcome: () => ({ ...PASSED, url: 'https://ci.example.com/runs/1' }) })
    const task = await untilEnded(await runPipeline())
    expect(task.status).toBe('completed')
    expect(textOf(task)).toBe('All 342 tests passed in 4m12s\nhttps://ci.example.com/runs/1')
    expect(task.result.structuredContent).toEqual({
      commit: COMMIT,
      pipeline: 'default',
      status: 'passed',
      tests: { total: 342, failed: 0 },
      durationMs: 252_000,
      url: 'https://ci.example.com/runs/1',
    })
    await ci?.idle()
    expect(ci?.answers).toEqual([204])
    const [request] = ci?.requests ?? []
    expect(request?.body).toMatchObject({ commit: COMMIT, pipeline: 'default' })
    expect(request?.headers).toMatchObject({
      'idempotency-key': request?.body.idempotencyKey,
      authorization: 'Bearer token-of-the-tests',
    })
  })

  test('names the tests that failed; that is no error of the tool', async () => {
    await startCi({
      outcome: () => ({
        status: 'failed',
        tests: { total: 12, failed: 2 },
        durationMs: 9_400,
        failures: [{ name: 'adds', message: 'expected 3' }, { name: 'subtracts' }],
      }),
    })
    const task = await untilEnded(await runPipeline())
    expect(task.result.isError).toBeUndefined()
    expect(textOf(task)).toBe('2 of 12 tests failed in 9.4 s\n- adds: expected 3\n- subtracts')
    expect(task.result.structuredContent).toMatchObject({ status: 'failed', tests: { failed: 2 } })
  })

  test('says so when the pipeline broke', async () => {
    await startCi({ outcome: () => ({ status: 'error', durationMs: 100, message: 'no runner free' }) })
    const task = await untilEnded(await runPipeline())
    expect(task).toMatchObject({ status: 'completed', result: { isError: true } })
    expect(textOf(task)).toBe(`The pipeline default on ${COMMIT} broke after 100 ms: no runner free`)
  })

  test('keeps trying while the CI server is down', async () => {
    const taskId = await runPipeline()
    await vi.waitUntil(
      async () => (await rpc('tasks/get', { taskId })).result.statusMessage?.startsWith('Starting'),
      { timeout: 20_000, interval: 100 },
    )
    await new Promise((resolve) => {
      setTimeout(resolve, 1_500)
    })
    await startCi({ outcome: () => PASSED })
    expect(textOf(await untilEnded(taskId))).toBe('All 342 tests passed in 4m12s')
    expect(ci?.jobs.size).toBe(1)
  })

  test('keeps trying while the CI server answers 503, with the same idempotency key', async () => {
    await startCi({ outcome: () => PASSED, refuse: { status: 503, times: 2 } })
    const task = await untilEnded(await runPipeline())
    expect(textOf(task)).toBe('All 342 tests passed in 4m12s')
    expect(ci?.requests).toHaveLength(3)
    expect(new Set(ci?.requests.map(({ headers }) => headers['idempotency-key'])).size).toBe(1)
    expect(ci?.jobs.size).toBe(1)
  })

  test('gives up when the CI server refuses the job', async () => {
    await startCi({ outcome: () => PASSED, refuse: { status: 422, times: 100 } })
    const task = await untilEnded(await runPipeline())
    expect(task).toMatchObject({ status: 'completed', result: { isError: true } })
    expect(textOf(task)).toContain(`Could not start pipeline default on ${COMMIT}`)
    expect(textOf(task)).toContain('the CI server answered 422: Not now.')
    expect(ci?.requests).toHaveLength(1)
  })

  test('takes an outcome that is delivered three times once', async () => {
    await startCi({ outcome: () => PASSED, deliveries: 3 })
    const task = await untilEnded(await runPipeline())
    expect(textOf(task)).toBe('All 342 tests passed in 4m12s')
    await ci?.idle()
    expect(ci?.answers).toEqual([204, 204, 204])
    // Also once the task has ended the sender is told that it was delivered, and nothing changes.
    const { callbackUrl } = await jobOf(ci)
    expect((await deliver(callbackUrl, { ...PASSED, status: 'failed' })).status).toBe(204)
    expect(textOf(await untilEnded(task.taskId))).toBe('All 342 tests passed in 4m12s')
  })

  test('believes neither a tampered callback address nor an outcome of another shape', async () => {
    await startCi({ outcome: () => undefined })
    const taskId = await runPipeline()
    const { callbackUrl } = await jobOf(ci)
    await runPipeline()
    const other = await jobOf(ci, 1)
    const token = callbackUrl.split('/').at(-1) ?? ''
    const middle = Math.floor(token.length / 2)
    const tampered = token.slice(0, middle) + (token[middle] === 'A' ? 'B' : 'A') + token.slice(middle + 1)
    const forged = [
      callbackUrl.replace(token, tampered),
      callbackUrl.replace(token, token.slice(0, 10)),
      // The token of one task at the address of another.
      `${other.callbackUrl.split('/').slice(0, -1).join('/')}/${token}`,
    ]
    for (const address of forged) expect((await deliver(address, PASSED)).status, address).toBe(404)
    const misshapen = await deliver(callbackUrl, { status: 'splendid', durationMs: 1 })
    expect(misshapen.status).toBe(422)
    expect(await misshapen.json()).toMatchObject({ error: expect.stringContaining('status') })
    expect((await rpc('tasks/get', { taskId })).result).toMatchObject({
      status: 'working',
      statusMessage: `Waiting for pipeline default on ${COMMIT}`,
    })

    expect((await deliver(callbackUrl, PASSED)).status).toBe(204)
    expect(textOf(await untilEnded(taskId))).toBe('All 342 tests passed in 4m12s')
  })

  test('tells the CI server that it is too late once the task was cancelled', async () => {
    await startCi({ outcome: () => undefined })
    const taskId = await runPipeline()
    const { callbackUrl } = await jobOf(ci)
    await rpc('tasks/cancel', { taskId })
    expect((await untilEnded(taskId)).status).toBe('cancelled')
    expect((await deliver(callbackUrl, PASSED)).status).toBe(410)
  })
})
