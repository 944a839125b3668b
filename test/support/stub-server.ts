/** A server that is a function: answers requests of the client library in memory, and keeps a log of them. */
import type { JsonObject } from '../../src/json.ts'

export interface Received {
  readonly method: string
  readonly params: JsonObject
  readonly headers: Headers
  /** By the clock of the test, which may be a fake one. */
  readonly at: number
}

/** A result, an error as `{ error }`, a whole response, or a thrown error for a broken connection. */
export type Handler = (request: Received) => unknown

export interface StubServer {
  readonly fetch: typeof fetch
  readonly received: Received[]
  of(method: string): Received[]
}

export const NOT_OFFERED = { error: { code: -32601, message: 'Method not found' } }

export function stubServer(handlers: Readonly<Record<string, Handler>>): StubServer {
  const received: Received[] = []
  return {
    received,
    of: (method) => received.filter((request) => request.method === method),
    async fetch(_url, init) {
      // The library sends its requests in this form, and the assertions look at them.
      const message = JSON.parse(bodyOf(init)) as { id: number; method: string; params: JsonObject }
      const { id, method, params } = message
      const request = { method, params, headers: new Headers(init?.headers), at: Date.now() }
      received.push(request)
      const answer = await (handlers[method] ?? (() => NOT_OFFERED))(request)
      if (answer instanceof Response) return answer
      const isError =
        typeof answer === 'object' && answer !== null && 'error' in answer && !('taskId' in answer)
      return Response.json({ jsonrpc: '2.0', id, ...(isError ? answer : { result: answer }) })
    },
  }
}

/** The library sends its messages as text. */
export function bodyOf(init: RequestInit | undefined): string {
  return typeof init?.body === 'string' ? init.body : ''
}

export const TASK_ID = 'tsk_1'

/** A task as `tasks/get` tells it. */
export function told(status: string, more: JsonObject = {}): JsonObject {
  return {
    resultType: 'complete',
    taskId: TASK_ID,
    status,
    createdAt: '2026-11-29T12:00:00.000Z',
    lastUpdatedAt: '2026-11-29T12:00:00.000Z',
    ttlMs: null,
    pollIntervalMs: 1_000,
    ...more,
  }
}

/** The answer to `tools/call` that makes a task. */
export function created(more: JsonObject = {}): JsonObject {
  return told('working', { resultType: 'task', ...more })
}

/** The answer of a finished tool. */
export function said(text: string, more: JsonObject = {}): JsonObject {
  return { resultType: 'complete', content: [{ type: 'text', text }], ...more }
}

export const completed = (text: string) => told('completed', { result: said(text) })

export function confirmation(message = 'Sure?'): JsonObject {
  return {
    method: 'elicitation/create',
    params: {
      mode: 'form',
      message,
      requestedSchema: {
        type: 'object',
        properties: { confirm: { type: 'boolean' } },
        required: ['confirm'],
      },
    },
  }
}
