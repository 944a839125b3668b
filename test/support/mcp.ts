/** The wire as a client of revision 2026-07-28 speaks it, against a server at a URL. */
import { expect, vi } from 'vitest'

export const ALL_CAPABILITIES = {
  extensions: { 'io.modelcontextprotocol/tasks': {} },
  elicitation: {},
  sampling: {},
  roots: {},
}

export const TERMINAL = ['completed', 'failed', 'cancelled']

export interface Answer {
  readonly status: number
  // The wire is what is under test: nothing is assumed about it.
  // oxlint-disable-next-line typescript/no-explicit-any
  readonly body: any
}

export interface ClientOptions {
  readonly key?: string
  readonly capabilities?: Record<string, unknown>
}

/** The HTTP headers of a request of this revision. */
export function headersOf(method: string, params: Readonly<Record<string, unknown>>, key?: string) {
  const name = params['name'] ?? params['taskId'] ?? params['uri']
  return {
    'content-type': 'application/json',
    accept: 'application/json, text/event-stream',
    'mcp-protocol-version': '2026-07-28',
    'mcp-method': method,
    ...(typeof name === 'string' && { 'mcp-name': name }),
    ...(key !== undefined && { authorization: `Bearer ${key}` }),
  }
}

export class McpClient {
  readonly #url: string
  readonly #options: ClientOptions
  #nextId = 0

  /** @param url of the server, without `/mcp`. */
  constructor(url: string, options: ClientOptions = {}) {
    this.#url = url
    this.#options = options
  }

  async rpc(method: string, params: Record<string, unknown> = {}): Promise<Answer> {
    const { key, capabilities = ALL_CAPABILITIES } = this.#options
    const response = await fetch(`${this.#url}/mcp`, {
      method: 'POST',
      headers: headersOf(method, params, key),
      body: JSON.stringify({
        jsonrpc: '2.0',
        id: ++this.#nextId,
        method,
        params: {
          ...params,
          _meta: {
            'io.modelcontextprotocol/protocolVersion': '2026-07-28',
            'io.modelcontextprotocol/clientCapabilities': capabilities,
          },
        },
      }),
    })
    return { status: response.status, body: await response.json() }
  }

  /** Calls a tool that becomes a task. */
  async start(name: string, args: Record<string, unknown> = {}): Promise<string> {
    const { body } = await this.rpc('tools/call', { name, arguments: args })
    expect(body.result?.resultType, JSON.stringify(body)).toBe('task')
    return body.result.taskId
  }

  async get(taskId: string) {
    const { body } = await this.rpc('tasks/get', { taskId })
    return body.result
  }

  /** Polls until the task is in one of these states. */
  async until(taskId: string, states: readonly string[], timeoutMs = 30_000) {
    let last: unknown
    try {
      return await vi.waitUntil(
        async () => {
          const task = await this.get(taskId)
          last = task
          return states.includes(task?.status) ? task : undefined
        },
        { timeout: timeoutMs, interval: 100 },
      )
    } catch (error) {
      throw new Error(`Not ${states.join(' or ')} in time: ${JSON.stringify(last)}`, { cause: error })
    }
  }

  untilEnded(taskId: string, timeoutMs?: number) {
    return this.until(taskId, TERMINAL, timeoutMs)
  }
}
