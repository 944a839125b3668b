/** A question of a task as a form, made from the schema it came with. */
import { accept, decline, type Question, type QuestionResponse } from '../client/index.ts'
import type { Json, JsonObject } from '../json.ts'
import { type Child, fill, h, newId } from './dom.ts'
import { icon } from './icons.ts'
import { link, prose, webAddress } from './prose.ts'
import { decidingField, type FormField, formFields } from './schema.ts'
import { schemaForm } from './schema-form.ts'
import { readable } from './words.ts'

export interface QuestionFormOptions {
  readonly question: Question
  /** The tool can destroy something: a yes then looks like what it is. */
  readonly destructive: boolean
  /** @throws when the server did not take the answer. */
  readonly answer: (response: QuestionResponse) => Promise<void>
}

export function questionForm(options: QuestionFormOptions): HTMLElement {
  const { question } = options
  const headingId = newId('question')
  const trouble = h('p', { class: 'problem', role: 'alert', hidden: true })
  const form = h('form', { class: 'question', 'aria-labelledby': headingId, novalidate: true })

  async function send(response: QuestionResponse): Promise<void> {
    const buttons = [...form.querySelectorAll('button')]
    for (const button of buttons) button.disabled = true
    trouble.hidden = true
    try {
      await options.answer(response)
    } catch (error) {
      trouble.hidden = false
      trouble.textContent = `The answer was not taken: ${error instanceof Error ? error.message : String(error)}`
    } finally {
      for (const button of buttons) button.disabled = false
    }
  }

  const heading = h('h4', { id: headingId, tabindex: -1 }, icon('input_required'), 'The task asks')
  fill(
    form,
    heading,
    h('p', { class: 'text' }, prose(question.message)),
    body(options, form, (response) => void send(response)),
    trouble,
  )
  return form
}

type Send = (response: QuestionResponse) => void

function body(options: QuestionFormOptions, form: HTMLFormElement, send: Send): Child {
  const { kind, url, schema } = options.question
  const declining = h(
    'button',
    { type: 'button', class: 'quiet-button', onclick: () => send(decline()) },
    'Decline',
  )
  if (kind === 'url') return visit(url ?? '', form, send, declining)
  if (kind !== 'form') {
    return h('p', { class: 'quiet' }, 'This cannot be answered here; the program that began the task can.')
  }
  const fields = formFields(schema)
  const deciding = decidingField(fields)
  const rest = schemaForm(fields.filter((field) => field !== deciding))
  const submit = (more: JsonObject) => {
    const reading = rest.read()
    if (reading.ok) send(accept({ ...reading.value, ...more }))
  }
  if (deciding) {
    onSubmit(form, () => {})
    const buttons = decisions(deciding, options.destructive, (value) => submit({ [deciding.name]: value }))
    return [rest.elements, h('div', { class: 'buttons' }, buttons, deciding.kind !== 'boolean' && declining)]
  }
  onSubmit(form, () => submit({}))
  return [
    rest.elements,
    h('div', { class: 'buttons' }, h('button', { type: 'submit', class: 'primary' }, 'Answer'), declining),
  ]
}

/** The answers of the field that decides, as buttons. */
function decisions(field: FormField, destructive: boolean, choose: (value: Json) => void): Child[] {
  const yes = destructive ? 'danger' : 'primary'
  if (field.kind === 'boolean') {
    const [label, hint] = yesWords(field.hint)
    return [
      hint !== undefined && h('p', { class: 'hint wide' }, prose(hint)),
      h('button', { type: 'button', class: yes, onclick: () => choose(true) }, label),
      h('button', { type: 'button', onclick: () => choose(false) }, 'No'),
    ]
  }
  return field.choices.map(({ value, label }, index) =>
    h(
      'button',
      { type: 'button', class: index === 0 ? 'primary' : undefined, onclick: () => choose(value) },
      label === value ? readable(label) : label,
    ),
  )
}

const LONGEST_LABEL = 48

/** A description such as "Yes, delete them." is the best label for its button. */
function yesWords(hint: string | undefined): [label: string, hint: string | undefined] {
  const isLabel = hint !== undefined && /^yes\b/i.test(hint) && hint.length <= LONGEST_LABEL
  return isLabel ? [hint.replace(/\.$/, ''), undefined] : ['Yes', hint]
}

function visit(address: string, form: HTMLFormElement, send: Send, declining: HTMLElement): Child {
  onSubmit(form, () => send(accept()))
  const url = webAddress(address)
  return [
    h('p', { class: 'text' }, url ? link(address, `Open ${url.host}`) : address),
    h('p', { class: 'hint' }, url ? url.href : 'This is not an address of the web.'),
    h(
      'div',
      { class: 'buttons' },
      h('button', { type: 'submit', class: 'primary' }, 'I have been there'),
      declining,
    ),
  ]
}

function onSubmit(form: HTMLFormElement, then: () => void): void {
  form.addEventListener('submit', (event) => {
    event.preventDefault()
    then()
  })
}
