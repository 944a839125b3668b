import { env } from 'cloudflare:workers'
import { afterEach, describe, expect, test, vi } from 'vitest'
import { migrations } from '../../../src/tools/migrations'
import { get, rpc, start, TASKS, untilEnded } from '../client'
import { emptyDatabase, hasTable, rows, value } from './database'
import { DECLINE, NO, question, reply, textOf, YES } from './questions'

const STATEMENTS = migrations.create_users.statements.length

afterEach(emptyDatabase)

async function migrate(name: string, tool = 'run_migration') {
  return untilEnded(await start(tool, { name }))
}

/** Every table and row that a migration is about. */
async function contents() {
  const tables = await rows(
    `SELECT name FROM sqlite_master WHERE type = 'table' AND name NOT LIKE '%migration%' AND name NOT LIKE 'longhaul%'
     AND name NOT LIKE 'sqlite_%' AND name NOT LIKE '_cf_%' ORDER BY name`,
  )
  const counts = tables.map(async ({ name }) => [name, await value(`SELECT count(*) FROM "${String(name)}"`)])
  return Object.fromEntries(await Promise.all(counts))
}

const CREATED = { legacy_sessions: 240, memberships: 4, teams: 2, users: 4 }

describe('run_migration', () => {
  test('lists the migrations it knows', async () => {
    const { body } = await rpc('tools/list')
    const tool = body.result.tools.find(({ name }: { name: string }) => name === 'run_migration')
    expect(tool.inputSchema.properties.name.enum).toEqual(Object.keys(migrations))
    expect(tool.inputSchema.required).toEqual(['name'])
    expect(tool.annotations).toMatchObject({ destructiveHint: true, idempotentHint: true })
    expect(tool.outputSchema.properties.statements).toBeDefined()
  })

  test('refuses a migration it does not know, before a task exists', async () => {
    const { body } = await rpc('tools/call', {
      name: 'run_migration',
      arguments: { name: 'drop_everything' },
    })
    expect(body.result).toMatchObject({ resultType: 'complete', isError: true })
    expect(body.result.content[0].text).toContain('name')
  })

  test('refuses clients without Tasks, and those that cannot be asked', async () => {
    const call = { name: 'run_migration', arguments: { name: 'create_users' } }
    const without = await rpc('tools/call', call, { capabilities: { elicitation: {} } })
    expect(without.body.error.code).toBe(-32021)
    const mute = await rpc('tools/call', call, { capabilities: TASKS })
    expect(mute.body.error).toMatchObject({
      code: -32021,
      data: { requiredCapabilities: { elicitation: { form: {} } } },
    })
  })

  test('applies a safe migration without a question', async () => {
    const task = await migrate('create_users')
    expect(task).toMatchObject({
      status: 'completed',
      statusMessage: `Applying create_users: sessions of the old login (${STATEMENTS}/${STATEMENTS})`,
      result: {
        structuredContent: {
          name: 'create_users',
          outcome: 'applied',
          statements: STATEMENTS,
          applied: STATEMENTS,
        },
      },
    })
    expect(textOf(task)).toMatch(/^Applied create_users: 8 statements in .+\.$/)
    expect(await contents()).toEqual(CREATED)
  })

  test('does nothing the second time', async () => {
    const first = await migrate('create_users')
    const second = await migrate('create_users')
    expect(second.result.isError).toBeUndefined()
    expect(second.result.structuredContent).toMatchObject({
      outcome: 'already_applied',
      applied: 0,
      completedAt: first.result.structuredContent.completedAt,
    })
    expect(textOf(second)).toContain('create_users is already applied, since')
    expect(await contents()).toEqual(CREATED)
  })

  test('wants what a migration builds on to be there', async () => {
    const task = await migrate('drop_legacy_sessions')
    expect(task).toMatchObject({ status: 'completed', result: { isError: true } })
    expect(textOf(task)).toBe('drop_legacy_sessions needs create_users to be applied first.')
    expect(await contents()).toEqual({})
  })

  test('asks what may be destroyed, with the number of rows, and destroys it when told so', async () => {
    await migrate('create_users')
    const taskId = await start('run_migration', { name: 'drop_legacy_sessions' })
    expect(await question(taskId)).toBe(
      'drop_legacy_sessions destroys data that cannot be brought back:\n' +
        '- 240 rows of legacy_sessions, and the table itself\n\nApply it?',
    )
    expect(await hasTable('sessions')).toBe(false)
    await reply(taskId, YES)
    const task = await untilEnded(taskId)
    expect(task.result.structuredContent).toMatchObject({ outcome: 'applied', statements: 2, applied: 2 })
    expect(await contents()).toEqual({ memberships: 4, sessions: 0, teams: 2, users: 4 })
  })

  test.each([
    ['declines', DECLINE],
    ['says no', NO],
    ['closes the form', { action: 'cancel' }],
  ])('touches nothing when the user %s', async (_, response) => {
    await migrate('create_users')
    const taskId = await start('run_migration', { name: 'drop_legacy_sessions' })
    await reply(taskId, response)
    const task = await untilEnded(taskId)
    expect(task).toMatchObject({ status: 'completed', result: { isError: true } })
    expect(textOf(task)).toContain('was not applied')
    expect(await contents()).toEqual(CREATED)
  })

  test('can be cancelled between two statements, and goes on from there when called again', async () => {
    const taskId = await start('run_migration', { name: 'create_users', pauseMs: 300 })
    await vi.waitUntil(() => hasTable('teams').catch(() => false), { timeout: 10_000, interval: 20 })
    await rpc('tasks/cancel', { taskId })
    const cancelled = await untilEnded(taskId)
    expect(cancelled.status).toBe('cancelled')
    const applied = Number(await value('SELECT count(*) FROM migration_statements'))
    expect(applied).toBeGreaterThanOrEqual(2)
    expect(applied).toBeLessThan(STATEMENTS)

    const again = await migrate('create_users')
    expect(again.result.structuredContent).toMatchObject({
      outcome: 'applied',
      statements: STATEMENTS,
      applied: STATEMENTS - applied,
    })
    expect(textOf(again)).toContain(`(${applied} were applied before)`)
    expect(await contents()).toEqual(CREATED)
  })

  test('shows its progress, which never goes back', async () => {
    const taskId = await start('run_migration', { name: 'create_users', pauseMs: 400 })
    const seen: number[] = []
    await vi.waitUntil(
      async () => {
        const task = await get(taskId)
        const done = /\((\d+)\/8\)$/.exec(task.statusMessage ?? '')?.[1]
        if (done !== undefined) seen.push(Number(done))
        return task.status !== 'working'
      },
      { timeout: 15_000, interval: 80 },
    )
    expect(seen.toSorted((a, b) => a - b)).toEqual(seen)
    expect(new Set(seen).size).toBeGreaterThanOrEqual(5)
    expect((await get(taskId)).result.structuredContent.outcome).toBe('applied')
  })

  test('applies every statement once although every step is done twice', async () => {
    const task = await migrate('create_users', 'crashing_run_migration')
    expect(task.result.structuredContent).toMatchObject({ outcome: 'applied', applied: STATEMENTS })
    expect(await contents()).toEqual(CREATED)
    const taskId = await start('crashing_run_migration', { name: 'drop_legacy_sessions' })
    await reply(taskId, YES)
    expect((await untilEnded(taskId)).result.structuredContent.outcome).toBe('applied')
    expect(await contents()).toEqual({ memberships: 4, sessions: 0, teams: 2, users: 4 })
  })

  test('applies every statement once although two tasks run the same migration', async () => {
    const ids = await Promise.all(
      [0, 1].map(() => start('run_migration', { name: 'create_users', pauseMs: 30 })),
    )
    const ended = await Promise.all(ids.map((taskId) => untilEnded(taskId)))
    for (const task of ended) expect(task.result.structuredContent).toMatchObject({ name: 'create_users' })
    expect(await contents()).toEqual(CREATED)
    expect(await value('SELECT count(*) FROM migration_statements')).toBe(STATEMENTS)
  })

  test('says which statement the database refused, and goes on from it once it can', async () => {
    await env.DB.prepare('CREATE TABLE memberships (other INTEGER)').run()
    const refused = await migrate('create_users')
    expect(refused).toMatchObject({ status: 'completed', result: { isError: true } })
    expect(textOf(refused)).toContain('stopped at statement 3 of 8 (table memberships)')
    expect(textOf(refused)).toContain('table memberships already exists')
    await env.DB.prepare('DROP TABLE memberships').run()
    const task = await migrate('create_users')
    expect(task.result.structuredContent).toMatchObject({ outcome: 'applied', applied: STATEMENTS - 2 })
    expect(await contents()).toEqual(CREATED)
  })

  test('does not go on with a migration that was edited after a part of it had been applied', async () => {
    const taskId = await start('run_migration', { name: 'create_users', pauseMs: 300 })
    await vi.waitUntil(() => hasTable('users').catch(() => false), { timeout: 10_000, interval: 80 })
    await rpc('tasks/cancel', { taskId })
    await untilEnded(taskId)
    await env.DB.prepare(
      `UPDATE migration_statements SET sql = 'CREATE TABLE users (id)' WHERE position = 1`,
    ).run()
    expect(textOf(await migrate('create_users'))).toBe(
      'Statement 1 of create_users was changed after it had been applied.',
    )
  })

  test('indexes emails', async () => {
    await migrate('create_users')
    expect((await migrate('add_user_email_index')).result.structuredContent.outcome).toBe('applied')
    await expect(
      env.DB.prepare(`INSERT INTO users (email, name) VALUES ('ADA@example.com', 'x')`).run(),
    ).rejects.toThrow('UNIQUE')
  })
})

describe('the catalogue of migrations', () => {
  const statements = Object.entries(migrations).flatMap(([name, migration]) =>
    migration.statements.map((statement) => ({ name, ...statement })),
  )

  test.each(statements)('$name, $title: says so if it destroys', (statement) => {
    const destroys = /\b(DROP|DELETE|REPLACE|TRUNCATE)\b/i.test(statement.sql)
    expect('destroys' in statement).toBe(destroys)
  })

  test.each(statements)('$name, $title: is one statement', ({ sql }) => {
    expect(sql).not.toContain(';')
  })
})
