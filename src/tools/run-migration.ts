/**
 * `run_migration`: applies a known migration to the D1 database, statement by statement. Each statement
 * is logged in its own transaction, so that a migration that was stopped anywhere goes on where it was,
 * in the same task or in a later one.
 */
import { z } from 'zod'
import { applyOnce, defineTool, StepError, toolError } from '../index'
import { type Migration, type MigrationName, migrations } from './migrations'
import { counted, elapsed } from './wording'

const names = Object.keys(migrations)

const list = Object.entries(migrations)
  .map(([name, { description }]) => `${name}: ${description}`)
  .join('\n')

export const runMigration = defineTool({
  name: 'run_migration',
  title: 'Run a database migration',
  description:
    'Applies one of the known schema migrations to the database and reports when it is done. ' +
    'Asks the user before anything is destroyed. Safe to call again: a finished migration is left alone, ' +
    `and one that was stopped half-way goes on from there.\n\n${list}`,
  annotations: { readOnlyHint: false, destructiveHint: true, idempotentHint: true, openWorldHint: false },
  input: z.object({
    // The keys of the catalogue; `z.enum` reads them as they are.
    name: z.enum(names as [MigrationName, ...MigrationName[]]).describe('The migration to apply.'),
    pauseMs: z
      .int()
      .min(0)
      .max(60_000)
      .default(0)
      .describe('Rest between two statements, in milliseconds, so that a busy database can serve others.'),
  }),
  output: z.object({
    name: z.string(),
    outcome: z.enum(['applied', 'already_applied']),
    statements: z.int().describe('Statements of the migration.'),
    applied: z.int().describe('Statements that this call applied.'),
    durationMs: z.int().describe('Time the database worked on them, in milliseconds.'),
    completedAt: z.iso.datetime(),
  }),
  task: {
    support: 'required',
    ttl: '24 hours',
    retention: '6 hours',
    poll: { min: '1 second', max: '10 seconds' },
    retry: { limit: 5, delay: '1 second', maxDelay: '1 minute' },
  },
  asks: ['elicitation'],

  async run({ input: { name, pauseMs }, step, env, task }) {
    const plan = await step.do('plan', () => planMigration(env.DB, name))
    if (plan.kind === 'blocked') return toolError(plan.reason)
    if (plan.kind === 'complete') {
      return {
        content: [{ type: 'text', text: `${name} is already applied, since ${plan.completedAt}.` }],
        structuredContent: {
          name,
          outcome: 'already_applied',
          statements: plan.total,
          applied: 0,
          durationMs: 0,
          completedAt: plan.completedAt,
        },
      }
    }
    const { todo, total } = plan
    if (plan.losses.length > 0) {
      const answer = await step.elicit('confirm', {
        message:
          `${name} destroys data that cannot be brought back:\n` +
          `${plan.losses.map((loss) => `- ${loss}`).join('\n')}\n\nApply it?`,
        schema: z.object({ confirm: z.boolean().describe('Yes, destroy this data.') }),
        timeout: '12 hours',
      })
      if (answer.action !== 'accept' || !answer.content.confirm) {
        return toolError(`${name} was not applied: the user did not confirm what it destroys.`)
      }
    }

    const already = total - todo.length
    let durationMs = 0
    await step.status({ message: `Applying ${name}`, done: already, total })
    for (const [i, statement] of todo.entries()) {
      const { position, title } = statement
      if (i > 0 && pauseMs > 0) await step.sleep(`pause before ${position}`, pauseMs)
      try {
        durationMs += await step.do(`statement ${position}`, async ({ idempotencyKey }) => {
          const startedAt = Date.now()
          await applyStatement(env.DB, idempotencyKey, name, statement, task.id)
          return Date.now() - startedAt
        })
      } catch (error) {
        if (!(error instanceof StepError)) throw error
        return toolError(
          `${name} stopped at statement ${position} of ${total} (${title}): ${error.message} ` +
            `Nothing of this statement was applied; the ${position - 1} before it are. ` +
            'Once the cause is removed, call run_migration again: it goes on from here.',
        )
      }
      await step.status({ message: `Applying ${name}: ${title}`, done: position, total })
    }
    const completedAt = await step.do('complete', () => complete(env.DB, name, task.id))
    const again = already > 0 ? ` (${already} were applied before)` : ''
    return {
      content: [
        {
          type: 'text',
          text: `Applied ${name}: ${counted(todo.length, 'statement')} in ${elapsed(durationMs)}${again}.`,
        },
      ],
      structuredContent: {
        name,
        outcome: 'applied',
        statements: total,
        applied: todo.length,
        durationMs,
        completedAt,
      },
    }
  },
})

/** A statement still to apply. `position` counts from 1. */
type Planned = { readonly position: number; readonly title: string; readonly sql: string }

/** Recorded: a deployment that changes the catalogue does not change a task under way. */
type Plan =
  | { readonly kind: 'complete'; readonly completedAt: string; readonly total: number }
  | { readonly kind: 'blocked'; readonly reason: string }
  | {
      readonly kind: 'todo'
      readonly todo: readonly Planned[]
      readonly total: number
      /** What the statements will destroy, in words. */
      readonly losses: readonly string[]
    }

const CREATE_LOG = [
  `CREATE TABLE IF NOT EXISTS migrations (
    name TEXT PRIMARY KEY, completed_at INTEGER NOT NULL, task TEXT NOT NULL) WITHOUT ROWID`,
  `CREATE TABLE IF NOT EXISTS migration_statements (
    migration TEXT NOT NULL, position INTEGER NOT NULL, sql TEXT NOT NULL, applied_at INTEGER NOT NULL,
    task TEXT NOT NULL, PRIMARY KEY (migration, position)) WITHOUT ROWID`,
]

async function planMigration(db: D1Database, name: MigrationName): Promise<Plan> {
  await db.batch(CREATE_LOG.map((sql) => db.prepare(sql)))
  const migration: Migration = migrations[name]
  const total = migration.statements.length
  const completed = await completedMigrations(db)
  const completedAt = completed.get(name)
  if (completedAt !== undefined) return { kind: 'complete', completedAt: iso(completedAt), total }
  const missing = migration.needs?.filter((need) => !completed.has(need)) ?? []
  if (missing.length > 0) return blocked(`${name} needs ${missing.join(', ')} to be applied first.`)

  const log = await db
    .prepare('SELECT position, sql FROM migration_statements WHERE migration = ?')
    .bind(name)
    .all<{ position: number; sql: string }>()
  const applied = new Map(log.results.map(({ position, sql }) => [position, sql]))
  const todo: Planned[] = []
  const losses: string[] = []
  for (const [i, { title, sql, destroys }] of migration.statements.entries()) {
    const position = i + 1
    const before = applied.get(position)
    if (before !== undefined && before !== sql) {
      return blocked(`Statement ${position} of ${name} was changed after it had been applied.`)
    }
    if (before !== undefined) continue
    todo.push({ position, title, sql })
    if (!destroys) continue
    try {
      const [row] = await db.prepare(destroys.count).raw<[number]>()
      losses.push(`${(row?.[0] ?? 0).toLocaleString('en-US')} ${destroys.what}`)
    } catch (error) {
      if (!String(error).includes('no such table')) throw error
      return blocked(`${name} cannot be applied: what it destroys is not there (${String(error)}).`)
    }
  }
  return { kind: 'todo', todo, total, losses }
}

function blocked(reason: string): Plan {
  return { kind: 'blocked', reason }
}

async function completedMigrations(db: D1Database): Promise<Map<string, number>> {
  const rows = await db
    .prepare('SELECT name, completed_at AS at FROM migrations')
    .all<{ name: string; at: number }>()
  return new Map(rows.results.map(({ name, at }) => [name, at]))
}

/** One statement with its line in the log, once; also when another task applies the same migration. */
async function applyStatement(
  db: D1Database,
  idempotencyKey: string,
  name: string,
  { position, sql }: Planned,
  taskId: string,
): Promise<void> {
  const logged = db
    .prepare('INSERT INTO migration_statements VALUES (?, ?, ?, ?, ?)')
    .bind(name, position, sql, Date.now(), taskId)
  try {
    await applyOnce(db, idempotencyKey, [logged, sql])
  } catch (error) {
    // The other task was first: its transaction has the line, ours was rolled back.
    const other = await db
      .prepare('SELECT 1 FROM migration_statements WHERE migration = ? AND position = ?')
      .bind(name, position)
      .first()
    if (other === null) throw error
  }
}

/** Marks the migration complete; the first mark counts. */
async function complete(db: D1Database, name: MigrationName, taskId: string): Promise<string> {
  await db.prepare('INSERT OR IGNORE INTO migrations VALUES (?, ?, ?)').bind(name, Date.now(), taskId).run()
  return iso((await completedMigrations(db)).get(name) ?? Date.now())
}

function iso(ms: number): string {
  return new Date(ms).toISOString()
}
