import { env } from 'cloudflare:workers'
import { afterEach, describe, expect, test, vi } from 'vitest'
import { get, rpc, start, untilEnded } from '../client'
import { emptyDatabase, rows, value } from './database'
import { question, reply, textOf } from './questions'

const { FILES } = env

afterEach(emptyDatabase)

async function load(args: Record<string, unknown>, tool = 'import_batch') {
  return untilEnded(await start(tool, args), 30_000)
}

const contacts = (text: string, more: Record<string, unknown> = {}) =>
  load({ table: 'contacts', format: 'csv', text, ...more })

/** 5,000 contacts as CSV; every thousandth has no usable address. */
function manyContacts(count: number): string {
  const lines = Array.from({ length: count }, (_, i) =>
    (i + 1) % 1_000 === 0
      ? `nobody,"Nobody ${i}",`
      : `person-${i}@example.com,"Person, ${i}",Company ${i % 7}`,
  )
  return ['email,name,company', ...lines].join('\n')
}

describe('import_batch', () => {
  test('imports CSV from the call, checked and converted', async () => {
    const task = await load({
      table: 'products',
      format: 'csv',
      text: 'SKU,Name,Price cents,Stock\nA-1,"Lamp, small",1999,5\nA-2,Desk,24900,\n',
    })
    expect(textOf(task)).toBe('Imported 2 rows into products.')
    expect(task.result.structuredContent).toEqual({
      importId: task.taskId,
      table: 'products',
      imported: 2,
      rejected: 0,
      firstRejects: [],
      ignoredColumns: [],
    })
    expect(await rows('SELECT * FROM products ORDER BY sku')).toEqual([
      { sku: 'A-1', name: 'Lamp, small', price_cents: 1999, stock: 5, import_id: task.taskId, line: 2 },
      { sku: 'A-2', name: 'Desk', price_cents: 24900, stock: null, import_id: task.taskId, line: 3 },
    ])
  })

  test('imports NDJSON of any shape', async () => {
    const text = '{"a":1,"b":{"c":[true,null,"ü"]}}\n\n{"other":"x"}\n'
    const task = await load({ table: 'imported_records', format: 'ndjson', text })
    expect(task.result.structuredContent).toMatchObject({ imported: 2, rejected: 0 })
    const stored = await rows('SELECT line, data FROM imported_records ORDER BY line')
    expect(stored.map(({ line, data }) => [line, JSON.parse(String(data))])).toEqual([
      [1, { a: 1, b: { c: [true, null, 'ü'] } }],
      [3, { other: 'x' }],
    ])
  })

  test('loses no bad row: line, reason and text are kept, and the result says where', async () => {
    const task = await contacts(
      'email,name\nada@example.com,Ada\nnot an address,Bob\ngrace@example.com\n"eve@example.com,Eve\nKAY@example.com,Kay\n',
    )
    expect(task.result.isError).toBeUndefined()
    expect(task.result.structuredContent).toMatchObject({
      imported: 2,
      rejected: 3,
      firstRejects: [
        { line: 3, reason: expect.stringContaining('email:') },
        { line: 4, reason: 'has 1 fields where the header has 2' },
        { line: 5, reason: 'a quote is opened here and never closed' },
      ],
    })
    const query = /SELECT .+$/m.exec(textOf(task))?.[0] ?? ''
    expect(await rows(query)).toEqual([
      { line: 3, reason: expect.any(String), raw: 'not an address,Bob' },
      { line: 4, reason: expect.any(String), raw: 'grace@example.com' },
      { line: 5, reason: expect.any(String), raw: '"eve@example.com,Eve' },
    ])
    expect(await rows('SELECT email FROM contacts ORDER BY email')).toEqual([
      { email: 'ada@example.com' },
      { email: 'kay@example.com' },
    ])
  })

  test('is an error when no row could be imported', async () => {
    const task = await contacts('email,name\nx,Ada\ny,Bob\n')
    expect(task).toMatchObject({ status: 'completed', result: { isError: true } })
    expect(textOf(task)).toContain('Imported 0 of 2 rows into contacts; rejected 2.')
    expect(await value('SELECT count(*) FROM import_rejects')).toBe(2)
  })

  test('lists the first bad rows only', async () => {
    const bad = Array.from({ length: 25 }, (_, i) => `bad-${i},x`).join('\n')
    const task = await contacts(`email,name\nada@example.com,Ada\n${bad}`)
    expect(task.result.structuredContent.firstRejects).toHaveLength(10)
    expect(await value('SELECT count(*) FROM import_rejects')).toBe(25)
  })

  test('imports a large file from the bucket in chunks, and says how far it is', async () => {
    await FILES.put('in/contacts.csv', manyContacts(5_000))
    const taskId = await start('import_batch', { table: 'contacts', format: 'csv', key: 'in/contacts.csv' })
    const seen = new Set<string>()
    await vi.waitUntil(
      async () => {
        const task = await get(taskId)
        if (task.statusMessage) seen.add(task.statusMessage)
        return task.status !== 'working'
      },
      { timeout: 30_000, interval: 80 },
    )
    const task = await get(taskId)
    expect(task).toMatchObject({
      status: 'completed',
      statusMessage: 'Importing into contacts: 4,995 rows, 5 rejected (100/100)',
      result: { structuredContent: { imported: 4_995, rejected: 5 } },
    })
    expect(await value('SELECT count(*) FROM contacts')).toBe(4_995)
    expect(await rows('SELECT line FROM import_rejects ORDER BY line')).toEqual(
      [1_001, 2_001, 3_001, 4_001, 5_001].map((line) => ({ line })),
    )
    expect(await value(`SELECT line FROM contacts WHERE email = 'person-4321@example.com'`)).toBe(4_323)
  }, 40_000)

  test('imports every row once although every chunk is done twice', async () => {
    const records = Array.from({ length: 3_000 }, (_, i) => JSON.stringify({ i, text: 'x'.repeat(30) })).join(
      '\n',
    )
    const task = await load(
      { table: 'imported_records', format: 'ndjson', text: `${records}\nbroken` },
      'crashing_import_batch',
    )
    expect(task.result.structuredContent).toMatchObject({ imported: 3_000, rejected: 1 })
    expect(await value('SELECT count(*) FROM imported_records')).toBe(3_000)
    expect(await value(`SELECT sum(data ->> 'i') FROM imported_records`)).toBe((2_999 * 3_000) / 2)
    expect(await value('SELECT count(*) FROM import_rejects')).toBe(1)
  }, 40_000)

  test('keeps what was imported before a cancellation, and the same file can be imported again', async () => {
    await FILES.put('in/again.csv', manyContacts(5_000))
    const args = { table: 'contacts', format: 'csv', key: 'in/again.csv' }
    const taskId = await start('pausing_import_batch', args)
    expect(await question(taskId)).toBe('Go on?')
    await rpc('tasks/cancel', { taskId })
    expect((await untilEnded(taskId)).status).toBe('cancelled')
    const imported = Number(await value('SELECT count(*) FROM contacts'))
    expect(imported).toBeGreaterThan(0)
    expect(imported).toBeLessThan(4_995)
    const again = await load(args)
    expect(again.result.structuredContent).toMatchObject({ imported: 4_995, rejected: 5 })
    expect(await value('SELECT count(*) FROM contacts')).toBe(4_995)
  }, 60_000)

  test('a later row with the same key replaces the earlier one', async () => {
    await contacts('email,name,company\nada@example.com,Ada,Old\nada@example.com,Ada L,\n')
    expect(await rows('SELECT name, company FROM contacts')).toEqual([{ name: 'Ada L', company: null }])
  })

  test('finds the delimiter, and ignores a byte order mark and columns it does not know', async () => {
    const task = await contacts('\uFEFFName;Email;Shoe size\nAda;ada@example.com;38\n')
    expect(task.result.structuredContent).toMatchObject({ imported: 1, ignoredColumns: ['shoe_size'] })
    expect(textOf(task)).toContain('Columns that contacts does not have were ignored: shoe_size.')
  })

  test('stops when the file is replaced half-way', async () => {
    await FILES.put('in/replaced.csv', manyContacts(5_000))
    const args = { table: 'contacts', format: 'csv', key: 'in/replaced.csv' }
    const taskId = await start('pausing_import_batch', args)
    expect(await question(taskId)).toBe('Go on?')
    await FILES.put('in/replaced.csv', 'email,name\n')
    await reply(taskId, { action: 'accept', content: {} })
    const task = await untilEnded(taskId, 30_000)
    expect(task).toMatchObject({ status: 'completed', result: { isError: true } })
    expect(textOf(task)).toContain('in/replaced.csv was replaced or deleted while it was being imported.')
  }, 60_000)

  test.each([
    ['a file that is not there', { key: 'in/nothing.csv' }, 'There is no file in/nothing.csv in the bucket.'],
    [
      'a header without a column that is needed',
      { text: 'mail,name\nx,y\n' },
      'contacts needs the column email; the header has: mail, name.',
    ],
    ['two columns of one name', { text: 'email,name,Name\n' }, 'Two columns of the header are named "name".'],
    ['no header', { text: '\n\n' }, 'The data has no header line.'],
  ])('refuses %s', async (_, args, reason) => {
    const task = await load({ table: 'contacts', format: 'csv', ...args })
    expect(task).toMatchObject({ status: 'completed', result: { isError: true } })
    expect(textOf(task)).toBe(`Nothing was imported. ${reason}`)
  })

  test('refuses UTF-16', async () => {
    await FILES.put('in/utf16.csv', new Uint8Array([0xff, 0xfe, 0x61, 0x00]))
    const task = await load({ table: 'contacts', format: 'csv', key: 'in/utf16.csv' })
    expect(textOf(task)).toContain('UTF-16')
  })

  test('a header alone imports nothing', async () => {
    const task = await contacts('email,name\n')
    expect(textOf(task)).toBe('Imported 0 rows into contacts.')
    expect(await value('SELECT count(*) FROM contacts')).toBe(0)
  })

  test.each([
    ['neither text nor key', {}],
    ['both text and key', { text: 'x', key: 'y' }],
  ])('refuses %s before a task exists', async (_, args) => {
    const { body } = await rpc('tools/call', {
      name: 'import_batch',
      arguments: { table: 'contacts', format: 'csv', ...args },
    })
    expect(body.result).toMatchObject({ resultType: 'complete', isError: true })
    expect(body.result.content[0].text).toContain('give either "text" or "key"')
  })

  test('stops at a line that has no end, and says what was imported before', async () => {
    const text = `{"a":1}\n{"b":"${'x'.repeat(600_000)}"}\n`
    const task = await load({ table: 'imported_records', format: 'ndjson', text })
    expect(textOf(task)).toContain('The import stopped at line 2:')
    expect(textOf(task)).toContain('Imported 1 row into imported_records.')
    expect(await value('SELECT count(*) FROM imported_records')).toBe(1)
  })

  test('never asks anything', async () => {
    const taskId = await start(
      'import_batch',
      { table: 'contacts', format: 'csv', text: 'email,name\nada@example.com,Ada' },
      { capabilities: { extensions: { 'io.modelcontextprotocol/tasks': {} } } },
    )
    await expect(question(taskId)).rejects.toThrow('completed')
  })
})
