/** How far a task is: a bar, and the numbers beside it. */
import type { Progress } from '../client/index.ts'
import { h, setText } from './dom.ts'
import { grouped } from './words.ts'

export class ProgressView {
  readonly element: HTMLElement
  readonly #bar: HTMLProgressElement
  readonly #count = h('span')
  readonly #percent = h('span', { class: 'percent' })

  constructor(title: string) {
    this.#bar = h('progress', { 'aria-label': `Progress of ${title}`, max: 1 })
    this.element = h(
      'div',
      { class: 'progress', hidden: true },
      this.#bar,
      h('p', { class: 'numbers', 'aria-hidden': 'true' }, this.#count, this.#percent),
    )
  }

  /** `undefined` when nothing is under way; without `progress` nobody knows how far it is. */
  show(running: { readonly progress: Progress | undefined } | undefined): void {
    this.element.hidden = running === undefined
    if (!running) return
    const { progress } = running
    this.element.classList.toggle('indeterminate', progress === undefined)
    if (!progress) {
      this.#bar.removeAttribute('value')
      this.#bar.removeAttribute('aria-valuetext')
      return
    }
    const { done, total } = progress
    this.#bar.max = total
    this.#bar.value = done
    const count = `${grouped(done)} of ${grouped(total)}`
    this.#bar.setAttribute('aria-valuetext', count)
    setText(this.#count, count)
    setText(this.#percent, `${Math.floor((done / total) * 100)} %`)
  }
}
