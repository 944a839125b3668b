/**
 * A sequence that any number of readers follow, each at its own speed. A reader begins with the
 * latest value, so nobody who comes late waits for the next change.
 */

/** What a reader has not read yet; beyond this the oldest is dropped, for each value is complete in itself. */
const LONGEST_BACKLOG = 1_000

interface Reader<T> {
  readonly backlog: T[]
  wake: (() => void) | undefined
}

export class Feed<T> implements AsyncIterable<T> {
  readonly #readers = new Set<Reader<T>>()
  #latest: { readonly value: T } | undefined
  #end: { readonly error: Error | undefined } | undefined

  get latest(): T | undefined {
    return this.#latest?.value
  }

  push(value: T): void {
    if (this.#end) return
    this.#latest = { value }
    for (const reader of this.#readers) {
      reader.backlog.push(value)
      if (reader.backlog.length > LONGEST_BACKLOG) reader.backlog.shift()
      reader.wake?.()
    }
  }

  /** Readers get what is left, and then the end; or the error, if there is one. */
  end(error?: Error): void {
    if (this.#end) return
    this.#end = { error }
    for (const reader of this.#readers) reader.wake?.()
  }

  async *[Symbol.asyncIterator](): AsyncGenerator<T, void, undefined> {
    const reader: Reader<T> = { backlog: this.#latest ? [this.#latest.value] : [], wake: undefined }
    this.#readers.add(reader)
    try {
      for (;;) {
        const next = reader.backlog.shift()
        if (next !== undefined) {
          yield next
        } else if (this.#end) {
          if (this.#end.error) throw this.#end.error
          return
        } else {
          await new Promise<void>((resolve) => {
            reader.wake = resolve
          })
        }
      }
    } finally {
      this.#readers.delete(reader)
    }
  }
}
