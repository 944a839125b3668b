import * as fc from 'fast-check'
import { expect, test } from 'vitest'
import { readEvents, type SseItem } from '../../../src/client/sse.ts'

const encoder = new TextEncoder()

function bodyOf(bytes: Uint8Array, cuts: readonly number[] = []): ReadableStream<Uint8Array> {
  const at = [0, ...cuts.map((cut) => cut % (bytes.length + 1)).toSorted((a, b) => a - b), bytes.length]
  return new ReadableStream({
    start(controller) {
      at.slice(1).forEach((end, index) => controller.enqueue(bytes.slice(at[index], end)))
      controller.close()
    },
  })
}

async function read(text: string, cuts?: readonly number[], maxChars = 1_000): Promise<SseItem[]> {
  const items: SseItem[] = []
  for await (const item of readEvents(bodyOf(encoder.encode(text), cuts), maxChars)) items.push(item)
  return items
}

test('an event is its data lines; id, event and retry lines are passed over', async () => {
  expect(await read('id: 1\nevent: message\nretry: 3\ndata: {"a":1}\n\ndata: two\ndata:  lines\n\n')).toEqual(
    [
      { kind: 'event', data: '{"a":1}' },
      { kind: 'event', data: 'two\n lines' },
    ],
  )
})

test('comments are told, and an event that was not finished is not', async () => {
  expect(await read(': keepalive\n\ndata: cut off\n')).toEqual([{ kind: 'comment' }])
})

test('the ends of lines and the borders of chunks make no difference', async () => {
  const lineEnd = fc.constantFrom('\n', '\r\n', '\r')
  const data = fc.string({ unit: 'grapheme' }).filter((text) => !/[\r\n]/.test(text))
  await fc.assert(
    fc.asyncProperty(fc.array(data), lineEnd, fc.array(fc.nat(500)), async (events, end, cuts) => {
      const text = events.map((event) => `data: ${event}${end}${end}`).join('')
      // A lone CR at the very end may be half of a line end, and is not waited for.
      const items = await read(end === '\r' ? `${text}:` : text, cuts)
      expect(items.filter(({ kind }) => kind === 'event')).toEqual(
        events.map((event) => ({ kind: 'event', data: event })),
      )
    }),
  )
})

test('a line that never ends is an error and not a full memory', async () => {
  await expect(read(`data: ${'x'.repeat(5_000)}`, [100, 900, 2_000], 1_000)).rejects.toMatchObject({
    code: 'invalid_response',
  })
})
