/** The open questions of one card. A form stays the same element while its question is open: somebody types in it. */
import type { Question, QuestionResponse } from '../client/index.ts'
import { focusOn, h } from './dom.ts'
import { questionForm } from './question-form.ts'

export interface CardQuestionsOptions {
  readonly destructive: boolean
  readonly answer: (key: string, response: QuestionResponse) => Promise<void>
  /** The form that had the focus went away. */
  readonly gone: () => void
}

export class CardQuestions {
  readonly element = h('div', { class: 'questions' })
  readonly #options: CardQuestionsOptions
  readonly #forms = new Map<string, HTMLElement>()
  readonly #sending = new Set<string>()

  constructor(options: CardQuestionsOptions) {
    this.#options = options
  }

  show(questions: readonly Question[]): void {
    const open = new Map(questions.map((question) => [question.key, question]))
    for (const [key, form] of this.#forms) {
      // While an answer is under way the question is neither open nor settled.
      if (open.has(key) || this.#sending.has(key)) continue
      const hadFocus = form.contains(document.activeElement)
      form.remove()
      this.#forms.delete(key)
      if (hadFocus) this.#options.gone()
    }
    for (const question of open.values()) {
      if (!this.#forms.has(question.key)) this.#add(question)
    }
  }

  /** @returns whether there was a question to focus. */
  focus(): boolean {
    const heading = this.element.querySelector('h4')
    if (!heading) return false
    focusOn(heading)
    return true
  }

  #add(question: Question): void {
    const form = questionForm({
      question,
      destructive: this.#options.destructive,
      answer: (response) => this.#answer(question.key, response),
    })
    this.#forms.set(question.key, form)
    this.element.append(form)
  }

  async #answer(key: string, response: QuestionResponse): Promise<void> {
    this.#sending.add(key)
    try {
      await this.#options.answer(key, response)
    } finally {
      this.#sending.delete(key)
    }
    const form = this.#forms.get(key)
    const hadFocus =
      form?.contains(document.activeElement) === true || document.activeElement === document.body
    form?.remove()
    this.#forms.delete(key)
    if (hadFocus) this.#options.gone()
  }
}
