/**
 * What a tool author writes: the definition of a tool, the context its `run`
 * receives and the step vocabulary. Types and small constructors only; the engine
 * that executes them is in `run/`.
 */
import type { CallToolResult, ServerContext, ToolAnnotations } from '@modelcontextprotocol/server'
import type { z } from 'zod'
import type { Duration } from './duration'
import type { Json } from './json'
import type { Principal } from './auth/principal'
import { isScope } from './auth/scopes'
import type { Progress } from './progress'
import type { AnsweredBy } from './task/types'

/** Kinds of input request a tool may send to the client, as client capabilities name them. */
export type Ask = 'elicitation' | 'elicitation.url' | 'sampling' | 'roots'

/** How a failed attempt is tried again. The delay doubles each time, with full jitter, up to `maxDelay`. */
export interface RetryPolicy {
  /** Attempts after the first one. `0` never retries. */
  readonly limit: number
  /** Before the first retry. */
  readonly delay?: Duration
  readonly maxDelay?: Duration
}

export interface TaskOptions {
  /**
   * `required`: only clients that declare the Tasks extension may call it (others get `-32021`).
   * `optional` (the default): other clients wait for the result in one blocking call.
   * `none`: a plain tool, answered at once by the Worker; see {@link PlainToolDefinition}.
   */
  readonly support?: 'required' | 'optional'
  /** From creation. When it is over the task fails and everything of it is deleted. Default 24 hours. */
  readonly ttl?: Duration
  /** A finished task is kept at least this long after it ended. Default 1 hour. */
  readonly retention?: Duration
  /** Bounds of the suggested poll interval, which follows the pace of the task. Default 1 to 30 seconds. */
  readonly poll?: { readonly min?: Duration; readonly max?: Duration }
  /** For a run that throws or whose machine disappears without having recorded a step. Default 3 retries from 2 seconds. */
  readonly retry?: RetryPolicy
  /** `slow` when even the first slice takes longer than a second. Default `work`. */
  readonly queue?: 'work' | 'slow'
}

/** A question with a form: a flat zod object of strings, numbers, booleans and enums. */
export interface Question<S extends z.ZodObject = z.ZodObject> {
  readonly message: string
  readonly schema: S
}

/** What came back. `content` is there only when the user accepted. */
export type Answer<T> =
  | { readonly action: 'accept'; readonly content: T }
  | { readonly action: 'decline' }
  | { readonly action: 'cancel' }

export type Gather = Readonly<Record<string, Question>>

/** The answers of {@link TaskToolDefinition.gather}, by key. */
export type Gathered<G extends Gather> = { readonly [K in keyof G]: Answer<z.output<G[K]['schema']>> }

/** A tool result; a string is short for one text block. */
export type ToolOutput = CallToolResult | string

/** A tool whose calls become durable tasks. */
export interface TaskToolDefinition<
  Input extends z.ZodObject = z.ZodObject,
  Output extends z.ZodObject = z.ZodObject,
  G extends Gather = Gather,
> {
  readonly name: string
  readonly title?: string
  readonly description: string
  readonly annotations?: ToolAnnotations
  /** OAuth scopes that a call needs besides `tasks:write`; a token without them is refused with 403. */
  readonly scopes?: readonly string[]
  readonly input: Input
  /** When given, `structuredContent` of the final result is checked against it before it is stored. */
  readonly output?: Output
  readonly task?: TaskOptions
  /** What the tool may ask while it runs. Checked when it is called, so that nobody is refused half-way. */
  readonly asks?: readonly Ask[]
  /** Questions to settle by MRTR before a task exists: the call answers `input_required` until they are. */
  readonly gather?: G
  /**
   * The work. It may be started again from the top at any time, so everything with an effect
   * belongs into a `step`; recorded steps are not run again.
   */
  run(context: RunContext<z.output<Input>, Gathered<G>>): Promise<ToolOutput>
}

/** A tool without a task: answered within the request. */
export interface PlainToolDefinition<
  Input extends z.ZodObject = z.ZodObject,
  Output extends z.ZodObject = z.ZodObject,
> {
  readonly name: string
  readonly title?: string
  readonly description: string
  readonly annotations?: ToolAnnotations
  /** OAuth scopes that a call needs besides `tasks:write`; a token without them is refused with 403. */
  readonly scopes?: readonly string[]
  readonly input: Input
  readonly output?: Output
  readonly task: { readonly support: 'none' }
  run(context: PlainContext<z.output<Input>>): Promise<ToolOutput>
}

export interface PlainContext<Input> {
  readonly input: Input
  readonly env: Cloudflare.Env
  readonly principal: Principal
  readonly signal: AbortSignal
  /** The SDK's request context: progress, logging, multi-round-trip input. */
  readonly mcp: ServerContext
}

export interface RunContext<Input, G = Record<never, never>> {
  readonly input: Input
  readonly step: Step
  readonly env: Cloudflare.Env
  /** Aborted within about a second of a cancellation, and when the run lost its lease. */
  readonly signal: AbortSignal
  /** Who called the tool. */
  readonly principal: Principal
  /** The answers to `gather`. */
  readonly gathered: G
  readonly task: {
    readonly id: string
    /** Milliseconds since the epoch. */
    readonly createdAt: number
    /** Milliseconds since the epoch; the task fails and is deleted then. */
    readonly expiresAt: number
    /** Runs of this task so far that failed, since the last recorded step. */
    readonly attempt: number
  }
}

export interface StepOptions {
  /** Default: 5 retries from 1 second, at most 1 minute apart. */
  readonly retry?: RetryPolicy
  /** For one attempt; reaching it aborts `signal` and fails the attempt. Default 5 minutes, at most 10. */
  readonly timeout?: Duration
}

export interface StepContext {
  /** 1 for the first attempt. */
  readonly attempt: number
  /**
   * The same for every attempt of this step of this task: give it to the system you change, so that
   * an effect that happened just before a crash is not repeated. See `applyOnce`.
   */
  readonly idempotencyKey: string
  /** Aborted by cancellation and by the step's time limit. */
  readonly signal: AbortSignal
}

export interface EventWait<S extends z.ZodType> {
  /** Default 24 hours; the time-to-live of the task ends the wait in any case. */
  readonly timeout?: Duration
  /** Checked when the event arrives; an event that does not fit is refused at the door (HTTP 422). */
  readonly schema?: S
  /** Of `start`. Default as for every step: 5 retries from 1 second, at most 1 minute apart. */
  readonly retry?: RetryPolicy
  /**
   * Starts the outside work, as a recorded step, once the wait is registered.
   * `callbackUrl` is signed, for this event of this task only, and expires with the wait.
   */
  start?(context: StepContext & { readonly callbackUrl: string }): Promise<StartedJob | void>
}

/**
 * What was started, as the other system knows it. Clients see the id in `statusMessage` while the task
 * waits, unless `start` sets a status of its own, and in the result's
 * `_meta["longhaul.dev/upstream"]`, by the name of the wait: `{ build: { id: "4711", url: "https://…" } }`.
 */
export interface StartedJob {
  readonly upstreamId: string
  /** Where people can watch it. */
  readonly upstreamUrl?: string
}

export type EventOutcome<T> =
  | ({ readonly received: true; readonly payload: T } & Partial<StartedJob>)
  | ({ readonly received: false; readonly reason: 'timeout' } & Partial<StartedJob>)

export interface AnswerLink {
  /** Default, and at most: as long as the task lives. */
  readonly expiresIn?: Duration
  /** Whom it is for, as {@link AnsweredBy} tells it afterwards: a name of yours, not a proof. At most 200 characters. */
  readonly holder?: string
}

/**
 * The step vocabulary. Names are the replay key: unique within a task and stable between versions
 * of the code. Do not use `~` in them.
 */
export interface Step {
  /** Runs `fn` once and records what it returned (as JSON, at most 128 KB); a later run gets the record. */
  do<T extends Json | void>(name: string, fn: (context: StepContext) => Promise<T> | T): Promise<T>
  do<T extends Json | void>(
    name: string,
    options: StepOptions,
    fn: (context: StepContext) => Promise<T> | T,
  ): Promise<T>
  /** Ends the run unless the time is short; nothing is billed while it sleeps. */
  sleep(name: string, duration: Duration): Promise<void>
  /** Asks the user by form. The task is `input_required` until it is answered. */
  elicit<S extends z.ZodObject>(
    name: string,
    question: Question<S> & { readonly timeout?: Duration },
  ): Promise<Answer<z.output<S>>>
  /** Any other request to the client: URL elicitation, sampling, roots. Resolves with the client's result. */
  request(
    name: string,
    request: { readonly method: string; readonly params?: Json; readonly timeout?: Duration },
  ): Promise<Json>
  /** Waits for an outside system to call back. Resolves with the payload, or with `received: false` at the timeout. */
  waitForEvent<S extends z.ZodType = z.ZodType<Json>>(
    name: string,
    wait?: EventWait<S>,
  ): Promise<EventOutcome<z.output<S>>>
  /**
   * A signed address of the page on which anybody who has it can answer this question, put by
   * {@link elicit} before or after. Whoever answers first decides, there or in the client.
   */
  answerLink(question: string, link?: AnswerLink): Promise<string>
  /** How a question was answered, once it is; `undefined` when nobody gave a usable answer in time. */
  answeredBy(question: string): AnsweredBy | undefined
  /** What the client sees as `statusMessage`, at once. */
  status(progress: Progress | string): Promise<void>
}

/** Any tool this server can offer. */
export type Tool = TaskTool | PlainTool

export interface TaskTool extends TaskToolDefinition {
  readonly kind: 'task'
}

export interface PlainTool extends PlainToolDefinition {
  readonly kind: 'plain'
}

/**
 * Defines a tool.
 *
 * @throws TypeError when the name is not 1 to 128 letters, digits, `_`, `-` or `.`, or a scope is not
 * one that OAuth can carry.
 * @example
 * export const greet = defineTool({
 *   name: 'greet',
 *   description: 'Says hello, slowly.',
 *   input: z.object({ name: z.string() }),
 *   async run({ input, step }) {
 *     await step.sleep('think', '10 seconds')
 *     return `Hello, ${input.name}!`
 *   },
 * })
 */
export function defineTool<Input extends z.ZodObject, Output extends z.ZodObject>(
  definition: PlainToolDefinition<Input, Output>,
): PlainTool
export function defineTool<
  Input extends z.ZodObject,
  Output extends z.ZodObject,
  G extends Gather = Record<never, never>,
>(definition: TaskToolDefinition<Input, Output, G>): TaskTool
export function defineTool(definition: TaskToolDefinition | PlainToolDefinition): Tool {
  if (!/^[A-Za-z0-9_.-]{1,128}$/.test(definition.name)) {
    throw new TypeError(
      `${JSON.stringify(definition.name)} is not a tool name: use 1 to 128 of A-Z a-z 0-9 _ - .`,
    )
  }
  const odd = definition.scopes?.find((scope) => !isScope(scope))
  if (odd !== undefined)
    throw new TypeError(`${definition.name}: ${JSON.stringify(odd)} is not an OAuth scope.`)
  return isPlain(definition) ? { ...definition, kind: 'plain' } : { ...definition, kind: 'task' }
}

function isPlain(definition: TaskToolDefinition | PlainToolDefinition): definition is PlainToolDefinition {
  return definition.task?.support === 'none'
}

/** A result that tells the model that the tool could not do it (`isError`). The task is `completed`. */
export function toolError(text: string): CallToolResult {
  return { content: [{ type: 'text', text }], isError: true }
}

/** Stops the retries of a step or run: the failure is final. */
export class NonRetryableError extends Error {
  override name = 'NonRetryableError'
}
