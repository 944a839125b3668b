/**
 * What the browser remembers of tasks: their references, in `localStorage`, so that a reload or another tab finds
 * them. Arguments, answers and results are not among it.
 */
import { localStorageStore, memoryStore, type TaskReference, type TaskStore } from '../client/index.ts'

export interface ConsoleStore {
  /** For the client library. */
  readonly store: TaskStore
  /** False when the browser lets nothing be kept: then only this page knows. */
  readonly lasting: boolean
  list(): Promise<readonly TaskReference[]>
  remove(reference: Pick<TaskReference, 'endpoint' | 'taskId'>): Promise<void>
}

export function consoleStore(base: TaskStore | undefined = browserStore()): ConsoleStore {
  const inner = base ?? memoryStore()
  return {
    lasting: base !== undefined,
    store: {
      get: (endpoint, taskId) => inner.get(endpoint, taskId),
      list: () => inner.list(),
      /** Another tab may have learned what this one does not know; neither must make the other forget. */
      async put(reference) {
        const known = await inner.get(reference.endpoint, reference.taskId)
        await inner.put({
          ...reference,
          cancelRequested: reference.cancelRequested || known?.cancelRequested === true,
          answered: [...new Set([...(known?.answered ?? []), ...reference.answered])],
        })
      },
      // A task that the server does not know may be that of another key: only a person removes it.
      delete: () => {},
    },
    list: async () => inner.list(),
    remove: async ({ endpoint, taskId }) => inner.delete(endpoint, taskId),
  }
}

function browserStore(): TaskStore | undefined {
  try {
    const store = localStorageStore()
    void store.list()
    return store
  } catch {
    // Blocked by the settings of the browser.
    return undefined
  }
}
