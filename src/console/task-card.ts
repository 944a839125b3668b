/**
 * One task as a card. Is given updates and shows the last; knows neither the server nor the store, and asks
 * its `CardActions` for whatever has to happen outside.
 */
import { isTerminal, type QuestionResponse, type Status, type Update } from '../client/index.ts'
import type { JsonObject } from '../json.ts'
import { show } from '../form/fields.ts'
import { CardQuestions } from './card-questions.ts'
import { fill, focusOn, h, newId, prefersStill, setText } from './dom.ts'
import { History, timeOf } from './history.ts'
import { icon } from './icons.ts'
import { jsonView } from './json-view.ts'
import { outcomeView } from './outcome.ts'
import { ProgressView } from './progress-view.ts'
import { Timeline } from './timeline-view.ts'
import { type CardState, clockTime, duration, STATE_WORDS } from './words.ts'

const OVER: ReadonlySet<CardState> = new Set(['completed', 'failed', 'cancelled', 'unknown'])

export interface CardSubject {
  readonly title: string
  readonly tool: string | undefined
  readonly destructive: boolean
  /** `undefined` when they are not known here: they are not kept. */
  readonly args: JsonObject | undefined
  /** Milliseconds since the epoch. */
  readonly createdAt: number
  /** What the store knows of a task that was found there. */
  readonly status: Status | undefined
}

export interface CardActions {
  answer(key: string, response: QuestionResponse): Promise<void>
  cancel(): Promise<void>
  /** Takes the card, and what is remembered of the task, away. */
  remove(): void
  /** Looks at the task (again). */
  look(): void
  /** The card is in another state than before; `said` is that in words. */
  changed(said: string | undefined): void
}

export class TaskCard {
  readonly element: HTMLElement
  readonly #subject: CardSubject
  readonly #actions: CardActions
  readonly #history = new History()
  readonly #pill = h('span', { class: 'pill' })
  readonly #title: HTMLHeadingElement
  readonly #when = h('span', { class: 'when' })
  readonly #message = h('p', { class: 'message' })
  readonly #progress: ProgressView
  readonly #note = h('div', { class: 'notes' })
  readonly #questions: CardQuestions
  readonly #outcome = h('div', { class: 'outcome' })
  readonly #timeline = new Timeline()
  readonly #details = h('div', { class: 'more' })
  readonly #buttons = h('div', { class: 'card-buttons' })
  #update: Update | undefined
  #state: CardState
  #trouble: string | undefined
  #cancelRequested = false
  #shownOutcome = false

  constructor(subject: CardSubject, actions: CardActions) {
    this.#subject = subject
    this.#actions = actions
    this.#state = subject.status ?? 'starting'
    const { title, tool, args } = subject
    const id = newId('task')
    this.#title = h('h3', { id, tabindex: -1 }, title)
    this.#progress = new ProgressView(title)
    this.#questions = new CardQuestions({
      destructive: subject.destructive,
      answer: (key, response) => actions.answer(key, response),
      gone: () => focusOn(this.#title),
    })
    this.element = h(
      'article',
      { class: 'card', 'aria-labelledby': id },
      h('header', {}, h('div', { class: 'card-line' }, this.#pill, this.#when), this.#title),
      summary(tool, args),
      this.#message,
      this.#progress.element,
      this.#note,
      this.#questions.element,
      this.#outcome,
      h('footer', {}, h('div', { class: 'folds' }, this.#timeline.element, this.#details), this.#buttons),
    )
    this.#render()
  }

  get state(): CardState {
    return this.#state
  }

  get title(): string {
    return this.#subject.title
  }

  get taskId(): string | undefined {
    return this.#update?.taskId
  }

  /** Over, as far as this card will ever know. */
  get isOver(): boolean {
    return OVER.has(this.#state)
  }

  show(update: Update): void {
    this.#update = update
    this.#trouble = undefined
    this.#cancelRequested ||= update.cancelRequested
    this.#history.add({ ...update, cancelRequested: this.#cancelRequested }, Date.now())
    this.#turn()
  }

  /** Cancellation was requested, here or in another tab. */
  requested(): void {
    if (this.#cancelRequested || this.isOver) return
    this.#cancelRequested = true
    if (this.#update) this.#history.add({ ...this.#update, cancelRequested: true }, Date.now())
    this.#turn()
  }

  /** Following ended without an end of the task. */
  lost(state: 'lost' | 'unknown', why: string): void {
    this.#trouble = why
    this.#turn(state)
  }

  focus(): void {
    if (!this.#questions.focus()) focusOn(this.#title)
    this.element.scrollIntoView({ block: 'start', behavior: prefersStill() ? 'auto' : 'smooth' })
  }

  /** Once a second: what shows time goes on. */
  tick(now: number): void {
    setText(this.#when, this.#time(now))
  }

  #turn(state = this.#stateOf()): void {
    const before = this.#state
    this.#state = state
    this.#render()
    this.#actions.changed(before === state ? undefined : `${this.title}: ${this.#said()}`)
  }

  #stateOf(): CardState {
    const update = this.#update
    if (!update) return this.#cancelRequested ? 'cancelling' : this.#state
    if (isTerminal(update.status)) return update.status
    if (this.#cancelRequested) return 'cancelling'
    return update.status
  }

  #said(): string {
    const words = STATE_WORDS[this.#state].toLowerCase()
    const question = this.#update?.questions[0]
    if (this.#state === 'input_required' && question) return `${words}. ${question.message}`
    if (this.#completedAnyway()) return `${words}, although cancellation was requested`
    return words
  }

  #completedAnyway(): boolean {
    return this.#update?.outcome?.status === 'completed' && this.#cancelRequested
  }

  #time(now: number): string {
    const { task } = this.#update ?? {}
    const began = timeOf(task?.createdAt) ?? this.#subject.createdAt
    const ended = this.isOver ? timeOf(task?.lastUpdatedAt) : undefined
    if (ended !== undefined) return `took ${duration(ended - began)}`
    return this.isOver ? `since ${clockTime(began, now)}` : duration(now - began)
  }

  // What is seen

  #render(): void {
    const state = this.#state
    this.element.dataset['state'] = state
    fill(
      this.#pill,
      icon(state === 'starting' ? 'working' : state === 'unknown' ? 'lost' : state),
      STATE_WORDS[state],
    )
    this.tick(Date.now())
    this.#renderProgress()
    this.#renderNote()
    this.#questions.show(this.isOver || state === 'cancelling' ? [] : (this.#update?.questions ?? []))
    this.#renderOutcome()
    this.#timeline.show(this.#history.entries, this.isOver)
    this.#renderDetails()
    this.#renderButtons()
  }

  #renderProgress(): void {
    const update = this.#update
    const isRunning = this.#state === 'working' || this.#state === 'cancelling' || this.#state === 'starting'
    const message = update?.progress?.label ?? update?.message
    const isSaid = isRunning && message !== undefined && message !== ''
    this.#message.hidden = !isSaid
    if (isSaid) setText(this.#message, message)
    this.#progress.show(isRunning ? { progress: update?.progress } : undefined)
  }

  #renderNote(): void {
    const note = this.#noteText()
    const key = note ?? ''
    if (this.#note.dataset['text'] === key) return
    this.#note.dataset['text'] = key
    fill(this.#note, note !== undefined && h('p', { class: 'note' }, icon('info'), h('span', {}, note)))
  }

  #noteText(): string | undefined {
    if (this.#trouble !== undefined) return this.#trouble
    if (this.#state === 'cancelling') {
      return 'The server has been asked to stop. Until it says that it did, the task goes on and may even complete.'
    }
    if (this.#completedAnyway()) {
      return (
        'It completed although cancellation was requested: the work was done before the request could stop it. ' +
        'The result below is what happened.'
      )
    }
    if (this.#state === 'cancelled') return 'Nothing more is done. What was done before is not undone.'
    return undefined
  }

  #renderOutcome(): void {
    const outcome = this.#update?.outcome
    if (!outcome || this.#shownOutcome) return
    this.#shownOutcome = true
    fill(this.#outcome, outcomeView(outcome))
  }

  #renderDetails(): void {
    const { task, via } = this.#update ?? {}
    const key = `${task?.taskId} ${via} ${task?.ttlMs} ${this.isOver}`
    if (this.#details.dataset['key'] === key) return
    this.#details.dataset['key'] = key
    const { args } = this.#subject
    const wasOpen = this.#details.querySelector('details')?.open === true
    fill(
      this.#details,
      (task !== undefined || args !== undefined) &&
        h(
          'details',
          { open: wasOpen },
          h('summary', {}, icon('next'), 'Details'),
          task &&
            h(
              'dl',
              {},
              pair('Task', h('code', {}, task.taskId)),
              pair('Started', clockTime(timeOf(task.createdAt) ?? this.#subject.createdAt)),
              task.ttlMs !== null && pair('Lives for', duration(task.ttlMs)),
              !this.isOver && pair('Told by', VIA_WORDS[via ?? 'poll'] ?? ''),
            ),
          args && Object.keys(args).length > 0 && jsonView('Arguments', args),
        ),
    )
  }

  #renderButtons(): void {
    const wanted = this.#wantedButtons()
    const key = wanted.map(({ label }) => label).join('|')
    if (this.#buttons.dataset['key'] === key) return
    const hadFocus = this.#buttons.contains(document.activeElement)
    this.#buttons.dataset['key'] = key
    fill(
      this.#buttons,
      wanted.map(({ label, act, kind }) =>
        h(
          'button',
          { type: 'button', class: kind, 'aria-label': `${label}: ${this.title}`, onclick: act },
          label,
        ),
      ),
    )
    // Whoever pressed a button that is gone now stays at this task.
    if (hadFocus) focusOn(this.#title)
  }

  #wantedButtons(): { readonly label: string; readonly act: () => void; readonly kind?: string }[] {
    const look = () => this.#actions.look()
    const removal = { label: 'Remove', act: () => this.#actions.remove(), kind: 'quiet-button' }
    if (this.#state === 'lost') return [{ label: 'Look again', act: look }, removal]
    if (this.isOver && this.#state !== 'unknown' && !this.#update) {
      return [{ label: 'Show what came of it', act: look }, removal]
    }
    if (this.isOver) return [removal]
    if (this.#state === 'cancelling' || this.#state === 'starting') return []
    return [{ label: 'Cancel', act: () => void this.#cancel() }]
  }

  async #cancel(): Promise<void> {
    try {
      await this.#actions.cancel()
    } catch (error) {
      this.#cancelRequested = false
      this.#trouble = `The server did not take the request to cancel: ${error instanceof Error ? error.message : String(error)}`
      this.#turn()
    }
  }
}

const VIA_WORDS: Readonly<Record<string, string>> = {
  call: 'the answer to the call',
  websocket: 'WebSocket, as it happens',
  sse: 'event stream, as it happens',
  poll: 'looking now and then',
}

function pair(term: string, value: Node | string) {
  return h('div', {}, h('dt', {}, term), h('dd', {}, value))
}

const LONGEST_VALUE = 80

/** The tool's name and its arguments, on a line or two. */
function summary(tool: string | undefined, args: JsonObject | undefined) {
  const entries = Object.entries(args ?? {})
  return h(
    'p',
    { class: 'call' },
    tool !== undefined && h('span', { class: 'tool-name' }, tool),
    entries.map(([name, value]) => {
      const text = show(value)
      const short = text.length > LONGEST_VALUE ? `${text.slice(0, LONGEST_VALUE)}…` : text
      return h('span', { class: 'argument' }, h('span', { class: 'quiet' }, `${name} `), short)
    }),
  )
}
