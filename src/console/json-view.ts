/** JSON, indented and coloured, that can be copied. */
import { isObject, type Json } from '../json.ts'
import { type Child, h, setText } from './dom.ts'

const MOST_CHARS = 100_000
const COPIED_MS = 2_000

export function jsonView(title: string, value: Json): HTMLElement {
  const text = JSON.stringify(value, null, 2)
  const isLong = text.length > MOST_CHARS
  return h(
    'figure',
    { class: 'json' },
    h('figcaption', {}, title, copyButton(text, title)),
    h(
      'pre',
      { tabindex: 0, role: 'region', 'aria-label': title },
      h('code', {}, isLong ? `${text.slice(0, MOST_CHARS)}\n…` : coloured(value, '')),
    ),
  )
}

function coloured(value: Json, indent: string): Child[] {
  const inner = `${indent}  `
  if (Array.isArray(value)) {
    if (value.length === 0) return ['[]']
    const items = value.flatMap((item, index) => [separator(index), `\n${inner}`, ...coloured(item, inner)])
    return ['[', ...items, `\n${indent}]`]
  }
  if (isObject(value)) {
    const entries = Object.entries(value as Record<string, Json>)
    if (entries.length === 0) return ['{}']
    const members = entries.flatMap(([key, member], index) => [
      separator(index),
      `\n${inner}`,
      h('span', { class: 'json-key' }, JSON.stringify(key)),
      ': ',
      ...coloured(member, inner),
    ])
    return ['{', ...members, `\n${indent}}`]
  }
  return [h('span', { class: typeof value === 'string' ? 'json-text' : 'json-value' }, JSON.stringify(value))]
}

function separator(index: number): string {
  return index === 0 ? '' : ','
}

/** Browsers give the clipboard to secure pages only. */
export function copyButton(text: string, what: string): HTMLElement | undefined {
  if (!isSecureContext) return undefined
  const label = h('span', {}, 'Copy')
  const copy = async () => {
    try {
      await navigator.clipboard.writeText(text)
      setText(label, 'Copied')
    } catch {
      setText(label, 'Not allowed')
    }
    setTimeout(() => setText(label, 'Copy'), COPIED_MS)
  }
  return h(
    'button',
    { type: 'button', class: 'link', 'aria-label': `Copy: ${what}`, onclick: () => void copy() },
    label,
  )
}
