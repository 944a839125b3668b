/** Where somebody gives a key, when the server wants one. */
import { focusOn, h } from './dom.ts'
import { icon } from './icons.ts'

export interface KeyPanelOptions {
  /** What the server said. */
  readonly message: string
  /** A key was given before, and refused. */
  readonly refused: boolean
  readonly use: (key: string) => void
}

export function keyPanel({ message, refused, use }: KeyPanelOptions): HTMLElement {
  const problem = h(
    'p',
    { class: 'problem', id: 'key-problem', hidden: true },
    icon('failed'),
    h('span', {}, 'Give a key.'),
  )
  const input = h('input', {
    type: 'password',
    id: 'key',
    autocomplete: 'off',
    spellcheck: 'false',
    autocapitalize: 'off',
    'aria-describedby': 'key-message key-problem',
  })
  const submit = (event: Event) => {
    event.preventDefault()
    const key = input.value.trim()
    problem.hidden = key !== ''
    if (key !== '') return use(key)
    input.setAttribute('aria-invalid', 'true')
    input.focus()
  }
  return h(
    'form',
    { class: 'key-panel', novalidate: true, 'aria-labelledby': 'key-heading', onsubmit: submit },
    h(
      'h2',
      { id: 'key-heading', tabindex: -1 },
      icon('key'),
      refused ? 'The server does not know this key' : 'This server wants a key',
    ),
    h('p', { class: 'text', id: 'key-message' }, message),
    h('div', { class: 'field' }, h('label', { for: 'key' }, 'API key or access token'), input, problem),
    h('button', { type: 'submit', class: 'primary' }, 'Use this key'),
    h('p', { class: 'hint' }, 'It stays in this tab, and is gone when the tab is closed.'),
  )
}

export function focusKeyPanel(panel: HTMLElement): void {
  const input = panel.querySelector('input')
  if (input) input.focus()
  else focusOn(panel)
}
