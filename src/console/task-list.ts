/**
 * The tasks on the page: begins them, follows them, finds those of earlier visits and of other tabs, and keeps
 * one card for each.
 */
import {
  type Call,
  isTerminal,
  TaskExpiredError,
  TaskNotFoundError,
  type TaskReference,
  type Tasks,
  type ToolDefinition,
  UnauthorizedError,
} from '../client/index.ts'
import type { JsonObject } from '../json.ts'
import type { ConsoleStore } from './store.ts'
import { type CardSubject, TaskCard } from './task-card.ts'
import { readable, toolTitle } from './words.ts'

export interface TaskListOptions {
  readonly tasks: Tasks
  /** Without push: it looks once at tasks that are over. */
  readonly looker: Tasks
  readonly store: ConsoleStore
  readonly tools: readonly ToolDefinition[]
  /** Where the cards go, newest first. */
  readonly place: HTMLElement
  /** Something is to be said aloud. */
  readonly announce: (text: string) => void
  /** Cards came, went, or are in another state. */
  readonly changed: () => void
  /** The server refused the key. */
  readonly unauthorized: (error: UnauthorizedError) => void
}

interface Entry {
  readonly card: TaskCard
  reference: TaskReference | undefined
  call: Call | undefined
}

const UNKNOWN =
  'The server does not know this task. It was forgotten some time after its end, or it belongs to another key.'

export class TaskList {
  readonly #options: TaskListOptions
  readonly #entries: Entry[] = []

  constructor(options: TaskListOptions) {
    this.#options = options
  }

  get cards(): readonly TaskCard[] {
    return this.#entries.map(({ card }) => card)
  }

  /**
   * Calls a tool, and shows what becomes of it.
   *
   * @returns why the server did not take the call, if so.
   */
  async run(tool: ToolDefinition, args: JsonObject): Promise<string | undefined> {
    let call: Call
    try {
      call = await this.#options.tasks.call(tool.name, args, { idempotencyKey: randomKey() })
    } catch (error) {
      return this.#why(error)
    }
    const refusal = refusalOf(call)
    if (refusal !== undefined) return refusal
    const entry = this.#add(subjectOf(tool.name, tool, args, Date.now()), undefined)
    void this.#follow(entry, call)
    entry.card.focus()
    this.#options.announce(`${entry.card.title}: started`)
    return undefined
  }

  /** The tasks of earlier visits and of other tabs, as far as they are not here yet. */
  async sync(): Promise<void> {
    const references = await this.#options.store.list()
    const here = new Set((await this.#options.tasks.references()).map(({ taskId }) => taskId))
    for (const reference of references.toSorted((a, b) => a.createdAt - b.createdAt)) {
      if (here.has(reference.taskId)) await this.#meet(reference)
    }
    const known = new Set(references.map(({ taskId }) => taskId))
    // A copy: dropping one changes the list.
    for (const entry of this.#entries.slice()) {
      const taskId = idOf(entry)
      if (taskId !== undefined && !known.has(taskId) && entry.card.isOver) this.#drop(entry)
    }
  }

  /** Takes away every task that is over. */
  clear(): void {
    for (const entry of this.#entries.filter(({ card }) => card.isOver)) this.#remove(entry)
  }

  tick(now: number): void {
    for (const { card } of this.#entries) card.tick(now)
  }

  /** Leaves all tasks, which go on, and the page. */
  close(): void {
    this.#options.tasks.close()
    this.#options.looker.close()
    for (const { card } of this.#entries.splice(0)) card.element.remove()
  }

  async #meet(reference: TaskReference): Promise<void> {
    const known = this.#entries.find((entry) => idOf(entry) === reference.taskId)
    if (known) {
      if (reference.cancelRequested) known.card.requested()
      return
    }
    const { tool, createdAt, status } = reference
    const definition = this.#options.tools.find(({ name }) => name === tool)
    const entry = this.#add(
      {
        ...subjectOf(tool, definition, reference.arguments, createdAt),
        status: isTerminal(status) ? status : undefined,
      },
      reference,
    )
    if (reference.cancelRequested) entry.card.requested()
    if (!isTerminal(status)) await this.#look(entry)
  }

  #add(subject: CardSubject, reference: TaskReference | undefined): Entry {
    const card = new TaskCard(subject, {
      answer: async (key, response) => entry.call?.answer(key, response),
      cancel: async () => entry.call?.cancel(),
      remove: () => this.#remove(entry),
      look: () => void this.#look(entry),
      changed: (said) => {
        if (said !== undefined) this.#options.announce(said)
        this.#options.changed()
      },
    })
    const entry: Entry = { card, reference, call: undefined }
    this.#entries.unshift(entry)
    this.#options.place.prepend(card.element)
    this.#options.changed()
    return entry
  }

  /** Follows a task that is known by its reference or by the call that was lost. */
  async #look(entry: Entry): Promise<void> {
    const taskId = idOf(entry)
    if (taskId === undefined) return
    const { tasks, looker } = this.#options
    try {
      await this.#follow(entry, await (entry.card.isOver ? looker : tasks).follow(taskId))
    } catch (error) {
      entry.card.lost('lost', this.#why(error))
    }
  }

  async #follow(entry: Entry, call: Call): Promise<void> {
    entry.call = call
    try {
      for await (const update of call) entry.card.show(update)
    } catch (error) {
      const isGone = error instanceof TaskNotFoundError || error instanceof TaskExpiredError
      if (isGone) entry.card.lost('unknown', UNKNOWN)
      else entry.card.lost('lost', `${this.#why(error)} The task goes on at the server.`)
    }
  }

  #why(error: unknown): string {
    if (error instanceof UnauthorizedError) this.#options.unauthorized(error)
    return error instanceof Error ? error.message : String(error)
  }

  #remove(entry: Entry): void {
    const taskId = idOf(entry)
    const endpoint = entry.reference?.endpoint ?? endpointUrl()
    if (taskId !== undefined) void this.#options.store.remove({ endpoint, taskId })
    const next =
      this.#entries[this.#entries.indexOf(entry) + 1] ?? this.#entries[this.#entries.indexOf(entry) - 1]
    const hadFocus = entry.card.element.contains(document.activeElement)
    this.#drop(entry)
    if (hadFocus) next?.card.focus()
  }

  #drop(entry: Entry): void {
    entry.call?.detach()
    entry.card.element.remove()
    this.#entries.splice(this.#entries.indexOf(entry), 1)
    this.#options.changed()
  }
}

/** The MCP endpoint of the server that served this page. */
export function endpointUrl(): string {
  return new URL('/mcp', location.href).href
}

function idOf({ card, call, reference }: Entry): string | undefined {
  return call?.taskId ?? card.taskId ?? reference?.taskId
}

function subjectOf(
  tool: string | undefined,
  definition: ToolDefinition | undefined,
  args: JsonObject | undefined,
  createdAt: number,
): CardSubject {
  return {
    title: definition ? toolTitle(definition) : readable(tool ?? 'Task'),
    tool,
    destructive: definition?.annotations?.['destructiveHint'] === true,
    args,
    createdAt,
    status: undefined,
  }
}

/** An error at once, without a task, is about the arguments; somebody is at the form and can mend them. */
function refusalOf(call: Call): string | undefined {
  const outcome = call.taskId === undefined ? call.latest?.outcome : undefined
  if (outcome?.status !== 'completed' || outcome.result.isError !== true) return undefined
  const texts = outcome.result.content.map(({ text }) => (typeof text === 'string' ? text : ''))
  return texts.join('\n').trim() || 'The tool did not say why it refused.'
}

/** `crypto.randomUUID` is for secure pages only; random bytes are for all. */
function randomKey(): string {
  return [...crypto.getRandomValues(new Uint8Array(16))]
    .map((byte) => byte.toString(16).padStart(2, '0'))
    .join('')
}
