/** Tools for the tests of delivery: each goes through the queues in another way, and counts what it does. */
import { z } from 'zod'
import { defineTool, type Tool } from '../../../src/index'

/** How often a step's function (or, as `run`, a tool) was called, by task id and name. */
export const runs = new Map<string, number>()

function count(taskId: string, step: string): void {
  const key = `${taskId} ${step}`
  runs.set(key, (runs.get(key) ?? 0) + 1)
}

const chores = defineTool({
  name: 'chores',
  description: 'Step after step; more than a slice of them goes on in another run.',
  input: z.object({ steps: z.int(), ms: z.int() }),
  async run({ input, step, task }) {
    for (let i = 1; i <= input.steps; i++) {
      await step.do(`chore ${i}`, async () => {
        count(task.id, `chore ${i}`)
        await scheduler.wait(input.ms)
      })
    }
    return `${input.steps} chores done.`
  },
})

const nap = defineTool({
  name: 'nap',
  description: 'Sleeps between two steps, too long to stay in the run.',
  input: z.object({ ms: z.int() }),
  async run({ input, step, task }) {
    count(task.id, 'run')
    await step.do('lie down', () => count(task.id, 'lie down'))
    await step.sleep('nap', input.ms)
    await step.do('get up', () => count(task.id, 'get up'))
    return 'Slept well.'
  },
})

const callMe = defineTool({
  name: 'call_me',
  description: 'Waits for an event; its payload is the result.',
  input: z.object({}),
  async run({ step, task }) {
    const call = await step.waitForEvent('call', {
      schema: z.object({ said: z.string() }),
      start: async ({ callbackUrl }) => {
        count(task.id, 'start')
        callbackUrls.set(task.id, callbackUrl)
      },
    })
    return call.received ? call.payload.said : call.reason
  },
})

/** Where `call_me` waits, by task id. */
export const callbackUrls = new Map<string, string>()

const secondTry = defineTool({
  name: 'second_try',
  description: 'Throws outside of its steps, the first time.',
  input: z.object({}),
  task: { retry: { limit: 1, delay: 10 } },
  async run({ step, task }) {
    if (task.attempt === 0) throw new Error('Not yet.')
    await step.do('only', () => count(task.id, 'only'))
    return 'Done.'
  },
})

const poison = defineTool({
  name: 'poison',
  description: 'Always throws.',
  input: z.object({}),
  task: { retry: { limit: 2, delay: 10 } },
  run({ task }) {
    count(task.id, 'run')
    return Promise.reject(new Error('It never works.'))
  },
})

export const queueTools: readonly Tool[] = [chores, nap, callMe, secondTry, poison]
