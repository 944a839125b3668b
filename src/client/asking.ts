/** Puts open questions to the application's handler, each once, and takes them back when they are settled elsewhere. */
import { asError } from './clock.ts'
import type { QuestionHandler } from './context.ts'
import type { Question, QuestionResponse, Questions } from './questions.ts'

export interface AskingOptions {
  readonly questions: Questions
  readonly onQuestion: QuestionHandler | undefined
  readonly answer: (key: string, response: QuestionResponse) => Promise<void>
  /** The handler, or the answer it gave, failed. */
  readonly failed: (error: Error) => void
}

export class Asking {
  readonly #options: AskingOptions
  readonly #open = new Map<string, AbortController>()

  constructor(options: AskingOptions) {
    this.#options = options
  }

  /** These questions are open now, and no others. */
  update(open: readonly Question[]): void {
    const keys = new Set(open.map(({ key }) => key))
    for (const key of this.#open.keys()) if (!keys.has(key)) this.settled(key)
    const { onQuestion, questions } = this.#options
    if (!onQuestion) return
    for (const question of open) {
      if (questions.shouldAsk(question.key)) void this.#ask(question, onQuestion)
    }
  }

  settled(key: string): void {
    this.#open.get(key)?.abort()
    this.#open.delete(key)
  }

  async #ask(question: Question, onQuestion: QuestionHandler): Promise<void> {
    const asking = new AbortController()
    this.#open.set(question.key, asking)
    try {
      const response = await onQuestion(question, { signal: asking.signal })
      if (asking.signal.aborted) return
      // There is no dialog any more; from here on a failure is one of the answer.
      this.#open.delete(question.key)
      if (response !== undefined) await this.#options.answer(question.key, response)
    } catch (error) {
      // A dialog that was taken away may complain about it.
      if (!asking.signal.aborted) this.#options.failed(asError(error))
    }
  }
}
