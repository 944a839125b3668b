/**
 * One MCP endpoint over Streamable HTTP, revision 2026-07-28: frames requests, sends them, and turns
 * whatever comes back into a result or a typed error. Every request stands alone; what to ask
 * again, and when, is for its callers to decide.
 */
import { isObject, type JsonObject } from '../json.ts'
import {
  META_CLIENT_CAPABILITIES,
  META_CLIENT_INFO,
  META_PROTOCOL_VERSION,
  REVISION,
  TASKS_EXTENSION,
} from '../protocol/names.ts'
import { asError, type Clock, within } from './clock.ts'
import { InvalidResponseError, UnreachableError, UnsupportedVersionError } from './errors.ts'
import { encodeHeaderValue } from './header-value.ts'
import { explain, mediaType, readResponse } from './response.ts'
import { readEvents, type SseItem } from './sse.ts'

/** A bearer token, or a function that brings one; it is asked again when the server refuses the last. */
export type Token = string | (() => string | undefined | Promise<string | undefined>)

export interface EndpointOptions {
  readonly url: string
  readonly fetch: typeof fetch
  readonly headers: Readonly<Record<string, string>>
  readonly token: Token | undefined
  /** What this client can do besides Tasks: `elicitation`, `sampling`, `roots`, further `extensions`. */
  readonly capabilities: JsonObject
  readonly clientInfo: { readonly name: string; readonly version: string }
  readonly maxResponseBytes: number
  readonly clock: Clock
}

export interface RequestOptions {
  readonly signal?: AbortSignal | undefined
  /** For the whole request, the body of the answer included. */
  readonly timeoutMs: number
  readonly headers?: Readonly<Record<string, string>>
}

/** A stream of messages that stays open. */
export interface OpenStream {
  readonly requestId: number
  readonly items: AsyncGenerator<SseItem, void, undefined>
}

/** Which parameter `Mcp-Name` mirrors. */
const NAMED_BY: Readonly<Record<string, string>> = {
  'tools/call': 'name',
  'tasks/get': 'taskId',
  'tasks/update': 'taskId',
  'tasks/cancel': 'taskId',
}

let lastId = 0

export class Endpoint {
  readonly url: string
  readonly clock: Clock
  readonly #options: EndpointOptions

  constructor(options: EndpointOptions) {
    this.url = options.url
    this.clock = options.clock
    this.#options = options
  }

  /** The token as it is now. */
  async token(): Promise<string | undefined> {
    const { token } = this.#options
    return typeof token === 'function' ? token() : token
  }

  /**
   * Sends a request and returns its `result`.
   *
   * @throws TasksError of whichever kind; or the reason of `signal`.
   */
  request(method: string, params: JsonObject, options: RequestOptions): Promise<JsonObject> {
    return within(
      this.clock,
      options.timeoutMs,
      options.signal,
      tooLate(options.timeoutMs),
      async (signal) => {
        try {
          return await this.#exchange(method, params, options.headers ?? {}, signal)
        } catch (error) {
          // A server that asks for the only revision we speak gets it once more (SEP-2575).
          if (!(error instanceof UnsupportedVersionError) || !error.supported.includes(REVISION)) throw error
          return this.#exchange(method, params, options.headers ?? {}, signal)
        }
      },
    )
  }

  /**
   * Sends a request whose answer is a stream; resolves once the stream has begun. `signal` ends it.
   *
   * @throws TasksError, also when the answer is not a stream.
   */
  async open(method: string, params: JsonObject, options: RequestOptions): Promise<OpenStream> {
    const lifetime = new AbortController()
    const end = () => lifetime.abort(options.signal?.reason)
    if (options.signal?.aborted) end()
    options.signal?.addEventListener('abort', end, { once: true })
    const message = this.#frame(method, params)
    try {
      const late = tooLate(options.timeoutMs)
      return await within(this.clock, options.timeoutMs, lifetime.signal, late, async () => {
        const response = await this.#post(message, options.headers ?? {}, lifetime.signal)
        if (response.ok && mediaType(response) === 'text/event-stream' && response.body) {
          return { requestId: message.id, items: readEvents(response.body, this.#options.maxResponseBytes) }
        }
        // An error or a surprise; reading it as the answer to a request says which.
        await this.#read(response, message.id)
        throw new InvalidResponseError(`The server answered ${method} without a stream.`)
      })
    } catch (error) {
      lifetime.abort()
      options.signal?.removeEventListener('abort', end)
      throw error
    }
  }

  async #exchange(
    method: string,
    params: JsonObject,
    headers: Readonly<Record<string, string>>,
    signal: AbortSignal,
  ): Promise<JsonObject> {
    const message = this.#frame(method, params)
    return this.#read(await this.#post(message, headers, signal), message.id)
  }

  #read(response: Response, id: number): Promise<JsonObject> {
    return readResponse(response, id, this.#options.maxResponseBytes, this.clock)
  }

  #frame(method: string, params: JsonObject) {
    const { capabilities, clientInfo } = this.#options
    const extensions = isObject(capabilities['extensions']) ? capabilities['extensions'] : {}
    const meta = isObject(params['_meta']) ? params['_meta'] : {}
    return {
      jsonrpc: '2.0',
      id: ++lastId,
      method,
      params: {
        ...params,
        _meta: {
          ...meta,
          [META_PROTOCOL_VERSION]: REVISION,
          [META_CLIENT_INFO]: clientInfo,
          [META_CLIENT_CAPABILITIES]: {
            ...capabilities,
            extensions: { ...extensions, [TASKS_EXTENSION]: {} },
          },
        },
      },
    }
  }

  async #post(
    message: { readonly method: string; readonly params: JsonObject },
    headers: Readonly<Record<string, string>>,
    signal: AbortSignal,
  ): Promise<Response> {
    const token = await this.token()
    const response = await this.#send(message, headers, token, signal)
    if (response.status !== 401 || typeof this.#options.token !== 'function') return response
    const renewed = await this.token()
    if (renewed === token) return response
    response.body?.cancel().catch(() => {})
    return this.#send(message, headers, renewed, signal)
  }

  async #send(
    message: { readonly method: string; readonly params: JsonObject },
    headers: Readonly<Record<string, string>>,
    token: string | undefined,
    signal: AbortSignal,
  ): Promise<Response> {
    const named = NAMED_BY[message.method]
    const name = named === undefined ? undefined : message.params[named]
    // Not called as a method: in browsers `fetch` insists on its own `this`.
    const { fetch } = this.#options
    try {
      return await fetch(this.url, {
        method: 'POST',
        headers: {
          ...this.#options.headers,
          ...headers,
          ...(token !== undefined && { authorization: `Bearer ${token}` }),
          'content-type': 'application/json',
          accept: 'application/json, text/event-stream',
          'mcp-protocol-version': REVISION,
          'mcp-method': message.method,
          ...(typeof name === 'string' && { 'mcp-name': encodeHeaderValue(name) }),
        },
        body: JSON.stringify(message),
        signal,
      })
    } catch (error) {
      if (signal.aborted) throw asError(signal.reason)
      throw new UnreachableError(`${this.url} could not be reached: ${explain(error)}`, error)
    }
  }
}

const tooLate = (timeoutMs: number) => () =>
  new UnreachableError(`The server did not answer within ${timeoutMs} ms.`)
