/** What the commands do, given a session. Each resolves to the exit code. */
import type { Call, Outcome, Update } from '../client/index.ts'
import { readAnswer, readArguments } from './arguments.ts'
import { EXIT, type ExitCode, UsageError } from './exit.ts'
import { fieldsOf } from '../form/fields.ts'
import { tableOf, toolSheet, toolTable } from './listing.ts'
import { print, printJson } from './output.ts'
import { oneLine } from './plain.ts'
import { askFields, askPerson, LEAVE } from './prompts.ts'
import type { Session } from './session.ts'

export interface Following {
  readonly timeout?: number
  readonly answersElsewhere?: boolean
}

export interface Calling extends Following {
  readonly arg?: readonly string[]
  readonly args?: string
  readonly answer?: readonly string[]
  readonly detach?: boolean
  readonly idempotencyKey?: string
}

export async function watch(session: Session, id: string, { timeout }: Following): Promise<ExitCode> {
  return session.follow(await session.tasks.follow(id, deadlineOf(timeout)))
}

export async function resume(session: Session, { timeout }: Following): Promise<ExitCode> {
  const calls = await session.tasks.resume(deadlineOf(timeout))
  if (calls.length === 0 && session.settings.format === 'text') print('Nothing to resume.')
  return session.followAll(calls)
}

export async function cancel(
  session: Session,
  id: string,
  { wait = false }: { wait?: boolean },
): Promise<ExitCode> {
  const { settings } = session
  // Whoever wants it to stop has no answers for it.
  const call = await session.tasks.follow(id, { onQuestion: () => undefined })
  let before: Update | undefined
  try {
    // What has ended already is not asked to stop.
    before = await firstUpdate(call)
    await call.cancel()
    if (wait) return await session.follow(call)
  } finally {
    call.detach()
  }
  const outcome = call.latest?.outcome
  if (settings.format === 'text') print(cancelNote(outcome, before?.outcome !== undefined))
  else printJson({ taskId: id, cancelRequested: !outcome, ...(outcome && { status: outcome.status }) })
  return EXIT.completed
}

/** A request is not yet a cancellation. */
function cancelNote(outcome: Outcome | undefined, wasOver: boolean): string {
  if (!outcome) return 'Cancellation requested.'
  if (outcome.status === 'cancelled' && !wasOver) return 'Cancelled.'
  return `Too late: the task has ended, ${outcome.status}.`
}

export async function list({ settings, tasks }: Session): Promise<ExitCode> {
  const references = await tasks.references()
  if (settings.format !== 'text') printJson(references)
  else print(references.length === 0 ? 'No tasks.' : tableOf(references, Date.now()))
  return EXIT.completed
}

export async function callTool(session: Session, tool: string, options: Calling): Promise<ExitCode> {
  const { settings, tasks } = session
  const definition = (await tasks.tools()).find(({ name }) => name === tool)
  if (!definition) throw new UsageError(`The server has no tool ${tool}. See: ${settings.command} tools`)
  let args = readArguments(options.arg ?? [], options.args, definition.inputSchema)
  const missing = fieldsOf(definition.inputSchema).filter(({ name, required }) => required && !(name in args))
  if (missing.length > 0 && settings.interactive) {
    const given = await askFields(missing)
    if (given === LEAVE) return EXIT.interrupted
    args = { ...args, ...given }
  }
  const { idempotencyKey } = options
  const call = await tasks.call(tool, args, {
    ...deadlineOf(options.timeout),
    ...(idempotencyKey !== undefined && { idempotencyKey }),
  })
  if (!options.detach) return session.follow(call)
  session.adopt(call)
  // Some tools ask before there is a task that could be left.
  for await (const update of call) if (update.taskId !== undefined || update.outcome) break
  if (call.taskId === undefined) return session.follow(call)
  call.detach()
  if (settings.format === 'text') print(call.taskId)
  else printJson({ taskId: call.taskId, tool, status: call.latest?.status, detached: true })
  return EXIT.completed
}

export async function answer(
  session: Session,
  id: string,
  key: string | undefined,
  { with: given }: { with?: string },
): Promise<ExitCode> {
  // Found by looking, and answered by name: the session's own handler stays out of it.
  const call = await session.tasks.follow(id, { onQuestion: () => undefined })
  try {
    return await answerOne(session, call, key, given)
  } finally {
    call.detach()
  }
}

async function answerOne(
  { settings }: Session,
  call: Call,
  key: string | undefined,
  given: string | undefined,
): Promise<ExitCode> {
  const open = (await firstUpdate(call))?.questions ?? []
  const question = key === undefined ? open[0] : open.find((one) => one.key === key)
  if (!question || (key === undefined && open.length > 1 && given !== undefined)) {
    const keys = open.map((one) => one.key).join(', ')
    throw new UsageError(
      open.length === 0 ? 'The task has no open question.' : `Which question? Open: ${keys}`,
    )
  }
  if (given === undefined && !settings.interactive) {
    throw new UsageError(`Give the answer to "${oneLine(question.message)}" by --with.`)
  }
  const response =
    given === undefined
      ? await askPerson(question, new AbortController().signal)
      : readAnswer(question, given)
  if (response === LEAVE) return EXIT.interrupted
  await call.answer(question.key, response)
  if (settings.format === 'text') print('Answered.')
  else printJson({ taskId: call.taskId, answered: question.key })
  return EXIT.completed
}

/** The task as it is now. @throws TasksError when that cannot be found out. */
async function firstUpdate(call: Call): Promise<Update | undefined> {
  for await (const update of call) return update
  await call.outcome()
  return undefined
}

export async function describeTools({ settings, tasks }: Session, name?: string): Promise<ExitCode> {
  const tools = (await tasks.tools()).filter((tool) => name === undefined || tool.name === name)
  if (name !== undefined && tools.length === 0) throw new UsageError(`The server has no tool ${name}.`)
  const [tool] = tools
  if (settings.format !== 'text') printJson(name === undefined ? tools : tool)
  else if (name === undefined) print(toolTable(tools, process.stdout.columns))
  else if (tool) print(toolSheet(tool))
  return EXIT.completed
}

export function deadlineOf(timeout: number | undefined): { deadlineMs?: number } {
  return timeout === undefined ? {} : { deadlineMs: timeout * 1_000 }
}
