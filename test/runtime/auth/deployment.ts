/** The Worker under test in another configuration than the one of `wrangler.toml`. */
import { createExecutionContext } from 'cloudflare:test'
import { env } from 'cloudflare:workers'
import { createLonghaul, type Longhaul, type LonghaulOptions } from '../../../src/index'
import { ALL_CAPABILITIES, type Answer } from '../client'
import { tools } from '../tools'

export interface Call {
  readonly token?: string
  readonly headers?: Record<string, string>
}

export type Variables = Partial<Record<keyof Cloudflare.Env, string | undefined>>

export class Deployment {
  readonly #worker: Longhaul
  readonly #env: Cloudflare.Env

  constructor(variables: Variables, options: Partial<LonghaulOptions> = {}) {
    this.#worker = createLonghaul({ name: 'deployment', version: '1.0.0', tools, ...options })
    // Variables are texts, whatever the type of the binding they replace.
    this.#env = { ...env, API_KEYS: '', ...variables } as Cloudflare.Env
  }

  fetch(path: string, init?: RequestInit): Promise<Response> {
    const request = new Request(new URL(path, 'http://localhost'), init)
    return this.#worker.fetch(request, this.#env, createExecutionContext())
  }

  /** A request of revision 2026-07-28, as it is sent. */
  send(
    method: string,
    params: Record<string, unknown> = {},
    { token, headers }: Call = {},
  ): Promise<Response> {
    return this.fetch('/mcp', message(method, params, token, headers))
  }

  async call(method: string, params?: Record<string, unknown>, call?: Call): Promise<Answer> {
    const response = await this.send(method, params, call)
    return { status: response.status, body: await response.json() }
  }

  /** Calls a plain tool that says who calls it. */
  async whoami(call?: Call) {
    const { body } = await this.call('tools/call', { name: 'whoami_now', arguments: {} }, call)
    return JSON.parse(body.result.content[0].text)
  }
}

export function message(
  method: string,
  params: Record<string, unknown>,
  token?: string,
  headers: Record<string, string> = {},
): RequestInit {
  const name = params['name'] ?? params['taskId']
  return {
    method: 'POST',
    headers: {
      'content-type': 'application/json',
      accept: 'application/json, text/event-stream',
      'mcp-protocol-version': '2026-07-28',
      'mcp-method': method,
      ...(typeof name === 'string' && { 'mcp-name': name }),
      ...(token !== undefined && { authorization: `Bearer ${token}` }),
      ...headers,
    },
    body: JSON.stringify({
      jsonrpc: '2.0',
      id: 1,
      method,
      params: {
        ...params,
        _meta: {
          'io.modelcontextprotocol/protocolVersion': '2026-07-28',
          'io.modelcontextprotocol/clientCapabilities': ALL_CAPABILITIES,
        },
      },
    }),
  }
}
