/**
 * Calls to an object that survive its restarts: a broken stub stays broken, so every attempt takes a
 * fresh one. Every method of our objects may be called twice.
 */
import { backoffMs } from '../retry'
import type { TaskApi } from '../task/types'

export type TaskStubs = (taskId: string) => TaskApi

const ATTEMPTS = 5
const BACKOFF = { delayMs: 100, maxDelayMs: 2_000 }

/** Errors of the platform (not of the object's own code) that a fresh stub may not meet again. */
const RESET =
  /reset because its code was updated|script has been upgraded|Network connection lost|no longer active|internal error|storage caused object to be reset/i

/**
 * @throws what the object threw, or the platform's error after the last attempt. An overloaded
 * object is not asked again.
 */
export async function callObject<Api, T>(stub: () => Api, call: (object: Api) => Promise<T>): Promise<T> {
  for (let attempt = 1; ; attempt++) {
    try {
      return await call(stub())
    } catch (error) {
      if (attempt >= ATTEMPTS || !worthRetrying(error)) throw error
    }
    await scheduler.wait(50 + backoffMs(BACKOFF, attempt))
  }
}

/** {@link callObject} for the object of a task. */
export function callTask<T>(
  stubs: TaskStubs,
  taskId: string,
  call: (task: TaskApi) => Promise<T>,
): Promise<T> {
  return callObject(() => stubs(taskId), call)
}

function worthRetrying(error: unknown): boolean {
  // The platform marks its errors with these; workers-types has no type for them yet (workerd#6577).
  const marks = error as { retryable?: boolean; overloaded?: boolean }
  if (marks.overloaded) return false
  return marks.retryable === true || RESET.test(String(error))
}
