/**
 * The step vocabulary, as a run carries it out: replay what the journal has, do and record what it
 * has not, and park what cannot go on now. Parked calls never resolve; when nothing but parked calls
 * is left, the run ends and another one starts from the top later.
 */
import { inputRequired } from '@modelcontextprotocol/server'
import { z } from 'zod'
import { type Duration, toMs } from '../duration'
import { isObject, type Json, type JsonObject } from '../json'
import { backoffMs } from '../retry'
import { describe } from '../task/questions'
import type { InputRequest, JournalEntry, JournalRecord, NewQuestion, ProgressNote } from '../task/types'
import {
  type Answer,
  type EventOutcome,
  type EventWait,
  NonRetryableError,
  type Progress,
  type Question,
  type RetryPolicy,
  type Step,
  type StepContext,
  type StepOptions,
} from '../tool'
import { checkAsk } from './asks'
import { JournalMismatchError, StepError } from './errors'
import type { Lease } from './lease'

/** A wait this short stays in the run: ending it and starting another would take as long. */
const SHORT_WAIT_MS = 2_000
const DEFAULT_STEP_TIMEOUT_MS = 5 * 60_000
const MAX_STEP_TIMEOUT_MS = 10 * 60_000
const DEFAULT_EVENT_TIMEOUT_MS = 24 * 3_600_000
const STEP_RETRY = { limit: 5, delay: '1 second', maxDelay: '1 minute' } as const

export interface StepHost {
  readonly lease: Lease
  readonly journal: readonly JournalEntry[]
  readonly lineage: string
  readonly capabilities: JsonObject
  /** Milliseconds since the epoch after which no further step begins in this run. */
  readonly sliceEndsAt: number
  /** The address an outside system calls to deliver `event`; valid until `expiresAt`. */
  callbackUrl(event: string, expiresAt: number): Promise<string>
}

export class Steps implements Step {
  readonly #host: StepHost
  readonly #journal: ReadonlyMap<string, JournalEntry>
  readonly #used = new Set<string>()
  readonly #parked = new Set<string>()
  #yielding = false
  #parkedAtBoundary = false
  #active = 0
  #begun = 0
  /** Records that the code came to. */
  #replayed = 0
  #questions: NewQuestion[] = []
  #asking: Promise<void> | undefined
  #idle: (() => void) | undefined

  constructor(host: StepHost) {
    this.#host = host
    this.#journal = new Map(host.journal.map((entry) => [entry.name, entry]))
  }

  /** Resolves when nothing but parked calls is left. */
  readonly allParked = new Promise<void>((resolve) => {
    this.#idle = resolve
  })

  /** Entries the run waits for. */
  get parked(): readonly string[] {
    return [...this.#parked]
  }

  /** A step was held back because the slice is over. */
  get yielding(): boolean {
    return this.#yielding
  }

  /**
   * Recorded entries that this run never came to: the code cannot have written them. An event may
   * arrive long before the code waits for it.
   */
  async unreached(): Promise<string[]> {
    await nextTurn()
    return this.#host.journal
      .filter(
        (entry) => !this.#used.has(entry.name) && !(entry.kind === 'event' && entry.state === 'received'),
      )
      .map((entry) => entry.name)
  }

  /** There are records that this run has not come to yet. */
  get #replaying(): boolean {
    return this.#replayed < this.#journal.size
  }

  /** Resolves when no step is at work, so that the next run does not meet the leftovers of this one. */
  async quiet(limitMs: number): Promise<void> {
    const until = Date.now() + limitMs
    while (this.#active > 0 && Date.now() < until) await scheduler.wait(10)
  }

  do<T extends Json | void>(name: string, fn: (context: StepContext) => Promise<T> | T): Promise<T>
  do<T extends Json | void>(
    name: string,
    options: StepOptions,
    fn: (context: StepContext) => Promise<T> | T,
  ): Promise<T>
  async do<T extends Json | void>(
    name: string,
    optionsOrFn: StepOptions | ((context: StepContext) => Promise<T> | T),
    maybeFn?: (context: StepContext) => Promise<T> | T,
  ): Promise<T> {
    const options = typeof optionsOrFn === 'function' ? {} : optionsOrFn
    const fn = typeof optionsOrFn === 'function' ? optionsOrFn : maybeFn
    if (!fn) throw new NonRetryableError(`step.do(${JSON.stringify(name)}) needs a function.`)
    const entry = this.#enter('step', name)
    if (entry?.state === 'failed') throw stepError(name, entry.error.message)
    // What was recorded is what `fn` returned, as JSON.
    if (entry?.state === 'done') return entry.value as T
    if (entry && entry.at - Date.now() > SHORT_WAIT_MS) return this.#park(name)
    const done = await this.#hold(() => this.#attempt<T>(name, options, fn, entry?.attempts ?? 0, entry?.at))
    // Parked out here: what is held keeps the run alive.
    return done ? done.value : this.#park(name)
  }

  async sleep(name: string, duration: Duration): Promise<void> {
    const entry = this.#enter('sleep', name)
    const at = entry?.at ?? Date.now() + toMs(duration)
    if (!entry) await this.#hold(() => this.#record({ kind: 'sleep', name, at }))
    await this.#wait(name, at)
  }

  async elicit<S extends z.ZodObject>(
    name: string,
    question: Question<S> & { readonly timeout?: Duration },
  ): Promise<Answer<z.output<S>>> {
    const { message, schema, timeout } = question
    const answer = await this.#ask(name, () => elicitation(message, schema), timeout)
    if (!isObject(answer) || answer['action'] !== 'accept') {
      return { action: isObject(answer) && answer['action'] === 'decline' ? 'decline' : 'cancel' }
    }
    const parsed = await schema.safeParseAsync(answer['content'])
    if (parsed.success) return { action: 'accept', content: parsed.data }
    // The wire schema cannot say everything that zod can (refinements).
    await this.#hold(() =>
      this.#host.lease.write((task, token) => task.askAgain(token, name, describe(parsed.error))),
    )
    return this.#park(name)
  }

  async request(
    name: string,
    request: { readonly method: string; readonly params?: Json; readonly timeout?: Duration },
  ): Promise<Json> {
    const { method, params, timeout } = request
    const answer = await this.#ask(
      name,
      // Params of every MCP request are an object.
      () => (params === undefined ? { method } : { method, params: params as JsonObject }),
      timeout,
    )
    if (isObject(answer) && isObject(answer['error']) && method !== 'elicitation/create') {
      throw stepError(name, JSON.stringify(answer['error']['message']))
    }
    return answer
  }

  async waitForEvent<S extends z.ZodType = z.ZodType<Json>>(
    name: string,
    wait: EventWait<S> = {},
  ): Promise<EventOutcome<z.output<S>>> {
    const entry = this.#enter('event', name)
    const at =
      entry?.state === 'open' ? entry.at : Date.now() + toMs(wait.timeout ?? DEFAULT_EVENT_TIMEOUT_MS)
    if (!entry) {
      const schema = wait.schema && (z.toJSONSchema(wait.schema, { io: 'input' }) as Json)
      await this.#hold(() =>
        this.#record({ kind: 'event', name, at, ...(schema !== undefined && { schema }) }),
      )
    }
    const starting = `${name}: start`
    const start = wait.start?.bind(wait)
    // An event that came although the start was not recorded shows that it did start.
    if (start && (entry === undefined || entry.state === 'open' || this.#journal.has(starting))) {
      await this.do(starting, wait.retry ? { retry: wait.retry } : {}, async (context) => {
        await start({ ...context, callbackUrl: await this.#host.callbackUrl(name, at) })
      })
    }
    if (entry?.state === 'timeout') return { received: false, reason: 'timeout' }
    if (entry?.state !== 'received') return this.#park(name)
    // Checked against the same schema when it arrived; without one it is JSON.
    const payload = wait.schema ? await wait.schema.parseAsync(entry.payload) : entry.payload
    return { received: true, payload: payload as z.output<S> }
  }

  async status(progress: Progress | string): Promise<void> {
    this.#host.lease.checkCancelled()
    // What was shown before must not be shown again on the way to where the last run stopped.
    if (this.#replaying) this.#host.lease.hold(noteOf(progress))
    else await this.#host.lease.note(noteOf(progress))
  }

  // ---------------------------------------------------------------- recording

  /** What the step returned, or `undefined` when the next attempt is too far away for this run. */
  async #attempt<T extends Json | void>(
    name: string,
    options: StepOptions,
    fn: (context: StepContext) => Promise<T> | T,
    earlier: number,
    notBefore: number | undefined,
  ): Promise<{ readonly value: T } | undefined> {
    const retry: RetryPolicy = options.retry ?? STEP_RETRY
    const timeoutMs = Math.min(toMs(options.timeout ?? DEFAULT_STEP_TIMEOUT_MS), MAX_STEP_TIMEOUT_MS)
    let startAt = notBefore ?? 0
    for (let attempt = earlier + 1; ; attempt++) {
      await this.#shortWait(startAt)
      let failure: unknown
      try {
        const value = asJson(await this.#limited(name, timeoutMs, attempt, fn))
        await this.#record({ kind: 'step', name, state: 'done', ...(value !== undefined && { value }) })
        // The same value that a replay will see.
        return { value: value as T }
      } catch (error) {
        failure = error
      }
      this.#host.lease.checkCancelled()
      if (failure instanceof NonRetryableError || attempt > retry.limit) {
        const error = { name: errorName(failure), message: errorMessage(failure) }
        await this.#record({ kind: 'step', name, state: 'failed', error })
        throw stepError(name, error.message)
      }
      const backoff = {
        delayMs: toMs(retry.delay ?? STEP_RETRY.delay),
        maxDelayMs: toMs(retry.maxDelay ?? STEP_RETRY.maxDelay),
      }
      startAt = Date.now() + backoffMs(backoff, attempt)
      await this.#record({ kind: 'step', name, state: 'retry', attempts: attempt, at: startAt })
      if (startAt - Date.now() > SHORT_WAIT_MS) return undefined
    }
  }

  /** Runs `fn` under the step's time limit; a function that never returns must not hold the queue. */
  async #limited<T>(
    name: string,
    timeoutMs: number,
    attempt: number,
    fn: (context: StepContext) => Promise<T> | T,
  ): Promise<T> {
    const limit = new AbortController()
    const signal = AbortSignal.any([this.#host.lease.signal, limit.signal])
    let timer: ReturnType<typeof setTimeout> | undefined
    const timeUp = new Promise<never>((_, reject) => {
      timer = setTimeout(() => {
        const error = new Error(`Step ${JSON.stringify(name)} took longer than ${timeoutMs} ms.`)
        limit.abort(error)
        reject(error)
      }, timeoutMs)
    })
    try {
      const context = { attempt, idempotencyKey: `${this.#host.lineage}/${name}`, signal }
      return await Promise.race([Promise.resolve(fn(context)), timeUp])
    } finally {
      if (timer !== undefined) clearTimeout(timer)
    }
  }

  #record(record: JournalRecord): Promise<void> {
    return this.#host.lease.write((task, token, note) => task.record(token, record, note))
  }

  /** Questions put in one breath travel in one call, and become visible together. */
  async #ask(name: string, build: () => InputRequest, timeout?: Duration): Promise<Json> {
    const entry = this.#enter('question', name)
    if (entry?.state === 'answered') return entry.answer
    if (!entry) {
      const request = build()
      checkAsk(request, this.#host.capabilities)
      this.#questions.push({ name, request, at: timeout === undefined ? null : Date.now() + toMs(timeout) })
      await this.#hold(() => (this.#asking ??= this.#sendQuestions()))
    }
    return this.#park(name)
  }

  async #sendQuestions(): Promise<void> {
    await nextTurn()
    const questions = this.#questions
    this.#questions = []
    this.#asking = undefined
    await this.#host.lease.write((task, token) => task.ask(token, questions))
  }

  // ---------------------------------------------------------------- parking

  /** Every step passes here: names are used once, records fit the code, and a boundary is a place to stop. */
  #enter<K extends JournalEntry['kind']>(
    kind: K,
    name: string,
  ): Extract<JournalEntry, { kind: K }> | undefined {
    if (name === '' || name.length > 256 || name.includes('~')) {
      throw new NonRetryableError(
        `${JSON.stringify(name)} is not a step name: use 1 to 256 characters without "~".`,
      )
    }
    if (this.#used.has(name)) {
      throw new NonRetryableError(
        `The step name ${JSON.stringify(name)} is used twice; names must be unique.`,
      )
    }
    this.#used.add(name)
    const entry = this.#journal.get(name)
    if (entry && entry.kind !== kind) {
      throw new JournalMismatchError(
        `${JSON.stringify(name)} is a ${kind} in the code but was recorded as a ${entry.kind}: ` +
          'the tool changed while this task was under way.',
      )
    }
    if (entry) this.#replayed++
    // The kind was just compared.
    return entry as Extract<JournalEntry, { kind: K }> | undefined
  }

  async #wait(name: string, at: number): Promise<void> {
    if (at - Date.now() > SHORT_WAIT_MS) return this.#park(name)
    await this.#hold(() => this.#shortWait(at))
  }

  async #shortWait(at: number): Promise<void> {
    const ms = at - Date.now()
    if (ms > 0) await scheduler.wait(ms, { signal: this.#host.lease.signal }).catch(() => undefined)
    this.#host.lease.checkCancelled()
  }

  /** Work that keeps the run alive. It begins only within the slice, but a run always gets one piece done. */
  async #hold<T>(work: () => Promise<T>): Promise<T> {
    this.#host.lease.checkCancelled()
    if (this.#begun > 0 && Date.now() >= this.#host.sliceEndsAt) {
      this.#yielding = true
      this.#parkedAtBoundary = true
      return this.#never()
    }
    this.#begun++
    this.#active++
    try {
      return await work()
    } finally {
      this.#active--
      void this.#settleDown()
    }
  }

  /** A call that cannot go on in this run. */
  #park(name: string): Promise<never> {
    this.#parked.add(name)
    return this.#never()
  }

  #never(): Promise<never> {
    void this.#settleDown()
    return new Promise<never>(() => undefined)
  }

  /** Looks, once the code had its chance to go on, whether nothing but parked calls is left. */
  async #settleDown(): Promise<void> {
    await nextTurn()
    await nextTurn()
    if (this.#active === 0 && (this.#parked.size > 0 || this.#parkedAtBoundary)) this.#idle?.()
  }
}

/** A turn of the event loop: everything that was ready to run has run. */
function nextTurn(): Promise<void> {
  return new Promise((resolve) => {
    setTimeout(resolve, 0)
  })
}

/** The value as a replay will see it. */
function asJson(value: unknown): Json | undefined {
  if (value === undefined) return undefined
  const text = JSON.stringify(value)
  if (text === undefined) throw new NonRetryableError('A step must return JSON.')
  return JSON.parse(text) as Json
}

function stepError(name: string, message: string): StepError {
  return new StepError(`Step ${JSON.stringify(name)} failed: ${message}`)
}

function errorName(error: unknown): string {
  return error instanceof Error ? error.name : 'Error'
}

function errorMessage(error: unknown): string {
  return error instanceof Error ? error.message : String(error)
}

function noteOf(progress: Progress | string): ProgressNote {
  if (typeof progress === 'string') return { message: progress }
  const { message, done, total } = progress
  return { message: done !== undefined && total !== undefined ? `${message} (${done}/${total})` : message }
}

/** A form question as it travels. `$schema` says nothing that the revision does not. */
export function elicitation(message: string, schema: z.ZodObject): InputRequest {
  // The SDK's builder refuses what the wire cannot express; its output is plain JSON.
  const built = inputRequired.elicit({ message, requestedSchema: schema }) as unknown as {
    method: string
    params: JsonObject & { requestedSchema: JsonObject }
  }
  const { $schema: _, ...requestedSchema } = built.params.requestedSchema
  return { method: built.method, params: { ...built.params, requestedSchema } }
}
