/**
 * Server-sent events from a response body, as the WHATWG defines them. Comments are told too:
 * they are how a server says that it is still there. Knows nothing of what is inside.
 */
import { InvalidResponseError } from './errors.ts'

export type SseItem = { readonly kind: 'event'; readonly data: string } | { readonly kind: 'comment' }

/** @param maxChars of one event; a longer one is an error. */
export async function* readEvents(
  body: ReadableStream<Uint8Array>,
  maxChars: number,
): AsyncGenerator<SseItem, void, undefined> {
  const decoder = new TextDecoder()
  const reader = body.getReader()
  let pending = ''
  let data: string[] = []
  let size = 0
  try {
    for (;;) {
      const { done, value } = await reader.read()
      if (done) return
      pending += decoder.decode(value, { stream: true })
      // A lone CR ends a line too, but at the end of a chunk its LF may still be on the way.
      const held = pending.endsWith('\r') ? 1 : 0
      const lines = pending.slice(0, pending.length - held).split(/\r\n|\n|\r/)
      pending = (lines.pop() ?? '') + pending.slice(pending.length - held)
      for (const line of lines) {
        if (line === '') {
          if (data.length > 0) yield { kind: 'event', data: data.join('\n') }
          data = []
          size = 0
        } else if (line.startsWith(':')) {
          yield { kind: 'comment' }
        } else if (line.startsWith('data:') || line === 'data') {
          const text = line.slice(5)
          data.push(text.startsWith(' ') ? text.slice(1) : text)
          size += text.length
        }
      }
      if (size + pending.length > maxChars) {
        throw new InvalidResponseError(`The server sent an event of more than ${maxChars} characters.`)
      }
    }
  } finally {
    // Not awaited: a peer that is gone never confirms.
    reader.cancel().catch(() => {})
  }
}
