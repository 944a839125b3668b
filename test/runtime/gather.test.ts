/** What a tool gathers before a task exists (multi-round-trip requests, SEP-2322). */
import { listDurableObjectIds } from 'cloudflare:test'
import { env } from 'cloudflare:workers'
import { afterEach, expect, test, vi } from 'vitest'
import { GLOBEX, rpc, TASKS, untilEnded } from './client'
import { script } from './tools/scripted'

const accept = (content: unknown) => ({ action: 'accept', content })
const NAME = accept({ name: 'Ada' })
const SIZE = accept({ size: 4 })

/** The script tells what the tool got. */
const args = script(async ({ gathered }) => JSON.stringify(gathered))

function call(more: Record<string, unknown> = {}, options = {}, name = 'scripted_gathers') {
  return rpc('tools/call', { name, arguments: args, ...more }, options)
}

const tasks = async () => (await listDurableObjectIds(env.TASKS)).length

async function outcome(taskId: string) {
  const task = await untilEnded(taskId)
  return task.status === 'completed' ? JSON.parse(task.result.content[0].text) : task
}

afterEach(() => {
  vi.useRealTimers()
})

test('the call is answered with its questions, and nothing is created', async () => {
  const before = await tasks()
  const { status, body } = await call()
  expect(status).toBe(200)
  expect(body.result).toEqual({
    resultType: 'input_required',
    requestState: expect.any(String),
    _meta: expect.anything(),
    inputRequests: {
      name: {
        method: 'elicitation/create',
        params: expect.objectContaining({ mode: 'form', message: 'Your name?' }),
      },
      size: {
        method: 'elicitation/create',
        params: expect.objectContaining({ mode: 'form', message: 'Which size?' }),
      },
    },
  })
  expect(await tasks()).toBe(before)
})

test('a retry with all answers becomes a task, which gets them as its schemas read them', async () => {
  const { requestState } = (await call()).body.result
  const { body } = await call({ requestState, inputResponses: { name: NAME, size: SIZE, other: 1 } })
  expect(body.result.resultType).toBe('task')
  expect(await outcome(body.result.taskId)).toEqual({
    name: NAME,
    size: accept({ size: 4, unit: 'cm' }),
  })
})

test('answers may come one by one: what was answered travels in the state', async () => {
  const first = (await call()).body.result
  const second = (await call({ requestState: first.requestState, inputResponses: { name: NAME } })).body
    .result
  expect(Object.keys(second.inputRequests)).toEqual(['size'])
  expect(second.requestState).not.toBe(first.requestState)
  // Another answer to what is settled changes nothing.
  const inputResponses = { size: { action: 'decline' }, name: accept({ name: 'Bob' }) }
  const third = (await call({ requestState: second.requestState, inputResponses })).body.result
  expect(await outcome(third.taskId)).toEqual({ name: NAME, size: { action: 'decline' } })
})

test.each([
  ['by the wire', { name: accept({ name: 7 }), size: SIZE }, 'name', 'name'],
  ['by the wire, in its size', { name: accept({ name: 'x'.repeat(128_000) }), size: SIZE }, 'name', 'bytes'],
  ['by the tool only', { name: NAME, size: accept({ size: 3 }) }, 'size', 'must be even'],
  ['without an action', { name: NAME, size: {} }, 'size', 'action'],
  ['null', { name: NAME, size: null }, 'size', 'expected object'],
])(
  'an answer that does not fit (%s) is asked again, with what was wrong; others are kept',
  async (...row) => {
    const [, inputResponses, key, problem] = row
    const before = await tasks()
    const { requestState } = (await call()).body.result
    const { result } = (await call({ requestState, inputResponses })).body
    expect(result.resultType).toBe('input_required')
    expect(Object.keys(result.inputRequests)).toEqual([key])
    expect(result.inputRequests[key].params.message).toContain(problem)
    expect(await tasks()).toBe(before)
  },
)

test.each([
  ['touched', (state: string) => `x${state.slice(1)}`],
  ['touched at its end', (state: string) => state.slice(0, -1) + (state.endsWith('A') ? 'B' : 'A')],
  ['cut short', (state: string) => state.slice(0, 20)],
  ['empty', () => ''],
  ['made up', () => 'e30.0AAAAAAAAAAAAAAAA'],
  ['a number', () => 7],
  ['null', () => null],
])('a state that is %s is refused', async (_, touch) => {
  const before = await tasks()
  const { requestState } = (await call()).body.result
  const { body } = await call({
    requestState: touch(requestState),
    inputResponses: { name: NAME, size: SIZE },
  })
  expect(body.error).toMatchObject({ code: -32602, message: expect.stringContaining('requestState') })
  expect(await tasks()).toBe(before)
})

test('a state is good for its caller, its tool and its arguments only', async () => {
  const before = await tasks()
  const { requestState } = (await call()).body.result
  const retry = { requestState, inputResponses: { name: NAME, size: SIZE } }
  const answers = await Promise.all([
    call(retry, { key: GLOBEX }),
    call(retry, {}, 'scripted'),
    call({ ...retry, arguments: { ...args, large: 'other' } }),
  ])
  for (const { body } of answers) expect(body.error?.code, JSON.stringify(body)).toBe(-32602)
  expect(await tasks()).toBe(before)
})

test('a state expires', async () => {
  const { requestState } = (await call()).body.result
  vi.useFakeTimers({ now: Date.now() + 16 * 60_000, toFake: ['Date'] })
  const { body } = await call({ requestState, inputResponses: { name: NAME, size: SIZE } })
  expect(body.error).toMatchObject({ code: -32602, message: expect.stringContaining('expired') })
})

test('a client that cannot be asked is told before any question', async () => {
  const { status, body } = await call({}, { capabilities: TASKS })
  expect(status).toBe(400)
  expect(body.error).toMatchObject({
    code: -32021,
    data: { requiredCapabilities: { elicitation: { form: {} } } },
  })
})

test('bad arguments are told before any question', async () => {
  const { body } = await call({ arguments: { script: 7 } })
  expect(body.result.isError).toBe(true)
})
