import * as fc from 'fast-check'
import { expect, test } from 'vitest'
import {
  asRequest,
  errorResponse,
  httpStatus,
  MAX_DEPTH,
  parseMessage,
  readableId,
  resultText,
} from '../../../src/protocol/jsonrpc'

test('every JSON object is read as it was written', () => {
  fc.assert(
    fc.property(
      fc.dictionary(fc.string(), fc.jsonValue({ maxDepth: 8 })),
      fc.constantFrom(0, 2),
      (body, indent) => {
        const text = JSON.stringify(body, undefined, indent)
        expect(parseMessage(text)).toEqual({ ok: true, value: JSON.parse(text) })
      },
    ),
  )
})

test('any text at all is read or refused, never thrown at', () => {
  fc.assert(
    fc.property(fc.string({ unit: 'binary', maxLength: 300 }), (text) => {
      const parsed = parseMessage(text)
      if (!parsed.ok) expect([-32700, -32600]).toContain(parsed.error.code)
    }),
  )
})

test.each([
  ['', -32700],
  ['{', -32700],
  ['{"a":1}}', -32700],
  ["{'a':1}", -32700],
  ['[]', -32600],
  ['[{"jsonrpc":"2.0"}]', -32600],
  ['"text"', -32600],
  ['null', -32600],
  ['true', -32600],
])('%j is refused with %d', (text, code) => {
  expect(parseMessage(text)).toMatchObject({ ok: false, error: { code } })
})

const nested = (depth: number, open = '[', close = ']') =>
  `{"a":${open.repeat(depth - 1)}${close.repeat(depth - 1)}}`

test('nesting is allowed up to the limit, whatever it is made of', () => {
  expect(parseMessage(nested(MAX_DEPTH)).ok).toBe(true)
  expect(parseMessage(nested(MAX_DEPTH + 1))).toMatchObject({ ok: false, error: { code: -32600 } })
  const objects = `${'{"a":'.repeat(MAX_DEPTH + 1)}1${'}'.repeat(MAX_DEPTH + 1)}`
  expect(parseMessage(objects)).toMatchObject({ ok: false, error: { code: -32600 } })
})

test('nesting is counted before anything recurses', () => {
  expect(parseMessage('['.repeat(4_000_000))).toMatchObject({ ok: false, error: { code: -32600 } })
})

test('brackets in strings, and strings that end in backslashes, are not mistaken', () => {
  fc.assert(
    fc.property(
      fc.array(fc.constantFrom('[', '{', '"', '\\', ']', '}', 'x'), { maxLength: 200 }),
      (parts) => {
        const value = parts.join('')
        const text = JSON.stringify({ [value]: value })
        expect(parseMessage(text)).toEqual({ ok: true, value: { [value]: value } })
      },
    ),
  )
})

const ids = fc.oneof(fc.string(), fc.integer(), fc.double({ noNaN: true, noDefaultInfinity: true }))

test('a request has a version, an id and a method', () => {
  fc.assert(
    fc.property(ids, fc.string(), (id, method) => {
      const body = { jsonrpc: '2.0', id, method }
      expect(asRequest(body)).toEqual({ ok: true, value: body })
      expect(readableId(body)).toBe(id)
    }),
  )
  const good = { jsonrpc: '2.0', id: 1, method: 'm', params: {} }
  expect(asRequest(good)).toEqual({ ok: true, value: good })
  for (const [bad, code] of [
    [{ ...good, jsonrpc: '1.0' }, -32600],
    [{ ...good, jsonrpc: 2 }, -32600],
    [{ ...good, id: null }, -32600],
    [{ ...good, id: {} }, -32600],
    [{ ...good, id: Number.NaN }, -32600],
    [{ ...good, method: 7 }, -32600],
    [{ ...good, params: [] }, -32602],
    [{ ...good, params: null }, -32602],
    [{ ...good, params: 'x' }, -32602],
  ] as const) {
    expect(asRequest(bad), JSON.stringify(bad)).toMatchObject({ ok: false, error: { code } })
  }
})

test('a response carries the id as it came, and leaves it out when it could not be read', async () => {
  await fc.assert(
    fc.asyncProperty(ids, async (id) => {
      const read = await resultText(id, '{"a":1}').json()
      expect(read).toEqual({ jsonrpc: '2.0', id: JSON.parse(JSON.stringify(id)), result: { a: 1 } })
    }),
  )
  const without = await errorResponse(undefined, { code: -32700, message: 'no' }).json()
  expect(without).toEqual({ jsonrpc: '2.0', error: { code: -32700, message: 'no' } })
})

test('the status follows the code', () => {
  expect([-32700, -32600, -32020, -32021, -32022].map(httpStatus)).toEqual([400, 400, 400, 400, 400])
  expect(httpStatus(-32601)).toBe(404)
  expect([-32602, -32603, -32042, 7].map(httpStatus)).toEqual([200, 200, 200, 200])
})
