/**
 * The tools of an endpoint: lists them, and makes one call of one. A call is never made twice by accident: it
 * is repeated only when the server says that it did not take it, or can tell by a key that it is the same.
 */
import type { JsonObject } from '../json.ts'
import { HEADER_MISMATCH, META_IDEMPOTENCY_KEY } from '../protocol/names.ts'
import type { Invocation } from './call.ts'
import { sleep } from './clock.ts'
import type { Endpoint } from './endpoint.ts'
import { InvalidResponseError, InvalidToolError, ServerError, TasksError } from './errors.ts'
import { jitter, retryMs } from './pace.ts'
import { type Mirror, mirroredHeaders, mirrorsOf, readTools, type ToolDefinition } from './tools.ts'
import { type CallAnswer, expectComplete, readCallAnswer } from './wire.ts'

/** Tries of a call that may be repeated. */
const MOST_TRIES = 6
/** A server that never stops paging is not believed. */
const MOST_PAGES = 100

export class Toolbox {
  readonly #endpoint: Endpoint
  readonly #timeoutMs: number
  readonly #warn: (message: string) => void
  readonly #mirrors = new Map<string, readonly Mirror[]>()
  readonly #invalid = new Map<string, string>()

  constructor(endpoint: Endpoint, timeoutMs: number, warn: (message: string) => void) {
    this.#endpoint = endpoint
    this.#timeoutMs = timeoutMs
    this.#warn = warn
  }

  /** All tools that may be called. One with a definition that breaks the rules is left out, with a warning. */
  async list(signal?: AbortSignal): Promise<ToolDefinition[]> {
    const tools: ToolDefinition[] = []
    let cursor: string | undefined
    for (let page = 0; page < MOST_PAGES; page++) {
      const params = cursor === undefined ? {} : { cursor }
      const result = await this.#endpoint.request('tools/list', params, {
        signal,
        timeoutMs: this.#timeoutMs,
      })
      expectComplete('tools/list', result)
      tools.push(...readTools(result).filter((tool) => this.#learn(tool)))
      const next = result['nextCursor']
      if (typeof next !== 'string') return tools
      cursor = next
    }
    throw new InvalidResponseError(`The server lists its tools on more than ${MOST_PAGES} pages.`)
  }

  /** @throws TasksError */
  async call(invocation: Invocation, more: JsonObject, signal: AbortSignal): Promise<CallAnswer> {
    const { tool, args, meta, idempotencyKey } = invocation
    const _meta = { ...meta, ...(idempotencyKey !== undefined && { [META_IDEMPOTENCY_KEY]: idempotencyKey }) }
    const params = { name: tool, arguments: args, _meta, ...more }
    const { clock } = this.#endpoint
    const until = clock.now() + this.#timeoutMs
    let listed = false
    for (let tries = 1; ; tries++) {
      const invalid = this.#invalid.get(tool)
      if (invalid !== undefined) throw new InvalidToolError(tool, invalid)
      try {
        const headers = mirroredHeaders(this.#mirrors.get(tool) ?? [], args)
        const options = { signal, timeoutMs: this.#timeoutMs, headers }
        return readCallAnswer(await this.#endpoint.request('tools/call', params, options))
      } catch (error) {
        if (error instanceof ServerError && error.error.code === HEADER_MISMATCH && !listed) {
          // The tool wants arguments mirrored that we do not know of, or no longer (SEP-2243).
          listed = true
          await this.list(signal)
          continue
        }
        if (!(error instanceof TasksError && error.transient)) throw error
        const mayRepeat = error.retryAfterMs !== undefined || idempotencyKey !== undefined
        const wait = Math.max(
          retryMs(tries, clock.random()),
          (error.retryAfterMs ?? 0) * jitter(clock.random()),
        )
        if (!mayRepeat || tries >= MOST_TRIES || clock.now() + wait > until) throw error
        await sleep(clock, wait, signal)
      }
    }
  }

  #learn({ name, inputSchema }: ToolDefinition): boolean {
    const found = mirrorsOf(inputSchema)
    this.#mirrors.delete(name)
    this.#invalid.delete(name)
    if (found.ok) {
      this.#mirrors.set(name, found.mirrors)
      return true
    }
    this.#invalid.set(name, found.reason)
    this.#warn(`The tool ${name} is left out: ${found.reason}.`)
    return false
  }
}
