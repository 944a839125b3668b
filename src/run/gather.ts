/**
 * The answers to a tool's `gather` questions. Clients of revision 2026-07-28 settle them before the task
 * exists; for others, whose calls cannot go back and forth, the task asks them before the work begins.
 */
import { isObject, type Json, type JsonObject } from '../json'
import { describe } from '../task/questions'
import { type Answer, NonRetryableError, type Question, type Step, type TaskTool } from '../tool'

/** @throws NonRetryableError when the tool has changed and no longer takes an answer that it got. */
export async function gatherAnswers(
  tool: TaskTool,
  answered: JsonObject,
  step: Step,
): Promise<Record<string, unknown>> {
  const answers = await Promise.all(
    Object.entries(tool.gather ?? {}).map(async ([key, question]) => [
      key,
      Object.hasOwn(answered, key)
        ? await read(key, question, answered[key])
        : await step.elicit(`gather: ${key}`, question),
    ]),
  )
  return Object.fromEntries(answers) as Record<string, unknown>
}

/** As the tool's own schema reads it: with defaults and transforms. */
async function read(key: string, { schema }: Question, answer: Json | undefined): Promise<Answer<unknown>> {
  if (!isObject(answer) || answer['action'] !== 'accept') {
    return { action: isObject(answer) && answer['action'] === 'decline' ? 'decline' : 'cancel' }
  }
  const parsed = await schema.safeParseAsync(answer['content'])
  if (parsed.success) return { action: 'accept', content: parsed.data }
  const problem = describe(parsed.error)
  throw new NonRetryableError(`The stored answer to ${JSON.stringify(key)} no longer fits: ${problem}`)
}
