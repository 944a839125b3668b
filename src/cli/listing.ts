/** Tables for people. Pure. */
import type { TaskReference, ToolDefinition } from '../client/index.ts'
import { choicesOf, fieldsOf, show } from '../form/fields.ts'
import { oneLine, plain } from './plain.ts'

export function tableOf(references: readonly TaskReference[], now: number): string {
  const rows = references.map(({ taskId, tool, status, cancelRequested, createdAt, ttlMs }) => [
    taskId,
    tool ?? '?',
    cancelRequested && (status === 'working' || status === 'input_required')
      ? `${status}, cancellation requested`
      : status,
    `begun ${ago(now - createdAt)} ago`,
    ttlMs === null ? '' : createdAt + ttlMs < now ? 'expired' : `expires in ${ago(createdAt + ttlMs - now)}`,
  ])
  const widths = [0, 1, 2, 3, 4].map((column) => Math.max(...rows.map((row) => row[column]?.length ?? 0)))
  return rows
    .map((row) =>
      row
        .map((cell, column) => oneLine(cell).padEnd(widths[column] ?? 0))
        .join('  ')
        .trimEnd(),
    )
    .join('\n')
}

/** A line per tool: its name, and the first line of what it says about itself. */
export function toolTable(tools: readonly ToolDefinition[], columns: number | undefined): string {
  const width = Math.max(...tools.map(({ name }) => name.length))
  return tools
    .map(({ name, description, title }) => {
      const [line = ''] = (description ?? title ?? '').split('\n')
      return oneLine(`${name.padEnd(width)}  ${line}`, columns)
    })
    .join('\n')
}

/** Everything about one tool. */
export function toolSheet({ name, description, title, inputSchema }: ToolDefinition): string {
  const fields = fieldsOf(inputSchema).map(({ name: field, hint = '', required, schema }) => {
    const type =
      choicesOf(schema)
        ?.map(({ value }) => show(value))
        .join(' | ') ?? show(schema['type'] ?? 'any')
    return `  ${field}${required ? '' : '?'}: ${type}  ${hint}`.trimEnd()
  })
  return plain([`${name}${title === undefined ? '' : `: ${title}`}`, description ?? '', ...fields].join('\n'))
}

const UNITS = [
  ['day', 86_400_000],
  ['hour', 3_600_000],
  ['minute', 60_000],
  ['second', 1_000],
] as const

/** `2 hours`: the largest unit that is there at least once. */
export function ago(ms: number): string {
  const [name, size] = UNITS.find(([, unit]) => ms >= unit) ?? ['second', 1_000]
  const count = Math.max(0, Math.floor(ms / size))
  return `${count} ${name}${count === 1 ? '' : 's'}`
}
