/**
 * Changes to a D1 database that happen once, however often their step runs. A run can die after an
 * effect and before its record, and then the step is tried again; so the statements travel in one
 * transaction with a mark, and a mark that is there already says that they were applied.
 */
import { NonRetryableError } from '../tool'

/** SQL of a single statement, or one prepared and bound. */
export type Statement = string | D1PreparedStatement

/** `applied`: by this call. `false`: found done by an earlier attempt; nothing was changed. */
export type Applied = { readonly applied: boolean }

const CREATE_MARKS =
  'CREATE TABLE IF NOT EXISTS longhaul_marks (key TEXT PRIMARY KEY, marked_at INTEGER NOT NULL) WITHOUT ROWID'

/** What the statements themselves are to blame for. Other failures are the platform's and may pass. */
const FINAL = /SQLITE_(?:ERROR|CONSTRAINT|MISMATCH|TOOBIG|RANGE|AUTH)/

/**
 * Applies statements (DDL too) and their mark in one transaction: all of them once, or none.
 * Results of the statements are not returned, since a second attempt could not have them: read what
 * you need with a query afterwards.
 *
 * @param idempotencyKey from the step's context, or any text that names this change for ever.
 * @throws NonRetryableError when a statement cannot be applied (syntax, constraint); nothing was.
 * @example
 * await step.do('charge', ({ idempotencyKey }) =>
 *   applyOnce(env.DB, idempotencyKey, env.DB.prepare('UPDATE credit SET cents = cents - ?').bind(500)))
 */
export async function applyOnce(
  db: D1Database,
  idempotencyKey: string,
  statements: Statement | readonly Statement[],
): Promise<Applied> {
  // `Array.isArray` does not narrow readonly arrays.
  const list: readonly Statement[] =
    typeof statements === 'string' || !('length' in statements) ? [statements] : statements
  const batch = [
    db.prepare('INSERT INTO longhaul_marks (key, marked_at) VALUES (?, ?)').bind(idempotencyKey, Date.now()),
    ...list.map((statement) => (typeof statement === 'string' ? db.prepare(statement) : statement)),
  ]
  try {
    await db.batch(batch)
    return { applied: true }
  } catch (error) {
    if (!marksMissing(error)) return settled(db, idempotencyKey, error)
  }
  // The first change ever made in this database. Nothing was applied; now it can be.
  await db.prepare(CREATE_MARKS).run()
  try {
    await db.batch(batch)
    return { applied: true }
  } catch (error) {
    return settled(db, idempotencyKey, error)
  }
}

/**
 * What a failed batch means is asked of the database, not of the error's text: the failure may be the
 * mark's, a statement's own UNIQUE constraint, or a connection lost after the commit. A mark that is
 * there was committed together with its statements.
 */
async function settled(db: D1Database, key: string, error: unknown): Promise<Applied> {
  const mark = await db
    .prepare('SELECT 1 FROM longhaul_marks WHERE key = ?')
    .bind(key)
    .first()
    .catch(() => null)
  if (mark !== null) return { applied: false }
  const message = error instanceof Error ? error.message : String(error)
  if (FINAL.test(message)) throw new NonRetryableError(message, { cause: error })
  throw error
}

function marksMissing(error: unknown): boolean {
  return String(error).includes('no such table: longhaul_marks')
}

/**
 * Forgets marks that are older than any task that could still ask for them: more than the longest
 * time-to-live. For a daily cron trigger.
 *
 * @returns how many were forgotten.
 */
export async function sweepMarks(db: D1Database, olderThanMs: number): Promise<number> {
  try {
    const { meta } = await db
      .prepare('DELETE FROM longhaul_marks WHERE marked_at < ?')
      .bind(Date.now() - olderThanMs)
      .run()
    return meta.changes
  } catch (error) {
    if (marksMissing(error)) return 0
    throw error
  }
}
