import { execFile } from 'node:child_process'
import { mkdtempSync, rmSync, statSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { promisify } from 'node:util'
import { afterAll, describe, expect, test } from 'vitest'
import {
  localStorageStore,
  memoryStore,
  type TaskReference,
  type TaskStore,
} from '../../../src/client/index.ts'
import { sqliteStore } from '../../../src/client/node.ts'
import { createTasks } from '../../../src/client/index.ts'

const folder = mkdtempSync(join(tmpdir(), 'longhaul-store-'))
afterAll(() => rmSync(folder, { recursive: true }))
let files = 0
const run = promisify(execFile)

/** What a browser offers, as far as the store uses it. */
function browserStorage() {
  const entries = new Map<string, string>([['theme', 'dark']])
  return {
    get length() {
      return entries.size
    },
    key: (index: number) => [...entries.keys()][index] ?? null,
    getItem: (key: string) => entries.get(key) ?? null,
    setItem: (key: string, value: string) => void entries.set(key, value),
    removeItem: (key: string) => void entries.delete(key),
  }
}

const stores: Record<string, () => TaskStore> = {
  memory: memoryStore,
  localStorage: () => localStorageStore('longhaul.task.', browserStorage()),
  SQLite: () => sqliteStore(join(folder, `${++files}`, 'tasks.db')),
}

const reference = (taskId: string, more: Partial<TaskReference> = {}): TaskReference => ({
  taskId,
  endpoint: 'http://a.test/mcp',
  tool: 'work',
  createdAt: 1,
  ttlMs: null,
  status: 'working',
  cancelRequested: false,
  answered: ['q'],
  ...more,
})

describe.each(Object.keys(stores))('a store in %s', (name) => {
  const open = stores[name] ?? memoryStore

  test('gives back what was put, the latest of it, and nothing else', async () => {
    const store = open()
    await store.put(reference('1'))
    await store.put(reference('2'))
    await store.put(reference('1', { status: 'completed', cancelRequested: true }))
    expect(await store.get('http://a.test/mcp', '1')).toEqual(
      reference('1', { status: 'completed', cancelRequested: true }),
    )
    expect(await store.get('http://a.test/mcp', '3')).toBeUndefined()
    expect((await store.list()).map(({ taskId }) => taskId).toSorted()).toEqual(['1', '2'])
    await store.delete('http://a.test/mcp', '1')
    await store.delete('http://a.test/mcp', '1')
    expect((await store.list()).map(({ taskId }) => taskId)).toEqual(['2'])
  })

  test('keeps tasks of different servers apart, whose ids may be the same', async () => {
    const store = open()
    await store.put(reference('1'))
    await store.put(reference('1', { endpoint: 'http://b.test/mcp', tool: 'other' }))
    await store.delete('http://a.test/mcp', '1')
    expect(await store.get('http://b.test/mcp', '1')).toMatchObject({ tool: 'other' })
  })
})

test('a file is there for the next process, and for nobody else', () => {
  const path = join(folder, 'shared', 'tasks.db')
  const one = sqliteStore(path)
  void one.put(reference('1'))
  const two = sqliteStore(path)
  expect(two.list()).toMatchObject([{ taskId: '1' }])
  one.close()
  two.close()
  expect(statSync(join(folder, 'shared')).mode & 0o077).toBe(0)
})

test('an entry that is no reference is passed over', async () => {
  const storage = browserStorage()
  storage.setItem('longhaul.task.x', 'not JSON')
  storage.setItem('longhaul.task.y', '{"taskId":"y"}')
  expect(await localStorageStore('longhaul.task.', storage).list()).toEqual([])
})

test('several processes may make one SQLite file at the same moment', async () => {
  const module = new URL('../../../src/client/node.ts', import.meta.url).href
  for (let file = 0; file < 6; file++) {
    const path = join(folder, `raced-${file}`, 'tasks.db')
    const open = `(await import('${module}')).sqliteStore('${path}').put(${JSON.stringify(reference('1'))})`
    await Promise.all(
      Array.from({ length: 5 }, () => run(process.execPath, ['--input-type=module', '--eval', open])),
    )
    expect(sqliteStore(path).list()).toMatchObject([{ taskId: '1' }])
  }
}, 30_000)

test('references of tasks that are long gone are cleared away, others stay', async () => {
  const store = memoryStore()
  const now = Date.now()
  const day = 86_400_000
  await store.put(reference('over', { createdAt: now - 3 * day, ttlMs: day }))
  await store.put(reference('kept', { createdAt: now - day, ttlMs: day }))
  await store.put(reference('endless', { createdAt: 0, ttlMs: null }))
  await store.put(reference('ended', { createdAt: now - 31 * day, ttlMs: null, status: 'completed' }))
  const tasks = createTasks({ url: 'http://a.test/mcp', store })
  expect((await tasks.references()).map(({ taskId }) => taskId)).toEqual(['kept', 'endless'])
  expect(await store.list()).toHaveLength(2)
})
