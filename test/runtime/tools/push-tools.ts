/** Tools for the tests of push: they change when they are told to. */
import { z } from 'zod'
import { defineTool, type Tool } from '../../../src/index'

const confirm = z.object({ confirm: z.boolean() })

/** Asks, then says what it heard. */
const ask = defineTool({
  name: 'ask',
  description: 'Asks one question.',
  input: z.object({}),
  asks: ['elicitation'],
  async run({ step }) {
    await step.status('Thinking')
    const answer = await step.elicit('sure', { message: 'Sure?', schema: confirm })
    return JSON.stringify(answer)
  },
})

/** Counts with a pause between, so that changes can be told apart. */
const count = defineTool({
  name: 'count',
  description: 'Counts to a number.',
  input: z.object({ to: z.number().int(), pauseMs: z.number().int().default(300) }),
  async run({ input, step }) {
    for (let i = 1; i <= input.to; i++) {
      await step.status({ message: 'Counting', done: i, total: input.to })
      await step.sleep(`pause ${i}`, input.pauseMs)
    }
    return `Counted to ${input.to}.`
  },
})

const big = defineTool({
  name: 'big',
  description: 'Returns a result too large to push.',
  input: z.object({ chars: z.number().int() }),
  async run({ input, step }) {
    await step.sleep('first', '1 second')
    return 'x'.repeat(input.chars)
  },
})

const required = defineTool({
  name: 'needs_tasks',
  description: 'Only for clients with Tasks.',
  input: z.object({}),
  task: { support: 'required' },
  run: async () => 'done',
})

export const pushTools: readonly Tool[] = [ask, count, big, required]
