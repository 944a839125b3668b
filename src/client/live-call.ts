/**
 * A call while it is alive, whether its answer comes at once, after questions, or is a task that
 * runs for hours. Owns the outcome, the questions and the reference; how the task is watched is the
 * follower's business.
 */
import type { Json, JsonObject } from '../json.ts'
import { Asking } from './asking.ts'
import { asError, sleep, Timer } from './clock.ts'
import type { Call, Invocation } from './call.ts'
import type { CallContext } from './context.ts'
import {
  DeadlineError,
  DetachedError,
  TaskCancelledError,
  TaskFailedError,
  TaskNotFoundError,
} from './errors.ts'
import { Feed } from './feed.ts'
import { Follower, type Via } from './follower.ts'
import { insist } from './insist.ts'
import { retryMs } from './pace.ts'
import { type Question, type QuestionResponse, Questions } from './questions.ts'
import { Rounds } from './rounds.ts'
import type { TaskReference } from './store.ts'
import { type Outcome, outcomeOf, type Update, updateOf } from './update.ts'
import type { CallAnswer, Task, ToolResult } from './wire.ts'

export class LiveCall implements Call {
  readonly #context: CallContext
  readonly #invocation: Invocation | undefined
  readonly #feed = new Feed<Update>()
  readonly #over = new AbortController()
  readonly #outcome = Promise.withResolvers<Outcome>()
  readonly #questions: Questions
  readonly #asking: Asking
  readonly #rounds = new Rounds()
  readonly #deadline: Timer
  #follower: Follower | undefined
  #task: Task | undefined
  #via: Via = 'call'
  #reference: TaskReference | undefined
  #cancelRequested = false

  /** A call to be made, or a task to be followed. */
  constructor(context: CallContext, subject: Invocation | TaskReference) {
    this.#context = context
    if ('taskId' in subject) this.#reference = subject
    this.#invocation = 'taskId' in subject ? undefined : subject
    this.#cancelRequested = this.#reference?.cancelRequested ?? false
    this.#questions = new Questions(this.#reference?.answered ?? [], (key) =>
      context.warn(`The server used the key "${key}" for more than one question; only the first was asked.`),
    )
    this.#asking = new Asking({
      questions: this.#questions,
      onQuestion: context.onQuestion,
      answer: (key, response) => this.answer(key, response),
      failed: (error) => this.#fail(error),
    })
    // Nobody has to wait for the outcome.
    this.#outcome.promise.catch(() => {})
    this.#deadline = new Timer(context.endpoint.clock)
    const { deadlineMs, signal } = context
    if (deadlineMs !== undefined)
      this.#deadline.set(deadlineMs, () => this.#fail(new DeadlineError(deadlineMs)))
    signal?.addEventListener('abort', this.#aborted, { once: true })
  }

  get taskId(): string | undefined {
    return this.#reference?.taskId
  }

  get tool(): string | undefined {
    return this.#invocation?.tool ?? this.#reference?.tool
  }

  get latest(): Update | undefined {
    return this.#feed.latest
  }

  [Symbol.asyncIterator](): AsyncIterator<Update> {
    return this.#feed[Symbol.asyncIterator]()
  }

  outcome(): Promise<Outcome> {
    return this.#outcome.promise
  }

  async result(): Promise<ToolResult> {
    const outcome = await this.#outcome.promise
    if (outcome.status === 'failed') throw new TaskFailedError(outcome.error)
    if (outcome.status === 'cancelled') throw new TaskCancelledError(outcome.message)
    return outcome.result
  }

  /** Makes the call, or follows the task. @throws TasksError when the server did not take the call. */
  async begin(): Promise<void> {
    if (this.#invocation) await this.#send(this.#invocation, {})
    else this.#follow(undefined, true)
  }

  async answer(key: string, response: QuestionResponse): Promise<void> {
    if (this.#rounds.requests) return this.#answerRound(key, response)
    const { taskId } = this
    if (taskId === undefined) throw new TypeError('There is no task whose questions could be answered.')
    // Made of JSON by its type, except that members may be absent.
    const inputResponses = { [key]: response as Json }
    const sent = this.#questions.answering(key, () =>
      this.#insist('tasks/update', taskId, { inputResponses }),
    )
    this.#publish()
    if (!(await this.#unlessEnded(sent))) return
    this.#asking.settled(key)
    this.#remember({ answered: this.#questions.answered })
    this.#follower?.hurry()
  }

  async cancel(): Promise<void> {
    if (this.#over.signal.aborted) return
    const { taskId } = this
    // Without a task there is nothing that could go on.
    if (taskId === undefined)
      return this.#finish({ status: 'cancelled', message: undefined, task: undefined })
    this.#cancelRequested = true
    this.#publish()
    try {
      if (!(await this.#unlessEnded(this.#insist('tasks/cancel', taskId)))) return
    } catch (error) {
      this.#cancelRequested = false
      this.#publish()
      throw error
    }
    this.#remember({ cancelRequested: true })
    this.#follower?.hurry()
  }

  detach(): void {
    this.#leave(new DetachedError())
  }

  readonly #aborted = (): void => this.#leave(asError(this.#context.signal?.reason))

  // The call

  async #send(invocation: Invocation, more: JsonObject): Promise<void> {
    try {
      const answer = await this.#context.callTool(invocation, more, this.#over.signal)
      if (!this.#over.signal.aborted) await this.#take(answer, invocation)
    } catch (error) {
      this.#fail(asError(error))
      throw error
    }
  }

  async #take(answer: CallAnswer, invocation: Invocation): Promise<void> {
    this.#questions.reset()
    switch (answer.kind) {
      case 'result':
        return this.#finish({
          status: 'completed',
          result: answer.result,
          completedAnyway: false,
          task: undefined,
        })
      case 'task':
        return this.#adopt(answer.task, answer.ended, invocation)
      case 'questions':
        this.#rounds.begin(answer.inputRequests, answer.requestState)
        this.#publish()
        if (this.#rounds.complete) {
          // A state without questions asks to come again, and not at once.
          const { clock } = this.#context.endpoint
          await sleep(clock, retryMs(this.#rounds.count, clock.random()), this.#over.signal)
          await this.#send(invocation, this.#rounds.end())
        }
    }
  }

  async #answerRound(key: string, response: QuestionResponse): Promise<void> {
    this.#rounds.answer(key, response)
    await this.#questions.answering(key, async () => {})
    this.#asking.settled(key)
    if (this.#invocation && this.#rounds.complete) await this.#send(this.#invocation, this.#rounds.end())
    else this.#publish()
  }

  /** The server answered with a task: its reference is kept before anything else is done. */
  async #adopt(task: Task, ended: boolean, { tool, args }: Invocation): Promise<void> {
    const { endpoint, rememberArguments } = this.#context
    this.#reference = {
      taskId: task.taskId,
      endpoint: endpoint.url,
      tool,
      ...(rememberArguments && { arguments: args }),
      createdAt: endpoint.clock.date(),
      ttlMs: task.ttlMs,
      status: task.status,
      cancelRequested: false,
      answered: [],
    }
    await this.#context.put(this.#reference)
    if (!this.#over.signal.aborted) this.#follow(task, ended)
  }

  #follow(seed: Task | undefined, lookNow: boolean): void {
    const reference = this.#reference
    if (!reference) throw new TypeError('There is no task to follow.')
    const { endpoint, sources, poll } = this.#context
    this.#follower = new Follower({
      taskId: reference.taskId,
      endpoint,
      sources,
      poll,
      bornAt: reference.createdAt,
      changed: (task, via) => this.#changed(task, via),
      failed: (error) => this.#fail(error),
    })
    this.#follower.start(seed, lookNow)
  }

  #changed(task: Task, via: Via): void {
    this.#task = task
    this.#via = via
    const outcome = outcomeOf(task, this.#cancelRequested)
    if (outcome) return this.#finish(outcome)
    if (this.#reference?.status !== task.status || this.#reference.ttlMs !== task.ttlMs) {
      this.#remember({ status: task.status, ttlMs: task.ttlMs })
    }
    this.#publish()
  }

  #openQuestions(): Question[] {
    const requests = this.#rounds.requests ?? this.#task?.inputRequests ?? {}
    return this.#questions.open(requests, this.taskId, this.tool)
  }

  #publish(outcome?: Outcome): void {
    if (this.#over.signal.aborted) return
    const questions = outcome ? [] : this.#openQuestions()
    const { taskId } = this
    const [task, via, cancelRequested] = [this.#task, this.#via, this.#cancelRequested]
    this.#feed.push(updateOf({ taskId, task, via, cancelRequested, questions, outcome }))
    this.#asking.update(questions)
  }

  /** False when the task ended meanwhile, so that what was being sent no longer matters. */
  async #unlessEnded(sent: Promise<void>): Promise<boolean> {
    try {
      await sent
      return true
    } catch (error) {
      if (this.#feed.latest?.outcome) return false
      throw error
    }
  }

  #insist(method: string, taskId: string, more: JsonObject = {}): Promise<void> {
    const { endpoint, poll } = this.#context
    return insist(endpoint, method, { taskId, ...more }, poll.timeoutMs, this.#over.signal)
  }

  // The end

  #finish(outcome: Outcome): void {
    if (this.#over.signal.aborted) return
    this.#remember({ status: outcome.status })
    this.#publish(outcome)
    this.#stop()
    this.#outcome.resolve(outcome)
    this.#feed.end()
  }

  #fail(error: Error): void {
    if (this.#over.signal.aborted) return
    if (error instanceof TaskNotFoundError) void this.#context.forget(error.taskId)
    this.#stop()
    this.#outcome.reject(error)
    this.#feed.end(error)
  }

  #leave(reason: Error): void {
    if (this.#over.signal.aborted) return
    this.#stop()
    this.#outcome.reject(reason)
    this.#feed.end()
  }

  #stop(): void {
    this.#over.abort(new DetachedError())
    this.#deadline.clear()
    this.#follower?.stop()
    this.#asking.update([])
    this.#context.signal?.removeEventListener('abort', this.#aborted)
    this.#context.ended(this)
  }

  #remember(change: Partial<TaskReference>): void {
    if (!this.#reference) return
    this.#reference = { ...this.#reference, ...change }
    void this.#context.put(this.#reference)
  }
}
