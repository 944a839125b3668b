/**
 * What the `tasks-*` scenarios call, written as any tool author writes it.
 * `slow_compute` comes first: the header scenario calls the first tool listed, without arguments and
 * without Tasks, and so goes through the checks of a task tool.
 */
import { z } from 'zod'
import { defineTool, ProtocolError, type Tool, toolError } from '../../src/index'

const INTERNAL_ERROR = -32603

const slowCompute = defineTool({
  name: 'slow_compute',
  description: 'Works for some seconds, one step a second. Can be cancelled at any moment.',
  input: z.object({
    seconds: z.int().min(0).max(3600).default(0),
    label: z.string().default('unlabelled'),
  }),
  async run({ input, step }) {
    for (let second = 1; second <= input.seconds; second++) {
      await step.do(`second ${second}`, ({ signal }) => scheduler.wait(1_000, { signal }))
      await step.status({ message: `Computing ${input.label}`, done: second, total: input.seconds })
    }
    return `${input.label}: computed for ${input.seconds} s.`
  },
})

const greet = defineTool({
  name: 'greet',
  description: 'Says hello, at once.',
  input: z.object({ name: z.string() }),
  task: { support: 'none' },
  run: async ({ input }) => `Hello, ${input.name}!`,
})

const failingJob = defineTool({
  name: 'failing_job',
  description: 'Works for a second, then reports that it could not do it.',
  input: z.object({}),
  task: { support: 'required' },
  async run({ step }) {
    await step.do('work', ({ signal }) => scheduler.wait(1_000, { signal }))
    return toolError('The job could not be done.')
  },
})

const protocolErrorJob = defineTool({
  name: 'protocol_error_job',
  description: 'Breaks with a protocol error instead of a result.',
  input: z.object({}),
  async run() {
    throw new ProtocolError(INTERNAL_ERROR, 'The job broke.')
  },
})

const confirmDelete = defineTool({
  name: 'confirm_delete',
  description: 'Asks before it deletes. Deletes nothing.',
  input: z.object({ filename: z.string() }),
  asks: ['elicitation'],
  async run({ input, step }) {
    const answer = await step.elicit('confirm', {
      message: `Delete ${input.filename}?`,
      schema: z.object({ confirm: z.boolean() }),
    })
    const confirmed = answer.action === 'accept' && answer.content.confirm
    return confirmed ? `Deleted ${input.filename}.` : `Kept ${input.filename}.`
  },
})

const multiInput = defineTool({
  name: 'multi_input',
  description: 'Asks two questions at once.',
  input: z.object({}),
  asks: ['elicitation'],
  async run({ step }) {
    const [name, confirm] = await Promise.all([
      step.elicit('name', { message: 'What is your name?', schema: z.object({ name: z.string() }) }),
      step.elicit('confirm', { message: 'Go on?', schema: z.object({ confirm: z.boolean() }) }),
    ])
    return JSON.stringify({ name, confirm })
  },
})

const toolWithTask = defineTool({
  name: 'test_tool_with_task',
  description: 'Asks for a name by multi-round-trip, and becomes a task when it has it.',
  input: z.object({}),
  task: { support: 'required' },
  gather: { user_name: { message: 'What is your name?', schema: z.object({ name: z.string() }) } },
  async run({ gathered, step }) {
    const answer = gathered.user_name
    if (answer.action !== 'accept') return toolError('No name was given.')
    return step.do('greet', () => `Hello, ${answer.content.name}!`)
  },
})

const route = defineTool({
  name: 'test_x_mcp_header',
  description: 'Takes an argument that clients mirror into a header.',
  input: z.object({ region: z.string().meta({ 'x-mcp-header': 'Region' }) }),
  run: async ({ input }) => `Region: ${input.region}`,
})

export const taskTools: readonly Tool[] = [
  slowCompute,
  greet,
  failingJob,
  protocolErrorJob,
  confirmDelete,
  multiInput,
  toolWithTask,
  route,
]
