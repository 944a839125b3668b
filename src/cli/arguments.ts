/** Arguments and answers from the command line: `key=value`, read by the schema, or `key:=json`. Pure. */
import { isObject, type Json, type JsonObject } from '../json.ts'
import { accept, decline, type Question, type QuestionResponse } from '../client/index.ts'
import { UsageError } from './exit.ts'
import { fieldsOf, readJson, readText } from '../form/fields.ts'

/** The arguments of a call: `--args` first, single ones over it. @throws UsageError */
export function readArguments(
  pairs: readonly string[],
  json: string | undefined,
  schema: JsonObject | undefined,
): JsonObject {
  const whole = json === undefined ? {} : valueOf('--args', json)
  if (!isObject(whole)) throw new UsageError('--args must be a JSON object.')
  const args: Record<string, Json> = { ...whole }
  const fields = new Map(fieldsOf(schema).map((field) => [field.name, field]))
  for (const pair of pairs) {
    const [, name, kind, text] = /^([^=:]+)(:=|=)(.*)$/s.exec(pair) ?? []
    if (name === undefined || text === undefined) {
      throw new UsageError(`--arg ${pair} is neither key=value nor key:=json.`)
    }
    const reading = kind === ':=' ? readJson(text) : readText(fields.get(name)?.schema ?? {}, text)
    if (!reading.ok) throw new UsageError(`--arg ${pair}: ${reading.problem}.`)
    args[name] = reading.value
  }
  return args
}

function valueOf(option: string, json: string): Json {
  const reading = readJson(json)
  if (!reading.ok) throw new UsageError(`${option} is not JSON.`)
  return reading.value
}

/** Answers that were given beforehand: by key, as text. @throws UsageError */
export function readAnswers(pairs: readonly string[]): ReadonlyMap<string, string> {
  return new Map(
    pairs.map((pair) => {
      const at = pair.indexOf('=')
      if (at < 1) throw new UsageError(`--answer ${pair} is not key=value.`)
      return [pair.slice(0, at), pair.slice(at + 1)]
    }),
  )
}

/**
 * What an answer given as text means for a question: `decline`, an object of fields, or the value of the
 * only field. @throws UsageError
 */
export function readAnswer(question: Question, text: string): QuestionResponse {
  if (text === 'decline') return decline()
  if (question.kind !== 'form') return accept()
  const parsed = readJson(text)
  if (parsed.ok && isObject(parsed.value)) return accept(parsed.value)
  const [field, ...others] = fieldsOf(question.schema)
  if (!field || others.length > 0) {
    throw new UsageError(`The answer to "${question.key}" must be a JSON object of its fields, or "decline".`)
  }
  const reading = readText(field.schema, text)
  if (!reading.ok) throw new UsageError(`The answer to "${question.key}" does not fit: ${reading.problem}.`)
  return accept({ [field.name]: reading.value })
}
