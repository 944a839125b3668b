/** A JSON Schema as a form sees it: what kind of control each property gets. Pure. */
import { type Choice, choicesOf, type Field, fieldsOf } from '../form/fields.ts'
import { isObject, type JsonObject } from '../json.ts'

export type Kind = 'choice' | 'boolean' | 'number' | 'text' | 'choices' | 'lines' | 'group' | 'json'

export interface FormField extends Field {
  readonly kind: Kind
  /** For `choice` and `choices`. */
  readonly choices: readonly Choice[]
  /** For `group`. */
  readonly fields: readonly FormField[]
}

/** Deeper than this an object is written as JSON. */
const DEEPEST_GROUP = 2

export function formFields(schema: JsonObject | undefined, root = schema, depth = 0): FormField[] {
  return fieldsOf(schema).map((field) => {
    const own = plain(field.schema, root ?? {})
    const [title, description] = [own['title'], own['description']]
    const resolved = {
      ...field,
      schema: own,
      label: typeof title === 'string' ? title : field.label,
      hint: typeof description === 'string' ? description : field.hint,
    }
    const items = isObject(own['items']) ? plain(own['items'], root ?? {}) : undefined
    const choices = choicesOf(own) ?? (items && choicesOf(items)) ?? []
    const kind = kindOf(own, items, choices, depth)
    return { ...resolved, kind, choices, fields: kind === 'group' ? formFields(own, root, depth + 1) : [] }
  })
}

function kindOf(
  schema: JsonObject,
  items: JsonObject | undefined,
  choices: readonly Choice[],
  depth: number,
): Kind {
  switch (schema['type']) {
    case 'boolean':
      return 'boolean'
    case 'integer':
    case 'number':
      return choices.length > 0 ? 'choice' : 'number'
    case 'array':
      if (choices.length > 0) return 'choices'
      return items?.['type'] === 'string' ? 'lines' : 'json'
    case 'object':
      return isObject(schema['properties']) && depth < DEEPEST_GROUP ? 'group' : 'json'
    case 'string':
      return choices.length > 0 ? 'choice' : 'text'
    default:
      return choices.length > 0 ? 'choice' : 'json'
  }
}

/** Follows a reference within the schema, and leaves `null` aside: an empty field says that better. */
function plain(schema: JsonObject, root: JsonObject): JsonObject {
  const { $ref: ref, ...rest } = schema
  const target = typeof ref === 'string' ? definition(ref, root) : undefined
  const own: JsonObject = target ? { ...target, ...rest } : schema
  const type = own['type']
  if (Array.isArray(type)) {
    const types = type.filter((one) => one !== 'null')
    return types.length === 1 ? { ...own, type: types[0] ?? 'string' } : own
  }
  const either = own['anyOf'] ?? own['oneOf']
  if (!Array.isArray(either)) return own
  const others = either.filter(isObject).filter((one) => one['type'] !== 'null')
  const { anyOf: _, oneOf: __, ...outer } = own
  return others.length === 1 ? { ...(others[0] as JsonObject), ...outer } : own
}

/** `#/$defs/name`; other references stay what they are. */
function definition(ref: string, root: JsonObject): JsonObject | undefined {
  if (!ref.startsWith('#/')) return undefined
  let node: unknown = root
  for (const part of ref.slice(2).split('/')) {
    node = isObject(node) ? node[part.replaceAll('~1', '/').replaceAll('~0', '~')] : undefined
  }
  // Part of a schema that was parsed from JSON.
  return isObject(node) ? (node as JsonObject) : undefined
}

/** More answers than this are a list to choose from, not buttons. */
const MOST_BUTTONS = 4

/** The field whose choices can be the buttons of a question: the only one that must be given. */
export function decidingField(fields: readonly FormField[]): FormField | undefined {
  const [deciding, another] = fields.filter(({ required }) => required)
  if (!deciding || another) return undefined
  if (deciding.kind === 'boolean') return deciding
  return deciding.kind === 'choice' && deciding.choices.length <= MOST_BUTTONS ? deciding : undefined
}
