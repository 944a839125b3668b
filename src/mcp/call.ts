/**
 * `tools/call` of a task tool, revision 2026-07-28: everything that can be refused is refused
 * before a task exists; then the task is durable before the client hears of it.
 */
import type { z } from 'zod'
import { digest, seal, unseal } from '../auth/seal'
import { isObject, type Json, type JsonObject } from '../json'
import {
  type Checked,
  errorResponse,
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
import { capabilityFor, missingAsks } from '../run/asks'
import { elicitation } from '../run/step'
import { callTask } from '../run/stub'
import { describe, judge, type Judgement, misfit as misfitText } from '../task/questions'
import type { InputRequest } from '../task/types'
import { type TaskTool, toolError } from '../tool'
import { answerBlocking, type Leg } from './block'
import { createTask, misfitOf, refusedCreation } from './create'
import type { Incoming } from './incoming'
import { REQUEST_STATE_TTL_MS } from './request-state'
import type { Services } from './services'

export async function answerToolCall(rpc: RpcRequest, tool: TaskTool, incoming: Incoming): Promise<Response> {
  const { services, principal, request } = incoming
  const checked = checkEnvelope(rpc, request.headers, 'name')
  if (!checked.ok) return errorResponse(rpc.id, checked.error, 400)
  const { capabilities, params, id } = checked.value

  const { arguments: args = {} } = params
  if (!isObject(args)) {
    return errorResponse(id, refuse(INVALID_PARAMS, 'Invalid params: "arguments" must be an object.').error)
  }
  const mirrored = checkParamHeaders(services.paramHeaders.get(tool.name) ?? [], args, request.headers)
  if (!mirrored.ok) return errorResponse(id, mirrored.error)
  const allowed = mayCall(tool, capabilities)
  if (!allowed.ok) return errorResponse(id, allowed.error)
  const misfit = await misfitOf(tool, args)
  if (misfit !== undefined) return resultText(id, services.modern.result(toolError(misfit)))

  const input = JSON.stringify(args)
  const audience = [principal.tenant, tool.name, await digest(input)]
  const state = await openState(params['requestState'], audience, services)
  if (!state.ok) return errorResponse(id, state.error)
  if ('taskId' in state.value) return comeBack(checked.value, { ...state.value, audience }, incoming)
  const gathering = await gather(tool, checked.value, state.value.gathered, audience, services)
  if ('ask' in gathering) return resultText(id, services.modern.result(gathering.ask))

  const { gathered } = gathering
  const task = { dialect: '2026-07-28', capabilities, input, gathered } as const
  if (declaresTasks(capabilities)) {
    const created = await createTask(tool, task, incoming)
    return created.ok
      ? resultText(id, services.modern.created(created.snapshot))
      : refusedCreation(id, created)
  }
  const leashMs = services.limits.blockForMs + services.limits.leashMs
  const created = await createTask(tool, { ...task, leashMs }, incoming)
  if (!created.ok) return refusedCreation(id, created)
  return answerBlocking(checked.value, { taskId: created.taskId, round: 0, audience }, incoming)
}

/** A retry of a call that went on: it brings answers, if there were questions, and waits again. */
async function comeBack(request: ModernRequest, leg: Leg, incoming: Incoming): Promise<Response> {
  const { services, principal } = incoming
  const responses = request.params['inputResponses']
  if (isObject(responses)) {
    // From JSON.parse, so JSON.
    await callTask(services.stubs, leg.taskId, (task) =>
      task.update(principal.tenant, responses as JsonObject),
    )
  }
  return answerBlocking(request, leg, incoming)
}

/** `required` needs the extension; questions need what they ask for. Said before any work. */
function mayCall(tool: TaskTool, capabilities: ClientCapabilities): Checked<undefined> {
  if (tool.task?.support === 'required' && !declaresTasks(capabilities)) return tasksRequired()
  const missing = missingAsks(tool, capabilities)
  if (missing.length === 0) return ok(undefined)
  const required = Object.assign({}, ...missing.map(capabilityFor)) as JsonObject
  return missingCapability(required, `${tool.name} may ask for ${missing.join(', ')}`)
}

/** What the client carries between the rounds of a call: answers gathered so far, or the task it waits for. */
type CallState =
  | { readonly gathered: Readonly<Record<string, Json>> }
  | { readonly taskId: string; readonly round: number }

async function openState(
  state: unknown,
  audience: readonly string[],
  { keys }: Services,
): Promise<Checked<CallState>> {
  if (state === undefined) return ok({ gathered: {} })
  const opened = typeof state === 'string' ? await unseal(keys, 'request-state', audience, state) : undefined
  if (typeof opened?.['taskId'] === 'string' && typeof opened['round'] === 'number') {
    return ok({ taskId: opened['taskId'], round: opened['round'] })
  }
  if (isObject(opened?.['gathered'])) return ok({ gathered: opened['gathered'] })
  return refuse(INVALID_PARAMS, 'Invalid params: "requestState" is damaged, expired, or of another call.')
}

type Gathering = { readonly gathered: JsonObject } | { readonly ask: Record<string, unknown> }

/**
 * Settles the tool's `gather` questions by MRTR (SEP-2322). The server keeps nothing between the
 * rounds: what was answered travels in the sealed `requestState`, bound to tenant, tool and arguments.
 */
async function gather(
  tool: TaskTool,
  { params }: ModernRequest,
  before: Readonly<Record<string, Json>>,
  audience: readonly string[],
  { keys }: Services,
): Promise<Gathering> {
  const gathered: Record<string, Json> = { ...before }
  const responses = isObject(params['inputResponses']) ? params['inputResponses'] : {}
  const inputRequests: Record<string, unknown> = {}
  for (const [key, { message, schema }] of Object.entries(tool.gather ?? {})) {
    if (Object.hasOwn(gathered, key)) continue
    const request = elicitation(message, schema)
    // From JSON.parse, so JSON.
    const response = Object.hasOwn(responses, key) ? (responses[key] as Json) : undefined
    const verdict = response === undefined ? undefined : await judgedFully(request, schema, response)
    if (verdict?.fits) gathered[key] = verdict.answer
    else inputRequests[key] = verdict ? elicitation(misfitText(message, verdict.problem), schema) : request
  }
  if (Object.keys(inputRequests).length === 0) return { gathered }
  const requestState = await seal(
    keys,
    'request-state',
    audience,
    { gathered },
    Date.now() + REQUEST_STATE_TTL_MS,
  )
  return { ask: { resultType: 'input_required', inputRequests, requestState } }
}

/** By the wire schema, and by what the tool's own schema can say beyond it (refinements). */
async function judgedFully(request: InputRequest, schema: z.ZodObject, response: Json): Promise<Judgement> {
  const verdict = judge(request, response)
  if (!verdict.fits || !isObject(verdict.answer) || verdict.answer['action'] !== 'accept') return verdict
  const parsed = await schema.safeParseAsync(verdict.answer['content'])
  return parsed.success ? verdict : { fits: false, problem: describe(parsed.error) }
}
