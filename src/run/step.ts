/**
 * The step vocabulary, as a run carries it out: replay what the journal has, do and record what it
 * has not, and park what cannot go on now. Parked calls never resolve; when nothing but parked calls
 * is left, the run ends and another one starts from the top later.
 */
import { inputRequired } from '@modelcontextprotocol/server'
import { z } from 'zod'
import { type Duration, toMs } from '../duration'
import { isObject, type Json, type JsonObject } from '../json'
import { type Progress, progressText } from '../progress'
import { backoffMs } from '../retry'
import { describe } from '../task/questions'
import type {
  AnsweredBy,
  InputRequest,
  JournalEntry,
  JournalRecord,
  NewQuestion,
  ProgressNote,
} from '../task/types'
import {
  type Answer,
  type AnswerLink,
  type EventOutcome,
  type EventWait,
  NonRetryableError,
  type Question,
  type RetryPolicy,
  type StartedJob,
  type Step,
  type StepContext,
  type StepOptions,
} from '../tool'
import { checkAsk } from './asks'
import { attemptStep } from './attempt'
import { JournalMismatchError } from './errors'
import type { Lease } from './lease'
import { failureOf, messageOf, stepError } from './recorded'

/** An attempt that goes on in another run. */
const LATER = Symbol('later')

/** A wait this short stays in the run: ending it and starting another would take as long. */
const SHORT_WAIT_MS = 2_000
const DEFAULT_STEP_TIMEOUT_MS = 5 * 60_000
const MAX_STEP_TIMEOUT_MS = 10 * 60_000
const DEFAULT_EVENT_TIMEOUT_MS = 24 * 3_600_000
/** What was recorded comes up again within this time, or the code has changed. */
const REPLAY_MS = 5_000
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
  /** The address at which `question` can be answered until `expiresAt`, or as long as the task lives. */
  answerUrl(question: string, expiresAt: number | undefined, holder: string | undefined): Promise<string>
}

export class Steps implements Step {
  readonly #host: StepHost
  readonly #journal: ReadonlyMap<string, JournalEntry>
  readonly #used = new Set<string>()
  /** How many of the used names are in the journal. */
  #reached = 0
  readonly #parked = new Set<string>()
  #yielding = false
  /** Jobs started elsewhere, by the name of the wait. */
  readonly #upstream = new Map<string, StartedJob>()
  /** Status texts of this run. */
  #shown = 0
  #active = 0
  #begun = 0
  #questions: NewQuestion[] = []
  #asking: Promise<void> | undefined
  #idle: (() => void) | undefined
  #violation: Error | undefined

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

  /** The jobs that the waits of this task started elsewhere, as the result's `_meta` tells them. */
  get upstream(): JsonObject {
    return Object.fromEntries(
      [...this.#upstream].map(([name, { upstreamId, upstreamUrl }]) => [
        name,
        { id: upstreamId, ...(upstreamUrl !== undefined && { url: upstreamUrl }) },
      ]),
    )
  }

  /** A step was held back because the slice is over. */
  get yielding(): boolean {
    return this.#yielding
  }

  /** A mistake of the tool's author that must not pass, even when the tool catches the error. */
  get violation(): string | undefined {
    return this.#violation?.message
  }

  /** Why the journal cannot have been written by this code, if so. */
  async mismatch(): Promise<string | undefined> {
    await nextTurn()
    if (this.violation !== undefined) return this.violation
    if (!this.#replaying) return undefined
    const names = [...this.#journal.keys()]
      .filter((name) => !this.#used.has(name))
      .slice(0, 5)
      .map((name) => JSON.stringify(name))
    return (
      `The journal has steps that the tool did not come to (${names.join(', ')}): ` +
      'the tool changed while this task was under way, or its steps depend on something that is not recorded.'
    )
  }

  /** There are records that this run has not come to yet. */
  get #replaying(): boolean {
    return this.#reached < this.#journal.size
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
    const value = await this.#hold(() =>
      this.#attempt<T>(name, options, fn, entry?.attempts ?? 0, entry?.at ?? 0),
    )
    return value === LATER ? this.#park(name) : value
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
    let job: StartedJob | undefined
    // An event that came although the start was not recorded shows that it did start.
    if (start && (entry === undefined || entry.state === 'open' || this.#journal.has(starting))) {
      const recorded = await this.do(starting, wait.retry ? { retry: wait.retry } : {}, async (context) => {
        const shown = this.#shown
        const started = await start({ ...context, callbackUrl: await this.#host.callbackUrl(name, at) })
        if (!started) return null
        if (this.#shown === shown) await this.status(`Waiting for ${name}: ${started.upstreamId}`)
        return { ...started }
      })
      job = recorded ?? undefined
      if (job) this.#upstream.set(name, job)
    }
    if (entry?.state === 'timeout') return { received: false, reason: 'timeout', ...job }
    if (entry?.state !== 'received') return this.#park(name)
    // Checked against the same schema when it arrived; without one it is JSON.
    const payload = wait.schema ? await wait.schema.parseAsync(entry.payload) : entry.payload
    return { received: true, payload: payload as z.output<S>, ...job }
  }

  async answerLink(question: string, { expiresIn, holder }: AnswerLink = {}): Promise<string> {
    const expiresAt = expiresIn === undefined ? undefined : Date.now() + toMs(expiresIn)
    return this.#busy(() => this.#host.answerUrl(question, expiresAt, holder))
  }

  answeredBy(question: string): AnsweredBy | undefined {
    const entry = this.#journal.get(question)
    return entry?.kind === 'question' && entry.state === 'answered' ? entry.by : undefined
  }

  async status(progress: Progress | string): Promise<void> {
    const { lease } = this.#host
    lease.checkCancelled()
    this.#shown++
    if (this.#replaying) lease.repeat(noteOf(progress))
    else await this.#busy(() => lease.note(noteOf(progress)))
  }

  // ---------------------------------------------------------------- recording

  /** What the step returned, or `undefined` when the next attempt is too far away for this run. */
  async #attempt<T extends Json | void>(
    name: string,
    options: StepOptions,
    fn: (context: StepContext) => Promise<T> | T,
    earlier: number,
    notBefore: number,
  ): Promise<T | typeof LATER> {
    const retry: RetryPolicy = options.retry ?? STEP_RETRY
    const timeoutMs = Math.min(toMs(options.timeout ?? DEFAULT_STEP_TIMEOUT_MS), MAX_STEP_TIMEOUT_MS)
    const backoff = {
      delayMs: toMs(retry.delay ?? STEP_RETRY.delay),
      maxDelayMs: toMs(retry.maxDelay ?? STEP_RETRY.maxDelay),
    }
    let startAt = notBefore
    for (let attempt = earlier + 1; ; attempt++) {
      await this.#shortWait(startAt)
      const context = { attempt, idempotencyKey: `${this.#host.lineage}/${name}` }
      const tried = await attemptStep(name, fn, context, timeoutMs, this.#host.lease.signal)
      if (tried.ok) {
        const { value } = tried
        await this.#record({ kind: 'step', name, state: 'done', ...(value !== undefined && { value }) })
        // The same value that a replay will see.
        return value as T
      }
      // What a cancelled or superseded attempt throws says nothing about the step.
      this.#host.lease.checkCancelled()
      if (tried.error instanceof NonRetryableError || attempt > retry.limit) {
        const error = failureOf(tried.error)
        await this.#record({ kind: 'step', name, state: 'failed', error })
        throw stepError(name, error.message)
      }
      startAt = Date.now() + backoffMs(backoff, attempt)
      await this.#record({ kind: 'step', name, state: 'retry', attempts: attempt, at: startAt })
      if (startAt - Date.now() > SHORT_WAIT_MS || Date.now() >= this.#host.sliceEndsAt) return LATER
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
      const request = formed(build)
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
    if (name === '' || name.length > 256 || name.includes('~') || !name.isWellFormed()) {
      throw this.#violated(
        new NonRetryableError(
          `${JSON.stringify(name)} is not a step name: use 1 to 256 characters without "~".`,
        ),
      )
    }
    if (this.#used.has(name)) {
      throw this.#violated(
        new NonRetryableError(`The step name ${JSON.stringify(name)} is used twice; names must be unique.`),
      )
    }
    this.#used.add(name)
    const entry = this.#journal.get(name)
    if (entry) this.#reached++
    if (entry && entry.kind !== kind) {
      throw this.#violated(
        new JournalMismatchError(
          `${JSON.stringify(name)} is a ${kind} in the code but was recorded as a ${entry.kind}: ` +
            'the tool changed while this task was under way.',
        ),
      )
    }
    // The kind was just compared.
    return entry as Extract<JournalEntry, { kind: K }> | undefined
  }

  #violated(error: NonRetryableError): NonRetryableError {
    this.#violation ??= error
    return error
  }

  async #wait(name: string, at: number): Promise<void> {
    const ms = at - Date.now()
    if (ms > SHORT_WAIT_MS) return this.#park(name)
    // A wait that is over is no work: a slice that only replayed it has not got anywhere.
    if (ms > 0) await this.#hold(() => this.#shortWait(at))
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
      return this.#never()
    }
    this.#begun++
    return this.#busy(work)
  }

  /** Keeps the run alive meanwhile. */
  async #busy<T>(work: () => Promise<T>): Promise<T> {
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
    // A branch that awaits something other than steps is not seen from here. One that an earlier run
    // has been through will come to its steps again; it gets the time to.
    const until = Date.now() + REPLAY_MS
    while (this.#atRest() && !this.#yielding && this.#replaying && Date.now() < until) {
      await scheduler.wait(10)
    }
    if (this.#atRest()) this.#idle?.()
  }

  #atRest(): boolean {
    return this.#active === 0 && (this.#parked.size > 0 || this.#yielding)
  }
}

/** A turn of the event loop: everything that was ready to run has run. */
function nextTurn(): Promise<void> {
  return new Promise((resolve) => {
    setTimeout(resolve, 0)
  })
}

/** @throws NonRetryableError when a form has fields that the wire cannot express. */
function formed(build: () => InputRequest): InputRequest {
  try {
    return build()
  } catch (error) {
    throw new NonRetryableError(messageOf(error))
  }
}

function noteOf(progress: Progress | string): ProgressNote {
  return { message: progressText(progress) }
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
