/** Asks a person on the terminal, field by field. Everything goes to stderr; stdout is for results. */
import type { Readable, Writable } from 'node:stream'
import { confirm, isCancel, log, multiselect, note, select, text } from '@clack/prompts'
import { isObject, type Json, type JsonObject } from '../json.ts'
import { accept, decline, type Question, type QuestionResponse } from '../client/index.ts'
import { plain } from './plain.ts'
import { choicesOf, type Field, fieldsOf, readText, show } from '../form/fields.ts'

/** The person does not want to answer now. */
export const LEAVE = Symbol('leave')

/** Where the person is. */
export interface Terminal {
  readonly input: Readable
  readonly output: Writable
}

const here: Terminal = { input: process.stdin, output: process.stderr }

/** Puts a question. `LEAVE` keeps it open. */
export async function askPerson(
  question: Question,
  signal: AbortSignal,
  terminal: Terminal = here,
): Promise<QuestionResponse | typeof LEAVE> {
  for (;;) {
    const answer = await askOnce(question, { ...terminal, signal })
    if (answer !== LEAVE || signal.aborted) return answer
    const choice = await select({
      message: 'No answer yet. What now?',
      options: [
        { value: 'back', label: 'Answer after all' },
        { value: 'decline', label: 'Decline', hint: 'the tool goes on without an answer' },
        { value: 'leave', label: 'Leave it open', hint: 'the task waits; come back any time' },
      ],
      ...terminal,
      signal,
    })
    if (choice === 'decline') return decline()
    if (choice !== 'back') return LEAVE
  }
}

interface Place extends Terminal {
  readonly signal?: AbortSignal
}

async function askOnce(question: Question, place: Place): Promise<QuestionResponse | typeof LEAVE> {
  const message = plain(question.message)
  if (question.kind === 'url') {
    note(plain(question.url ?? ''), message, place)
    const done = await confirm({ message: 'Open this address. Done?', ...place })
    return isCancel(done) ? LEAVE : done ? accept() : decline()
  }
  if (question.kind !== 'form') {
    log.warn(`${message} This command cannot answer that.`, place)
    return decline()
  }
  const fields = fieldsOf(question.schema)
  const [only] = fields
  if (!only) {
    const yes = await confirm({ message, initialValue: false, ...place })
    return isCancel(yes) ? LEAVE : yes ? accept() : decline()
  }
  if (fields.length === 1 && only.schema['type'] === 'boolean') {
    const yes = await confirm({ message, initialValue: only.schema['default'] === true, ...place })
    return isCancel(yes) ? LEAVE : accept({ [only.name]: yes })
  }
  note(message, undefined, place)
  const content = await askFields(fields, place)
  return content === LEAVE ? LEAVE : accept(content)
}

/** Fields one after the other. Optional ones may be left empty. */
export async function askFields(
  fields: readonly Field[],
  place: Place = here,
): Promise<JsonObject | typeof LEAVE> {
  const content: Record<string, Json> = {}
  for (const field of fields) {
    const value = await askField(field, place)
    if (typeof value === 'symbol') return LEAVE
    if (value !== undefined) content[field.name] = value
  }
  return content
}

async function askField(field: Field, place: Place): Promise<Json | undefined | symbol> {
  const { schema, required } = field
  const hint = field.hint === undefined ? '' : ` (${field.hint})`
  const common = { message: plain(`${field.label}${hint}`), ...place }
  const initial = schema['default']
  if (schema['type'] === 'boolean') return confirm({ ...common, initialValue: initial === true })
  const items = schema['items']
  const choices = choicesOf(isObject(items) ? items : schema)
  if (!choices) return type(common, field, initial)

  // Options stand for choices by their place, since a choice can be any value.
  const options = choices.map(({ label }, index) => ({ value: index, label: plain(label) }))
  const placeOf = (value: Json) => choices.findIndex((choice) => show(choice.value) === show(value))
  if (schema['type'] === 'array') {
    const initialValues = Array.isArray(initial) ? initial.map(placeOf) : []
    const needed = required || schema['minItems'] !== undefined
    const chosen = await multiselect({ ...common, options, required: needed, initialValues })
    return isCancel(chosen) ? chosen : chosen.map((index) => choices[index]?.value ?? null)
  }
  const none = required ? [] : [{ value: -1, label: '(none)' }]
  const chosen = await select({
    ...common,
    options: [...options, ...none],
    ...(initial !== undefined && { initialValue: placeOf(initial) }),
  })
  return isCancel(chosen) ? chosen : choices[chosen]?.value
}

async function type(
  common: Place & { readonly message: string },
  { schema, required }: Field,
  initial: Json | undefined,
): Promise<Json | undefined | symbol> {
  const typed = await text({
    ...common,
    ...(initial !== undefined && { initialValue: show(initial) }),
    ...(!required && { placeholder: 'optional' }),
    validate: (value = '') => {
      if (value === '') return required ? 'An answer is needed.' : undefined
      const reading = readText(schema, value)
      return reading.ok ? undefined : `Please: ${reading.problem}.`
    },
  })
  if (isCancel(typed)) return typed
  if (typed === undefined || typed === '') return required ? '' : undefined
  const reading = readText(schema, typed)
  return reading.ok ? reading.value : undefined
}
