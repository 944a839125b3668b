/**
 * From bytes to rows: CSV (RFC 4180 and what people write instead) and NDJSON, in portions, so that
 * a file of any size is read with little memory. Pure. A row that cannot be read is an outcome like
 * another, with its line and its text.
 */
import { parse } from 'csv-parse/browser/esm/sync'
import { isObject, type JsonObject } from '../json'

export type Layout =
  | { readonly format: 'ndjson' }
  | { readonly format: 'csv'; readonly delimiter: string; readonly columns: readonly string[] }

export type Row =
  | { readonly line: number; readonly values: JsonObject; readonly raw: () => string }
  | { readonly line: number; readonly problem: string; readonly raw: () => string }

export interface Portion {
  readonly rows: readonly Row[]
  /** Bytes that these rows take up. */
  readonly used: number
  /** Line breaks in them. */
  readonly lines: number
}

export interface Window {
  readonly bytes: Uint8Array
  /** Number of its first line, from 1. */
  readonly line: number
  /** Nothing comes after it. */
  readonly last: boolean
  /** It cannot be made larger: what has no end in it never ends. */
  readonly full: boolean
}

/** Of one portion; the rows of one go into the database as one JSON text. */
const MAX_ROWS = 2_000

const LF = 0x0a
const CR = 0x0d

/** The whole rows of a window, or `undefined` when there is none and a larger one is needed. */
export function readRows(window: Window, layout: Layout): Portion | undefined {
  const { bytes, last, full } = window
  const records = layout.format === 'csv' ? csvRecords(window, layout) : ndjsonRecords(window)
  const rows: Row[] = []
  let { line } = window
  let used = 0
  const take = (end: number, read: Reader) => {
    const start = skipBreaks(bytes, used, end)
    line += breaks(bytes, used, start)
    const own = bytes.subarray(start, end)
    const raw = () => decoder.decode(own).replace(/[\r\n]+$/, '')
    if (start < end) rows.push({ line, raw, ...read(own) })
    line += breaks(bytes, start, end)
    used = end
  }
  for (const record of records.slice(0, MAX_ROWS)) take(record.end, record.read)

  const unread = records.length <= MAX_ROWS && used < bytes.length
  if (unread && (last || (full && rows.length === 0))) {
    // Blank lines at the end, or a quote that would swallow the rest of the file: give up its first line only.
    const end = endOfLine(bytes, skipBreaks(bytes, used, bytes.length))
    if (end !== undefined || last) take(end ?? bytes.length, () => NEVER_CLOSED)
  }
  return used === 0 && !last ? undefined : { rows, used, lines: line - window.line }
}

type Read = { readonly values: JsonObject } | { readonly problem: string }

type Reader = (bytes: Uint8Array) => Read

/** A record whose end is certain. */
interface Ended {
  /** Offset just past it. */
  readonly end: number
  readonly read: Reader
}

const NEVER_CLOSED = { problem: 'a quote is opened here and never closed' } as const

// ---------------------------------------------------------------- CSV

function csvRecords({ bytes, last }: Window, layout: Extract<Layout, { format: 'csv' }>): Ended[] {
  const { delimiter, columns } = layout
  const read = (fields: readonly string[], raw: Uint8Array): Read => {
    if (fields.length !== columns.length) {
      return { problem: `has ${fields.length} fields where the header has ${columns.length}` }
    }
    if (fields.some((field) => field.includes('\uFFFD')) && !isUtf8(raw)) return NOT_UTF8
    // An empty field is no value.
    const pairs = columns.flatMap((column, i) => (fields[i] ? [[column, fields[i]]] : []))
    return { values: Object.fromEntries(pairs) }
  }
  return (
    parseCsv(bytes, delimiter)
      // A record that ends with the window may go on after it.
      .filter(({ end }) => last || end < bytes.length)
      .map(({ fields, end }) => ({ end, read: (raw) => read(fields, raw) }))
  )
}

interface CsvRecord {
  readonly fields: readonly string[]
  /** Offset just past it, its line break included. */
  readonly end: number
}

/** The records up to the end, or up to a quote that nothing closes. */
function parseCsv(bytes: Uint8Array, delimiter: string, limit?: number): CsvRecord[] {
  const records: CsvRecord[] = []
  try {
    parse(bytes, {
      delimiter,
      record_delimiter: ['\r\n', '\n', '\r'],
      relax_column_count: true,
      relax_quotes: true,
      skip_empty_lines: true,
      ...(limit !== undefined && { to: limit }),
      // Kept here, with its end, and not in the parser's own list.
      on_record: (fields, context) => {
        records.push({ fields, end: context.bytes })
        return null
      },
    })
  } catch (error) {
    if (!(isObject(error) && error['code'] === 'CSV_QUOTE_NOT_CLOSED')) throw error
  }
  return records
}

const DELIMITERS = [',', ';', '\t', '|'] as const
export type Delimiter = (typeof DELIMITERS)[number]

/** What a CSV file says about itself in its first line; `used` counts from the start of `bytes`. */
export interface Header {
  readonly columns: readonly string[]
  readonly delimiter: string
  readonly used: number
  readonly lines: number
}

/** `undefined` when no header is found. Without a delimiter, the most frequent candidate is taken. */
export function readHeader(bytes: Uint8Array, delimiter?: string): Header | undefined {
  const start = skipBreaks(bytes, 0, bytes.length)
  const firstLine = decoder.decode(bytes.subarray(start, endOfLine(bytes, start)))
  const outside = firstLine.replace(/"[^"]*"/g, '')
  const count = (candidate: string) => outside.split(candidate).length
  const chosen = delimiter ?? DELIMITERS.reduce((best, next) => (count(next) > count(best) ? next : best))
  const record = parseCsv(bytes, chosen, 1)[0]
  return (
    record && {
      columns: record.fields.map((field) => field.trim()),
      delimiter: chosen,
      used: record.end,
      lines: breaks(bytes, 0, record.end),
    }
  )
}

// ---------------------------------------------------------------- NDJSON

function ndjsonRecords({ bytes, last }: Window): Ended[] {
  const ended: Ended[] = []
  for (let start = 0; start < bytes.length;) {
    const found = bytes.indexOf(LF, start)
    if (found === -1 && !last) break
    start = found === -1 ? bytes.length : found + 1
    ended.push({ end: start, read: readJson })
  }
  return ended
}

function readJson(bytes: Uint8Array): Read {
  if (!isUtf8(bytes)) return NOT_UTF8
  try {
    const value: unknown = JSON.parse(decoder.decode(bytes))
    // From JSON.parse, so JSON.
    return isObject(value) ? { values: value as JsonObject } : { problem: 'is not a JSON object' }
  } catch (error) {
    return { problem: `is not JSON: ${error instanceof Error ? error.message : String(error)}` }
  }
}

// ---------------------------------------------------------------- bytes

const decoder = new TextDecoder()
const strict = new TextDecoder('utf-8', { fatal: true, ignoreBOM: true })
const NOT_UTF8 = { problem: 'is not valid UTF-8' } as const

function isUtf8(bytes: Uint8Array): boolean {
  try {
    strict.decode(bytes)
    return true
  } catch {
    return false
  }
}

function isBreak(byte: number | undefined): boolean {
  return byte === LF || byte === CR
}

function skipBreaks(bytes: Uint8Array, from: number, to: number): number {
  let at = from
  while (at < to && isBreak(bytes[at])) at++
  return at
}

/** Just past the next line break. */
function endOfLine(bytes: Uint8Array, from: number): number | undefined {
  for (let at = from; at < bytes.length; at++) {
    if (bytes[at] === LF) return at + 1
    if (bytes[at] === CR) return bytes[at + 1] === LF ? at + 2 : at + 1
  }
  return undefined
}

/** Line breaks within a stretch: `\n`, `\r\n` or a lone `\r`. */
function breaks(bytes: Uint8Array, from: number, to: number): number {
  let count = 0
  for (let at = from; at < to; at++) {
    if (bytes[at] === LF || (bytes[at] === CR && bytes[at + 1] !== LF)) count++
  }
  return count
}
