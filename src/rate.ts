/**
 * At most so many in a window of time: a sliding window approximated by two buckets, the way
 * Cloudflare's own limiter does. In memory: who is at the limit keeps the object awake. Pure but for its state.
 */
export class RateWindow {
  readonly #windowMs: number
  #startedAt = 0
  #current = 0
  #previous = 0

  constructor(windowMs: number) {
    this.#windowMs = windowMs
  }

  /** Takes one. `0`: taken; otherwise not taken, and worth trying again after so many milliseconds. */
  take(now: number, max: number): number {
    const elapsed = now - this.#startedAt
    if (elapsed >= this.#windowMs) {
      this.#previous = elapsed < 2 * this.#windowMs ? this.#current : 0
      this.#current = 0
      this.#startedAt = now - (elapsed % this.#windowMs)
    }
    const into = (now - this.#startedAt) / this.#windowMs
    const used = this.#previous * (1 - into) + this.#current
    if (used + 1 > max) {
      // The previous window fades; the current one must first become the previous one.
      const fades = this.#previous > 0 ? (used + 1 - max) / this.#previous : Infinity
      return Math.max(1, Math.ceil(Math.min(fades, 1 - into) * this.#windowMs))
    }
    this.#current++
    return 0
  }
}
