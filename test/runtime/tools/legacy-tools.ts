/** Tools for the tests of the 2025 revisions. */
import { z } from 'zod'
import { defineTool, ProtocolError, toolError, type Tool } from '../../../src/index'

const reject = defineTool({
  name: 'reject',
  description: 'Ends with a result that is an error.',
  input: z.object({}),
  run: async () => toolError('The disk is full.'),
})

const protocolError = defineTool({
  name: 'protocol_error',
  description: 'Ends with a JSON-RPC error.',
  input: z.object({}),
  async run() {
    throw new ProtocolError(-32602, 'No such branch.', { branch: 'main' })
  },
})

const plain = defineTool({
  name: 'plain',
  description: 'No task.',
  input: z.object({}),
  task: { support: 'none' },
  run: async () => 'plain result',
})

/** Asks for what only some clients have. */
const sample = defineTool({
  name: 'sample',
  description: 'Asks the model.',
  input: z.object({}),
  asks: ['sampling'],
  async run({ step }) {
    const params = { messages: [{ role: 'user', content: { type: 'text', text: 'Hi' } }], maxTokens: 10 }
    return JSON.stringify(await step.request('reply', { method: 'sampling/createMessage', params }))
  },
})

/** Asks by a link, then says what it heard. */
const link = defineTool({
  name: 'link',
  description: 'Asks to open a link.',
  input: z.object({}),
  asks: ['elicitation.url'],
  async run({ step }) {
    const params = { mode: 'url', message: 'Sign in.', url: 'https://example.com/sign-in' }
    return JSON.stringify(await step.request('sign in', { method: 'elicitation/create', params }))
  },
})

/** Works without listening. */
const busy = defineTool({
  name: 'busy',
  description: 'Is busy for a while.',
  input: z.object({ ms: z.number().int() }),
  async run({ input, step }) {
    await step.do('work', () => scheduler.wait(input.ms))
    return 'Done.'
  },
})

/** Asks, and leaves word of its task for callers that do not hear of it. */
const askInTime = defineTool({
  name: 'ask_in_time',
  description: 'Asks one question.',
  input: z.object({ tag: z.string() }),
  asks: ['elicitation'],
  async run({ input, step, env, task }) {
    await step.do('leave word', async () => {
      await env.DB.exec('CREATE TABLE IF NOT EXISTS started (tag TEXT PRIMARY KEY, task TEXT)')
      await env.DB.prepare('INSERT OR REPLACE INTO started VALUES (?, ?)').bind(input.tag, task.id).run()
    })
    const answer = await step.elicit('sure', { message: 'Sure?', schema: z.object({ yes: z.boolean() }) })
    return answer.action
  },
})

/** Settles a question before it works; where calls cannot go back and forth, the task asks. */
const prepared = defineTool({
  name: 'prepared',
  description: 'Asks first.',
  input: z.object({}),
  gather: { place: { message: 'Where?', schema: z.object({ city: z.string() }) } },
  async run({ gathered, step }) {
    return step.do('go', () => JSON.stringify(gathered.place))
  },
})

export const legacyTools: readonly Tool[] = [
  reject,
  protocolError,
  plain,
  sample,
  link,
  busy,
  askInTime,
  prepared,
]
