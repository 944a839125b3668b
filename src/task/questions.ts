/**
 * Does an answer fit its question? And how a question is put again when it does not.
 * Pure. Clients never ask one key twice, so a question whose answer did not fit is
 * superseded by the same question under a new key, with a message that says what was wrong.
 */
import { z } from 'zod'
import { isObject, type Json, type JsonObject } from '../json'
import type { InputRequest } from './types'

/** After this many answers that do not fit, the question counts as cancelled. */
export const MAX_TRIES = 3

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
  const checked = z.fromJSONSchema(schema).safeParse(content ?? {})
  if (!checked.success) return { fits: false, problem: describe(checked.error) }
  return { fits: true, answer: { action, content: content ?? {} } }
}

function judgeBy(schema: z.ZodType, response: Json): Judgement {
  const parsed = schema.safeParse(response)
  return parsed.success ? { fits: true, answer: response } : { fits: false, problem: describe(parsed.error) }
}

/** `name: Too small; confirm: expected boolean`: for people, so without codes. */
export function describe(error: z.ZodError): string {
  return error.issues
    .map((issue) => (issue.path.length > 0 ? `${issue.path.join('.')}: ${issue.message}` : issue.message))
    .join('; ')
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
