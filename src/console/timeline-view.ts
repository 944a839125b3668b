/** What happened to a task so far, as a list that can be folded away. */
import { fill, h, setText } from './dom.ts'
import type { Entry } from './history.ts'
import { icon } from './icons.ts'
import { clockTime, grouped } from './words.ts'

export class Timeline {
  readonly element: HTMLElement
  readonly #details: HTMLDetailsElement
  readonly #label = h('span', {}, 'Timeline')
  readonly #list = h('ol', { class: 'timeline' })
  readonly #items: { readonly key: string; readonly item: HTMLElement }[] = []
  #folded = false

  constructor() {
    this.#details = h(
      'details',
      { open: true, hidden: true },
      h('summary', {}, icon('next'), this.#label),
      this.#list,
    )
    this.element = this.#details
  }

  /** @param isOver folds the list, once: from then on the outcome matters. */
  show(entries: readonly Entry[], isOver: boolean): void {
    this.#details.hidden = entries.length === 0
    if (isOver && !this.#folded) {
      this.#folded = true
      this.#details.open = false
    }
    setText(this.#label, isOver ? `Timeline (${entries.length})` : 'Timeline')
    // Only what changed is touched: the list is long, and somebody may be reading it.
    for (const [index, entry] of entries.entries()) this.#set(index, entry)
    for (const { item } of this.#items.splice(entries.length)) item.remove()
  }

  #set(index: number, entry: Entry): void {
    const key = JSON.stringify(entry)
    const known = this.#items[index]
    if (known?.key === key) return
    const item = known?.item ?? this.#list.appendChild(h('li'))
    item.className = entry.kind
    const { progress } = entry
    fill(
      item,
      h('span', { class: 'what' }, entry.text),
      progress && h('span', { class: 'how-far' }, `${grouped(progress.done)}/${grouped(progress.total)}`),
      h('time', { datetime: new Date(entry.at).toISOString() }, clockTime(entry.at)),
    )
    this.#items[index] = { key, item }
  }
}
