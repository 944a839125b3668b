/** Plain tools of the core scenarios: every kind of content, errors, progress, logging, JSON Schema. */
import { fromJsonSchema, inputRequired, type McpServer } from '@modelcontextprotocol/server'
import { RED_DOT_PNG, SILENCE_WAV } from './media'

export function registerCoreTools(server: McpServer): void {
  registerContent(server)
  registerSignals(server)
  registerRefusals(server)
  registerChanges(server)
  server.registerTool(
    'json_schema_2020_12_tool',
    {
      description: 'Its input schema uses the wider vocabulary of JSON Schema 2020-12.',
      inputSchema: fromJsonSchema(CONTACT_SCHEMA),
    },
    (input) => text(`Received ${JSON.stringify(input)}`),
  )
}

const text = (value: string) => ({ content: [{ type: 'text' as const, text: value }] })
const image = { type: 'image' as const, data: RED_DOT_PNG, mimeType: 'image/png' }

function registerContent(server: McpServer): void {
  server.registerTool('test_simple_text', { description: 'Answers with a text.' }, () =>
    text('This is a simple text response for testing.'),
  )
  server.registerTool('test_image_content', { description: 'Answers with an image.' }, () => ({
    content: [image],
  }))
  server.registerTool('test_audio_content', { description: 'Answers with a sound.' }, () => ({
    content: [{ type: 'audio', data: SILENCE_WAV, mimeType: 'audio/wav' }],
  }))
  server.registerTool('test_embedded_resource', { description: 'Answers with a resource.' }, () => ({
    content: [
      {
        type: 'resource',
        resource: {
          uri: 'test://embedded-resource',
          mimeType: 'text/plain',
          text: 'This is an embedded resource content.',
        },
      },
    ],
  }))
  server.registerTool('test_multiple_content_types', { description: 'Answers with a mixture.' }, () => ({
    content: [
      { type: 'text', text: 'Multiple content types test:' },
      image,
      {
        type: 'resource',
        resource: {
          uri: 'test://mixed-content-resource',
          mimeType: 'application/json',
          text: JSON.stringify({ test: 'data', value: 123 }),
        },
      },
    ],
  }))
}

/** What a tool sends before its result. */
function registerSignals(server: McpServer): void {
  server.registerTool(
    'test_tool_with_progress',
    { description: 'Reports 0, 50 and 100 of 100.' },
    async ({ mcpReq }) => {
      const progressToken = mcpReq['_meta']?.progressToken
      for (const progress of [0, 50, 100]) {
        if (progressToken !== undefined) {
          await mcpReq.notify({
            method: 'notifications/progress',
            params: { progressToken, progress, total: 100 },
          })
        }
        await scheduler.wait(50)
      }
      return text('Done.')
    },
  )
  server.server.registerCapabilities({ logging: {} })
  server.registerTool(
    'test_logging_tool',
    { description: 'Logs, for those who asked for a log level.' },
    async ({ mcpReq }) => {
      await mcpReq.log('info', 'Working.')
      return text('Logged.')
    },
  )
  // Revision 2025-11-25.
  server.registerTool(
    'test_tool_with_logging',
    { description: 'Logs three times, with pauses.' },
    async ({ mcpReq }) => {
      for (const message of ['Tool execution started', 'Tool processing data', 'Tool execution completed']) {
        await mcpReq.log('info', message)
        await scheduler.wait(50)
      }
      return text('Logged.')
    },
  )
}

function registerRefusals(server: McpServer): void {
  server.registerTool('test_error_handling', { description: 'Always throws.' }, () => {
    throw new Error('This tool intentionally returns an error for testing')
  })
  server.registerTool('test_missing_capability', { description: 'Cannot do without sampling.' }, () =>
    inputRequired({
      inputRequests: {
        thought: inputRequired.createMessage({
          messages: [{ role: 'user', content: { type: 'text', text: 'Think of a number.' } }],
          maxTokens: 10,
        }),
      },
    }),
  )
}

/** Tools that come and go, so that the lists really change while a listener listens. */
const added = { tool: false, prompt: false }

function registerChanges(server: McpServer): void {
  server.registerTool('test_trigger_tool_change', { description: 'Adds or removes a tool.' }, () => {
    added.tool = !added.tool
    return text(added.tool ? 'Added test_dynamic_tool.' : 'Removed test_dynamic_tool.')
  })
  server.registerTool('test_trigger_prompt_change', { description: 'Adds or removes a prompt.' }, () => {
    added.prompt = !added.prompt
    return text(added.prompt ? 'Added test_dynamic_prompt.' : 'Removed test_dynamic_prompt.')
  })
  if (added.tool) {
    server.registerTool('test_dynamic_tool', { description: 'Here for now.' }, () => text('Here.'))
  }
  if (added.prompt) {
    server.registerPrompt('test_dynamic_prompt', { description: 'Here for now.' }, () => ({
      messages: [{ role: 'user', content: { type: 'text', text: 'Here.' } }],
    }))
  }
}

const CONTACT_SCHEMA = {
  $schema: 'https://json-schema.org/draft/2020-12/schema',
  type: 'object',
  $defs: {
    address: {
      $anchor: 'addressDef',
      type: 'object',
      properties: { street: { type: 'string' }, city: { type: 'string' } },
    },
  },
  properties: {
    name: { type: 'string' },
    address: { $ref: '#/$defs/address' },
    contactMethod: { type: 'string', enum: ['phone', 'email'] },
    phone: { type: 'string' },
    email: { type: 'string' },
  },
  allOf: [{ anyOf: [{ required: ['phone'] }, { required: ['email'] }] }],
  if: { properties: { contactMethod: { const: 'phone' } }, required: ['contactMethod'] },
  // oxlint-disable-next-line unicorn/no-thenable -- the word of JSON Schema; nothing awaits this object
  then: { required: ['phone'] },
  else: { required: ['email'] },
  additionalProperties: false,
}
