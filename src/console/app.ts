/** The page: connects to the server that served it, and puts tools beside tasks. */
import { createTasks, HttpError, type ToolDefinition, UnauthorizedError } from '../client/index.ts'
import { fill, focusOn, h, setText } from './dom.ts'
import { icon } from './icons.ts'
import { keepKey, readKey } from './key.ts'
import { focusKeyPanel, keyPanel } from './key-panel.ts'
import { consoleStore } from './store.ts'
import { endpointUrl, TaskList } from './task-list.ts'
import { ToolPanel } from './tool-panel.ts'
import { emptyState } from './empty-state.ts'

const CLIENT = { name: 'longhaul-console', version: '0.1.0' }

/** The places in `index.html` that are filled here. */
export interface Places {
  readonly tools: HTMLElement
  readonly tasks: HTMLElement
  readonly header: HTMLElement
  readonly announcements: HTMLElement
}

export class App {
  readonly #places: Places
  readonly #store = consoleStore()
  readonly #tools: ToolPanel
  readonly #cards = h('div', { class: 'cards' })
  readonly #heading = h('h2', { id: 'tasks-heading', tabindex: -1 }, 'Tasks')
  readonly #counts = h('p', { class: 'counts' })
  readonly #clear = h(
    'button',
    { type: 'button', class: 'quiet-button', onclick: () => this.#clearEnded() },
    'Clear finished',
  )
  readonly #waiting = h('button', {
    type: 'button',
    class: 'waiting',
    hidden: true,
    onclick: () => this.#goToQuestion(),
  })
  readonly #keyButton = h(
    'button',
    { type: 'button', class: 'quiet-button', hidden: true, onclick: () => this.#forgetKey() },
    icon('key'),
    'Forget key',
  )
  readonly #offline = h('p', { class: 'offline', role: 'status' })
  readonly #empty = emptyState(this.#store.lasting)
  #list: TaskList | undefined

  constructor(places: Places) {
    this.#places = places
    this.#tools = new ToolPanel({ run: async (tool, args) => this.#list?.run(tool, args) })
    fill(places.header, this.#offline, this.#waiting, this.#keyButton)
    fill(
      places.tasks,
      h('div', { class: 'tasks-head' }, this.#heading, this.#counts, this.#clear),
      this.#empty,
      this.#cards,
    )
    this.#changed()
    // Another tab began a task, or asked for one to be cancelled.
    addEventListener('storage', () => void this.#list?.sync())
    for (const event of ['online', 'offline']) addEventListener(event, () => this.#showNetwork())
    this.#showNetwork()
    setInterval(() => this.#list?.tick(Date.now()), 1_000)
  }

  /** @param byHand somebody asked for it, and wants to see what comes of it. */
  async connect(byHand = false): Promise<void> {
    this.#list?.close()
    this.#list = undefined
    const key = readKey()
    this.#keyButton.hidden = key === undefined
    fill(this.#places.tools, this.#tools.element)
    this.#tools.say('Asking the server for its tools…')
    const options = {
      url: endpointUrl(),
      token: () => key,
      store: this.#store.store,
      capabilities: { elicitation: { form: {}, url: {} } },
      clientInfo: CLIENT,
    }
    const tasks = createTasks(options)
    let tools: readonly ToolDefinition[]
    try {
      tools = await tasks.tools()
    } catch (error) {
      tasks.close()
      return this.#refused(error)
    }
    this.#tools.show(tools)
    this.#list = new TaskList({
      tasks,
      looker: createTasks({ ...options, push: [] }),
      store: this.#store,
      tools,
      place: this.#cards,
      announce: (text) => this.#announce(text),
      changed: () => this.#changed(),
      unauthorized: (error) => this.#askForKey(error),
    })
    await this.#list.sync()
    this.#changed()
    if (byHand) this.#tools.focus()
  }

  #refused(error: unknown): void {
    if (error instanceof UnauthorizedError) return this.#askForKey(error)
    const why = error instanceof Error ? error.message : String(error)
    const again = h('button', { type: 'button', onclick: () => void this.connect(true) }, 'Try again')
    const hint = error instanceof HttpError ? 'Its own log says more.' : ''
    this.#tools.say(`The server could not be asked for its tools. ${why} ${hint}`.trim(), again)
    this.#announce(why)
  }

  #askForKey({ message, status }: UnauthorizedError): void {
    const hadKey = readKey() !== undefined
    const said = status === 403 ? `${message} Another key may be allowed to.` : message
    const panel = keyPanel({
      message: said,
      refused: hadKey,
      use: (key) => {
        keepKey(key)
        void this.connect(true)
      },
    })
    fill(this.#places.tools, panel)
    focusKeyPanel(panel)
  }

  #forgetKey(): void {
    keepKey(undefined)
    void this.connect(true)
  }

  #clearEnded(): void {
    this.#list?.clear()
    focusOn(this.#heading)
  }

  #goToQuestion(): void {
    this.#list?.cards.find(({ state }) => state === 'input_required')?.focus()
  }

  #changed(): void {
    const cards = this.#list?.cards ?? []
    const waiting = cards.filter(({ state }) => state === 'input_required').length
    const running = cards.filter(({ isOver, state }) => !isOver && state !== 'input_required').length
    const over = cards.filter(({ isOver }) => isOver).length
    const counts = [
      running > 0 && `${running} running`,
      waiting > 0 && `${waiting} waiting`,
      over > 0 && `${over} finished`,
    ]
    setText(this.#counts, counts.filter((count) => count !== false).join(' · '))
    this.#empty.hidden = cards.length > 0
    this.#clear.hidden = over === 0
    this.#waiting.hidden = waiting === 0
    const words = waiting === 1 ? '1 question for you' : `${waiting} questions for you`
    if (this.#waiting.textContent !== words) fill(this.#waiting, icon('input_required'), words)
    document.title = waiting > 0 ? `(${waiting}) Longhaul` : 'Longhaul'
  }

  #announce(text: string): void {
    setText(this.#places.announcements, text)
  }

  #showNetwork(): void {
    setText(this.#offline, navigator.onLine ? '' : 'No network. The tasks go on without it.')
  }
}
