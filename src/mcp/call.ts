/**
 * `tools/call` of a task tool, revision 2026-07-28: everything that can be refused is refused
 * before a task exists; then the task is durable before the client hears of it.
 */
import { digest, seal, unseal } from '../auth/seal'
import type { Principal } from '../auth/principal'
import { isObject, type Json, type JsonObject } from '../json'
import {
  type Checked,
  errorResponse,
  INTERNAL_ERROR,
  INVALID_PARAMS,
  ok,
  refuse,
  resultText,
  type RpcRequest,
} from '../protocol/jsonrpc'
import {
  checkEnvelope,
  type ClientCapabilities,
  declaresTasks,
  missingCapability,
  type ModernRequest,
  tasksRequired,
} from '../protocol/modern'
import { checkParamHeaders } from '../protocol/param-headers'
import { allows, capabilityFor } from '../run/asks'
import { elicitation } from '../run/step'
import { callTask } from '../run/stub'
import { describe, judge } from '../task/questions'
import type { TaskSnapshot } from '../task/types'
import { type Ask, type TaskTool, toolError } from '../tool'
import type { Services } from './services'

/** A gathering round is answered within this time, or starts again. */
const GATHER_TTL_MS = 15 * 60_000

export interface CallContext {
  readonly services: Services
  readonly principal: Principal
  /** Origin of this server as the caller sees it. */
  readonly baseUrl: string
  readonly headers: Headers
}

export async function answerToolCall(
  rpc: RpcRequest,
  tool: TaskTool,
  context: CallContext,
): Promise<Response> {
  const checked = checkEnvelope(rpc, context.headers, 'name')
  if (!checked.ok) return errorResponse(rpc.id, checked.error, 400)
  const request = checked.value
  const { services } = context
  const { capabilities, params, id } = request

  const args = params['arguments'] ?? {}
  if (!isObject(args)) {
    return errorResponse(id, refuse(INVALID_PARAMS, 'Invalid params: "arguments" must be an object.').error)
  }
  const mirrored = checkParamHeaders(services.paramHeaders.get(tool.name) ?? [], args, context.headers)
  if (!mirrored.ok) return errorResponse(id, mirrored.error)

  const allowed = mayCall(tool, capabilities)
  if (!allowed.ok) return errorResponse(id, allowed.error)

  const input = await tool.input.safeParseAsync(args)
  if (!input.success) {
    const text = `Invalid arguments for ${tool.name}: ${describe(input.error)}`
    return resultText(id, services.modern.result(toolError(text)))
  }
  const inputText = JSON.stringify(args)
  const gathering = await gather(tool, request, inputText, context)
  if (!gathering.ok) return errorResponse(id, gathering.error)
  if ('ask' in gathering.value) return resultText(id, services.modern.result(gathering.value.ask))

  const taskId = await services.ids.mint(context.principal.tenant)
  const { gathered } = gathering.value
  const snapshot = await callTask(services.stubs, taskId, (task) =>
    task.create({
      taskId,
      principal: context.principal,
      dialect: '2026-07-28',
      // From JSON.parse, so JSON.
      capabilities: capabilities as JsonObject,
      tool: tool.name,
      input: inputText,
      gathered,
      baseUrl: context.baseUrl,
      lineage: taskId,
      policy: services.policyOf(tool),
    }),
  )
  if (declaresTasks(capabilities)) return resultText(id, services.modern.created(snapshot))
  return block(request, taskId, context)
}

/** `required` needs the extension; questions need what they ask for. Said before any work. */
function mayCall(tool: TaskTool, capabilities: ClientCapabilities): Checked<undefined> {
  if (tool.task?.support === 'required' && !declaresTasks(capabilities)) return tasksRequired()
  const asks: readonly Ask[] = tool.gather ? ['elicitation', ...(tool.asks ?? [])] : (tool.asks ?? [])
  const missing = asks.filter((ask) => !allows(capabilities, ask))
  if (missing.length === 0) return ok(undefined)
  const required = Object.assign({}, ...missing.map(capabilityFor)) as JsonObject
  return missingCapability(required, `${tool.name} may ask for ${missing.join(', ')}`)
}

type Gathering = { readonly gathered: JsonObject } | { readonly ask: Record<string, unknown> }

/**
 * Settles the tool's `gather` questions by MRTR (SEP-2322). The server keeps nothing between the
 * rounds: what was answered travels in the sealed `requestState`, bound to tenant, tool and arguments.
 */
async function gather(
  tool: TaskTool,
  { params }: ModernRequest,
  inputText: string,
  { services, principal }: CallContext,
): Promise<Checked<Gathering>> {
  const questions = Object.entries(tool.gather ?? {})
  if (questions.length === 0) return ok({ gathered: {} })
  const audience = [principal.tenant, tool.name, await digest(inputText)]
  const gathered: Record<string, Json> = {}
  const state = params['requestState']
  if (state !== undefined) {
    const opened =
      typeof state === 'string' ? await unseal(services.keys, 'request-state', audience, state) : undefined
    if (!opened || !isObject(opened['gathered'])) {
      return refuse(INVALID_PARAMS, 'Invalid params: "requestState" is damaged, expired, or of another call.')
    }
    Object.assign(gathered, opened['gathered'])
  }
  const responses = isObject(params['inputResponses']) ? params['inputResponses'] : {}
  const inputRequests: Record<string, unknown> = {}
  for (const [key, { message, schema }] of questions) {
    if (key in gathered) continue
    const request = elicitation(message, schema)
    // From JSON.parse, so JSON.
    const response = Object.hasOwn(responses, key) ? (responses[key] as Json) : undefined
    const verdict = response === undefined ? undefined : judge(request, response)
    if (verdict?.fits) gathered[key] = verdict.answer
    else
      inputRequests[key] = verdict
        ? elicitation(`${message}\n\nThe last answer did not fit: ${verdict.problem}`, schema)
        : request
  }
  if (Object.keys(inputRequests).length === 0) return ok({ gathered })
  const requestState = await seal(
    services.keys,
    'request-state',
    audience,
    { gathered },
    Date.now() + GATHER_TTL_MS,
  )
  return ok({ ask: { resultType: 'input_required', inputRequests, requestState } })
}

/** A client without Tasks waits for the end of the task in one call. */
async function block({ id }: ModernRequest, taskId: string, context: CallContext): Promise<Response> {
  const { services, principal } = context
  const until = Date.now() + services.limits.blockForMs
  for (let wait = 50; ; wait = Math.min(wait * 1.5, 1_000)) {
    await scheduler.wait(wait)
    const text = await callTask(services.stubs, taskId, (task) => task.read(principal.tenant))
    // Written by the object itself.
    const task = text === null ? undefined : (JSON.parse(text) as TaskSnapshot)
    if (task?.status === 'completed') return resultText(id, services.modern.result(task.result ?? {}))
    if (task?.status === 'failed') {
      return errorResponse(id, task.error ?? { code: INTERNAL_ERROR, message: 'Internal error' }, 200)
    }
    if (task?.status === 'cancelled' || task === undefined) {
      return resultText(id, services.modern.result(toolError('The work was cancelled.')))
    }
    if (Date.now() >= until) {
      const sentence = `The work is not done after ${services.limits.blockForMs} ms and goes on. Use a client with MCP Tasks to follow it.`
      return resultText(id, services.modern.result(toolError(sentence)))
    }
  }
}
