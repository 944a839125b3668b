/** The control of one field: its element, what is in it, and what is wrong with it. */
import { readJson, readText, type Reading, show } from '../form/fields.ts'
import type { Json } from '../json.ts'
import { type Child, fill, h, newId } from './dom.ts'
import { icon } from './icons.ts'
import { prose } from './prose.ts'
import type { FormField } from './schema.ts'
import { readable } from './words.ts'

export type Read = Reading | { readonly ok: true; readonly value: undefined }

export interface Control {
  readonly field: FormField
  readonly element: HTMLElement
  /** `undefined` for a field that was left empty and may be. */
  read(): Read
  /** Says what is wrong beside the field, or that nothing is. */
  complain(problem: string | undefined): void
  focus(): void
}

/** Texts that may be longer than this get room for several lines. */
const ONE_LINE = 3_000
/** Few enough to be seen all at once. */
const MOST_RADIOS = 4

const NEEDED: Read = { ok: false, problem: 'this is needed' }
const EMPTY: Read = { ok: true, value: undefined }

export function controlFor(field: FormField): Control {
  switch (field.kind) {
    case 'boolean':
      return checkbox(field)
    case 'choice':
      return field.required && field.choices.length <= MOST_RADIOS ? radios(field) : select(field)
    case 'choices':
      return checkboxes(field)
    default:
      return textual(field)
  }
}

/** A control that is one element: below its label and hint, above its problem. */
function labelled(
  field: FormField,
  { id, hint, problem }: ReturnType<typeof frame>,
  ...control: readonly Child[]
): HTMLElement {
  return h('div', { class: 'field' }, h('label', { for: id }, labelParts(field)), hint, control, problem)
}

/** The parts around a control that every kind has: label, hint, and the place for a problem. */
function frame(field: FormField) {
  const id = newId('field')
  const hint =
    field.hint === undefined ? undefined : h('p', { class: 'hint', id: `${id}-hint` }, prose(field.hint))
  const problem = h('p', { class: 'problem', id: `${id}-problem`, hidden: true })
  return { id, hint, problem, describedBy: `${hint ? `${id}-hint ` : ''}${id}-problem` }
}

/** Its name as people say it, and whether it may be left out. */
function labelParts(field: FormField) {
  return [h('span', {}, labelOf(field)), !field.required && h('span', { class: 'optional' }, 'optional')]
}

export function labelOf(field: FormField): string {
  return field.label === field.name ? readable(field.name) : field.label
}

function complainer(problem: HTMLElement, inputs: readonly HTMLElement[]) {
  return (text: string | undefined) => {
    problem.hidden = text === undefined
    if (text === undefined) fill(problem)
    else fill(problem, icon('failed'), h('span', {}, sentence(text)))
    for (const input of inputs) {
      if (text === undefined) input.removeAttribute('aria-invalid')
      else input.setAttribute('aria-invalid', 'true')
    }
  }
}

function sentence(text: string): string {
  return `${text.charAt(0).toUpperCase()}${text.slice(1)}${/[.!?]$/.test(text) ? '' : '.'}`
}

function textual(field: FormField): Control {
  const around = frame(field)
  const { id, problem, describedBy } = around
  const { schema, kind } = field
  const longest = schema['maxLength']
  const large =
    kind === 'lines' ||
    kind === 'json' ||
    (kind === 'text' && typeof longest === 'number' && longest > ONE_LINE)
  const attributes = {
    id,
    name: field.name,
    'aria-describedby': describedBy,
    'aria-required': field.required ? 'true' : undefined,
    autocomplete: 'off',
    spellcheck: 'false',
    ...(kind === 'json' && { class: 'code' }),
  }
  const input = large
    ? h('textarea', { ...attributes, rows: 4 })
    : h('input', { ...attributes, ...inputKind(field) })
  input.value = initialText(field)
  const note = kind === 'lines' ? 'One per line.' : kind === 'json' ? 'Written as JSON.' : undefined
  return {
    field,
    element: labelled(field, around, note !== undefined && h('p', { class: 'hint' }, note), input),
    read: () => readInput(field, input.value),
    complain: complainer(problem, [input]),
    focus: () => input.focus(),
  }
}

function inputKind({ kind, schema }: FormField) {
  if (kind === 'number') {
    return { type: 'text', inputmode: schema['type'] === 'integer' ? 'numeric' : 'decimal' }
  }
  switch (schema['format']) {
    case 'email':
      return { type: 'email' }
    case 'uri':
      return { type: 'url' }
    case 'date':
      return { type: 'date' }
    case 'date-time':
      return { type: 'datetime-local', step: 1 }
    default:
      return { type: 'text' }
  }
}

function initialText({ kind, schema }: FormField): string {
  const value = schema['default']
  if (value === undefined || value === null) return ''
  if (kind === 'lines' && Array.isArray(value)) return value.map(show).join('\n')
  if (kind === 'json') return JSON.stringify(value, null, 2)
  return schema['format'] === 'date-time' ? '' : show(value)
}

function readInput(field: FormField, text: string): Read {
  const { kind, schema, required } = field
  // Spaces may be meant; nothing at all is not.
  if (text.trim() === '' && (text === '' || kind !== 'text')) return required ? NEEDED : EMPTY
  switch (kind) {
    case 'lines':
      return { ok: true, value: text.split('\n').filter((line) => line.trim() !== '') }
    case 'json':
      return readJson(text)
    case 'number':
      return readText(schema, text.trim())
    default:
      if (schema['format'] === 'date-time') return readMoment(text)
      return readText(schema, text)
  }
}

/** The browser asks for the time of here; the wire wants one of everywhere. */
function readMoment(text: string): Read {
  const moment = new Date(text)
  if (Number.isNaN(moment.getTime())) return { ok: false, problem: 'that is not a date and time' }
  return { ok: true, value: moment.toISOString() }
}

function checkbox(field: FormField): Control {
  const { id, hint, problem, describedBy } = frame(field)
  const preset = field.schema['default']
  const input = h('input', { id, name: field.name, type: 'checkbox', 'aria-describedby': describedBy })
  input.checked = preset === true
  return {
    field,
    element: h(
      'div',
      { class: 'field' },
      h('div', { class: 'check' }, input, h('label', { for: id }, labelParts(field))),
      hint,
      problem,
    ),
    read: () => {
      const untouched = !input.checked && !field.required && preset === undefined
      return untouched ? EMPTY : { ok: true, value: input.checked }
    },
    complain: complainer(problem, [input]),
    focus: () => input.focus(),
  }
}

function select(field: FormField): Control {
  const around = frame(field)
  const { id, problem, describedBy } = around
  const preset = field.schema['default']
  const input = h(
    'select',
    {
      id,
      name: field.name,
      'aria-describedby': describedBy,
      'aria-required': field.required ? 'true' : undefined,
    },
    h('option', { value: '' }, field.required ? 'Choose…' : 'None'),
    field.choices.map(({ label, value }, index) =>
      h('option', { value: String(index), selected: isSame(value, preset) }, visible(label)),
    ),
  )
  return {
    field,
    element: labelled(field, around, h('div', { class: 'select' }, input)),
    read: () => readChoice(field, input.value),
    complain: complainer(problem, [input]),
    focus: () => input.focus(),
  }
}

function readChoice(field: FormField, index: string): Read {
  const chosen = index === '' ? undefined : field.choices[Number(index)]
  if (chosen) return { ok: true, value: chosen.value }
  return field.required ? { ok: false, problem: 'choose one' } : EMPTY
}

/** A tab, say, is a choice that nobody would see. */
function visible(label: string): string {
  return label.trim() === '' ? JSON.stringify(label) : label
}

function isSame(a: Json, b: Json | undefined): boolean {
  return b !== undefined && JSON.stringify(a) === JSON.stringify(b)
}

interface Options {
  readonly type: 'radio' | 'checkbox'
  readonly isChosen: (value: Json) => boolean
}

/** A set of choices that are all seen. */
function options(field: FormField, { type, isChosen }: Options) {
  const { id, hint, problem, describedBy } = frame(field)
  const inputs = field.choices.map(({ value }, index) => {
    const input = h('input', { type, name: id, id: `${id}-${index}`, value: String(index) })
    input.checked = isChosen(value)
    return input
  })
  const element = h(
    'fieldset',
    {
      class: 'field options',
      'aria-describedby': describedBy,
      ...(type === 'radio' && { role: 'radiogroup', 'aria-required': String(field.required) }),
    },
    h('legend', {}, labelParts(field)),
    hint,
    h(
      'div',
      { class: 'option-list' },
      inputs.map((input, index) =>
        h(
          'label',
          { class: 'option', for: input.id },
          input,
          h('span', {}, visible(field.choices[index]?.label ?? '')),
        ),
      ),
    ),
    problem,
  )
  return { element, inputs, complain: complainer(problem, type === 'radio' ? [element] : inputs) }
}

function radios(field: FormField): Control {
  const preset = field.schema['default']
  const { element, inputs, complain } = options(field, {
    type: 'radio',
    isChosen: (value) => isSame(value, preset),
  })
  return {
    field,
    element,
    read: () => readChoice(field, inputs.find(({ checked }) => checked)?.value ?? ''),
    complain,
    focus: () => (inputs.find(({ checked }) => checked) ?? inputs[0])?.focus(),
  }
}

function checkboxes(field: FormField): Control {
  const preset = field.schema['default']
  const chosen: readonly Json[] = Array.isArray(preset) ? preset : []
  const { element, inputs, complain } = options(field, {
    type: 'checkbox',
    isChosen: (value) => chosen.some((one) => isSame(value, one)),
  })
  const { minItems, maxItems } = field.schema
  return {
    field,
    element,
    read: () => {
      const values = field.choices.filter((_, index) => inputs[index]?.checked).map(({ value }) => value)
      if (values.length === 0 && !field.required && preset === undefined) return EMPTY
      if (typeof minItems === 'number' && values.length < minItems) {
        return { ok: false, problem: `choose at least ${minItems}` }
      }
      if (typeof maxItems === 'number' && values.length > maxItems) {
        return { ok: false, problem: `choose at most ${maxItems}` }
      }
      return { ok: true, value: values }
    },
    complain,
    focus: () => inputs[0]?.focus(),
  }
}
