import {
  CallToolResultV2Schema,
  CancelTaskRequestV2Schema,
  CreateTaskResultV2Schema,
  type DetailedTaskV2,
  GetTaskRequestV2Schema,
  GetTaskResultV2Schema,
  hasTaskClientCapabilityV2,
  UpdateTaskRequestV2Schema,
} from '@modelcontextprotocol/ext-tasks/core/v2'
import { describe, expect, expectTypeOf, test } from 'vitest'
import { createTasks, type Task } from '../../../src/client/index.ts'
import { readCallAnswer, readTask, readTaskAnswer } from '../../../src/client/wire.ts'
import type { JsonObject } from '../../../src/json.ts'
import {
  bodyOf,
  completed,
  confirmation,
  created,
  said,
  stubServer,
  TASK_ID,
  told,
} from '../../support/stub-server.ts'

const states: Record<string, JsonObject> = {
  working: told('working', { statusMessage: 'Copying (1/2)' }),
  input_required: told('input_required', { inputRequests: { confirm: confirmation() } }),
  completed: completed('done'),
  failed: told('failed', { error: { code: -32603, message: 'broken', data: { line: 1 } } }),
  cancelled: told('cancelled'),
}

describe('what the reference implementation accepts', () => {
  test.each(Object.keys(states))('as a %s task, this one reads', (state) => {
    const result = states[state] ?? {}
    expect(GetTaskResultV2Schema.safeParse(result).success).toBe(true)
    const { resultType: _, ...task } = result
    expect(readTaskAnswer(result, TASK_ID)).toMatchObject({ taskId: task['taskId'], status: state })
  })

  test('as a new task or a result, this one reads', () => {
    expect(CreateTaskResultV2Schema.safeParse(created()).success).toBe(true)
    expect(readCallAnswer(created())).toMatchObject({ kind: 'task', task: { taskId: TASK_ID } })
    expect(CallToolResultV2Schema.safeParse(said('hi')).success).toBe(true)
    expect(readCallAnswer(said('hi'))).toEqual({
      kind: 'result',
      result: { content: [{ type: 'text', text: 'hi' }] },
    })
  })

  test('has a type that fits ours', () => {
    expectTypeOf<DetailedTaskV2['status']>().toEqualTypeOf<Task['status']>()
    expectTypeOf<DetailedTaskV2['ttlMs']>().toEqualTypeOf<Task['ttlMs']>()
  })
})

describe('the requests of this client', () => {
  test('are what the reference implementation expects', async () => {
    const bodies: Record<string, unknown> = {}
    const server = stubServer({
      'tools/call': () => created({ pollIntervalMs: 0 }),
      'tasks/get': () => told('input_required', { inputRequests: { confirm: confirmation() } }),
      'tasks/update': () => ({ resultType: 'complete' }),
      'tasks/cancel': () => ({ resultType: 'complete' }),
    })
    const fetch: typeof globalThis.fetch = (url, init) => {
      const body = JSON.parse(bodyOf(init)) as { method: string }
      bodies[body.method] ??= body
      return server.fetch(url, init)
    }
    const tasks = createTasks({
      url: 'http://server.test/mcp',
      fetch,
      push: [],
      poll: { minIntervalMs: 1 },
      capabilities: { elicitation: {}, extensions: { 'com.example/other': {} } },
    })
    const call = await tasks.call('work', { path: '/tmp' })
    for await (const { status } of call) if (status === 'input_required') break
    await call.answer('confirm', { action: 'accept', content: { confirm: true } })
    await call.cancel()
    tasks.close()

    expect(GetTaskRequestV2Schema.safeParse(bodies['tasks/get']).success).toBe(true)
    expect(UpdateTaskRequestV2Schema.safeParse(bodies['tasks/update']).success).toBe(true)
    expect(CancelTaskRequestV2Schema.safeParse(bodies['tasks/cancel']).success).toBe(true)
    for (const { method, params, headers } of server.received) {
      expect(hasTaskClientCapabilityV2(params)).toBe(true)
      expect(params).toMatchObject({
        _meta: {
          'io.modelcontextprotocol/protocolVersion': '2026-07-28',
          'io.modelcontextprotocol/clientInfo': { name: 'longhaul-client' },
          'io.modelcontextprotocol/clientCapabilities': {
            elicitation: {},
            extensions: { 'io.modelcontextprotocol/tasks': {}, 'com.example/other': {} },
          },
        },
      })
      expect(Object.fromEntries(headers)).toMatchObject({
        'content-type': 'application/json',
        accept: 'application/json, text/event-stream',
        'mcp-protocol-version': '2026-07-28',
        'mcp-method': method,
        'mcp-name': method === 'tools/call' ? 'work' : TASK_ID,
      })
    }
  })
})

describe('an answer that is not what it should be is an error, never an empty success', () => {
  test.each([
    ['a result without a resultType', { content: [] }],
    ['a task without a resultType', { ...created(), resultType: undefined }],
    ['a resultType of the future', { resultType: 'stream', content: [] }],
    ['a result without content', { resultType: 'complete' }],
    ['content that is not a list', { resultType: 'complete', content: 'hi' }],
    ['content that is not made of blocks', { resultType: 'complete', content: ['hi'] }],
    ['a task without an id', { ...created(), taskId: undefined }],
    ['questions that are none', { resultType: 'input_required', inputRequests: { a: 'name?' } }],
  ])('to tools/call: %s', (_, result) => {
    expect(() => readCallAnswer(result as JsonObject)).toThrow(/The server broke the protocol/)
  })

  test.each([
    ['no resultType', { ...told('working'), resultType: undefined }],
    ['the resultType of creation', { ...told('working'), resultType: 'task' }],
    ['a status of the future', told('paused')],
    ['a completed task without its result', told('completed')],
    ['a completed task whose result is a task', told('completed', { result: created() })],
    ['another task', told('working', { taskId: 'tsk_2' })],
  ])('to tasks/get: %s', (_, result) => {
    expect(() => readTaskAnswer(result as JsonObject, TASK_ID)).toThrow(/The server broke the protocol/)
  })
})

describe('what is only careless is read with good will', () => {
  test('a failed task without an error has still failed', () => {
    expect(readTask(told('failed', { statusMessage: 'Disk full' })).error).toEqual({
      code: -32603,
      message: 'Disk full',
    })
  })

  test('a new task that is over already is not believed before it was looked at', () => {
    expect(readCallAnswer(created({ status: 'completed' }))).toMatchObject({
      kind: 'task',
      ended: true,
      task: { status: 'working' },
    })
  })

  test('a time-to-live or an interval that is none counts as absent', () => {
    const task = readTask({ ...told('working'), ttlMs: 'a day', pollIntervalMs: Number.NaN })
    expect(task).toMatchObject({ ttlMs: null })
    expect(task).not.toHaveProperty('pollIntervalMs')
  })
})
