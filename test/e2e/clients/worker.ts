/** A Worker with what clients that we did not write are tried on: work that lasts, asks, and fails. */
import { z } from 'zod'
import { createLonghaul, defineTool, toolError } from '../../../src/index'

export { TaskObject, TenantObject } from '../../../src/index'

const greet = defineTool({
  name: 'greet',
  description: 'Says hello.',
  input: z.object({ name: z.string() }),
  run: async ({ input }) => `Hello, ${input.name}!`,
})

const confirm = defineTool({
  name: 'confirm',
  description: 'Asks before it goes on.',
  input: z.object({ what: z.string() }),
  task: { poll: { min: 200, max: 200 } },
  asks: ['elicitation'],
  async run({ input, step }) {
    await step.status(`Asking about ${input.what}`)
    const answer = await step.elicit('sure', {
      message: `Really ${input.what}?`,
      schema: z.object({ confirm: z.boolean() }),
    })
    const yes = answer.action === 'accept' && answer.content.confirm
    return yes ? `Did ${input.what}.` : `Left ${input.what} alone.`
  },
})

const count = defineTool({
  name: 'count',
  description: 'Counts, with pauses.',
  input: z.object({ to: z.int(), pauseMs: z.int() }),
  task: { poll: { min: 200, max: 200 } },
  async run({ input, step }) {
    for (let i = 1; i <= input.to; i++) {
      await step.status({ message: 'Counting', done: i, total: input.to })
      await step.sleep(`pause ${i}`, input.pauseMs)
    }
    return { content: [{ type: 'text', text: 'Counted.' }], structuredContent: { counted: input.to } }
  },
  output: z.object({ counted: z.int() }),
})

const reject = defineTool({
  name: 'reject',
  description: 'Fails in its own words.',
  input: z.object({}),
  task: { support: 'required', poll: { min: 200, max: 200 } },
  run: async () => toolError('The disk is full.'),
})

export default createLonghaul({
  name: 'client-tests',
  version: '1.0.0',
  tools: [greet, confirm, count, reject],
})
