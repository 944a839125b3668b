/** The Worker of the client's tests: small tools, one for each thing a caller can run into. */
import { z } from 'zod'
import { createLonghaul, defineTool, ProtocolError, toolError } from '../../../src/index'

export { TaskObject, TenantObject } from '../../../src/index'

const add = defineTool({
  name: 'add',
  description: 'Adds at once, without a task.',
  input: z.object({ a: z.number(), b: z.number() }),
  task: { support: 'none' },
  run: async ({ input }) => String(input.a + input.b),
})

const count = defineTool({
  name: 'count',
  description: 'Counts slowly, and says how far it is.',
  input: z.object({ to: z.int().describe('Where to stop'), ms: z.int().default(50) }),
  task: { poll: { min: 200, max: 400 } },
  async run({ input, step }) {
    for (let n = 1; n <= input.to; n++) {
      await step.do(`count ${n}`, () => scheduler.wait(input.ms))
      await step.status({ message: 'Counting', done: n, total: input.to })
    }
    return `Counted to ${input.to}.`
  },
})

const confirm = defineTool({
  name: 'confirm',
  description: 'Asks before it goes on.',
  input: z.object({ files: z.int().default(47) }),
  asks: ['elicitation'],
  task: { poll: { min: 200, max: 400 } },
  async run({ input, step }) {
    const schema = z.object({ confirm: z.boolean(), copies: z.int().min(1).max(5).default(1) })
    const answer = await step.elicit('confirm', { message: `Delete ${input.files} files?`, schema })
    return answer.action === 'accept' ? `${answer.content.confirm} ${answer.content.copies}` : answer.action
  },
})

const prepared = defineTool({
  name: 'prepared',
  description: 'Wants to know something before there is a task.',
  input: z.object({}),
  gather: { colour: { message: 'Which colour?', schema: z.object({ colour: z.string().min(2) }) } },
  task: { poll: { min: 200, max: 400 } },
  async run({ gathered }) {
    return gathered.colour.action === 'accept' ? gathered.colour.content.colour : gathered.colour.action
  },
})

const failing = defineTool({
  name: 'failing',
  description: 'Ends as it is told.',
  input: z.object({ as: z.enum(['error', 'failure']) }),
  async run({ input }) {
    if (input.as === 'error') return toolError('It went wrong.')
    throw new ProtocolError(-31_000, 'It broke.', { part: 'axle' })
  },
})

const routed = defineTool({
  name: 'routed',
  description: 'Has an argument that travels in a header as well.',
  input: z.object({ region: z.string().meta({ 'x-mcp-header': 'Region' }) }),
  async run({ input }) {
    return `In ${input.region}.`
  },
})

const tools = [add, count, confirm, prepared, failing, routed]
export default createLonghaul({ name: 'longhaul-client-tests', version: '1.0.0', tools })
