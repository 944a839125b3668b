/** The wire as a client of the 2025 revisions speaks it, against the Worker under test. */
import { exports } from 'cloudflare:workers'
import { expect, vi } from 'vitest'
import { ACME, type Answer, post } from '../client'
import { Events, type Message } from '../events'

export const RELATED = 'io.modelcontextprotocol/related-task'

export interface LegacyOptions {
  readonly key?: string
  readonly revision?: string
  readonly capabilities?: Record<string, unknown>
}

export const EVERYTHING = { elicitation: {}, sampling: {}, roots: {} }

/** A client after its handshake. */
export class LegacyClient {
  readonly headers: Record<string, string>
  readonly initialized: Message
  #nextId = 0

  private constructor(headers: Record<string, string>, initialized: Message) {
    this.headers = headers
    this.initialized = initialized
  }

  static async connect(options: LegacyOptions = {}): Promise<LegacyClient> {
    const { key = ACME, revision = '2025-11-25', capabilities = EVERYTHING } = options
    const authorization = `Bearer ${key}`
    const params = {
      protocolVersion: revision,
      capabilities,
      clientInfo: { name: 'test', version: '1.0.0' },
    }
    const response = await post(
      { jsonrpc: '2.0', id: 'init', method: 'initialize', params },
      { authorization },
    )
    const session = response.headers.get('mcp-session-id')
    const body: Message = await response.json()
    expect(body.result, JSON.stringify(body)).toBeDefined()
    return new LegacyClient(
      {
        authorization,
        'mcp-protocol-version': body.result.protocolVersion,
        'mcp-session-id': String(session),
      },
      body.result,
    )
  }

  /** Any message, as it is. */
  post(message: unknown, headers: Record<string, string> = {}, signal?: AbortSignal): Promise<Response> {
    return post(message, { ...this.headers, ...headers }, signal)
  }

  /** A request that may be answered by a stream. */
  send(method: string, params: Record<string, unknown> = {}, signal?: AbortSignal): Promise<Response> {
    return this.post({ jsonrpc: '2.0', id: ++this.#nextId, method, params }, {}, signal)
  }

  /** A request, and the last message of its answer. */
  async rpc(method: string, params: Record<string, unknown> = {}): Promise<Answer> {
    const response = await this.send(method, params)
    const isStream = response.headers.get('content-type') === 'text/event-stream'
    const body = isStream ? (await new Events(response).all()).at(-1) : await response.json()
    return { status: response.status, body }
  }

  async stream(method: string, params: Record<string, unknown> = {}, signal?: AbortSignal): Promise<Events> {
    const response = await this.send(method, params, signal)
    expect(response.headers.get('content-type'), method).toBe('text/event-stream')
    return new Events(response)
  }

  resume(eventId: string): Promise<Response> {
    return exports.default.fetch(
      new Request('http://localhost/mcp', {
        headers: { ...this.headers, accept: 'text/event-stream', 'last-event-id': eventId },
      }),
    )
  }

  /** Calls a tool as a task. */
  async start(name: string, args: Record<string, unknown> = {}, task: Record<string, unknown> = {}) {
    const { body } = await this.rpc('tools/call', { name, arguments: args, task })
    expect(body.result?.task, JSON.stringify(body)).toBeDefined()
    return body.result.task
  }

  async get(taskId: string) {
    const { body } = await this.rpc('tasks/get', { taskId })
    return body.result
  }

  until(taskId: string, states: readonly string[]) {
    return vi.waitUntil(
      async () => {
        const task = await this.get(taskId)
        return states.includes(task?.status) ? task : undefined
      },
      { timeout: 15_000, interval: 30 },
    )
  }

  /** Answers a server request; the status of the POST. */
  async answer(question: Message, result: unknown): Promise<number> {
    const { status } = await this.post({ jsonrpc: '2.0', id: question.id, result })
    return status
  }
}

export const YES = { action: 'accept', content: { confirm: true } }
