/** Shows how a call goes on, on stderr: a bar when the task counts, a spinner otherwise; nothing when nobody looks. */
import { styleText } from 'node:util'
import ora, { type Ora } from 'ora'
import type { Update } from '../client/index.ts'
import { oneLine } from './plain.ts'

export interface View {
  update(update: Update): void
  /** Makes room for something else on the terminal, until the next update or `resume`. */
  pause(): void
  resume(): void
  /** A line for a person, which stays. */
  say(line: string): void
  close(): void
}

export function createView(options: { readonly progress: boolean; readonly several: boolean }): View {
  if (!options.progress) return { update() {}, pause() {}, resume() {}, say, close() {} }
  return options.several ? new LineView() : new LiveView()
}

function say(line: string): void {
  process.stderr.write(`${line}\n`)
}

class LiveView implements View {
  // stdin stays ours: prompts and Ctrl-C need it.
  readonly #spinner: Ora = ora({ stream: process.stderr, discardStdin: false })
  #paused = false

  update(update: Update): void {
    this.#spinner.text = textOf(update, process.stderr.columns)
    if (!this.#paused && !this.#spinner.isSpinning) this.#spinner.start()
  }

  pause(): void {
    this.#paused = true
    this.#spinner.stop()
  }

  resume(): void {
    this.#paused = false
    if (this.#spinner.text !== '') this.#spinner.start()
  }

  say(line: string): void {
    const wasSpinning = this.#spinner.isSpinning
    this.#spinner.stop()
    say(line)
    if (wasSpinning) this.#spinner.start()
  }

  close(): void {
    this.#spinner.stop()
  }
}

/** Several calls at once: one line per change. */
class LineView implements View {
  readonly #last = new Map<string, string>()
  say = say

  update(update: Update): void {
    const id = update.taskId ?? ''
    const text = textOf(update, undefined)
    if (this.#last.get(id) !== text) say(`${styleText('dim', id)} ${text}`)
    this.#last.set(id, text)
  }

  pause(): void {}
  resume(): void {}
  close(): void {}
}

const BAR_WIDTH = 24

/** `━━━━━━──── 60 %  Copying (12/20)`, or what the server says, or the state. */
export function textOf(update: Update, columns: number | undefined): string {
  const { progress, message, status } = update
  const state = update.cancelRequested && !update.outcome ? 'Cancellation requested. ' : ''
  const said = message ?? (status === 'input_required' ? 'Waiting for an answer' : 'Working')
  const room = columns === undefined ? undefined : Math.max(columns - 4, 20)
  if (!progress) return oneLine(state + said, room)
  const share = progress.done / progress.total
  const filled = Math.floor(share * BAR_WIDTH)
  const bar = styleText('cyan', '━'.repeat(filled)) + styleText('dim', '━'.repeat(BAR_WIDTH - filled))
  const percent = `${Math.floor(share * 100)} %`.padStart(5)
  const rest = `${state}${progress.label} (${progress.done}/${progress.total})`
  return `${bar} ${percent}  ${oneLine(rest, room && room - BAR_WIDTH - 8)}`
}
