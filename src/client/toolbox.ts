/**
 * The tools of an endpoint: lists them, and makes one call of one. A call is never made twice by accident:
 * it is repeated only when the server says that it did not take it.
 */
import type { JsonObject } from '../json.ts'
import { HEADER_MISMATCH } from '../protocol/names.ts'
import type { Invocation } from './call.ts'
import { sleep } from './clock.ts'
import type { Endpoint } from './endpoint.ts'
import { InvalidResponseError, InvalidToolError, ServerError, TasksError } from './errors.ts'
import { jitter } from './pace.ts'
import { type Mirror, mirroredHeaders, mirrorsOf, readTools, type ToolDefinition } from './tools.ts'
import { type CallAnswer, expectComplete, readCallAnswer } from './wire.ts'

/** Tries of a call that the server puts off. */
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
  async call({ tool, args, meta }: Invocation, more: JsonObject, signal: AbortSignal): Promise<CallAnswer> {
    const params = { name: tool, arguments: args, ...(meta && { _meta: meta }), ...more }
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
        const wait = error instanceof TasksError && error.transient ? error.retryAfterMs : undefined
        if (wait === undefined || tries >= MOST_TRIES) throw error
        await sleep(this.#endpoint.clock, wait * jitter(this.#endpoint.clock.random()), signal)
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
