import * as fc from 'fast-check'
import { describe, expect, test } from 'vitest'
import { type Layout, readHeader, readRows } from '../../../src/tools/import-rows'

const encoder = new TextEncoder()
const NDJSON: Layout = { format: 'ndjson' }
const csv = (...columns: string[]): Layout => ({ format: 'csv', delimiter: ',', columns })

/** All rows of a text, read through windows that start small and grow as the importer lets them. */
function readAll(text: string | Uint8Array, layout: Layout, windowBytes = 1_000_000, maxBytes = 1_000_000) {
  const bytes = typeof text === 'string' ? encoder.encode(text) : text
  const rows: unknown[] = []
  let offset = 0
  let line = 1
  while (offset < bytes.length) {
    let length = windowBytes
    let portion
    for (;;) {
      const window = bytes.subarray(offset, offset + length)
      const last = offset + window.length >= bytes.length
      portion = readRows({ bytes: window, line, last, full: length >= maxBytes }, layout)
      if (portion) break
      if (length >= maxBytes) return [...rows, 'too long']
      length *= 2
    }
    for (const row of portion.rows) {
      rows.push('values' in row ? [row.line, row.values] : [row.line, row.problem, row.raw()])
    }
    offset += portion.used
    line += portion.lines
  }
  return rows
}

describe('CSV', () => {
  test('quotes, line breaks in fields, both line endings, blank lines', () => {
    const text = 'a,"x, y"\r\nb,"two\nlines"\n\n\r\nc,"say ""hi"""\rd,\n'
    expect(readAll(text, csv('k', 'v'))).toEqual([
      [1, { k: 'a', v: 'x, y' }],
      [2, { k: 'b', v: 'two\nlines' }],
      [6, { k: 'c', v: 'say "hi"' }],
      [7, { k: 'd' }],
    ])
  })

  test('a last row without a line break', () => {
    expect(readAll('a,1\nb,2', csv('k', 'v'))).toEqual([
      [1, { k: 'a', v: '1' }],
      [2, { k: 'b', v: '2' }],
    ])
  })

  test('a row with too many or too few fields is a problem of that row', () => {
    expect(readAll('a,1\nb\nc,2,3\nd,4', csv('k', 'v'))).toEqual([
      [1, { k: 'a', v: '1' }],
      [2, 'has 1 fields where the header has 2', 'b'],
      [3, 'has 3 fields where the header has 2', 'c,2,3'],
      [4, { k: 'd', v: '4' }],
    ])
  })

  test('a quote inside a field is a quote', () => {
    expect(readAll('nail,5" long\n', csv('k', 'v'))).toEqual([[1, { k: 'nail', v: '5" long' }]])
  })

  test.each([10, 40, 1_000])('a quote that is never closed costs its line only (windows of %i)', (size) => {
    const text = 'a,1\nb,"open\nc,3\nd,4\n'
    expect(readAll(text, csv('k', 'v'), size, 1_000)).toEqual([
      [1, { k: 'a', v: '1' }],
      [2, 'a quote is opened here and never closed', 'b,"open'],
      [3, { k: 'c', v: '3' }],
      [4, { k: 'd', v: '4' }],
    ])
  })

  test('a quote that is not closed within the largest window costs its line only', () => {
    const rest = Array.from({ length: 50 }, (_, i) => `k${i},${i}`).join('\n')
    const rows = readAll(`a,1\nb,"open\n${rest}`, csv('k', 'v'), 16, 64)
    expect(rows).toHaveLength(52)
    expect(rows[1]).toEqual([2, 'a quote is opened here and never closed', 'b,"open'])
    expect(rows[51]).toEqual([52, { k: 'k49', v: '49' }])
  })

  test('a line without an end in the largest window stops', () => {
    expect(readAll(`a,1\nb,${'x'.repeat(200)}\nc,3`, csv('k', 'v'), 16, 64)).toEqual([
      [1, { k: 'a', v: '1' }],
      'too long',
    ])
  })

  test('bytes that are not UTF-8 are a problem of their row; U+FFFD itself is not', () => {
    const text = new Uint8Array([...encoder.encode('a,\uFFFD\nb,'), 0xe4, 0x0a, ...encoder.encode('c,ä\n')])
    expect(readAll(text, csv('k', 'v'))).toEqual([
      [1, { k: 'a', v: '\uFFFD' }],
      [2, 'is not valid UTF-8', 'b,\uFFFD'],
      [3, { k: 'c', v: 'ä' }],
    ])
  })

  test('reads the same rows whatever the windows are', () => {
    const field = fc.string({
      unit: fc.constantFrom('a', 'é', '😀', ' ', '"', ',', '\n', '\r\n'),
      maxLength: 8,
    })
    const quoted = (value: string) => `"${value.replaceAll('"', '""')}"`
    const row = fc.tuple(field, field)
    fc.assert(
      fc.property(
        fc.array(row, { maxLength: 12 }),
        fc.constantFrom('\n', '\r\n'),
        fc.integer({ min: 1, max: 60 }),
        (rows, ending, size) => {
          const text = rows.map((fields) => fields.map(quoted).join(',') + ending).join('')
          const expected = rows.map(([k, v]) => ({ ...(k && { k }), ...(v && { v }) }))
          const read = readAll(text, csv('k', 'v'), size)
          expect(read.map((entry) => (Array.isArray(entry) ? entry[1] : entry))).toEqual(expected)
          expect(read).toEqual(readAll(text, csv('k', 'v')))
        },
      ),
      { numRuns: 300 },
    )
  })
})

describe('the header of CSV', () => {
  test.each([
    ['a,b\n1,2', ',', ['a', 'b']],
    ['a;b;"c,d"\n', ';', ['a', 'b', 'c,d']],
    ['a\tb', '\t', ['a', 'b']],
    ['a|b|c\r\n', '|', ['a', 'b', 'c']],
    ['only\n1', ',', ['only']],
  ])('%j is separated by %j', (text, delimiter, columns) => {
    expect(readHeader(encoder.encode(text))).toMatchObject({ delimiter, columns })
  })

  test('says where the rows begin', () => {
    expect(readHeader(encoder.encode('\n"a\nb",c\nrow'))).toEqual({
      columns: ['a\nb', 'c'],
      delimiter: ',',
      used: 9,
      lines: 3,
    })
  })

  test('is missing in nothing', () => {
    expect(readHeader(encoder.encode(''))).toBeUndefined()
    expect(readHeader(encoder.encode('\n\n'))).toBeUndefined()
  })
})

describe('NDJSON', () => {
  test('objects, blank lines, and what is no object', () => {
    const text = '{"a":1}\n\n[1]\r\n{"b":\n"x"\n{"c":{"d":[2]}}'
    const rows = readAll(text, NDJSON)
    expect(rows).toEqual([
      [1, { a: 1 }],
      [3, 'is not a JSON object', '[1]'],
      [4, expect.stringContaining('is not JSON'), '{"b":'],
      [5, 'is not a JSON object', '"x"'],
      [6, { c: { d: [2] } }],
    ])
  })

  test('reads the same rows whatever the windows are', () => {
    fc.assert(
      fc.property(
        fc.array(fc.dictionary(fc.string({ maxLength: 4 }), fc.jsonValue({ maxDepth: 1 }))),
        fc.integer({ min: 1, max: 60 }),
        (objects, size) => {
          const text = objects.map((object) => `${JSON.stringify(object)}\n`).join('')
          const plain = objects.map((object) => JSON.parse(JSON.stringify(object)))
          expect(readAll(text, NDJSON, size)).toEqual(plain.map((object, i) => [i + 1, object]))
        },
      ),
      { numRuns: 200 },
    )
  })

  test('a line without an end in the largest window stops', () => {
    expect(readAll(`{"a":1}\n{"b":"${'x'.repeat(200)}"}\n`, NDJSON, 16, 64)).toEqual([
      [1, { a: 1 }],
      'too long',
    ])
  })
})
