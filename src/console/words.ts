/** States, times and names as the console says them. Pure. */
import type { Status, ToolDefinition } from '../client/index.ts'

/** What a card can say of its task: the states of the protocol, and what only a client knows. */
export type CardState = Status | 'cancelling' | 'starting' | 'lost' | 'unknown'

export const STATE_WORDS: Readonly<Record<CardState, string>> = {
  starting: 'Starting…',
  working: 'Working',
  input_required: 'Waiting for you',
  cancelling: 'Cancellation requested…',
  completed: 'Completed',
  failed: 'Failed',
  cancelled: 'Cancelled',
  lost: 'Out of touch',
  unknown: 'Not known to the server',
}

const NUMBER = new Intl.NumberFormat('en-US')

/** `1,234` */
export function grouped(value: number): string {
  return NUMBER.format(value)
}

/** `12 s`, `4 min 12 s`, `1 h 05 min`, `3 d 4 h`. */
export function duration(ms: number): string {
  const seconds = Math.max(0, Math.floor(ms / 1_000))
  if (seconds < 60) return `${seconds} s`
  const minutes = Math.floor(seconds / 60)
  if (minutes < 60) return `${minutes} min ${String(seconds % 60).padStart(2, '0')} s`
  const hours = Math.floor(minutes / 60)
  if (hours < 48) return `${hours} h ${String(minutes % 60).padStart(2, '0')} min`
  return `${Math.floor(hours / 24)} d ${hours % 24} h`
}

/** The time of day; with the date when that is another day. */
export function clockTime(ms: number, now = Date.now()): string {
  const date = new Date(ms)
  const time = date.toLocaleTimeString(undefined, { hour: '2-digit', minute: '2-digit', second: '2-digit' })
  if (date.toDateString() === new Date(now).toDateString()) return time
  return `${date.toLocaleDateString(undefined, { day: 'numeric', month: 'short' })}, ${time}`
}

/** `dueDate` and `due_date` as `Due date`. */
export function readable(name: string): string {
  const words = name
    .replaceAll(/[_-]+/g, ' ')
    .replaceAll(/([a-z])([A-Z])/g, (_, a: string, b: string) => `${a} ${b.toLowerCase()}`)
    .trim()
  return words === '' ? name : words.charAt(0).toUpperCase() + words.slice(1)
}

export function toolTitle(tool: Pick<ToolDefinition, 'name' | 'title' | 'annotations'>): string {
  const { title = tool.annotations?.['title'] } = tool
  return typeof title === 'string' && title !== '' ? title : readable(tool.name)
}

/** The first sentence of a description. */
export function firstSentence(text: string): string {
  return /^[\s\S]*?[.!?](?=\s|$)/.exec(text.trim())?.[0] ?? text.trim()
}
