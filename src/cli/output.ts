/** What goes to stdout: the result for people, or JSON for programs. */
import { isObject, type JsonObject } from '../json.ts'
import {
  type Call,
  MissingCapabilityError,
  type Outcome,
  TasksError,
  type ToolResult,
  type Update,
} from '../client/index.ts'
import { show } from '../form/fields.ts'
import { plain } from './plain.ts'
import type { Settings } from './settings.ts'

export function print(line: string): void {
  process.stdout.write(`${line}\n`)
}

export function printJson(value: unknown): void {
  print(JSON.stringify(value))
}

export function printUpdate(settings: Settings, update: Update): void {
  if (settings.format !== 'events' || update.outcome) return
  const { taskId, status, message, progress, cancelRequested, via } = update
  const questions = update.questions.map(({ key, message: asked, schema }) => ({
    key,
    message: asked,
    schema,
  }))
  printJson({ event: 'update', taskId, status, message, progress, questions, cancelRequested, via })
}

export function printOutcome(settings: Settings, call: Call, outcome: Outcome): void {
  if (settings.format !== 'text') {
    const { task: _, ...rest } = outcome
    return printJson({
      ...eventOf(settings.format, 'outcome'),
      taskId: call.taskId,
      tool: call.tool,
      ...rest,
    })
  }
  if (outcome.status !== 'completed') return
  const text = textOfResult(outcome.result)
  print(process.stdout.isTTY ? plain(text) : text)
}

/** The task goes on without us. */
export function printDetached(settings: Settings, call: Call): void {
  if (settings.format === 'text') return
  const { taskId, tool, latest } = call
  const status = latest?.status ?? 'working'
  printJson({ ...eventOf(settings.format, 'detached'), taskId, tool, status, detached: true })
}

export function printError(format: Settings['format'], error: unknown, taskId?: string): void {
  const message = error instanceof Error ? error.message : String(error)
  if (format === 'text') {
    process.stderr.write(`${plain(message)}\n`)
    if (error instanceof MissingCapabilityError) process.stderr.write(`${HOW_TO_ANSWER}\n`)
    return
  }
  const code = error instanceof TasksError ? error.code : 'error'
  printJson({
    ...eventOf(format, 'error'),
    ...(taskId !== undefined && { taskId }),
    error: { code, message },
  })
}

const HOW_TO_ANSWER =
  'Questions need somebody to answer them: run it on a terminal, or give --answer key=value or --answers-elsewhere.'

function eventOf(format: Settings['format'], event: string): { event?: string } {
  return format === 'events' ? { event } : {}
}

/** The text of a result; what is not text is named. */
export function textOfResult({ content, structuredContent }: ToolResult): string {
  const parts = content.map(partOf)
  if (parts.length === 0 && structuredContent !== undefined) return JSON.stringify(structuredContent, null, 2)
  return parts.join('\n')
}

function partOf({ type, text, data, mimeType, uri, resource }: JsonObject): string {
  if (type === 'text' && typeof text === 'string') return text
  if (typeof data === 'string') {
    return `[${show(type)}, ${show(mimeType)}, ${Math.floor((data.length * 3) / 4)} bytes]`
  }
  if (type === 'resource_link') return `[${show(uri)}]`
  const inside = isObject(resource) ? resource['text'] : undefined
  return typeof inside === 'string' ? inside : `[${show(type)}]`
}
