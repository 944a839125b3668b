/** From a checked call to a durable task: the same for every dialect. */
import { type JsonObject } from '../json'
import { callTask } from '../run/stub'
import { describe } from '../task/questions'
import type { Dialect } from '../task/types'
import type { TaskTool } from '../tool'
import { baseUrlOf, type Incoming } from './incoming'

/** Why the arguments do not fit, in words for the model (SEP-1303), or `undefined` when they do. */
export async function misfitOf(tool: TaskTool, args: Record<string, unknown>): Promise<string | undefined> {
  const parsed = await tool.input.safeParseAsync(args)
  return parsed.success ? undefined : `Invalid arguments for ${tool.name}: ${describe(parsed.error)}`
}

export interface NewTask {
  readonly dialect: Dialect
  readonly capabilities: Readonly<Record<string, unknown>>
  /** JSON text of the validated arguments. */
  readonly input: string
  readonly gathered?: JsonObject
  /** For a caller who cannot come back; see {@link CreateTask.leashMs}. */
  readonly leashMs?: number
  /** Instead of the tool's own, within the server's limit. */
  readonly ttlMs?: number
}

/** Durable when it returns. */
export async function createTask(
  tool: TaskTool,
  { dialect, capabilities, input, gathered = {}, leashMs, ttlMs }: NewTask,
  incoming: Incoming,
): Promise<{ readonly taskId: string; readonly snapshot: string }> {
  const { services, principal } = incoming
  const taskId = await services.ids.mint(principal.tenant)
  const policy = services.policyOf(tool)
  const snapshot = await callTask(services.stubs, taskId, (task) =>
    task.create({
      taskId,
      principal,
      dialect,
      // Out of JSON.parse, or out of our own signed session: JSON.
      capabilities: capabilities as JsonObject,
      tool: tool.name,
      input,
      gathered,
      baseUrl: baseUrlOf(incoming),
      lineage: taskId,
      policy: ttlMs === undefined ? policy : { ...policy, ttlMs: Math.min(ttlMs, services.limits.maxTtlMs) },
      ...(leashMs !== undefined && { leashMs }),
    }),
  )
  return { taskId, snapshot }
}
