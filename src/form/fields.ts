/** One field of a flat JSON Schema: what it is called, and what a typed text means for it. Pure. */
import { isObject, type Json, type JsonObject } from '../json.ts'

export interface Field {
  readonly name: string
  readonly label: string
  readonly hint: string | undefined
  readonly required: boolean
  readonly schema: JsonObject
}

export type Reading =
  | { readonly ok: true; readonly value: Json }
  | { readonly ok: false; readonly problem: string }

export interface Choice {
  readonly value: Json
  readonly label: string
}

export function fieldsOf(schema: JsonObject | undefined): Field[] {
  const properties = isObject(schema?.['properties']) ? schema['properties'] : {}
  const required = Array.isArray(schema?.['required']) ? schema['required'] : []
  return Object.entries(properties).map(([name, property]) => {
    const own: JsonObject = isObject(property) ? property : {}
    return {
      name,
      label: stringIn(own, 'title') ?? name,
      hint: stringIn(own, 'description'),
      required: required.includes(name),
      schema: own,
    }
  })
}

/** A value on one line: text as it is, anything else as JSON. */
export function show(value: Json | undefined): string {
  return typeof value === 'string' ? value : JSON.stringify(value ?? null)
}

/** The values to choose from, if the schema names them: by `enum`, or by `oneOf`/`anyOf` with titles. */
export function choicesOf(schema: JsonObject): Choice[] | undefined {
  const titled = schema['oneOf'] ?? schema['anyOf']
  if (Array.isArray(titled) && titled.length > 0 && titled.every((one) => isObject(one) && 'const' in one)) {
    return titled.filter(isObject).map((one) => {
      // Parsed from JSON.
      const value = one['const'] as Json
      return { value, label: stringIn(one, 'title') ?? show(value) }
    })
  }
  const values = schema['enum']
  if (!Array.isArray(values)) return undefined
  const names = Array.isArray(schema['enumNames']) ? schema['enumNames'] : []
  return values.map((value: Json, index) => ({ value, label: show(names[index] ?? value) }))
}

/** What a text stands for, by the type of the field. */
export function readText(schema: JsonObject, text: string): Reading {
  const choices = choicesOf(schema)
  if (choices) {
    const chosen = choices.find(({ value, label }) => show(value) === text || label === text)
    const names = choices.map(({ value }) => show(value)).join(', ')
    return chosen ? { ok: true, value: chosen.value } : { ok: false, problem: `choose one of: ${names}` }
  }
  switch (schema['type']) {
    case 'integer':
    case 'number':
      return readNumber(schema, text)
    case 'boolean':
      if (/^(true|yes|y|1)$/i.test(text)) return { ok: true, value: true }
      if (/^(false|no|n|0)$/i.test(text)) return { ok: true, value: false }
      return { ok: false, problem: 'say yes or no' }
    case 'array':
    case 'object':
      return readJson(text)
    default:
      return readString(schema, text)
  }
}

export function readJson(text: string): Reading {
  try {
    return { ok: true, value: JSON.parse(text) as Json }
  } catch {
    return { ok: false, problem: 'that is not JSON' }
  }
}

function readNumber(schema: JsonObject, text: string): Reading {
  const value = Number(text)
  if (text.trim() === '' || !Number.isFinite(value)) return { ok: false, problem: 'give a number' }
  if (schema['type'] === 'integer' && !Number.isInteger(value)) {
    return { ok: false, problem: 'give a whole number' }
  }
  const [minimum, maximum] = [schema['minimum'], schema['maximum']]
  if (typeof minimum === 'number' && value < minimum) return { ok: false, problem: `at least ${minimum}` }
  if (typeof maximum === 'number' && value > maximum) return { ok: false, problem: `at most ${maximum}` }
  return { ok: true, value }
}

function readString(schema: JsonObject, text: string): Reading {
  const [shortest, longest, pattern] = [schema['minLength'], schema['maxLength'], schema['pattern']]
  if (typeof shortest === 'number' && text.length < shortest) {
    return { ok: false, problem: `at least ${shortest} characters` }
  }
  if (typeof longest === 'number' && text.length > longest) {
    return { ok: false, problem: `at most ${longest} characters` }
  }
  if (typeof pattern === 'string' && !matches(pattern, text)) {
    return { ok: false, problem: `it must match ${pattern}` }
  }
  const format = stringIn(schema, 'format')
  const check = format === undefined ? undefined : FORMATS[format]
  return check && !check(text) ? { ok: false, problem: `that is not a ${format}` } : { ok: true, value: text }
}

/** The formats that elicitation knows. */
const FORMATS: Readonly<Record<string, (text: string) => boolean>> = {
  email: (text) => /^[^\s@]+@[^\s@]+$/.test(text),
  uri: (text) => URL.canParse(text),
  date: (text) => /^\d{4}-\d\d-\d\d$/.test(text) && !Number.isNaN(Date.parse(text)),
  'date-time': (text) => /^\d{4}-\d\d-\d\dT/.test(text) && !Number.isNaN(Date.parse(text)),
}

/** A pattern that this engine does not take is left to the server. */
function matches(pattern: string, text: string): boolean {
  try {
    return new RegExp(pattern, 'u').test(text)
  } catch {
    return true
  }
}

function stringIn(object: { readonly [key: string]: unknown }, key: string): string | undefined {
  const value = object[key]
  return typeof value === 'string' ? value : undefined
}
