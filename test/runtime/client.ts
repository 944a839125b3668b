/** The wire as a client of revision 2026-07-28 speaks it, against the Worker under test. */
import { exports } from 'cloudflare:workers'
import { expect, vi } from 'vitest'

export const ACME = 'acme-key-acme-key'
export const GLOBEX = 'globex-key-globex-key'
export const TASKS = { extensions: { 'io.modelcontextprotocol/tasks': {} } }
export const ALL_CAPABILITIES = { ...TASKS, elicitation: {}, sampling: {}, roots: {} }

export interface Answer {
  readonly status: number
  // The wire is what is under test: nothing is assumed about it.
  // oxlint-disable-next-line typescript/no-explicit-any
  readonly body: any
}

export interface Options {
  readonly key?: string
  readonly capabilities?: Record<string, unknown>
  readonly headers?: Record<string, string>
  /** Further members of `_meta`. */
  readonly meta?: Record<string, unknown>
  readonly signal?: AbortSignal
}

let nextId = 0

export async function rpc(
  method: string,
  params: Record<string, unknown> = {},
  options: Options = {},
): Promise<Answer> {
  const response = await send(method, params, options)
  return { status: response.status, body: await response.json() }
}

/** The request itself, for answers that are streams. */
export function send(
  method: string,
  params: Record<string, unknown> = {},
  { key = ACME, capabilities = ALL_CAPABILITIES, headers = {}, meta = {}, signal }: Options = {},
): Promise<Response> {
  const name = params['name'] ?? params['taskId'] ?? params['uri']
  return post(
    {
      jsonrpc: '2.0',
      id: ++nextId,
      method,
      params: {
        ...params,
        _meta: {
          'io.modelcontextprotocol/protocolVersion': '2026-07-28',
          'io.modelcontextprotocol/clientCapabilities': capabilities,
          ...meta,
        },
      },
    },
    {
      authorization: `Bearer ${key}`,
      'mcp-protocol-version': '2026-07-28',
      'mcp-method': method,
      ...(typeof name === 'string' && { 'mcp-name': name }),
      ...headers,
    },
    signal,
  )
}

export function post(
  body: unknown,
  headers: Record<string, string>,
  signal?: AbortSignal,
): Promise<Response> {
  return exports.default.fetch(
    new Request('http://localhost/mcp', {
      method: 'POST',
      headers: {
        'content-type': 'application/json',
        accept: 'application/json, text/event-stream',
        ...headers,
      },
      body: typeof body === 'string' ? body : JSON.stringify(body),
      ...(signal && { signal }),
    }),
  )
}

/** Calls a tool that becomes a task. */
export async function start(
  name: string,
  args: Record<string, unknown> = {},
  options?: Options,
): Promise<string> {
  const { body } = await rpc('tools/call', { name, arguments: args }, options)
  expect(body.result?.resultType, JSON.stringify(body)).toBe('task')
  return body.result.taskId
}

export async function get(taskId: string, options?: Options) {
  const { body } = await rpc('tasks/get', { taskId }, options)
  return body.result
}

/** Polls until the task is in one of these states. */
export async function until(taskId: string, states: readonly string[], timeout = 15_000, options?: Options) {
  return vi.waitUntil(
    async () => {
      const task = await get(taskId, options)
      return states.includes(task?.status) ? task : undefined
    },
    { timeout, interval: 30 },
  )
}

export const TERMINAL = ['completed', 'failed', 'cancelled']
export const untilEnded = (taskId: string, timeout?: number, options?: Options) =>
  until(taskId, TERMINAL, timeout, options)
