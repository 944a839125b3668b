/**
 * Where references to tasks are kept, so that a crash, a reload or a closed lid loses none. A reference is
 * what is needed to find a task again; arguments and results are not in it unless asked for.
 */
import { isObject, type JsonObject } from '../json.ts'
import type { Status } from './wire.ts'

export interface TaskReference {
  readonly taskId: string
  /** The MCP endpoint where the task lives. */
  readonly endpoint: string
  readonly tool?: string
  /** Only when `rememberArguments` is set: arguments may hold secrets. */
  readonly arguments?: JsonObject
  /** When this client heard of the task first; milliseconds since the epoch, by its own clock. */
  readonly createdAt: number
  readonly ttlMs: number | null
  /** The last that was known. */
  readonly status: Status
  readonly cancelRequested: boolean
  /** Keys of the questions that were answered. */
  readonly answered: readonly string[]
}

/**
 * A place to keep references. Methods may answer at once or later. Two processes may use one place; each
 * reference is written as a whole, and the last writer wins.
 */
export interface TaskStore {
  put(reference: TaskReference): void | Promise<void>
  get(endpoint: string, taskId: string): TaskReference | undefined | Promise<TaskReference | undefined>
  list(): readonly TaskReference[] | Promise<readonly TaskReference[]>
  delete(endpoint: string, taskId: string): void | Promise<void>
}

/** Forgets with the process. For tests, and where something else remembers the ids. */
export function memoryStore(): TaskStore {
  const references = new Map<string, TaskReference>()
  return {
    put: (reference) => void references.set(keyOf(reference.endpoint, reference.taskId), reference),
    get: (endpoint, taskId) => references.get(keyOf(endpoint, taskId)),
    list: () => [...references.values()],
    delete: (endpoint, taskId) => void references.delete(keyOf(endpoint, taskId)),
  }
}

/** Ids are unique within a server only. */
function keyOf(endpoint: string, taskId: string): string {
  return `${endpoint} ${taskId}`
}

/** What is used of the browser's `localStorage`. */
export interface KeyValueStorage {
  readonly length: number
  key(index: number): string | null
  getItem(key: string): string | null
  setItem(key: string, value: string): void
  removeItem(key: string): void
}

/**
 * Keeps references in the browser, one entry per task, so that tabs do not overwrite each other's.
 *
 * @param prefix of the entries' keys, to keep several lists apart.
 */
export function localStorageStore(prefix = 'longhaul.task.', storage = browserStorage()): TaskStore {
  return {
    put: (reference) =>
      storage.setItem(prefix + keyOf(reference.endpoint, reference.taskId), JSON.stringify(reference)),
    get: (endpoint, taskId) => readReference(storage.getItem(prefix + keyOf(endpoint, taskId))),
    list() {
      const keys = Array.from({ length: storage.length }, (_, index) => storage.key(index))
      return keys
        .filter((key) => key?.startsWith(prefix))
        .map((key) => readReference(storage.getItem(key ?? '')))
        .filter((reference) => reference !== undefined)
    },
    delete: (endpoint, taskId) => storage.removeItem(prefix + keyOf(endpoint, taskId)),
  }
}

function browserStorage(): KeyValueStorage {
  // Only browsers have it, and the types of this project are those of a server.
  const { localStorage } = globalThis as { localStorage?: KeyValueStorage }
  if (!localStorage) throw new TypeError('There is no localStorage here; use another store.')
  return localStorage
}

/** A reference from its JSON text; `undefined` for anything else, such as what an older version wrote. */
export function readReference(text: string | null | undefined): TaskReference | undefined {
  try {
    const value: unknown = JSON.parse(text ?? 'null')
    const isOne =
      isObject(value) &&
      typeof value['taskId'] === 'string' &&
      typeof value['endpoint'] === 'string' &&
      typeof value['createdAt'] === 'number' &&
      typeof value['status'] === 'string' &&
      Array.isArray(value['answered'])
    // Written by `put`, and looked at again.
    return isOne ? (value as unknown as TaskReference) : undefined
  } catch {
    return undefined
  }
}

/** Whether the task must be gone by now: its time-to-live is long over. */
export function isLongGone({ createdAt, ttlMs, status }: TaskReference, now: number): boolean {
  if (ttlMs !== null) return now > createdAt + ttlMs + FORGET_AFTER_MS
  return status !== 'working' && status !== 'input_required' && now > createdAt + FORGET_ENDED_MS
}

/** A server may keep a result somewhat longer than it said. */
const FORGET_AFTER_MS = 24 * 3_600_000
const FORGET_ENDED_MS = 30 * 24 * 3_600_000
