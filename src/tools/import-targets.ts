/**
 * The tables that `import_batch` fills: what a row must be, and the SQL that creates the table and takes
 * rows in. Data and text only.
 */
import { z } from 'zod'
import type { JsonObject } from '../json'

export interface Target {
  readonly description: string
  /** `undefined` when every row is taken as it is. */
  readonly row: z.ZodObject | undefined
  readonly create: string
  /** Parameters: 1 the rows as a JSON array of `{ line, data }`, 2 the id of the import. */
  readonly insert: string
}

/** Digits of a CSV field, or a number of JSON. */
const number = <T extends z.ZodType>(type: T) =>
  z.preprocess((value) => (typeof value === 'string' && value.trim() !== '' ? Number(value) : value), type)

export const targets = {
  contacts: table('contacts', {
    description: 'People to write to; one row per email address.',
    key: 'email',
    columns: { email: 'TEXT', name: 'TEXT', company: 'TEXT' },
    row: z.object({
      email: z.email().max(320).toLowerCase(),
      name: z.string().trim().min(1).max(200),
      company: z.string().trim().max(200).optional(),
    }),
  }),
  products: table('products', {
    description: 'Articles for sale; one row per SKU.',
    key: 'sku',
    columns: { sku: 'TEXT', name: 'TEXT', price_cents: 'INTEGER', stock: 'INTEGER' },
    row: z.object({
      sku: z.string().trim().min(1).max(64),
      name: z.string().trim().min(1).max(200),
      price_cents: number(z.int().min(0)),
      stock: number(z.int().min(0)).optional(),
    }),
  }),
  imported_records: {
    description: 'Rows of any shape, kept as JSON; one row per line of each import.',
    row: undefined,
    create: `CREATE TABLE IF NOT EXISTS imported_records (
      import_id TEXT NOT NULL, line INTEGER NOT NULL, data TEXT NOT NULL,
      PRIMARY KEY (import_id, line)) WITHOUT ROWID`,
    insert: `INSERT INTO imported_records (import_id, line, data)
      SELECT ?2, value ->> 'line', value ->> 'data' FROM json_each(?1)`,
  },
} as const satisfies Readonly<Record<string, Target>>

export type TargetName = keyof typeof targets

/** Rows that could not be taken, of all imports. */
export const CREATE_REJECTS = `CREATE TABLE IF NOT EXISTS import_rejects (
  import_id TEXT NOT NULL, line INTEGER NOT NULL, reason TEXT NOT NULL, raw TEXT NOT NULL,
  PRIMARY KEY (import_id, line)) WITHOUT ROWID`

/** Parameters: 1 a JSON array of `{ line, reason, raw }`, 2 the id of the import. */
export const INSERT_REJECTS = `INSERT INTO import_rejects (import_id, line, reason, raw)
  SELECT ?2, value ->> 'line', value ->> 'reason', value ->> 'raw' FROM json_each(?1)`

/** A table with one row per key: a later row replaces an earlier one, so that importing again is harmless. */
function table(
  name: string,
  definition: {
    readonly description: string
    readonly key: string
    readonly columns: Readonly<Record<string, 'TEXT' | 'INTEGER' | 'REAL'>>
    readonly row: z.ZodObject
  },
): Target {
  const { description, key, columns, row } = definition
  const names = Object.keys(columns)
  const types = Object.entries(columns).map(([column, type]) => `${column} ${type}`)
  const updated = [...names.filter((column) => column !== key), 'import_id', 'line']
  return {
    description: `${description} Columns: ${columnsOf(row)}.`,
    row,
    create: `CREATE TABLE IF NOT EXISTS ${name} (
      ${types.join(', ')}, import_id TEXT NOT NULL, line INTEGER NOT NULL, PRIMARY KEY (${key})) WITHOUT ROWID`,
    // WHERE true: otherwise SQLite takes ON for the condition of a join.
    insert: `INSERT INTO ${name} (${names.join(', ')}, import_id, line)
      SELECT ${names.map((column) => `value -> 'data' ->> '${column}'`).join(', ')}, ?2, value ->> 'line'
      FROM json_each(?1) WHERE true
      ON CONFLICT (${key}) DO UPDATE SET ${updated.map((column) => `${column} = excluded.${column}`).join(', ')}`,
  }
}

/** `email, name, company (optional)`. */
function columnsOf(row: z.ZodObject): string {
  const required = requiredColumns(row)
  return Object.keys(row.shape)
    .map((column) => (required.includes(column) ? column : `${column} (optional)`))
    .join(', ')
}

/** Columns that a file must have. */
export function requiredColumns(row: z.ZodObject): string[] {
  return Object.entries(row.shape).flatMap(([column, type]) =>
    // The shape holds schemas of any kind; all of them parse.
    (type as z.ZodType).safeParse(undefined).success ? [] : [column],
  )
}

/** The row as it is stored, or why not. */
export function check(target: Target, values: JsonObject): z.ZodSafeParseResult<Record<string, unknown>> {
  return target.row ? target.row.safeParse(values) : { success: true, data: values }
}
