/**
 * The least that builds a page without a framework. Text only ever becomes text nodes: nothing
 * here, and nothing in the console, parses markup that came from a server.
 */

export type Child = Node | string | undefined | false | readonly Child[]

type Listener = (event: Event) => void
export type Attributes = Readonly<Record<string, string | number | boolean | undefined | Listener>>

/**
 * An element. Attributes named `on…` are listeners; `true` sets an attribute without a value, `false` and
 * `undefined` leave it out.
 */
export function h<K extends keyof HTMLElementTagNameMap>(
  tag: K,
  attributes: Attributes = {},
  ...children: readonly Child[]
): HTMLElementTagNameMap[K] {
  const element = document.createElement(tag)
  setAttributes(element, attributes)
  append(element, children)
  return element
}

const SVG = 'http://www.w3.org/2000/svg'

export function svg(tag: string, attributes: Attributes = {}, ...children: readonly Child[]): SVGElement {
  const element = document.createElementNS(SVG, tag)
  setAttributes(element, attributes)
  append(element, children)
  return element
}

function setAttributes(element: Element, attributes: Attributes): void {
  for (const [name, value] of Object.entries(attributes)) {
    if (typeof value === 'function') element.addEventListener(name.slice(2), value)
    else if (value === true) element.setAttribute(name, '')
    else if (value !== false && value !== undefined) element.setAttribute(name, String(value))
  }
}

function append(parent: Node, children: readonly Child[]): void {
  for (const child of children) {
    if (child === undefined || child === false) continue
    if (typeof child === 'string') parent.appendChild(document.createTextNode(child))
    else if (child instanceof Node) parent.appendChild(child)
    else append(parent, child)
  }
}

/** Puts these in the place of whatever the element had. */
export function fill(element: Element, ...children: readonly Child[]): void {
  element.replaceChildren()
  append(element, children)
}

/** Changes a text only when it differs: a screen reader need not hear the same again. */
export function setText(element: Element, text: string): void {
  if (element.textContent !== text) element.textContent = text
}

/** Moves the focus to something that is no control, such as a heading. */
export function focusOn(element: HTMLElement): void {
  if (!element.hasAttribute('tabindex')) element.tabIndex = -1
  element.focus({ preventScroll: true })
  element.scrollIntoView({ block: 'nearest', behavior: prefersStill() ? 'auto' : 'smooth' })
}

export function prefersStill(): boolean {
  return matchMedia('(prefers-reduced-motion: reduce)').matches
}

let lastId = 0

/** An id for `for`, `aria-describedby` and the like. */
export function newId(prefix: string): string {
  return `${prefix}-${++lastId}`
}
