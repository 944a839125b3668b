/**
 * The progress of a task in one line: a bar that lives in a terminal, or a line per change where
 * the output is a file or a pipe.
 */
const WIDTH = 24

/**
 * The bar for a status text that ends with `(done/total)`; without it, the text alone.
 *
 * @param {string} message
 */
function drawn(message) {
  const [, text, done, total] = /^(.*?)\s*\((\d+)\/(\d+)\)$/s.exec(message) ?? []
  if (text === undefined || !(Number(total) > 0)) return message
  const filled = Math.min(WIDTH, Math.round((Number(done) / Number(total)) * WIDTH))
  return `[${'█'.repeat(filled)}${'░'.repeat(WIDTH - filled)}] ${done}/${total}  ${text}`
}

export class ProgressLine {
  #shown = ''
  #stream

  /** @param {NodeJS.WriteStream} stream */
  constructor(stream) {
    this.#stream = stream
  }

  /** @param {string} message a `statusMessage` */
  show(message) {
    if (message === this.#shown) return
    this.#shown = message
    const line = `  ${drawn(message)}`
    if (!this.#stream.isTTY) this.#stream.write(`${line}\n`)
    // Back to the start, and what was there is wiped out; a line that wraps could not be.
    else this.#stream.write(`\r\x1b[2K${line.slice(0, this.#stream.columns - 1)}`)
  }

  /** What is written next starts on a line of its own. */
  end() {
    if (this.#stream.isTTY && this.#shown !== '') this.#stream.write('\n')
    this.#shown = ''
  }
}
