/** What an outside system can do with the address it was given, and what it is told. */
import { evictDurableObject, listDurableObjectIds, runInDurableObject } from 'cloudflare:test'
import { env, exports } from 'cloudflare:workers'
import { expect, test, vi } from 'vitest'
import { SigningKeys } from '../../../src/auth/keys'
import { callbackUrl } from '../../../src/outside/callback'
import { get, rpc, start, untilEnded } from '../client'
import { handedOut } from '../tools/outside-tools'

const PASSED = { status: 'passed', tests: 342 }
const keys = new SigningKeys(String(env.SIGNING_KEYS))

/** A task that waits, and the address at which it waits. */
async function waiting(tool = 'outside_job', args: Record<string, unknown> = {}) {
  const taskId = await start(tool, args)
  const url = await vi.waitUntil(() => handedOut.get(taskId), { timeout: 10_000 })
  return { taskId, url }
}

function call(url: string, body: unknown, init: RequestInit = {}) {
  return exports.default.fetch(
    new Request(url, {
      method: 'POST',
      headers: { 'content-type': 'application/json' },
      body: typeof body === 'string' ? body : JSON.stringify(body),
      ...init,
    }),
  )
}

async function told(response: Response) {
  const { error } = await response.json<{ error: string }>()
  return { status: response.status, error }
}

const outcome = async (taskId: string) => JSON.parse((await untilEnded(taskId)).result.content[0].text)

test('a POST finishes the wait with its payload', async () => {
  const { taskId, url } = await waiting()
  expect((await call(url, PASSED)).status).toBe(204)
  expect(await outcome(taskId)).toEqual({ received: true, payload: PASSED })
})

test('a repeated call is answered alike and changes nothing, also after the end of the task', async () => {
  const { taskId, url } = await waiting()
  const first = await Promise.all([call(url, PASSED), call(url, PASSED)])
  expect(first.map(({ status }) => status)).toEqual([204, 204])
  const before = await outcome(taskId)
  expect((await call(url, { status: 'failed' })).status).toBe(204)
  expect(await outcome(taskId)).toEqual(before)
})

test('any JSON is a payload, and no body is an empty object', async () => {
  for (const body of [[1, 'two'], 'text', 7, null]) {
    const { taskId, url } = await waiting('outside_any')
    expect((await call(url, JSON.stringify(body))).status).toBe(204)
    expect(await outcome(taskId)).toEqual({ received: true, payload: body })
  }
  const { taskId, url } = await waiting('outside_any')
  expect((await call(url, '')).status).toBe(204)
  expect(await outcome(taskId)).toEqual({ received: true, payload: {} })
})

test('a payload that does not fit is refused with a reason, and the wait goes on', async () => {
  const { taskId, url } = await waiting()
  expect(await told(await call(url, { status: 'unsure' }))).toEqual({
    status: 422,
    error: expect.stringContaining('status'),
  })
  expect((await get(taskId)).status).toBe('working')
  expect((await call(url, PASSED)).status).toBe(204)
})

test('what is not JSON, not called JSON, or too large is refused with a sentence', async () => {
  const { url } = await waiting()
  expect(await told(await call(url, '{'))).toMatchObject({ status: 400 })
  expect(await told(await call(url, '['.repeat(100) + ']'.repeat(100)))).toMatchObject({ status: 400 })
  const text = { headers: { 'content-type': 'text/plain' } }
  expect(await told(await call(url, PASSED, text))).toEqual({
    status: 415,
    error: 'Content-Type must be application/json.',
  })
  const large = JSON.stringify({ status: 'passed', log: 'x'.repeat(130_000) })
  expect(await told(await call(url, large))).toEqual({
    status: 413,
    error: expect.stringContaining('128000 bytes'),
  })
  expect((await call(url, PASSED)).status).toBe(204)
})

test('a tampered address, or one of another task, wakes nobody and always gets the same answer', async () => {
  const { taskId, url } = await waiting()
  const other = await waiting()
  const [, , , , token = ''] = url.split('/')
  const forged = [
    url.slice(0, -1) + (url.endsWith('A') ? 'B' : 'A'),
    url.replace(token, `x${token.slice(1)}`),
    url.replace(token, 'x'),
    url.replace(taskId, other.taskId),
    url.replace(taskId, 'tsk_nonsense'),
  ]
  const answers = await Promise.all(forged.map(async (address) => told(await call(address, PASSED))))
  expect(new Set(answers.map((answer) => JSON.stringify(answer)))).toEqual(
    new Set([JSON.stringify({ status: 404, error: 'This callback address is not valid.' })]),
  )
  const objects = (await listDurableObjectIds(env.TASKS)).map(String)
  expect(objects).not.toContain(String(env.TASKS.idFromName('tsk_nonsense')))
  expect((await get(taskId)).status).toBe('working')
  expect((await get(other.taskId)).status).toBe('working')
})

test('an address signed for an event that the task does not wait for delivers nothing', async () => {
  const { taskId } = await waiting()
  const url = await callbackUrl(keys, 'http://localhost', taskId, 'deploy', Date.now() + 60_000)
  expect(await told(await call(url, PASSED))).toMatchObject({ status: 404 })
  // A step of the task is no event either, whatever somebody signs.
  const step = await callbackUrl(keys, 'http://localhost', taskId, 'build: start', Date.now() + 60_000)
  expect(await told(await call(step, PASSED))).toMatchObject({ status: 404 })
  expect((await get(taskId)).status).toBe('working')
})

test('after the time-out the call is told that it is late', async () => {
  const { taskId, url } = await waiting('outside_job', { timeoutMs: 2_500 })
  expect(await outcome(taskId)).toEqual({ received: false, reason: 'timeout' })
  expect(await told(await call(url, PASSED))).toEqual({
    status: 410,
    error: expect.stringContaining('Too late'),
  })
})

test('the deadline counts although the alarm that gives the wait up has not rung', async () => {
  const { taskId, url } = await waiting()
  await runInDurableObject(env.TASKS.getByName(taskId), (_, { storage }) => {
    storage.sql.exec(`UPDATE journal SET at = ? WHERE name = 'build'`, Date.now() - 1)
  })
  // What is in memory was read before.
  await evictDurableObject(env.TASKS.getByName(taskId))
  expect(await told(await call(url, PASSED))).toMatchObject({ status: 410 })
})

test('an address whose time is long over is told from a forged one, without asking the task', async () => {
  const { taskId } = await waiting()
  const url = await callbackUrl(keys, 'http://localhost', taskId, 'build', Date.now() - 2 * 3_600_000)
  expect(await told(await call(url, PASSED))).toEqual({
    status: 410,
    error: expect.stringContaining('expired'),
  })
})

test('a task that was cancelled does not take the outcome any more', async () => {
  const { taskId, url } = await waiting()
  await rpc('tasks/cancel', { taskId })
  await untilEnded(taskId)
  const late = { status: 410, error: 'Too late: the task has ended.' }
  expect(await told(await call(url, PASSED))).toEqual(late)
  expect(await told(await call(`${url}/progress`, { message: 'Testing' }))).toEqual(late)
})

test('whoever opens the address in a browser is told what it is for', async () => {
  const { taskId, url } = await waiting()
  for (const address of [url, `${url}/progress`]) {
    const response = await exports.default.fetch(new Request(address))
    expect(response.headers.get('allow')).toBe('POST')
    expect(await told(response)).toEqual({ status: 405, error: expect.stringContaining('POST') })
  }
  expect((await exports.default.fetch(new Request(url, { method: 'HEAD' }))).status).toBe(405)
  expect((await get(taskId)).status).toBe('working')
})

test('no credentials are needed, and none are looked at', async () => {
  const { taskId, url } = await waiting()
  const headers = { 'content-type': 'application/json; charset=utf-8', authorization: 'Basic bm86cGU=' }
  expect((await call(url, PASSED, { headers })).status).toBe(204)
  expect(await outcome(taskId)).toMatchObject({ received: true })
})

test('progress is shown at once, with a count when there is one', async () => {
  const { taskId, url } = await waiting()
  expect((await call(`${url}/progress`, { message: 'Compiling' })).status).toBe(204)
  expect((await get(taskId)).statusMessage).toBe('Compiling')
  expect((await call(`${url}/progress`, { message: 'Testing', done: 3, total: 10 })).status).toBe(204)
  expect((await get(taskId)).statusMessage).toBe('Testing (3/10)')
  expect(await told(await call(`${url}/progress`, { done: 3 }))).toMatchObject({ status: 422 })
  await call(url, PASSED)
  await untilEnded(taskId)
})

test('progress outlives the object, and stops with the outcome', async () => {
  const { taskId, url } = await waiting()
  await call(`${url}/progress`, { message: 'Testing' })
  await evictDurableObject(env.TASKS.getByName(taskId))
  expect((await get(taskId)).statusMessage).toBe('Testing')
  await call(url, PASSED)
  expect(await told(await call(`${url}/progress`, { message: 'Still testing' }))).toEqual({
    status: 410,
    error: 'Too late: this event was delivered, so its progress is over.',
  })
})

test('a job that reports without end is told to slow down, and can still finish', async () => {
  const { taskId, url } = await waiting()
  const answers: Response[] = []
  for (let i = 0; i < 60; i++) answers.push(await call(`${url}/progress`, { message: `Line ${i}` }))
  const busy = answers.at(-1)
  expect(answers[0]?.status).toBe(204)
  expect(busy?.status).toBe(429)
  expect(Number(busy?.headers.get('retry-after'))).toBeGreaterThan(0)
  expect((await call(url, PASSED)).status).toBe(204)
  expect(await outcome(taskId)).toMatchObject({ received: true })
})

test('the id of the started job is shown while the task waits, and comes with the result', async () => {
  const { taskId, url } = await waiting('outside_job', { upstreamId: 'run-4711' })
  await vi.waitUntil(async () => (await get(taskId)).statusMessage === 'Waiting for build: run-4711')
  await call(url, PASSED)
  const { result } = await untilEnded(taskId)
  const job = { upstreamId: 'run-4711', upstreamUrl: 'https://ci.example/runs/run-4711' }
  expect(JSON.parse(result.content[0].text)).toEqual({ received: true, payload: PASSED, ...job })
  expect(result._meta['longhaul.dev/upstream']).toEqual({
    build: { id: 'run-4711', url: 'https://ci.example/runs/run-4711' },
  })
})

test('a tool that says something itself while it starts the job is not talked over', async () => {
  const { taskId, url } = await waiting('outside_job', { upstreamId: 'run-1', says: 'Hold the line' })
  await vi.waitUntil(async () => (await get(taskId)).statusMessage !== undefined)
  expect((await get(taskId)).statusMessage).toBe('Hold the line')
  await call(url, PASSED)
  await untilEnded(taskId)
})

test('a time-out names the job that was not heard of', async () => {
  const { taskId } = await waiting('outside_job', { upstreamId: 'run-2', timeoutMs: 2_500 })
  expect(await outcome(taskId)).toMatchObject({ received: false, reason: 'timeout', upstreamId: 'run-2' })
})
