/**
 * `import_batch`: takes CSV or NDJSON into a D1 table, from the call itself or from an R2 object of any
 * size, a chunk at a time. Every chunk is one transaction: its rows, its rejected rows and its mark.
 */
import { z } from 'zod'
import { applyOnce, defineTool, NonRetryableError, StepError, toolError } from '../index'
import { describe } from '../task/questions'
import { type Layout, type Portion, readHeader, readRows } from './import-rows'
import { findObject, objectSource, type ObjectVersion, type Source, textSource } from './import-source'
import {
  check,
  CREATE_REJECTS,
  INSERT_REJECTS,
  requiredColumns,
  type Target,
  type TargetName,
  targets,
} from './import-targets'
import { counted } from './wording'

/** Read at once; a chunk is the whole rows in it. */
const WINDOW_BYTES = 64 * 1024
/** A row that is longer than this is not one. */
const MAX_ROW_BYTES = 512 * 1024
const MAX_TEXT_CHARS = 1_000_000
/** Rejected rows in the result; all of them are in the database. */
const FIRST_REJECTS = 10

const tableList = Object.entries(targets)
  .map(([name, { description }]) => `${name}: ${description}`)
  .join('\n')

export const importBatch = defineTool({
  name: 'import_batch',
  title: 'Import rows into a table',
  description:
    'Imports CSV (with a header line) or NDJSON into a database table. Give the data as `text`, or the ' +
    '`key` of a file in the bucket for anything large. Rows that do not fit are not lost: the result ' +
    'lists the first ones with line and reason, and a table keeps all of them. Rows imported before a ' +
    `cancellation stay.\n\n${tableList}`,
  annotations: { readOnlyHint: false, destructiveHint: false, idempotentHint: false, openWorldHint: false },
  input: z
    .object({
      // The keys of the catalogue; `z.enum` reads them as they are.
      table: z.enum(Object.keys(targets) as [TargetName, ...TargetName[]]).describe('Where the rows go.'),
      format: z.enum(['csv', 'ndjson']),
      text: z.string().min(1).max(MAX_TEXT_CHARS).optional().describe('The data itself, for small imports.'),
      key: z.string().min(1).max(1_024).optional().describe('Key of a file in the bucket, UTF-8.'),
      delimiter: z
        .enum([',', ';', '\t', '|'])
        .optional()
        .describe('Between the fields of CSV. Default: found out from the header line.'),
    })
    .refine(({ text, key }) => (text === undefined) !== (key === undefined), {
      message: 'give either "text" or "key"',
    }),
  output: z.object({
    importId: z.string().describe('Marks the rows of this import in the database (`import_id`).'),
    table: z.string(),
    imported: z.int(),
    rejected: z.int(),
    firstRejects: z.array(z.object({ line: z.int(), reason: z.string() })),
    ignoredColumns: z.array(z.string()),
  }),
  task: {
    ttl: '24 hours',
    retention: '6 hours',
    poll: { min: '1 second', max: '15 seconds' },
    retry: { limit: 5, delay: '1 second', maxDelay: '1 minute' },
  },

  async run({ input, step, env, task }) {
    const target: Target = targets[input.table]
    const opened = await step.do('open', () => open(env, input, target))
    if (!opened.ok) return toolError(opened.reason)
    const { layout, object, ignored } = opened
    const source = object ? objectSource(env.FILES, object) : textSource(input.text ?? '')

    let at: Position = opened.start
    let imported = 0
    let rejected = 0
    for (let chunk = 1; at.offset < source.size; chunk++) {
      const from: Position = at
      let taken: Taken
      try {
        taken = await step.do(`chunk ${chunk}`, async ({ idempotencyKey }) => {
          const portion = await nextPortion(source, from, layout)
          return take(env.DB, portion, { target, idempotencyKey, importId: task.id, from })
        })
      } catch (error) {
        if (!(error instanceof StepError)) throw error
        return toolError(
          `The import stopped at line ${at.line}: ${error.message} ` +
            `${sentence(imported, rejected, input.table)} ${whereRejects(task.id, rejected)}`.trimEnd(),
        )
      }
      at = { offset: taken.offset, line: taken.line }
      imported += taken.imported
      rejected += taken.rejected
      const rows = `${counted(imported, 'row')}${rejected > 0 ? `, ${rejected} rejected` : ''}`
      // In percent: bytes would say little to anybody.
      const done = Math.floor((at.offset / source.size) * 100)
      await step.status({ message: `Importing into ${input.table}: ${rows}`, done, total: 100 })
    }

    const firstRejects = rejected > 0 ? await step.do('first rejects', () => rejects(env.DB, task.id)) : []
    const text = [
      sentence(imported, rejected, input.table),
      ...firstRejects.map(({ line, reason }) => `- line ${line}: ${reason}`),
      whereRejects(task.id, rejected),
      ignored.length > 0
        ? `Columns that ${input.table} does not have were ignored: ${ignored.join(', ')}.`
        : '',
    ]
    return {
      content: [{ type: 'text', text: text.filter((line) => line !== '').join('\n') }],
      structuredContent: {
        importId: task.id,
        table: input.table,
        imported,
        rejected,
        firstRejects: [...firstRejects],
        ignoredColumns: [...ignored],
      },
      ...(imported === 0 && rejected > 0 && { isError: true }),
    }
  },
})

/** Where the next chunk begins. */
type Position = { readonly offset: number; readonly line: number }

type Opened =
  | { readonly ok: false; readonly reason: string }
  | {
      readonly ok: true
      readonly layout: Layout
      readonly start: Position
      readonly object: ObjectVersion | null
      readonly ignored: readonly string[]
    }

interface Input {
  readonly table: TargetName
  readonly format: 'csv' | 'ndjson'
  readonly text?: string | undefined
  readonly key?: string | undefined
  readonly delimiter?: string | undefined
}

/** Looks at the beginning of the data, refuses what cannot be imported, and makes the tables. */
async function open(env: Cloudflare.Env, input: Input, target: Target): Promise<Opened> {
  const object = input.key === undefined ? null : await findObject(env.FILES, input.key)
  if (input.key !== undefined && !object) return no(`There is no file ${input.key} in the bucket.`)
  const source = object ? objectSource(env.FILES, object) : textSource(input.text ?? '')
  const first = await source.read(0, WINDOW_BYTES)
  if (isUtf16(first)) return no('The data is UTF-16; save it as UTF-8.')
  const bom = first[0] === 0xef && first[1] === 0xbb && first[2] === 0xbf ? 3 : 0
  await env.DB.batch([target.create, CREATE_REJECTS].map((sql) => env.DB.prepare(sql)))
  const opened = { ok: true, object } as const
  if (input.format === 'ndjson') {
    return { ...opened, layout: { format: 'ndjson' }, start: { offset: bom, line: 1 }, ignored: [] }
  }
  const header = readHeader(first.subarray(bom), input.delimiter)
  if (!header) return no('The data has no header line.')
  const columns = target.row ? header.columns.map(columnName) : header.columns
  const twice = columns.find((column, i) => columns.indexOf(column) !== i)
  if (twice !== undefined) return no(`Two columns of the header are named ${JSON.stringify(twice)}.`)
  const known = target.row ? Object.keys(target.row.shape) : columns
  const missing = target.row ? requiredColumns(target.row).filter((name) => !columns.includes(name)) : []
  if (missing.length > 0) {
    return no(
      `${input.table} needs the column ${missing.join(', ')}; the header has: ${header.columns.join(', ')}.`,
    )
  }
  return {
    ...opened,
    layout: { format: 'csv', delimiter: header.delimiter, columns },
    start: { offset: bom + header.used, line: 1 + header.lines },
    ignored: columns.filter((column) => !known.includes(column)),
  }
}

function no(reason: string): Opened {
  return { ok: false, reason: `Nothing was imported. ${reason}` }
}

/** `Price Cents` is `price_cents`. */
function columnName(header: string): string {
  return header.toLowerCase().replaceAll(/[\s-]+/g, '_')
}

function isUtf16(bytes: Uint8Array): boolean {
  return (bytes[0] === 0xff && bytes[1] === 0xfe) || (bytes[0] === 0xfe && bytes[1] === 0xff)
}

/** The whole rows from a position on; reads more when a single row is longer than a window. */
async function nextPortion(source: Source, from: Position, layout: Layout): Promise<Portion> {
  for (let length = WINDOW_BYTES; ; length *= 2) {
    const bytes = await source.read(from.offset, length)
    const last = from.offset + bytes.length >= source.size
    const portion = readRows({ bytes, line: from.line, last, full: length >= MAX_ROW_BYTES }, layout)
    if (portion) return portion
    if (length >= MAX_ROW_BYTES) {
      throw new NonRetryableError(`Line ${from.line} is longer than ${MAX_ROW_BYTES} bytes.`)
    }
  }
}

/** What a chunk came to. Recorded. */
type Taken = Position & { readonly imported: number; readonly rejected: number }

interface Taking {
  readonly target: Target
  readonly idempotencyKey: string
  readonly importId: string
  readonly from: Position
}

async function take(db: D1Database, portion: Portion, options: Taking): Promise<Taken> {
  const { target, idempotencyKey, importId, from } = options
  const good: { line: number; data: Record<string, unknown> }[] = []
  const bad: { line: number; reason: string; raw: string }[] = []
  for (const row of portion.rows) {
    if ('problem' in row) {
      bad.push({ line: row.line, reason: row.problem, raw: row.raw() })
      continue
    }
    const checked = check(target, row.values)
    if (checked.success) good.push({ line: row.line, data: checked.data })
    else bad.push({ line: row.line, reason: describe(checked.error), raw: row.raw() })
  }
  const statements = [
    ...(good.length > 0 ? [db.prepare(target.insert).bind(JSON.stringify(good), importId)] : []),
    ...(bad.length > 0 ? [db.prepare(INSERT_REJECTS).bind(JSON.stringify(bad), importId)] : []),
  ]
  if (statements.length > 0) await applyOnce(db, idempotencyKey, statements)
  return {
    offset: from.offset + portion.used,
    line: from.line + portion.lines,
    imported: good.length,
    rejected: bad.length,
  }
}

async function rejects(db: D1Database, importId: string): Promise<{ line: number; reason: string }[]> {
  const { results } = await db
    .prepare('SELECT line, reason FROM import_rejects WHERE import_id = ? ORDER BY line LIMIT ?')
    .bind(importId, FIRST_REJECTS)
    .all<{ line: number; reason: string }>()
  return results
}

function sentence(imported: number, rejected: number, table: string): string {
  const all = counted(imported + rejected, 'row')
  if (rejected === 0) return `Imported ${all} into ${table}.`
  return `Imported ${imported.toLocaleString('en-US')} of ${all} into ${table}; rejected ${rejected.toLocaleString('en-US')}.`
}

function whereRejects(importId: string, rejected: number): string {
  return rejected === 0
    ? ''
    : `All rejected rows: SELECT line, reason, raw FROM import_rejects WHERE import_id = '${importId}' ORDER BY line`
}
