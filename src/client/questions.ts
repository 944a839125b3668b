/**
 * Which questions of a task are open, and which of them somebody was already asked. A key stands for one
 * question over the life of a task: whoever was asked is not asked again, however often the server repeats it.
 */
import { isObject, type Json, type JsonObject } from '../json.ts'
import type { InputRequest, InputRequests } from './wire.ts'

export interface Question {
  /** Names the question within its task. */
  readonly key: string
  /** `undefined` while the task does not exist yet: some servers ask before they begin. */
  readonly taskId: string | undefined
  readonly tool: string | undefined
  /** `form` has a `schema`, `url` a page to visit; the others are described by `request`. */
  readonly kind: 'form' | 'url' | 'sampling' | 'roots' | 'other'
  readonly message: string
  readonly schema: JsonObject | undefined
  readonly url: string | undefined
  /** As the server sent it. */
  readonly request: InputRequest
}

/** An answer to an elicitation; other kinds of question take the result that their method defines. */
export type QuestionResponse =
  | { readonly action: 'accept'; readonly content?: JsonObject }
  | { readonly action: 'decline' }
  | { readonly action: 'cancel' }
  | JsonObject

/** The answer "yes, with this". */
export function accept(content: JsonObject = {}): QuestionResponse {
  return { action: 'accept', content }
}

/** The answer "no". */
export function decline(): QuestionResponse {
  return { action: 'decline' }
}

/** The answer of somebody who closes the dialog. */
export function dismiss(): QuestionResponse {
  return { action: 'cancel' }
}

export class Questions {
  readonly #answered: Set<string>
  readonly #asked = new Set<string>()
  readonly #known = new Map<string, string>()
  readonly #pending = new Set<string>()
  readonly #reused: (key: string) => void

  /**
   * @param answered keys that were answered before, by this process or one before it.
   * @param reused told when a server uses the key of one question for another.
   */
  constructor(answered: Iterable<string>, reused: (key: string) => void) {
    this.#answered = new Set(answered)
    this.#reused = reused
  }

  get answered(): readonly string[] {
    return [...this.#answered]
  }

  /** Keys mean something else from here on: a new round of questions, or the task itself. */
  reset(): void {
    this.#answered.clear()
    this.#asked.clear()
    this.#known.clear()
  }

  /** What is open in this snapshot and not answered from here. */
  open(requests: InputRequests, taskId: string | undefined, tool: string | undefined): Question[] {
    return Object.entries(requests)
      .filter(([key, request]) => {
        this.#recognise(key, request)
        return !this.#answered.has(key) && !this.#pending.has(key)
      })
      .map(([key, request]) => describe(key, request, taskId, tool))
  }

  /** Whether to ask now; true once per key. */
  shouldAsk(key: string): boolean {
    if (this.#asked.has(key)) return false
    this.#asked.add(key)
    return true
  }

  /** Sends an answer; the question counts as answered while that is under way, and after it went well. */
  async answering(key: string, send: () => Promise<void>): Promise<void> {
    this.#pending.add(key)
    try {
      await send()
      this.#answered.add(key)
    } finally {
      this.#pending.delete(key)
    }
  }

  #recognise(key: string, request: InputRequest): void {
    const text = JSON.stringify(request)
    const known = this.#known.get(key)
    if (known !== undefined && known !== text) this.#reused(key)
    this.#known.set(key, text)
  }
}

function describe(
  key: string,
  request: InputRequest,
  taskId: string | undefined,
  tool: string | undefined,
): Question {
  const params = request.params ?? {}
  const schema = params['requestedSchema']
  const isUrl = params['mode'] === 'url'
  return {
    key,
    taskId,
    tool,
    kind:
      request.method === 'elicitation/create' ? (isUrl ? 'url' : 'form') : (KINDS[request.method] ?? 'other'),
    message: stringOf(params['message']) ?? `The server asks for ${request.method}.`,
    schema: isObject(schema) ? schema : undefined,
    url: stringOf(params['url']),
    request,
  }
}

const KINDS: Readonly<Record<string, 'sampling' | 'roots'>> = {
  'sampling/createMessage': 'sampling',
  'roots/list': 'roots',
}

function stringOf(value: Json | undefined): string | undefined {
  return typeof value === 'string' ? value : undefined
}
