/** The D1 database of the tests, and what they ask of it. */
import { env } from 'cloudflare:workers'

export async function rows(sql: string, ...params: readonly unknown[]): Promise<Record<string, unknown>[]> {
  const { results } = await env.DB.prepare(sql)
    .bind(...params)
    .all()
  return results
}

/** The only value of a query. */
export async function value(sql: string, ...params: readonly unknown[]): Promise<unknown> {
  const [row] = await rows(sql, ...params)
  return row && Object.values(row)[0]
}

export async function hasTable(name: string): Promise<boolean> {
  return (await value(`SELECT count(*) FROM sqlite_master WHERE type = 'table' AND name = ?`, name)) === 1
}

/** Back to a database in which nothing ever happened. */
export async function emptyDatabase(): Promise<void> {
  const tables = await rows(
    `SELECT name FROM sqlite_master WHERE type = 'table' AND name NOT LIKE 'sqlite_%' AND name NOT LIKE '_cf_%'`,
  )
  const drops = tables.map(({ name }) => env.DB.prepare(`DROP TABLE "${String(name)}"`))
  if (drops.length > 0) await env.DB.batch([env.DB.prepare('PRAGMA defer_foreign_keys = on'), ...drops])
}
