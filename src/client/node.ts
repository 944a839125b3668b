/** What only Node has: a store of references in an SQLite file. Not for browsers or Workers. */
import { mkdirSync } from 'node:fs'
import { dirname } from 'node:path'
import { DatabaseSync } from 'node:sqlite'
import { readReference, type TaskReference, type TaskStore } from './store.ts'

export interface SqliteStore extends TaskStore {
  close(): void
}

/**
 * Keeps references in an SQLite file, which is made when it is missing. A reference is on the disk when
 * `put` returns, and any number of processes can use the file.
 *
 * @example createTasks({ url, store: sqliteStore('./tasks.db') })
 */
export function sqliteStore(path: string): SqliteStore {
  if (path !== ':memory:') mkdirSync(dirname(path), { recursive: true, mode: 0o700 })
  const database = new DatabaseSync(path)
  // Waiting comes first: two processes may make the file at the same moment. Not in WAL mode, whose
  // beginning does not wait; a reference is one small row, and a lock is held for no time.
  database.exec('PRAGMA busy_timeout = 5000; PRAGMA synchronous = FULL')
  database.exec(`CREATE TABLE IF NOT EXISTS task (
    endpoint TEXT, taskId TEXT, createdAt INTEGER, reference TEXT, PRIMARY KEY (endpoint, taskId)
  ) WITHOUT ROWID`)
  const put = database.prepare(
    'INSERT OR REPLACE INTO task (endpoint, taskId, createdAt, reference) VALUES (?, ?, ?, ?)',
  )
  const get = database.prepare('SELECT reference FROM task WHERE endpoint = ? AND taskId = ?')
  const list = database.prepare('SELECT reference FROM task ORDER BY createdAt')
  const remove = database.prepare('DELETE FROM task WHERE endpoint = ? AND taskId = ?')
  return {
    put(reference: TaskReference) {
      const { endpoint, taskId, createdAt } = reference
      put.run(endpoint, taskId, createdAt, JSON.stringify(reference))
    },
    get: (endpoint, taskId) => read(get.get(endpoint, taskId)),
    list: () =>
      list
        .all()
        .map(read)
        .filter((reference) => reference !== undefined),
    delete(endpoint, taskId) {
      remove.run(endpoint, taskId)
    },
    close: () => database.close(),
  }
}

function read(row: Record<string, unknown> | undefined): TaskReference | undefined {
  const text = row?.['reference']
  return typeof text === 'string' ? readReference(text) : undefined
}
