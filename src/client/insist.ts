/** Gets a request through that may safely be sent twice, such as an answer or a cancellation. */
import type { JsonObject } from '../json.ts'
import { sleep } from './clock.ts'
import type { Endpoint } from './endpoint.ts'
import { TasksError } from './errors.ts'
import { retryMs } from './pace.ts'
import { expectComplete } from './wire.ts'

const MOST_TRIES = 6

/** Resolves when it is acknowledged. @throws TasksError, or the reason of `signal`. */
export async function insist(
  endpoint: Endpoint,
  method: string,
  params: JsonObject,
  timeoutMs: number,
  signal: AbortSignal,
): Promise<void> {
  for (let tries = 1; ; tries++) {
    try {
      return expectComplete(method, await endpoint.request(method, params, { signal, timeoutMs }))
    } catch (error) {
      if (!(error instanceof TasksError && error.transient) || tries >= MOST_TRIES) throw error
      const wait = retryMs(tries, endpoint.clock.random())
      await sleep(endpoint.clock, Math.max(wait, error.retryAfterMs ?? 0), signal)
    }
  }
}
