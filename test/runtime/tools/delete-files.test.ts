import { env } from 'cloudflare:workers'
import { afterEach, describe, expect, test, vi } from 'vitest'
import { get, rpc, start, untilEnded } from '../client'
import { DECLINE, NO, question, reply, textOf, YES } from './questions'

const { FILES } = env

afterEach(async () => {
  for (let left = await keys(); left.length > 0; left = await keys()) await FILES.delete(left.slice(0, 1_000))
})

/** Every key in the bucket. */
async function keys(): Promise<string[]> {
  const found: string[] = []
  for (let cursor: string | undefined; ;) {
    const page = await FILES.list(cursor === undefined ? {} : { cursor })
    found.push(...page.objects.map(({ key }) => key))
    if (!page.truncated) return found
    cursor = page.cursor
  }
}

async function put(...names: readonly string[]): Promise<void> {
  for (let i = 0; i < names.length; i += 50) {
    await Promise.all(names.slice(i, i + 50).map((name) => FILES.put(name, 'x'.repeat(10))))
  }
}

const ask = (pattern: string) => start('delete_files', { pattern })

async function deleteAll(pattern: string, tool = 'delete_files') {
  const taskId = await start(tool, { pattern })
  await reply(taskId, YES)
  return untilEnded(taskId, 30_000)
}

describe('delete_files', () => {
  test('asks with the number of files, their size and examples, and deletes exactly these', async () => {
    await put('logs/a.log', 'logs/b.log', 'logs/2025/c.log', 'logs/keep.txt', 'other/a.log')
    const taskId = await ask('logs/*.log')
    expect(await question(taskId)).toBe(
      'Delete 2 files (20 bytes) matching logs/*.log? This cannot be undone.\n\nThat is: logs/a.log, logs/b.log',
    )
    expect(await keys()).toHaveLength(5)
    await reply(taskId, YES)
    const task = await untilEnded(taskId)
    expect(textOf(task)).toBe('Deleted 2 files matching logs/*.log.')
    expect(task).toMatchObject({
      status: 'completed',
      statusMessage: 'Deleting logs/*.log (2/2)',
      result: {
        structuredContent: { pattern: 'logs/*.log', matched: 2, deleted: 2, kept: 0, bytes: 20 },
      },
    })
    expect(await keys()).toEqual(['logs/2025/c.log', 'logs/keep.txt', 'other/a.log'])
  })

  test('does not ask when nothing matches', async () => {
    await put('a')
    const task = await untilEnded(await ask('b*'))
    expect(task.status).toBe('completed')
    expect(task.result.isError).toBeUndefined()
    expect(textOf(task)).toBe('No file matches b*; nothing was deleted.')
    expect(await keys()).toEqual(['a'])
  })

  test.each([
    ['declines', DECLINE],
    ['says no', NO],
    ['closes the form', { action: 'cancel' }],
  ])('deletes nothing when the user %s', async (_, response) => {
    await put('a', 'b')
    const taskId = await ask('*')
    await reply(taskId, response)
    const task = await untilEnded(taskId)
    expect(task).toMatchObject({ status: 'completed', result: { isError: true } })
    expect(textOf(task)).toBe(
      'Nothing was deleted: the user did not confirm the deletion of 2 files (20 bytes) matching *.',
    )
    expect(await keys()).toEqual(['a', 'b'])
  })

  test('takes keys for what they are: similar ones are other files', async () => {
    await put('a/b', 'a//b', 'a/b/', 'a/./b', 'A/b')
    expect((await deleteAll('a/b')).result.structuredContent.deleted).toBe(1)
    expect(await keys()).toEqual(['A/b', 'a/./b', 'a//b', 'a/b/'])
  })

  test('deletes odd keys: spaces, stars, quotes, other alphabets', async () => {
    const odd = ['x/ä b.txt', 'x/*.txt', 'x/"q".txt', 'x/日本😀.txt', 'x/…/deep.txt']
    await put(...odd, 'y')
    expect((await deleteAll('x/**')).result.structuredContent).toMatchObject({ matched: 5, deleted: 5 })
    await put(...odd)
    expect((await deleteAll('x/\\*.txt')).result.structuredContent).toMatchObject({ matched: 1, deleted: 1 })
    expect(await keys()).not.toContain('x/*.txt')
  })

  test('deletes more than one listing holds, in batches, and says how far it is', async () => {
    const many = Array.from({ length: 1_050 }, (_, i) => `many/${String(i).padStart(4, '0')}.tmp`)
    await put(...many, 'many/keep.txt', 'few/1.tmp')
    const taskId = await ask('many/*.tmp')
    expect(await question(taskId)).toContain('Delete 1,050 files (10.5 KB) matching many/*.tmp?')
    await reply(taskId, YES)
    const task = await untilEnded(taskId, 30_000)
    expect(task.result.structuredContent).toMatchObject({ matched: 1_050, deleted: 1_050, kept: 0 })
    expect(task.statusMessage).toBe('Deleting many/*.tmp (1050/1050)')
    expect(await keys()).toEqual(['few/1.tmp', 'many/keep.txt'])
  }, 60_000)

  test('counts long keys in as many steps as the journal can hold', async () => {
    const long = Array.from(
      { length: 150 },
      (_, i) => `long/${'k'.repeat(1_000)}-${String(i).padStart(3, '0')}`,
    )
    await put(...long)
    expect((await deleteAll('long/**')).result.structuredContent).toMatchObject({
      matched: 150,
      deleted: 150,
    })
    expect(await keys()).toEqual([])
  }, 30_000)

  test('keeps a file that was uploaded again, and one that is new, while the user was thinking', async () => {
    await put('a', 'b', 'c')
    const taskId = await ask('*')
    await question(taskId)
    await scheduler.wait(5)
    await FILES.put('b', 'other content')
    await FILES.put('d', 'new')
    await FILES.delete('c')
    await reply(taskId, YES)
    const task = await untilEnded(taskId)
    expect(textOf(task)).toBe('Deleted 2 files matching *. 1 file uploaded again since the count: kept.')
    expect(task.result.structuredContent).toMatchObject({ matched: 3, deleted: 2, kept: 1 })
    expect(await keys()).toEqual(['b', 'd'])
  })

  test('counts the same and deletes the same although every step is done twice', async () => {
    await put(...Array.from({ length: 30 }, (_, i) => `twice/${i}`), 'other')
    const task = await deleteAll('twice/*', 'crashing_delete_files')
    expect(task.result.structuredContent).toMatchObject({ matched: 30, deleted: 30, kept: 0 })
    expect(await keys()).toEqual(['other'])
  })

  test('can be called again for what is left', async () => {
    await put('a', 'b')
    await deleteAll('a')
    const again = await untilEnded(await ask('a'))
    expect(again.result.structuredContent).toMatchObject({ matched: 0, deleted: 0 })
    expect(await keys()).toEqual(['b'])
  })

  test('deletes nothing when it is cancelled while it asks', async () => {
    await put('a')
    const taskId = await ask('*')
    await question(taskId)
    await rpc('tasks/cancel', { taskId })
    expect((await untilEnded(taskId)).status).toBe('cancelled')
    await vi.waitUntil(async () => (await get(taskId)).inputRequests === undefined)
    expect(await keys()).toEqual(['a'])
  })

  test('refuses an empty pattern before a task exists', async () => {
    const { body } = await rpc('tools/call', { name: 'delete_files', arguments: { pattern: '' } })
    expect(body.result).toMatchObject({ resultType: 'complete', isError: true })
  })
})
