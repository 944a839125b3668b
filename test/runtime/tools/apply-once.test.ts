import { env } from 'cloudflare:workers'
import { afterEach, describe, expect, test } from 'vitest'
import { applyOnce, NonRetryableError, sweepMarks } from '../../../src/index'
import { emptyDatabase, hasTable, rows, value } from './database'

const { DB } = env
const CREATE = 'CREATE TABLE account (email TEXT UNIQUE, credit INTEGER NOT NULL CHECK (credit >= 0))'
const ADD_ADA = `INSERT INTO account VALUES ('ada@example.com', 100)`
const CHARGE = 'UPDATE account SET credit = credit - 30'
const credit = () => value('SELECT credit FROM account')

afterEach(emptyDatabase)

describe('applyOnce', () => {
  test('applies in an empty database, and only the first time', async () => {
    expect(await applyOnce(DB, 'k1', [CREATE, ADD_ADA])).toEqual({ applied: true })
    expect(await applyOnce(DB, 'k2', CHARGE)).toEqual({ applied: true })
    expect(await applyOnce(DB, 'k2', CHARGE)).toEqual({ applied: false })
    expect(await applyOnce(DB, 'k1', [CREATE, ADD_ADA])).toEqual({ applied: false })
    expect(await credit()).toBe(70)
  })

  test('takes prepared statements with their parameters', async () => {
    await applyOnce(DB, 'k1', [CREATE, ADD_ADA])
    const charge = DB.prepare('UPDATE account SET credit = credit - ? WHERE email = ?')
    await applyOnce(DB, 'k2', charge.bind(5, 'ada@example.com'))
    await applyOnce(DB, 'k2', [charge.bind(5, 'ada@example.com')])
    expect(await credit()).toBe(95)
  })

  test('applies once when attempts overlap', async () => {
    await applyOnce(DB, 'k1', [CREATE, ADD_ADA])
    const outcomes = await Promise.all(Array.from({ length: 8 }, () => applyOnce(DB, 'k2', CHARGE)))
    expect(outcomes.filter(({ applied }) => applied)).toHaveLength(1)
    expect(await credit()).toBe(70)
  })

  test('applies everything or nothing, DDL included', async () => {
    await expect(applyOnce(DB, 'k1', [CREATE, ADD_ADA, 'CREATE TABLE other (id)', ADD_ADA])).rejects.toThrow(
      'UNIQUE constraint failed: account.email',
    )
    expect(await hasTable('account')).toBe(false)
    expect(await hasTable('other')).toBe(false)
    // The mark went with them: the corrected step can still be applied.
    expect(await applyOnce(DB, 'k1', [CREATE, ADD_ADA])).toEqual({ applied: true })
  })

  test("tells a statement's own UNIQUE failure from that of the mark", async () => {
    await applyOnce(DB, 'k1', [CREATE, ADD_ADA])
    const failure = await applyOnce(DB, 'k2', ADD_ADA).catch((error: unknown) => error)
    expect(failure).toBeInstanceOf(NonRetryableError)
    expect(await value('SELECT count(*) FROM account')).toBe(1)
    expect(await rows('SELECT key FROM longhaul_marks')).toEqual([{ key: 'k1' }])
  })

  test.each([
    ['a syntax error', 'SELEC 1', 'syntax error'],
    ['an unknown table', 'DELETE FROM nowhere', 'no such table: nowhere'],
    ['a CHECK', 'UPDATE account SET credit = -1', 'CHECK constraint failed'],
  ])('does not retry what %s refused', async (_, sql, message) => {
    await applyOnce(DB, 'k1', [CREATE, ADD_ADA])
    const failure = await applyOnce(DB, 'k2', sql).catch((error: unknown) => error)
    expect(failure).toBeInstanceOf(NonRetryableError)
    expect(String(failure)).toContain(message)
  })

  test('finds the mark although a statement that was applied would fail before it', async () => {
    await applyOnce(DB, 'k1', CREATE)
    await applyOnce(DB, 'k2', 'DROP TABLE account')
    expect(await applyOnce(DB, 'k2', 'DROP TABLE account')).toEqual({ applied: false })
  })

  test('says that it was applied when the answer of a committed batch was lost', async () => {
    await applyOnce(DB, 'k1', [CREATE, ADD_ADA])
    // The real database, on a connection that breaks after the commit.
    const broken = new Proxy(DB, {
      get: (db, name) =>
        name === 'batch'
          ? async (statements: D1PreparedStatement[]) => {
              await db.batch(statements)
              throw new Error('D1_ERROR: Network connection lost.')
            }
          : Reflect.get(db, name, db).bind(db),
    })
    expect(await applyOnce(broken, 'k2', CHARGE)).toEqual({ applied: false })
    expect(await credit()).toBe(70)
  })

  test('passes on what may go away by itself', async () => {
    const down = new Proxy(DB, {
      get: (db, name) =>
        name === 'batch'
          ? () => Promise.reject(new Error('D1_ERROR: Network connection lost.'))
          : Reflect.get(db, name, db).bind(db),
    })
    const failure = await applyOnce(down, 'k1', CREATE).catch((error: unknown) => error)
    expect(failure).not.toBeInstanceOf(NonRetryableError)
    expect(String(failure)).toContain('Network connection lost')
  })
})

describe('sweepMarks', () => {
  test('forgets old marks only', async () => {
    await applyOnce(DB, 'old', CREATE)
    await DB.prepare('UPDATE longhaul_marks SET marked_at = marked_at - 10000').run()
    await applyOnce(DB, 'new', ADD_ADA)
    expect(await sweepMarks(DB, 5_000)).toBe(1)
    expect(await rows('SELECT key FROM longhaul_marks')).toEqual([{ key: 'new' }])
  })

  test('is at peace with a database that never had any', async () => {
    expect(await sweepMarks(DB, 0)).toBe(0)
  })
})
