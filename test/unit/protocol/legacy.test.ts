import {
  CreateTaskResultV1Schema,
  GetTaskResultV1Schema,
  TaskStatusNotificationV1Schema,
  ToolV1Schema,
} from '@modelcontextprotocol/ext-tasks/core/v1'
import {
  CallToolResultSchema,
  CreateTaskResultSchema,
  ElicitRequestSchema,
  GetTaskResultSchema,
  InitializeResultSchema,
  ListToolsResultSchema,
  TaskStatusNotificationSchema,
} from '@modelcontextprotocol/sdk/types.js'
import * as fc from 'fast-check'
import { expect, test } from 'vitest'
import {
  createdTask,
  declared,
  initialized,
  META_RELATED_TASK,
  negotiate,
  outcomeOf,
  question,
  related,
  requestedTtl,
  statusNotification,
  taskOf,
  withTaskSupport,
} from '../../../src/protocol/legacy'
import type { TaskSnapshot } from '../../../src/task/types'

const BASE: TaskSnapshot = {
  taskId: 'tsk_1',
  status: 'working',
  createdAt: '2026-01-01T00:00:00.000Z',
  lastUpdatedAt: '2026-01-01T00:00:01.000Z',
  ttlMs: 60_000,
  pollIntervalMs: 1_000,
}
const RESULT = { resultType: 'complete', content: [{ type: 'text', text: 'Done.' }] }

const snapshots: fc.Arbitrary<TaskSnapshot> = fc
  .record({
    statusMessage: fc.string(),
    ttlMs: fc.nat(),
    pollIntervalMs: fc.nat(),
    ending: fc.constantFrom(
      { status: 'working' as const },
      { status: 'input_required' as const, inputRequests: { q: { method: 'roots/list' } } },
      { status: 'completed' as const, result: RESULT },
      { status: 'completed' as const, result: { ...RESULT, isError: true } },
      { status: 'failed' as const, error: { code: -32603, message: 'Broke.' } },
      { status: 'cancelled' as const },
    ),
  })
  .map(({ ending, ...rest }) => ({ ...BASE, ...rest, ...ending }))

test('every snapshot has a shape that both schemas of the revision accept whole', () => {
  fc.assert(
    fc.property(snapshots, (snapshot) => {
      const task = taskOf(snapshot)
      expect(GetTaskResultV1Schema.strict().parse(task)).toEqual(task)
      expect(GetTaskResultSchema.parse(task)).toEqual(task)
      const note: unknown = JSON.parse(statusNotification(snapshot))
      expect(TaskStatusNotificationV1Schema.parse(note)).toEqual(note)
      expect(() => TaskStatusNotificationSchema.parse(note)).not.toThrow()
      const reply = createdTask(snapshot)
      const result = 'result' in reply && reply.result
      expect(CreateTaskResultV1Schema.parse(result)).toEqual(result)
      expect(CreateTaskResultSchema.parse(result)).toEqual(result)
    }),
  )
})

test('what a task came to is there exactly when it has ended, without words of later revisions', () => {
  fc.assert(
    fc.property(snapshots, (snapshot) => {
      const outcome = outcomeOf(snapshot)
      const ended = ['completed', 'failed', 'cancelled'].includes(snapshot.status)
      expect(outcome !== undefined).toBe(ended)
      if (!outcome || 'error' in outcome) return
      expect(outcome.result).not.toHaveProperty('resultType')
      expect(CallToolResultSchema.parse(outcome.result)).toEqual(outcome.result)
    }),
  )
})

test('a result that is an error is a failed task with its text as the diagnosis', () => {
  const text = 'x'.repeat(2_000)
  const result = { content: [{ type: 'image' }, { type: 'text', text }], isError: true }
  const task = taskOf({ ...BASE, status: 'completed', result })
  expect(task.status).toBe('failed')
  expect(task.statusMessage?.length).toBeLessThan(600)
  expect(taskOf({ ...BASE, status: 'completed', result: RESULT }).status).toBe('completed')
})

test('a result names its task beside its own metadata; an error cannot', () => {
  const reply = related({ result: { content: [], _meta: { mine: 1 } } }, 'tsk_1')
  expect(reply).toEqual({
    result: { content: [], _meta: { mine: 1, [META_RELATED_TASK]: { taskId: 'tsk_1' } } },
  })
  const error = { error: { code: -32602, message: 'No.' } }
  expect(related(error, 'tsk_1')).toEqual(error)
})

test('a question is a server request of this revision', () => {
  const params = {
    mode: 'form',
    message: 'Sure?',
    requestedSchema: { type: 'object', properties: { yes: { type: 'boolean' } } },
  }
  const form: unknown = JSON.parse(question('q1', { method: 'elicitation/create', params }, 'tsk_1'))
  expect(ElicitRequestSchema.parse(form)).toMatchObject({
    params: { message: 'Sure?', _meta: { [META_RELATED_TASK]: { taskId: 'tsk_1' } } },
  })
  const url = { mode: 'url', message: 'Here.', url: 'https://example.com' }
  const link: unknown = JSON.parse(question('q2', { method: 'elicitation/create', params: url }))
  expect(ElicitRequestSchema.parse(link)).toMatchObject({ params: { elicitationId: 'q2' } })
  expect(link).not.toHaveProperty('params._meta')
})

test('a time-to-live is a whole number of milliseconds, and not a number of seconds', () => {
  expect(requestedTtl({})).toEqual({ ok: true, value: undefined })
  expect(requestedTtl({ ttl: null })).toEqual({ ok: true, value: undefined })
  expect(requestedTtl({ ttl: 300 })).toEqual({ ok: true, value: 60_000 })
  expect(requestedTtl({ ttl: 90_000 })).toEqual({ ok: true, value: 90_000 })
  for (const task of [null, 'x', [], { ttl: 0.5 }, { ttl: -1 }, { ttl: NaN }, { ttl: '60000' }]) {
    expect(requestedTtl(task)).toMatchObject({ ok: false, error: { code: -32602 } })
  }
})

test('an old revision is taken as asked for, any other becomes the newest of them', () => {
  expect(negotiate('2025-06-18')).toBe('2025-06-18')
  expect(negotiate('2025-11-25')).toBe('2025-11-25')
  for (const other of ['2025-03-26', '2026-07-28', '', 7, undefined])
    expect(negotiate(other)).toBe('2025-11-25')
})

test('the handshake promises the tasks of its revision and no extension of another', () => {
  const sdk = {
    protocolVersion: '2025-11-25',
    serverInfo: { name: 's', version: '1' },
    capabilities: { tools: {}, extensions: { 'io.modelcontextprotocol/tasks': {}, 'example/other': {} } },
  }
  const newest = initialized(sdk, '2025-11-25')
  expect(InitializeResultSchema.parse(newest).capabilities.tasks).toEqual({
    cancel: {},
    requests: { tools: { call: {} } },
  })
  expect(newest['capabilities']).toMatchObject({ extensions: { 'example/other': {} } })
  const older = initialized({ ...sdk, capabilities: { tools: {} } }, '2025-06-18')
  expect(older).toMatchObject({ protocolVersion: '2025-06-18' })
  expect(older['capabilities']).toEqual({ tools: {} })
})

test('tools say how they run', () => {
  const inputSchema = { type: 'object' as const }
  const listed = withTaskSupport(
    {
      tools: [
        { name: 'a', inputSchema },
        { name: 'b', inputSchema },
      ],
      nextCursor: 'c',
    },
    (name) => (name === 'a' ? 'required' : undefined),
  )
  const { tools, nextCursor } = ListToolsResultSchema.parse(listed)
  expect(tools.map(({ execution }) => execution?.taskSupport)).toEqual(['required', undefined])
  expect(nextCursor).toBe('c')
  expect(ToolV1Schema.parse(tools[0])).toMatchObject({ execution: { taskSupport: 'required' } })
})

test('of what a client declares, only what decides about questions is carried along', () => {
  const capabilities = {
    elicitation: { form: { deep: 'x'.repeat(1_000) }, url: {} },
    sampling: { tools: {} },
    roots: { listChanged: true },
    experimental: { everything: true },
  }
  expect(declared(capabilities)).toEqual({
    elicitation: { form: {}, url: {} },
    sampling: { tools: {} },
    roots: {},
  })
  fc.assert(
    fc.property(fc.anything(), (anything) => {
      expect(JSON.stringify(declared(anything)).length).toBeLessThan(200)
    }),
  )
})
