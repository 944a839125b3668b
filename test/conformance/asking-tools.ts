/**
 * What the scenarios of revision 2025-11-25 ask for beyond those of 2026-07-28: tools that put a question
 * in the middle of a call. They are task tools, so that the call waits in its task and the question
 * travels on the stream of the call, with no session behind it.
 */
import { z } from 'zod'
import { defineTool, type Json, type Tool } from '../../src/index'

const sampling = defineTool({
  name: 'test_sampling',
  description: 'Passes a prompt to the model of the client.',
  input: z.object({ prompt: z.string() }),
  asks: ['sampling'],
  async run({ input, step }) {
    const messages = [{ role: 'user', content: { type: 'text', text: input.prompt } }]
    const params = { messages, maxTokens: 100 }
    const reply = await step.request('reply', { method: 'sampling/createMessage', params })
    return `LLM response: ${JSON.stringify(reply)}`
  },
})

const elicitation = defineTool({
  name: 'test_elicitation',
  description: 'Asks the user for name and address.',
  input: z.object({ message: z.string() }),
  asks: ['elicitation'],
  async run({ input, step }) {
    const schema = z.object({
      username: z.string().describe("User's response"),
      email: z.string().describe("User's email address"),
    })
    return `User response: ${JSON.stringify(await step.elicit('who', { message: input.message, schema }))}`
  },
})

const defaults = defineTool({
  name: 'test_elicitation_sep1034_defaults',
  description: 'Asks with a default for every kind of field.',
  input: z.object({}),
  asks: ['elicitation'],
  async run({ step }) {
    const schema = z.object({
      name: z.string().default('John Doe'),
      age: z.int().default(30),
      score: z.number().default(95.5),
      status: z.enum(['active', 'inactive', 'pending']).default('active'),
      verified: z.boolean().default(true),
    })
    const answer = await step.elicit('form', { message: 'Please check these.', schema })
    return completed(answer)
  },
})

const enums = defineTool({
  name: 'test_elicitation_sep1330_enums',
  description: 'Asks with every kind of choice.',
  input: z.object({}),
  asks: ['elicitation'],
  async run({ step }) {
    const params = { mode: 'form', message: 'Please choose.', requestedSchema: CHOICES }
    return completed(await step.request('choices', { method: 'elicitation/create', params }))
  },
})

const reconnection = defineTool({
  name: 'test_reconnection',
  description: 'Takes long enough for its stream to be cut off and resumed.',
  input: z.object({}),
  async run({ step }) {
    await step.sleep('a while', '2 seconds')
    return 'Still here.'
  },
})

function completed(answer: Json | { action: string; content?: unknown }): string {
  const { action, content } = answer as { action: string; content?: unknown }
  return `Elicitation completed: action=${action}, content=${JSON.stringify(content ?? {})}`
}

const titled = (one: string, two: string, three: string) => [
  { const: 'value1', title: one },
  { const: 'value2', title: two },
  { const: 'value3', title: three },
]
const OPTIONS = ['option1', 'option2', 'option3']

const CHOICES = {
  type: 'object',
  properties: {
    untitledSingle: { type: 'string', enum: OPTIONS },
    titledSingle: { type: 'string', oneOf: titled('First Option', 'Second Option', 'Third Option') },
    legacyEnum: {
      type: 'string',
      enum: ['opt1', 'opt2', 'opt3'],
      enumNames: ['Option One', 'Option Two', 'Option Three'],
    },
    untitledMulti: { type: 'array', items: { type: 'string', enum: OPTIONS } },
    titledMulti: { type: 'array', items: { anyOf: titled('First Choice', 'Second Choice', 'Third Choice') } },
  },
}

export const askingTools: readonly Tool[] = [sampling, elicitation, defaults, enums, reconnection]
