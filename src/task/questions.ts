/**
 * Does an answer fit its question? And how a question is put again when it does not.
 * Pure. Clients never ask one key twice, so a question whose answer did not fit is
 * superseded by the same question under a new key, with a message that says what was wrong.
 */
import { z } from 'zod'
import { isObject, type Json, type JsonObject, utf8Bytes } from '../json'
import type { InputRequest } from './types'

/** After this many answers that do not fit, the question counts as cancelled. */
export const MAX_TRIES = 3

/** The JSON of one journal entry: what a step returned, an answer, the payload of an event. */
export const MAX_ENTRY_BYTES = 128_000

export interface OpenQuestion {
  /** The step that asks. */
  readonly name: string
  /** The key clients see: unique over the life of the task. */
  readonly key: string
  readonly request: InputRequest
  /** 1 for the first time it is put. */
  readonly tries: number
}

export type Judgement =
  | { readonly fits: true; readonly answer: Json }
  | { readonly fits: false; readonly problem: string }

/** Judges what a client sent for a question. */
export function judge(request: InputRequest, response: Json): Judgement {
  const tooLarge = sizeProblem(response)
  if (tooLarge !== undefined) return { fits: false, problem: tooLarge }
  switch (request.method) {
    case 'elicitation/create':
      return judgeElicitation(request.params ?? {}, response)
    case 'sampling/createMessage':
      return judgeBy(SamplingResult, response)
    case 'roots/list':
      return judgeBy(RootsResult, response)
    default:
      return judgeBy(AnyResult, response)
  }
}

const SamplingResult = z.looseObject({
  role: z.enum(['user', 'assistant']),
  content: z.json(),
  model: z.string(),
})
const RootsResult = z.looseObject({ roots: z.array(z.looseObject({ uri: z.string() })) })
const AnyResult = z.looseObject({})
const ElicitResult = z.looseObject({
  action: z.enum(['accept', 'decline', 'cancel']),
  content: z.record(z.string(), z.json()).optional(),
})

function judgeElicitation(params: JsonObject, response: Json): Judgement {
  const parsed = ElicitResult.safeParse(response)
  if (!parsed.success) return { fits: false, problem: describe(parsed.error) }
  const { action, content } = parsed.data
  if (action !== 'accept') return { fits: true, answer: { action } }
  if (params['mode'] === 'url') return { fits: true, answer: { action } }
  const schema = params['requestedSchema']
  if (!isObject(schema)) return { fits: true, answer: { action, content: content ?? {} } }
  // The schema was made by our own converter, or by the tool author for `step.request`.
  const problem = problemBy(schema, content ?? {})
  if (problem !== undefined) return { fits: false, problem }
  return { fits: true, answer: { action, content: content ?? {} } }
}

function judgeBy(schema: z.ZodType, response: Json): Judgement {
  const parsed = schema.safeParse(response)
  return parsed.success ? { fits: true, answer: response } : { fits: false, problem: describe(parsed.error) }
}

/** Values from outside are bounded like everything in the journal. */
export function sizeProblem(value: Json): string | undefined {
  const bytes = utf8Bytes(JSON.stringify(value))
  return bytes > MAX_ENTRY_BYTES
    ? `It has ${bytes} bytes; at most ${MAX_ENTRY_BYTES} are accepted.`
    : undefined
}

/** What is wrong with a value by a JSON Schema, if anything. A schema that zod cannot read judges nothing. */
export function problemBy(schema: Record<string, unknown>, value: Json): string | undefined {
  let checked: z.ZodSafeParseResult<unknown>
  try {
    checked = z.fromJSONSchema(schema).safeParse(value)
  } catch {
    return undefined
  }
  return checked.success ? undefined : describe(checked.error)
}

const MAX_ISSUES = 5
const MAX_PROBLEM_CHARS = 500

/** `name: Too small; confirm: expected boolean`: for people, so without codes, and not without end. */
export function describe(error: z.ZodError): string {
  const text = error.issues
    .slice(0, MAX_ISSUES)
    .map((issue) => (issue.path.length > 0 ? `${issue.path.join('.')}: ${issue.message}` : issue.message))
    .join('; ')
  return text.length > MAX_PROBLEM_CHARS ? `${text.slice(0, MAX_PROBLEM_CHARS)} …` : text
}

/** The same question, put again. */
export function supersede(question: OpenQuestion, problem: string): OpenQuestion {
  const tries = question.tries + 1
  const params = question.request.params ?? {}
  const original = typeof params['message'] === 'string' ? params['message'].replace(AGAIN, '') : ''
  return {
    name: question.name,
    key: `${question.name}~${tries}`,
    tries,
    request: {
      ...question.request,
      params: { ...params, message: misfit(original, problem) },
    },
  }
}

/** A question put again says what was wrong. */
export function misfit(message: string, problem: string): string {
  return `${message}\n\nThe last answer did not fit: ${problem}`
}

const AGAIN = /\n\nThe last answer did not fit: [\s\S]*$/

/** The answer of somebody who does not answer. */
export function unanswered(request: InputRequest): Json {
  return request.method === 'elicitation/create'
    ? { action: 'cancel' }
    : { error: { code: -32603, message: 'The client did not give a usable answer.' } }
}
