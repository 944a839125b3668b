/** Reads an event stream message by message, as an EventSource would. */

// The wire is what is under test: nothing is assumed about it.
// oxlint-disable-next-line typescript/no-explicit-any
export type Message = any

export class Events {
  readonly comments: string[] = []
  /** Event ids, in their order. */
  readonly ids: string[] = []
  retry: number | undefined
  readonly #reader: ReadableStreamDefaultReader<string>
  #buffered = ''
  #ready: Message[] = []

  constructor(response: Response) {
    if (!response.body) throw new Error('no body')
    this.#reader = response.body.pipeThrough(new TextDecoderStream()).getReader()
  }

  /** The next message, or `undefined` at the end of the stream. */
  async next(): Promise<Message> {
    while (this.#ready.length === 0) {
      const { done, value } = await this.#reader.read()
      if (done) return undefined
      const parts = (this.#buffered + value).split('\n\n')
      this.#buffered = parts.pop() ?? ''
      for (const part of parts) {
        const field = (name: string) => new RegExp(`^${name}: (.*)$`, 'm').exec(part)?.[1]
        const [id, retry, data] = [field('id'), field('retry'), field('data')]
        if (part.startsWith(':')) this.comments.push(part)
        if (id !== undefined) this.ids.push(id)
        if (retry !== undefined) this.retry = Number(retry)
        // An event without data is there for its id.
        if (data) this.#ready.push(JSON.parse(data))
      }
    }
    return this.#ready.shift()
  }

  async all(): Promise<Message[]> {
    const messages: Message[] = []
    for (let next = await this.next(); next !== undefined; next = await this.next()) messages.push(next)
    return messages
  }

  cancel(): Promise<void> {
    return this.#reader.cancel()
  }
}
