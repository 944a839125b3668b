/**
 * The answers to a tool's `gather` questions. Clients of revision 2026-07-28 settle them before the task
 * exists; for others, whose calls cannot go back and forth, the task asks them before the work begins.
 */
import type { JsonObject } from '../json'
import type { Step, TaskTool } from '../tool'

export async function gatherRest(
  tool: TaskTool,
  answered: JsonObject,
  step: Step,
): Promise<Record<string, unknown>> {
  const answers = await Promise.all(
    Object.entries(tool.gather ?? {}).map(async ([key, question]) => [
      key,
      Object.hasOwn(answered, key) ? answered[key] : await step.elicit(`gather: ${key}`, question),
    ]),
  )
  return Object.fromEntries(answers) as Record<string, unknown>
}
