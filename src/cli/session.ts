/**
 * One run of the command against a server: makes the client, puts questions to whoever can answer, and
 * follows calls until they end or somebody leaves.
 */
import type { JsonObject } from '../json.ts'
import {
  type Call,
  createTasks,
  type Question,
  type QuestionResponse,
  type Tasks,
  TasksError,
} from '../client/index.ts'
import { sqliteStore } from '../client/node.ts'
import { readAnswer } from './arguments.ts'
import { EXIT, type ExitCode, exitOf, exitOfError, UsageError } from './exit.ts'
import { printDetached, printError, printOutcome, printUpdate } from './output.ts'
import { oneLine } from './plain.ts'
import { askPerson, LEAVE } from './prompts.ts'
import type { Settings } from './settings.ts'
import { createView, type View } from './view.ts'

export interface SessionOptions {
  /** Answers given beforehand, as text, by key. */
  readonly answers?: ReadonlyMap<string, string>
  /** Questions that nobody here answers may wait: somebody else will. */
  readonly answersElsewhere?: boolean
}

export class Session {
  readonly tasks: Tasks
  view: View
  readonly settings: Settings
  readonly #options: SessionOptions
  readonly #calls = new Set<Call>()
  /** Ids of tasks whose questions nobody here answers; `undefined` for a call without a task yet. */
  readonly #unanswered = new Set<string | undefined>()
  readonly #interrupted = new AbortController()
  /** One question at a time on one terminal. */
  #asking: Promise<unknown> = Promise.resolve()

  constructor(settings: Settings, options: SessionOptions = {}) {
    this.settings = settings
    this.#options = options
    this.view = createView({ progress: settings.showProgress, several: false })
    const answerable = settings.interactive || options.answersElsewhere || (options.answers?.size ?? 0) > 0
    const capabilities: JsonObject = answerable ? { elicitation: { form: {}, url: {} } } : {}
    this.tasks = createTasks({
      url: settings.url,
      ...(settings.token !== undefined && { token: settings.token }),
      store: sqliteStore(settings.statePath),
      capabilities,
      clientInfo: { name: 'longhaul-cli', version: '0.1.0' },
      onQuestion: (question, { signal }) => this.#answer(question, signal),
      onWarning: (message) => this.view.say(message),
    })
    for (const signal of ['SIGINT', 'SIGTERM', 'SIGHUP'] as const) process.on(signal, this.#interrupt)
  }

  /** From here on a call is left when its questions cannot be answered, or on Ctrl-C. */
  adopt(call: Call): void {
    this.#calls.add(call)
    // It may have asked before it was known here.
    if (this.#unanswered.has(call.taskId)) call.detach()
  }

  /** Follows a call to where this command ends. Its result goes to stdout. */
  async follow(call: Call): Promise<ExitCode> {
    this.adopt(call)
    try {
      for await (const update of call) {
        printUpdate(this.settings, update)
        this.view.update(update)
      }
      const outcome = await call.outcome()
      this.view.pause()
      printOutcome(this.settings, call, outcome)
      if (outcome.status === 'failed') this.view.say(`The task failed: ${oneLine(outcome.error.message)}`)
      if (outcome.status === 'cancelled') this.view.say(oneLine(outcome.message ?? 'The task was cancelled.'))
      if (outcome.status === 'completed' && outcome.completedAnyway) {
        this.view.say('The task had been asked to stop, but completed all the same.')
      }
      return exitOf(outcome)
    } catch (error) {
      this.view.pause()
      return this.#leave(call, error)
    } finally {
      this.#calls.delete(call)
    }
  }

  /** Follows several calls at once. The worst of their ends is the end of the command. */
  async followAll(calls: readonly Call[]): Promise<ExitCode> {
    if (calls.length > 1) this.view = createView({ progress: this.settings.showProgress, several: true })
    const exits = await Promise.all(calls.map((call) => this.follow(call)))
    return exits.find((code) => code !== EXIT.completed) ?? EXIT.completed
  }

  close(): void {
    this.tasks.close()
    this.view.close()
    for (const signal of ['SIGINT', 'SIGTERM', 'SIGHUP'] as const) process.off(signal, this.#interrupt)
  }

  #leave(call: Call, error: unknown): ExitCode {
    const goesOn = error instanceof TasksError && (error.code === 'detached' || error.code === 'deadline')
    if (!goesOn) {
      printError(this.settings.format, error, call.taskId)
      if (call.taskId !== undefined && exitOfError(error) !== EXIT.unknown) this.#sayHowToResume(call)
      return error instanceof UsageError ? EXIT.usage : exitOfError(error)
    }
    printDetached(this.settings, call)
    if (call.taskId !== undefined) this.#sayHowToResume(call)
    else if (this.settings.format === 'text') this.view.say('Nothing was begun.')
    return this.#interrupted.signal.aborted ? EXIT.interrupted : EXIT.running
  }

  #sayHowToResume({ taskId, latest }: Call): void {
    if (this.settings.format !== 'text') return
    const { command } = this.settings
    this.view.say(`The task goes on. Come back to it with: ${command} watch ${taskId}`)
    if (latest?.status === 'input_required')
      this.view.say(`It waits for an answer: ${command} answer ${taskId}`)
  }

  // Ctrl-C leaves the task, never stops it.
  readonly #interrupt = (): void => {
    this.#interrupted.abort()
    // Whoever presses it twice does not want to wait.
    if (this.#calls.size === 0) process.exit(EXIT.interrupted)
    for (const call of this.#calls) call.detach()
  }

  #answer(question: Question, signal: AbortSignal): Promise<QuestionResponse | undefined> {
    const answer = this.#asking.then(() => this.#answerNow(question, signal))
    this.#asking = answer.catch(() => {})
    return answer
  }

  async #answerNow(question: Question, signal: AbortSignal): Promise<QuestionResponse | undefined> {
    if (signal.aborted) return undefined
    const given = this.#options.answers?.get(question.key)
    if (given !== undefined) return readAnswer(question, given)
    if (!this.settings.interactive) {
      this.#leaveOpen(question)
      return undefined
    }
    this.view.pause()
    try {
      const answer = await askPerson(question, signal)
      if (answer !== LEAVE) return answer
      if (!signal.aborted) this.#leaveOpen(question)
      return undefined
    } finally {
      this.view.resume()
    }
  }

  /** Nobody here answers: wait for somebody elsewhere, or leave. */
  #leaveOpen({ message, taskId }: Question): void {
    const { format, interactive } = this.settings
    if (format === 'text' && !interactive) this.view.say(`The task asks: ${oneLine(message)}`)
    if (this.#options.answersElsewhere && taskId !== undefined) {
      this.view.say(`Answer it with: ${this.settings.command} answer ${taskId}`)
      return
    }
    this.#unanswered.add(taskId)
    for (const call of this.#calls) if (call.taskId === taskId) call.detach()
  }
}
