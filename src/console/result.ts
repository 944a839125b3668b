/** What a tool answered, for people: texts, pictures, structured data. Nothing of it is trusted. */
import type { ToolResult } from '../client/index.ts'
import { show } from '../form/fields.ts'
import { isObject, type Json, type JsonObject } from '../json.ts'
import { type Child, h } from './dom.ts'
import { jsonView } from './json-view.ts'
import { link, prose } from './prose.ts'

/** Pictures a browser shows without running anything in them. */
const PICTURES: ReadonlySet<string> = new Set([
  'image/png',
  'image/jpeg',
  'image/gif',
  'image/webp',
  'image/avif',
])
const BASE64 = /^[A-Za-z0-9+/]+={0,2}$/
/** A page can show more, but nobody reads it, and the browser slows down. */
const MOST_CHARS = 100_000

export function resultView({ content, structuredContent, isError }: ToolResult): HTMLElement {
  const shown = content.filter((block) => !repeats(block, structuredContent))
  return h(
    'div',
    { class: isError === true ? 'result result-error' : 'result' },
    isError === true && h('p', { class: 'result-note' }, 'The tool says that it did not work:'),
    shown.map(blockView),
    shown.length === 0 &&
      structuredContent === undefined &&
      h('p', { class: 'quiet' }, 'The answer is empty.'),
    structuredContent !== undefined && jsonView('Structured content', structuredContent),
  )
}

/** Tools that have structured content often send it as text too, for clients that know no better. */
function repeats(block: JsonObject, structured: Json | undefined): boolean {
  if (structured === undefined || typeof block['text'] !== 'string') return false
  try {
    return JSON.stringify(JSON.parse(block['text'])) === JSON.stringify(structured)
  } catch {
    return false
  }
}

function blockView(block: JsonObject): Child {
  switch (block['type']) {
    case 'text':
      return textView(typeof block['text'] === 'string' ? block['text'] : '')
    case 'image':
      return pictureView(block) ?? jsonView('A picture that cannot be shown', block)
    case 'resource_link':
      return linkView(block)
    case 'resource': {
      const resource = isObject(block['resource']) ? block['resource'] : {}
      return typeof resource['text'] === 'string' ? textView(resource['text']) : jsonView('Resource', block)
    }
    default:
      return jsonView(`Content of the type ${show(block['type'])}`, block)
  }
}

function textView(text: string): Child {
  const rest = text.length - MOST_CHARS
  return [
    h('p', { class: 'text' }, prose(text.slice(0, MOST_CHARS))),
    rest > 0 && h('p', { class: 'quiet' }, `… and ${rest.toLocaleString('en-US')} characters more.`),
  ]
}

/** Only from its own data: a picture at an address would tell somebody that it was looked at. */
function pictureView(block: JsonObject): HTMLElement | undefined {
  const { mimeType, data } = block
  if (typeof mimeType !== 'string' || !PICTURES.has(mimeType)) return undefined
  if (typeof data !== 'string' || !BASE64.test(data)) return undefined
  const annotations = isObject(block['annotations']) ? block['annotations'] : {}
  const title = annotations['title']
  const alt = typeof title === 'string' ? title : 'Picture from the tool'
  return h('img', { src: `data:${mimeType};base64,${data}`, alt })
}

function linkView(block: JsonObject): Child {
  const { uri, name, title, description } = block
  const address = typeof uri === 'string' ? uri : ''
  const label = typeof title === 'string' ? title : typeof name === 'string' ? name : address
  return h(
    'p',
    { class: 'text' },
    link(address, label),
    label !== address && h('span', { class: 'quiet' }, ` ${address}`),
    typeof description === 'string' && h('span', { class: 'quiet' }, ` ${description}`),
  )
}
