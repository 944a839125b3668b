/** The values of a source, and `undefined` whenever none came for a while. */
export async function* withTicks<T>(
  source: AsyncGenerator<T, void, undefined>,
  everyMs: number,
): AsyncGenerator<T | undefined, void, undefined> {
  let next = source.next()
  try {
    for (;;) {
      const tick = new AbortController()
      const first = await Promise.race([
        next,
        scheduler.wait(everyMs, { signal: tick.signal }).then(
          () => undefined,
          () => undefined,
        ),
      ])
      tick.abort()
      if (!first) {
        yield undefined
        continue
      }
      if (first.done) return
      yield first.value
      next = source.next()
    }
  } finally {
    // A value that is still awaited would hold the return up: nobody waits for it.
    void source.return()
  }
}
