/** Text of a server as people read it: code in backticks, and addresses that may be followed. */
import { type Child, h } from './dom.ts'

const PARTS = /`([^`\n]+)`|(https?:\/\/[^\s<>"'`]+)/g
/** Belongs to the sentence rather than to the address. */
const TRAILING = /[.,;:!?)\]}]+$/

export function prose(text: string): Child[] {
  const parts: Child[] = []
  let from = 0
  for (const match of text.matchAll(PARTS)) {
    const [whole, code, address] = match
    parts.push(text.slice(from, match.index))
    from = match.index + whole.length
    if (code !== undefined) parts.push(h('code', {}, code))
    if (address !== undefined) {
      const tail = TRAILING.exec(address)?.[0] ?? ''
      const shown = address.slice(0, address.length - tail.length)
      parts.push(link(shown, shown), tail)
    }
  }
  return [...parts, text.slice(from)]
}

/** A link that tells the other side nothing, or plain text when the address is none of the web. */
export function link(address: string, label: string): Node {
  const url = webAddress(address)
  if (!url) return document.createTextNode(label)
  return h('a', { href: url.href, target: '_blank', rel: 'noopener noreferrer external' }, label)
}

export function webAddress(text: string): URL | undefined {
  const url = URL.canParse(text) ? new URL(text) : undefined
  return url?.protocol === 'https:' || url?.protocol === 'http:' ? url : undefined
}
