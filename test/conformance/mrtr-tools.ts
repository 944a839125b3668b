/** Tools of the `input-required-result-*` scenarios: multi-round-trip requests by the SDK's own API. */
import {
  acceptedContent,
  CLIENT_CAPABILITIES_META_KEY,
  type ClientCapabilities,
  inputRequired,
  inputResponse,
  type McpServer,
  type ServerContext,
} from '@modelcontextprotocol/server'
import { z } from 'zod'
import type { SealState } from '../../src/index'

const Name = z.object({ name: z.string() })
const Color = z.object({ color: z.string() })
const Ok = z.object({ ok: z.boolean() })

const askName = inputRequired.elicit({ message: 'What is your name?', requestedSchema: Name })
const askOk = inputRequired.elicit({ message: 'Please confirm', requestedSchema: Ok })
const askRoots = inputRequired.listRoots()
const askModel = (prompt: string) =>
  inputRequired.createMessage({
    messages: [{ role: 'user', content: { type: 'text', text: prompt } }],
    maxTokens: 100,
  })

const text = (value: string) => ({ content: [{ type: 'text' as const, text: value }] })

export function registerMrtrTools(server: McpServer, sealState: SealState): void {
  registerSingleQuestions(server)
  registerStateful(server, sealState)
}

/** One question, no state: the answers are in the next request. */
function registerSingleQuestions(server: McpServer): void {
  const byName = ({ mcpReq }: ServerContext) => {
    const answer = acceptedContent(mcpReq.inputResponses, 'user_name', Name)
    return answer ? text(`Hello, ${answer.name}!`) : inputRequired({ inputRequests: { user_name: askName } })
  }
  server.registerTool('test_input_required_result_elicitation', { description: 'Asks for a name.' }, byName)
  server.registerTool('test_streaming_elicitation', { description: 'Asks for a name.' }, byName)
  server.registerTool(
    'test_input_required_result_sampling',
    { description: 'Asks the model for a capital.' },
    ({ mcpReq }) => {
      const answer = inputResponse(mcpReq.inputResponses, 'capital_question')
      return answer.kind === 'sampling'
        ? text(JSON.stringify(answer.result.content))
        : inputRequired({
            inputRequests: { capital_question: askModel('What is the capital of France?') },
          })
    },
  )
  server.registerTool(
    'test_input_required_result_list_roots',
    { description: 'Asks for the roots.' },
    ({ mcpReq }) => {
      const answer = inputResponse(mcpReq.inputResponses, 'client_roots')
      return answer.kind === 'roots'
        ? text(answer.roots.map((root) => root.uri).join('\n'))
        : inputRequired({ inputRequests: { client_roots: askRoots } })
    },
  )
  server.registerTool(
    'test_input_required_result_capabilities',
    { description: 'Asks only in ways that the client declared.' },
    ({ mcpReq }) => {
      // The envelope's type has lost its keys; the SDK has checked what is in it.
      const envelope: { [CLIENT_CAPABILITIES_META_KEY]?: ClientCapabilities } | undefined = mcpReq.envelope
      const declared = envelope?.[CLIENT_CAPABILITIES_META_KEY] ?? {}
      return inputRequired({
        inputRequests: {
          ...(declared.elicitation && { user_name: askName }),
          ...(declared.sampling && { greeting: askModel('Generate a greeting') }),
          ...(declared.roots && { client_roots: askRoots }),
        },
      })
    },
  )
}

/** What was answered in earlier rounds travels in the sealed state. */
function registerStateful(server: McpServer, sealState: SealState): void {
  for (const name of [
    'test_input_required_result_request_state',
    'test_input_required_result_tampered_state',
  ]) {
    server.registerTool(name, { description: 'Asks for a confirmation, with state.' }, async (context) => {
      const state = context.mcpReq.requestState<{ asked: string }>()
      const answer = acceptedContent(context.mcpReq.inputResponses, 'confirm', Ok)
      if (state && answer) return text(`${state.asked}: ${answer.ok}`)
      return inputRequired({
        inputRequests: { confirm: askOk },
        requestState: await sealState(context, { asked: 'confirm' }),
      })
    })
  }
  server.registerTool(
    'test_input_required_result_multiple_inputs',
    { description: 'Asks three things at once.' },
    async (context) => {
      const { inputResponses } = context.mcpReq
      const name = acceptedContent(inputResponses, 'user_name', Name)
      const greeting = inputResponse(inputResponses, 'greeting')
      const roots = inputResponse(inputResponses, 'client_roots')
      if (name && greeting.kind === 'sampling' && roots.kind === 'roots') {
        return text(`${JSON.stringify(greeting.result.content)}, ${name.name}: ${roots.roots.length} roots.`)
      }
      return inputRequired({
        inputRequests: {
          user_name: askName,
          greeting: askModel('Generate a greeting'),
          client_roots: askRoots,
        },
        requestState: await sealState(context, { asked: 3 }),
      })
    },
  )
  server.registerTool(
    'test_input_required_result_multi_round',
    { description: 'Asks one thing after the other.' },
    async (context) => {
      const { inputResponses } = context.mcpReq
      const known = context.mcpReq.requestState<{ name?: string }>()
      const name = known?.name ?? acceptedContent(inputResponses, 'step1', Name)?.name
      if (name === undefined) {
        return inputRequired({
          inputRequests: {
            step1: inputRequired.elicit({ message: 'Step 1: What is your name?', requestedSchema: Name }),
          },
          requestState: await sealState(context, {}),
        })
      }
      const color = acceptedContent(inputResponses, 'step2', Color)?.color
      if (color !== undefined) return text(`${name} likes ${color}.`)
      return inputRequired({
        inputRequests: {
          step2: inputRequired.elicit({
            message: 'Step 2: What is your favorite color?',
            requestedSchema: Color,
          }),
        },
        requestState: await sealState(context, { name }),
      })
    },
  )
}
