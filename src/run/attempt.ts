/** One attempt of a step: its function under a time limit, and what came of it as data. */
import type { Json } from '../json'
import type { StepContext } from '../tool'
import { asRecorded } from './recorded'

export type Attempted =
  | { readonly ok: true; readonly value: Json | undefined }
  | { readonly ok: false; readonly error: unknown }

/** `runSignal` is aborted by cancellation and by the loss of the lease; the step sees it too. */
export async function attemptStep(
  name: string,
  fn: (context: StepContext) => unknown,
  context: Omit<StepContext, 'signal'>,
  timeoutMs: number,
  runSignal: AbortSignal,
): Promise<Attempted> {
  const limit = new AbortController()
  const signal = AbortSignal.any([runSignal, limit.signal])
  let timer: ReturnType<typeof setTimeout> | undefined
  // A function that never returns must not hold the queue.
  const timeUp = new Promise<never>((_, reject) => {
    timer = setTimeout(() => {
      const error = new Error(`Step ${JSON.stringify(name)} took longer than ${timeoutMs} ms.`)
      limit.abort(error)
      reject(error)
    }, timeoutMs)
  })
  try {
    const work = Promise.resolve(fn({ ...context, signal }))
    return { ok: true, value: asRecorded(await Promise.race([work, timeUp])) }
  } catch (error) {
    return { ok: false, error }
  } finally {
    if (timer !== undefined) clearTimeout(timer)
  }
}
