/**
 * The Worker of the tests from outside: tools whose every effect is a row in D1, so that what was
 * done, and how often, can be read after any number of crashes.
 */
import { z } from 'zod'
import { applyOnce, createLonghaul, defineTool, type RunContext } from '../../src/index'
import { tools as builtIn } from '../../src/tools'

export { TaskObject, TenantObject } from '../../src/index'

/** A row of `log`: a step's function began, or its step was seen to be recorded. */
type Sighting = 'began' | 'recorded'

/** A step that takes its time, has an effect, and leaves traces of being begun and of being recorded. */
async function tracedStep(
  { step, env, task }: Pick<RunContext<unknown>, 'step' | 'env' | 'task'>,
  name: string,
  ms: number,
) {
  const see = (what: Sighting) =>
    env.DB.prepare('INSERT INTO log (task, step, what) VALUES (?, ?, ?)').bind(task.id, name, what).run()
  await step.do(name, async ({ idempotencyKey, signal }) => {
    await see('began')
    await scheduler.wait(ms, { signal })
    const effect = env.DB.prepare('INSERT INTO effects VALUES (?, ?)').bind(task.id, name)
    await applyOnce(env.DB, idempotencyKey, effect)
  })
  await see('recorded')
}

const prepare = defineTool({
  name: 'prepare',
  description: 'Creates the tables.',
  input: z.object({}),
  task: { support: 'none' },
  async run({ env }) {
    await env.DB.batch(
      [
        'CREATE TABLE effects (task TEXT, step TEXT)',
        'CREATE TABLE log (id INTEGER PRIMARY KEY AUTOINCREMENT, task TEXT, step TEXT, what TEXT)',
        'CREATE TABLE callbacks (task TEXT PRIMARY KEY, url TEXT)',
      ].map((sql) => env.DB.prepare(sql)),
    )
    return 'Ready.'
  },
})

const inspect = defineTool({
  name: 'inspect',
  description: 'What was done so far, as rows of a query. Touches no task.',
  input: z.object({ sql: z.string() }),
  task: { support: 'none' },
  run: async ({ input, env }) => JSON.stringify((await env.DB.prepare(input.sql).all()).results),
})

const work = defineTool({
  name: 'work',
  description: 'Step after step.',
  input: z.object({ steps: z.int(), ms: z.int() }),
  async run(context) {
    const { steps, ms } = context.input
    for (let i = 1; i <= steps; i++) {
      await tracedStep(context, `step ${i}`, ms)
      await context.step.status({ message: 'Working', done: i, total: steps })
    }
    return `${steps} steps done.`
  },
})

const sleeper = defineTool({
  name: 'sleeper',
  description: 'Sleeps between two steps.',
  input: z.object({ ms: z.int() }),
  async run(context) {
    await tracedStep(context, 'before', 0)
    await context.step.sleep('sleep', context.input.ms)
    await tracedStep(context, 'after', 0)
    return 'Slept well.'
  },
})

const asker = defineTool({
  name: 'asker',
  description: 'Asks between two steps.',
  input: z.object({}),
  asks: ['elicitation'],
  async run(context) {
    await tracedStep(context, 'before', 0)
    const schema = z.object({ colour: z.string() })
    const answer = await context.step.elicit('colour', { message: 'Which colour?', schema })
    await tracedStep(context, 'after', 0)
    return answer.action === 'accept' ? answer.content.colour : answer.action
  },
})

const listener = defineTool({
  name: 'listener',
  description: 'Waits for an event between two steps.',
  input: z.object({}),
  async run(context) {
    const { step, env, task } = context
    await tracedStep(context, 'before', 0)
    const event = await step.waitForEvent('news', {
      schema: z.object({ headline: z.string() }),
      start: async ({ callbackUrl }) => {
        await env.DB.prepare('INSERT OR REPLACE INTO callbacks VALUES (?, ?)')
          .bind(task.id, callbackUrl)
          .run()
      },
    })
    await tracedStep(context, 'after', 0)
    return event.received ? event.payload.headline : event.reason
  },
})

const tools = [...builtIn, prepare, inspect, work, sleeper, asker, listener]
export default createLonghaul({ name: 'longhaul-e2e-tests', version: '1.0.0', tools })
