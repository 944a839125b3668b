/** Prompts of the core scenarios: arguments with completion, media, and one that asks first. */
import { acceptedContent, completable, inputRequired, type McpServer } from '@modelcontextprotocol/server'
import { z } from 'zod'
import { RED_DOT_PNG } from './media'

const Context = z.object({ context: z.string() })

const user = (text: string) => ({ role: 'user' as const, content: { type: 'text' as const, text } })

export function registerPrompts(server: McpServer): void {
  server.registerPrompt('test_simple_prompt', { description: 'A prompt without arguments.' }, () => ({
    messages: [user('This is a simple prompt for testing.')],
  }))
  server.registerPrompt(
    'test_prompt_with_arguments',
    {
      description: 'A prompt with two arguments.',
      argsSchema: z.object({
        arg1: completable(z.string().describe('First test argument'), (start) =>
          ['test', 'testing', 'tested'].filter((value) => value.startsWith(start)),
        ),
        arg2: z.string().describe('Second test argument'),
      }),
    },
    ({ arg1, arg2 }) => ({
      messages: [user(`Prompt with arguments: arg1='${arg1}', arg2='${arg2}'`)],
    }),
  )
  server.registerPrompt(
    'test_prompt_with_embedded_resource',
    {
      description: 'A prompt that embeds a resource.',
      argsSchema: z.object({ resourceUri: z.string().describe('The resource to embed') }),
    },
    ({ resourceUri }) => ({
      messages: [
        {
          role: 'user',
          content: {
            type: 'resource',
            resource: {
              uri: resourceUri,
              mimeType: 'text/plain',
              text: 'Embedded resource content for testing.',
            },
          },
        },
        user('Please process the embedded resource above.'),
      ],
    }),
  )
  server.registerPrompt('test_prompt_with_image', { description: 'A prompt with an image.' }, () => ({
    messages: [
      { role: 'user', content: { type: 'image', data: RED_DOT_PNG, mimeType: 'image/png' } },
      user('Please analyze the image above.'),
    ],
  }))
  server.registerPrompt(
    'test_input_required_result_prompt',
    { description: 'A prompt that asks for its context first.' },
    ({ mcpReq }) => {
      const answer = acceptedContent(mcpReq.inputResponses, 'user_context', Context)
      if (answer) return { messages: [user(`Use this context: ${answer.context}`)] }
      return inputRequired({
        inputRequests: {
          user_context: inputRequired.elicit({
            message: 'What context should the prompt use?',
            requestedSchema: Context,
          }),
        },
      })
    },
  )
}
