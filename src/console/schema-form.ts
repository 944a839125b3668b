/** The fields of a JSON Schema as a form: filled in by a person, read as an object, checked before it is sent. */
import type { Json, JsonObject } from '../json.ts'
import { type Control, controlFor, labelOf, type Read } from './control.ts'
import { h } from './dom.ts'
import { prose } from './prose.ts'
import type { FormField } from './schema.ts'

export type FormReading = { readonly ok: true; readonly value: JsonObject } | { readonly ok: false }

export interface SchemaForm {
  readonly elements: readonly HTMLElement[]
  /** What was filled in. Where it does not fit, the fields say so, and the first of them has the focus. */
  read(): FormReading
  /**
   * Puts a server's complaints beside the fields they are about.
   *
   * @param problems by the path of the field, such as `target.region`.
   * @returns those that belong to no field.
   */
  complain(problems: readonly Problem[]): readonly Problem[]
}

export interface Problem {
  readonly path: string
  readonly text: string
}

interface Part {
  readonly element: HTMLElement
  readonly controls: ReadonlyMap<string, Control>
  read(): Read
}

export function schemaForm(fields: readonly FormField[]): SchemaForm {
  const { parts, controls } = partsOf(fields, '')
  return {
    elements: [...parts.values()].map(({ element }) => element),
    read() {
      for (const control of controls.values()) {
        const reading = control.read()
        control.complain(reading.ok ? undefined : reading.problem)
      }
      const wrong = [...controls.values()].find((control) => !control.read().ok)
      wrong?.focus()
      return wrong ? { ok: false } : { ok: true, value: valuesOf(parts) }
    },
    complain(problems) {
      const known = problems.filter(({ path }) => controls.has(path))
      for (const { path, text } of known) controls.get(path)?.complain(text)
      controls.get(known[0]?.path ?? '')?.focus()
      return problems.filter((problem) => !known.includes(problem))
    },
  }
}

function partsOf(fields: readonly FormField[], prefix: string) {
  const parts = new Map<string, Part>()
  const controls = new Map<string, Control>()
  for (const field of fields) {
    const path = `${prefix}${field.name}`
    const part = field.kind === 'group' ? group(field, path) : single(field, path)
    parts.set(field.name, part)
    for (const [at, control] of part.controls) controls.set(at, control)
  }
  return { parts, controls }
}

function single(field: FormField, path: string): Part {
  const control = controlFor(field)
  return { element: control.element, controls: new Map([[path, control]]), read: () => control.read() }
}

/** An object within the object. One that may be left out, and was not touched, is. */
function group(field: FormField, path: string): Part {
  const inner = field.required ? field.fields : field.fields.map((one) => ({ ...one, required: false }))
  const { parts, controls } = partsOf(inner, `${path}.`)
  return {
    element: h(
      'fieldset',
      { class: 'group' },
      h('legend', {}, labelOf(field)),
      field.hint !== undefined && h('p', { class: 'hint' }, prose(field.hint)),
      [...parts.values()].map(({ element }) => element),
    ),
    controls,
    read() {
      const value = valuesOf(parts)
      const isEmpty = Object.keys(value).length === 0 && !field.required
      return isEmpty ? { ok: true, value: undefined } : { ok: true, value }
    },
  }
}

function valuesOf(parts: ReadonlyMap<string, Part>): JsonObject {
  const values: Record<string, Json> = {}
  for (const [name, part] of parts) {
    const reading = part.read()
    if (reading.ok && reading.value !== undefined) values[name] = reading.value
  }
  return values
}

/** What a server said about arguments, `path: problem; path: problem`, in its parts. */
export function readProblems(message: string): Problem[] {
  const [, list = message] = /^Invalid arguments for [^:]+: ([\s\S]+)$/.exec(message) ?? []
  return list.split('; ').map((text) => {
    const [, path, problem] = /^([\w.-]+): ([\s\S]+)$/.exec(text) ?? []
    return path !== undefined && problem !== undefined ? { path, text: problem } : { path: '', text }
  })
}
