/** The tools: a list to choose from, and the form of the one that was chosen. */
import type { ToolDefinition } from '../client/index.ts'
import type { JsonObject } from '../json.ts'
import { fill, focusOn, h, setText } from './dom.ts'
import { icon } from './icons.ts'
import { prose } from './prose.ts'
import { formFields } from './schema.ts'
import { readProblems, schemaForm } from './schema-form.ts'
import { firstSentence, toolTitle } from './words.ts'

export interface ToolPanelOptions {
  /** Calls the tool. What the server has against the arguments is returned, as it said it. */
  readonly run: (tool: ToolDefinition, args: JsonObject) => Promise<string | undefined>
}

/** From so many on, a field to look for them helps. */
const MANY_TOOLS = 9

export class ToolPanel {
  readonly element = h('section', { class: 'tools', 'aria-labelledby': 'tools-heading' })
  readonly #options: ToolPanelOptions
  readonly #heading = h('h2', { id: 'tools-heading', tabindex: -1 }, 'Start a task')
  readonly #body = h('div')
  /** What was typed stays, while somebody looks at another tool. */
  readonly #forms = new Map<string, HTMLElement>()
  #tools: readonly ToolDefinition[] = []
  #shown: string | undefined

  constructor(options: ToolPanelOptions) {
    this.#options = options
    fill(this.element, this.#heading, this.#body)
    this.say('Asking the server for its tools…')
    addEventListener('hashchange', () => this.#turn(true))
  }

  /** A sentence instead of tools. */
  say(text: string, ...more: readonly Node[]): void {
    fill(this.#body, h('p', { class: 'quiet' }, text), more)
  }

  show(tools: readonly ToolDefinition[]): void {
    this.#tools = tools
    this.#forms.clear()
    this.#turn(false)
  }

  focus(): void {
    focusOn(this.#body.querySelector('h2') ?? this.#heading)
  }

  #turn(byHand: boolean): void {
    if (this.#tools.length === 0) return this.say('This server offers no tools.')
    const before = this.#shown
    const name = decodeHash(location.hash)
    const tool = this.#tools.find((one) => one.name === name)
    this.#shown = tool?.name
    if (tool) {
      const known = this.#forms.get(tool.name) ?? this.#form(tool)
      this.#forms.set(tool.name, known)
      fill(this.#body, known)
      this.#heading.hidden = true
      if (byHand) focusOn(known.querySelector('h2') ?? known)
      return
    }
    this.#heading.hidden = false
    fill(this.#body, this.#list())
    if (!byHand) return
    const button = this.#body.querySelector<HTMLElement>(`[data-tool=${CSS.escape(before ?? '')}]`)
    if (button) button.focus()
    else focusOn(this.#heading)
  }

  #list(): readonly Node[] {
    const items = this.#tools.map((tool) => ({ tool, item: h('li', {}, toolLink(tool)) }))
    const list = h(
      'ul',
      { class: 'tool-list' },
      items.map(({ item }) => item),
    )
    if (items.length < MANY_TOOLS) return [list]
    const none = h('p', { class: 'quiet', role: 'status' })
    const input = h('input', {
      type: 'search',
      id: 'tool-search',
      autocomplete: 'off',
      oninput: () => filter(),
    })
    const filter = () => {
      const wanted = input.value.trim().toLowerCase()
      for (const { tool, item } of items) {
        item.hidden = !`${tool.name} ${toolTitle(tool)} ${tool.description ?? ''}`
          .toLowerCase()
          .includes(wanted)
      }
      setText(none, items.every(({ item }) => item.hidden) ? 'No tool is called that.' : '')
    }
    const search = h('div', { class: 'field' }, h('label', { for: 'tool-search' }, 'Find a tool'), input)
    return [search, list, none]
  }

  #form(tool: ToolDefinition): HTMLElement {
    const form = schemaForm(formFields(tool.inputSchema))
    const trouble = h('div', { class: 'trouble', role: 'alert' })
    const label = h('span', {}, 'Run')
    const button = h('button', { type: 'submit', class: 'primary wide-button' }, label)

    const submit = async () => {
      fill(trouble)
      const reading = form.read()
      if (!reading.ok || button.disabled) return
      button.disabled = true
      setText(label, 'Starting…')
      const refusal = await this.#options.run(tool, reading.value)
      button.disabled = false
      setText(label, 'Run')
      if (refusal === undefined) return
      const others = form.complain(readProblems(refusal))
      if (others.length > 0) {
        fill(
          trouble,
          h(
            'p',
            { class: 'problem' },
            icon('failed'),
            h('span', {}, others.map(({ text }) => text).join('; ')),
          ),
        )
      }
    }

    return h(
      'form',
      {
        class: 'tool-form',
        novalidate: true,
        'aria-label': toolTitle(tool),
        onsubmit: (event) => {
          event.preventDefault()
          void submit()
        },
      },
      h('a', { class: 'back', href: '#' }, icon('back'), 'All tools'),
      h('h2', { tabindex: -1 }, toolTitle(tool)),
      h('p', { class: 'tool-name' }, tool.name, badge(tool)),
      tool.description !== undefined && h('p', { class: 'description' }, prose(tool.description)),
      form.elements.length === 0 ? h('p', { class: 'quiet' }, 'It takes no arguments.') : form.elements,
      trouble,
      button,
    )
  }
}

function toolLink(tool: ToolDefinition): HTMLElement {
  return h(
    'a',
    { class: 'tool', href: `#${encodeURIComponent(tool.name)}`, 'data-tool': tool.name },
    h('span', { class: 'tool-title' }, toolTitle(tool), icon('next')),
    h('span', { class: 'tool-name' }, tool.name, badge(tool)),
    tool.description !== undefined && h('span', { class: 'tool-about' }, firstSentence(tool.description)),
  )
}

/** What the tool says of itself. A hint, and no promise. */
function badge({ annotations }: ToolDefinition): HTMLElement | undefined {
  if (annotations?.['readOnlyHint'] === true) return h('span', { class: 'badge' }, 'only reads')
  if (annotations?.['destructiveHint'] === true)
    return h('span', { class: 'badge badge-danger' }, 'can destroy')
  return undefined
}

function decodeHash(hash: string): string {
  try {
    return decodeURIComponent(hash.slice(1))
  } catch {
    return ''
  }
}
