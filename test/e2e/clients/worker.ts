/** A Worker with what clients that we did not write are tried on: work that lasts, asks, and fails. */
import { env } from 'cloudflare:workers'
import { z } from 'zod'
import { createLonghaul, defineTool, ProtocolError, toolError } from '../../../src/index'

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

const fail = defineTool({
  name: 'fail',
  description: 'Breaks.',
  input: z.object({}),
  task: { poll: { min: 200, max: 200 } },
  async run() {
    throw new ProtocolError(-31_000, 'The axle broke.', { part: 'axle' })
  },
})

const survey = defineTool({
  name: 'survey',
  description: 'Counts, asks, and counts on.',
  input: z.object({ to: z.int(), pauseMs: z.int() }),
  asks: ['elicitation'],
  async run({ input, step }) {
    const half = Math.ceil(input.to / 2)
    for (let i = 1; i <= input.to; i++) {
      await step.status({ message: 'Counting', done: i, total: input.to })
      await step.sleep(`pause ${i}`, input.pauseMs)
      if (i === half)
        await step.elicit('sure', { message: 'Go on?', schema: z.object({ confirm: z.boolean() }) })
    }
    return `Counted to ${input.to}.`
  },
})

const shout = defineTool({
  name: 'shout',
  description: 'Says something long, again and again.',
  input: z.object({ times: z.int(), chars: z.int(), pauseMs: z.int() }),
  async run({ input, step }) {
    for (let i = 1; i <= input.times; i++) {
      await step.status({ message: 'x'.repeat(input.chars), done: i, total: input.times })
      await step.do(`pause ${i}`, () => scheduler.wait(input.pauseMs))
    }
    return 'Hoarse.'
  },
})

export default createLonghaul({
  name: 'client-tests',
  version: '1.0.0',
  tools: [greet, confirm, count, reject, fail, survey, shout],
  // A leg of a call without Tasks is short, so that a short test has several.
  limits: { blockFor: Number((env as { BLOCK_FOR_MS?: string }).BLOCK_FOR_MS ?? 1_000), leash: '2 seconds' },
})
