/**
 * A question as an HTML form sees it: which fields its schema has, which of them decides, and the
 * answer that a filled-in form stands for. Schemas are the flat ones of an elicitation (MCP 2026-07-28,
 * Elicitation, Requested Schema). Pure.
 */
import { isObject, type Json, type JsonObject } from '../json'
import type { InputRequest } from '../task/types'

export interface Option {
  readonly value: string
  readonly label: string
}

export interface Field {
  readonly name: string
  readonly label: string
  readonly hint?: string
  readonly required: boolean
  /** `choices`: any number of the options. */
  readonly kind: 'text' | 'number' | 'boolean' | 'choice' | 'choices'
  readonly options: readonly Option[]
  readonly maxLength?: number
}

/** More answers than this are a list to choose from, not buttons. */
const MAX_BUTTONS = 4
const YES_OR_NO: readonly Option[] = [
  { value: 'true', label: 'Yes' },
  { value: 'false', label: 'No' },
]

export function fieldsOf(request: InputRequest): Field[] {
  const schema = request.params?.['requestedSchema']
  const properties = isObject(schema) && isObject(schema['properties']) ? schema['properties'] : {}
  const required: readonly unknown[] =
    isObject(schema) && Array.isArray(schema['required']) ? schema['required'] : []
  return Object.entries(properties).map(([name, property]) =>
    fieldOf(name, isObject(property) ? property : {}, required.includes(name)),
  )
}

/** The field whose options are the buttons of the form: the only one that must be given, when it is a choice. */
export function decidingField(fields: readonly Field[]): Field | undefined {
  const [deciding, another] = fields.filter((field) => field.required)
  if (!deciding || another || deciding.options.length === 0 || deciding.options.length > MAX_BUTTONS)
    return undefined
  return deciding.kind === 'choice' || deciding.kind === 'boolean' ? deciding : undefined
}

/** The name of the control of a field; apart from {@link ACTION}, whatever a schema calls its fields. */
export function controlOf(field: Field): string {
  return `field.${field.name}`
}

/** The name of the buttons when no field decides. */
export const ACTION = 'action'

/** What the form answers, as an elicitation result; `undefined` when no button was pressed. */
export function responseOf(request: InputRequest, form: URLSearchParams): Json | undefined {
  const fields = fieldsOf(request)
  const deciding = decidingField(fields)
  const action = form.get(ACTION)
  if (deciding ? !form.has(controlOf(deciding)) : action !== 'accept' && action !== 'decline')
    return undefined
  if (!deciding && action === 'decline') return { action: 'decline' }
  return { action: 'accept', content: contentOf(fields, deciding, form) }
}

function contentOf(fields: readonly Field[], deciding: Field | undefined, form: URLSearchParams): JsonObject {
  const content: Record<string, Json> = {}
  for (const field of fields) {
    const value = valueOf(field, form, field === deciding)
    if (value !== undefined) content[field.name] = value
  }
  return content
}

/** What does not fit is passed on as it is: the question's own schema refuses it, with a reason. */
function valueOf(field: Field, form: URLSearchParams, deciding: boolean): Json | undefined {
  const control = controlOf(field)
  const text = form.get(control)?.trim() ?? ''
  switch (field.kind) {
    case 'boolean':
      return deciding ? text === 'true' : form.has(control)
    case 'choices':
      return form.getAll(control)
    case 'number':
      return text === '' ? undefined : Number.isFinite(Number(text)) ? Number(text) : text
    case 'text':
    case 'choice':
      return text === '' ? undefined : text
  }
}

function fieldOf(name: string, property: Record<string, unknown>, required: boolean): Field {
  const { title, description, maxLength } = property
  const kind = kindOf(property)
  return {
    name,
    label: typeof title === 'string' ? title : readable(name),
    ...(typeof description === 'string' && { hint: description }),
    required,
    kind,
    options: kind === 'boolean' ? YES_OR_NO : optionsOf(kind === 'choices' ? property['items'] : property),
    ...(typeof maxLength === 'number' && { maxLength }),
  }
}

function kindOf(property: Record<string, unknown>): Field['kind'] {
  switch (property['type']) {
    case 'boolean':
      return 'boolean'
    case 'number':
    case 'integer':
      return 'number'
    case 'array':
      return 'choices'
    default:
      return optionsOf(property).length > 0 ? 'choice' : 'text'
  }
}

/** `enum`, with or without names, or titled constants. */
function optionsOf(property: unknown): Option[] {
  if (!isObject(property)) return []
  const { enum: values, enumNames: names, oneOf, anyOf } = property
  if (Array.isArray(values)) {
    return values.map((value, index) => {
      const label: unknown = Array.isArray(names) ? names[index] : undefined
      return { value: String(value), label: typeof label === 'string' ? label : readable(String(value)) }
    })
  }
  const titled: readonly unknown[] = Array.isArray(oneOf) ? oneOf : Array.isArray(anyOf) ? anyOf : []
  return titled.flatMap((option) =>
    isObject(option) && typeof option['const'] === 'string'
      ? [
          {
            value: option['const'],
            label: typeof option['title'] === 'string' ? option['title'] : option['const'],
          },
        ]
      : [],
  )
}

/** `dueDate` and `due_date` as `Due date`. */
function readable(name: string): string {
  const words = name
    .replaceAll(/[_-]+/g, ' ')
    .replaceAll(/([a-z])([A-Z])/g, (_, a: string, b: string) => `${a} ${b.toLowerCase()}`)
  return words.charAt(0).toUpperCase() + words.slice(1)
}
