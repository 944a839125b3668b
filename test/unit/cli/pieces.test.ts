import { describe, expect, test } from 'vitest'
import { readAnswer, readAnswers, readArguments } from '../../../src/cli/arguments.ts'
import { exitOf, exitOfError, UsageError } from '../../../src/cli/exit.ts'
import { readText } from '../../../src/form/fields.ts'
import { ago, tableOf, toolSheet, toolTable } from '../../../src/cli/listing.ts'
import { textOfResult } from '../../../src/cli/output.ts'
import { oneLine, plain } from '../../../src/cli/plain.ts'
import { readSettings } from '../../../src/cli/settings.ts'
import { textOf } from '../../../src/cli/view.ts'
import {
  DeadlineError,
  type Question,
  TaskExpiredError,
  type Update,
  UnreachableError,
} from '../../../src/client/index.ts'

describe('arguments', () => {
  const schema = {
    type: 'object',
    properties: {
      name: { type: 'string' },
      count: { type: 'integer' },
      dry: { type: 'boolean' },
      tags: { type: 'array', items: { type: 'string' } },
    },
  }

  test('are read by their schema, and over --args', () => {
    expect(
      readArguments(
        ['name=a=b', 'count=3', 'dry=no', 'tags=["x"]', 'other=7'],
        '{"name":"z","more":1}',
        schema,
      ),
    ).toEqual({ name: 'a=b', count: 3, dry: false, tags: ['x'], other: '7', more: 1 })
  })

  test('may be given as JSON, whatever the schema says', () => {
    expect(readArguments(['count:="three"', 'deep:={"a":[1]}'], undefined, schema)).toEqual({
      count: 'three',
      deep: { a: [1] },
    })
  })

  test.each([
    [['count=three'], undefined],
    [['count'], undefined],
    [['deep:={'], undefined],
    [[], 'not JSON'],
    [[], '[1]'],
  ])('that make no sense are the user’s to put right: %j %j', (pairs, json) => {
    expect(() => readArguments(pairs, json, schema)).toThrow(UsageError)
  })
})

describe('answers given beforehand', () => {
  const question = (properties: Record<string, { type: string }>): Question => ({
    key: 'q',
    taskId: undefined,
    tool: undefined,
    kind: 'form',
    message: '?',
    url: undefined,
    schema: { type: 'object', properties },
    request: { method: 'elicitation/create' },
  })

  test('are kept by key', () => {
    expect([...readAnswers(['a=1', 'b=x=y'])]).toEqual([
      ['a', '1'],
      ['b', 'x=y'],
    ])
    expect(() => readAnswers(['=1'])).toThrow(UsageError)
  })

  test('are a value for the only field, an object of all, or a no', () => {
    const one = question({ confirm: { type: 'boolean' } })
    expect(readAnswer(one, 'yes')).toEqual({ action: 'accept', content: { confirm: true } })
    expect(readAnswer(one, '{"confirm":false}')).toEqual({ action: 'accept', content: { confirm: false } })
    expect(readAnswer(one, 'decline')).toEqual({ action: 'decline' })
    expect(() => readAnswer(one, 'perhaps')).toThrow('say yes or no')
    expect(() => readAnswer(question({ a: { type: 'string' }, b: { type: 'string' } }), 'x')).toThrow(
      UsageError,
    )
  })
})

test.each([
  [{ type: 'number' }, '2.5', 2.5],
  [{ type: 'integer' }, '2.5', 'give a whole number'],
  [{ type: 'number', maximum: 5 }, '6', 'at most 5'],
  [{ type: 'number' }, '', 'give a number'],
  [{ type: 'string', format: 'email' }, 'ada@example.com', 'ada@example.com'],
  [{ type: 'string', format: 'email' }, 'ada', 'that is not a email'],
  [{ type: 'string', format: 'date' }, '2026-02-30x', 'that is not a date'],
  [{ type: 'string', pattern: '^a+$' }, 'b', 'it must match ^a+$'],
  [{ type: 'string', pattern: '(' }, 'b', 'b'],
  [{ enum: [1, 'two'] }, '1', 1],
  [{ enum: [1, 'two'] }, 'three', 'choose one of: 1, two'],
])('a text is read by %j: %s', (schema, text, expected) => {
  const reading = readText(schema, text)
  expect(reading.ok ? reading.value : reading.problem).toBe(expected)
})

describe('what is shown', () => {
  const update = (more: Partial<Update>): Update => ({
    taskId: 't',
    status: 'working',
    message: undefined,
    progress: undefined,
    questions: [],
    cancelRequested: false,
    via: 'poll',
    task: undefined,
    outcome: undefined,
    ...more,
  })
  // oxlint-disable-next-line no-control-regex
  const bare = (text: string) => text.replace(/\u001b\[\d+m/g, '')

  test('is a bar when the task counts, and its message otherwise', () => {
    const progress = { done: 3, total: 4, label: 'Copying' }
    const shown = bare(textOf(update({ message: 'Copying (3/4)', progress }), undefined))
    expect(shown).toBe(`${'━'.repeat(24)}  75 %  Copying (3/4)`)
    expect(textOf(update({ message: 'Thinking' }), undefined)).toBe('Thinking')
    expect(textOf(update({ status: 'input_required' }), undefined)).toBe('Waiting for an answer')
  })

  test('says that a cancellation is only requested', () => {
    expect(textOf(update({ cancelRequested: true }), undefined)).toBe('Cancellation requested. Working')
  })

  test('fits on one line, and cannot play with the terminal', () => {
    expect(textOf(update({ message: 'x'.repeat(200) }), 80).length).toBeLessThanOrEqual(76)
    expect(oneLine('a\nb\u001b[31mc')).toBe('a b[31mc')
    expect(plain('a\r\nb\tc\u009b1m')).toBe('a\nb\tc1m')
  })

  test('of a result is its text; what is not text is named', () => {
    const content = [
      { type: 'text', text: 'Done.' },
      { type: 'image', data: 'AAAA', mimeType: 'image/png' },
      { type: 'resource_link', uri: 'file:///a' },
      { type: 'resource', resource: { uri: 'x', text: 'inside' } },
    ]
    expect(textOfResult({ content })).toBe('Done.\n[image, image/png, 3 bytes]\n[file:///a]\ninside')
    expect(textOfResult({ content: [], structuredContent: { a: 1 } })).toBe('{\n  "a": 1\n}')
  })

  test('of stored tasks is a table', () => {
    const reference = {
      taskId: 'tsk_1',
      endpoint: 'http://a/mcp',
      tool: 'work',
      createdAt: 0,
      ttlMs: 7_200_000,
      status: 'working',
      cancelRequested: true,
      answered: [],
    } as const
    expect(tableOf([reference], 60_000)).toBe(
      'tsk_1  work  working, cancellation requested  begun 1 minute ago  expires in 1 hour',
    )
    expect([ago(0), ago(90_000), ago(2 * 86_400_000)]).toEqual(['0 seconds', '1 minute', '2 days'])
  })
})

test('tools are a line each, and one is described with its arguments', () => {
  const size = { type: 'string', enum: ['s', 'm'], description: 'How large' }
  const inputSchema = { type: 'object', properties: { size, note: { type: 'string' } }, required: ['size'] }
  const tools = [
    { name: 'a', description: 'First line.\nSecond line.', inputSchema },
    { name: 'long', inputSchema },
  ]
  expect(toolTable(tools, undefined)).toBe('a     First line.\nlong')
  expect(toolTable(tools, 10)).toBe('a     Fir…\nlong')
  expect(tools[0] && toolSheet(tools[0])).toBe(
    'a\nFirst line.\nSecond line.\n  size: s | m  How large\n  note?: string',
  )
})

test('the exit code tells how it ended', () => {
  const completed = { status: 'completed', completedAnyway: false, task: undefined } as const
  expect(exitOf({ ...completed, result: { content: [] } })).toBe(0)
  expect(exitOf({ ...completed, result: { content: [], isError: true } })).toBe(1)
  expect(exitOf({ status: 'cancelled', message: undefined, task: undefined })).toBe(4)
  expect(exitOfError(new DeadlineError(1))).toBe(5)
  expect(exitOfError(new TaskExpiredError('t'))).toBe(6)
  expect(exitOfError(new UnreachableError('gone'))).toBe(7)
})

describe('settings', () => {
  const nobody = { stdin: false, stderr: false }

  test('come from options, then the environment, then a default', () => {
    const env = { LONGHAUL_URL: 'https://env.test/mcp', LONGHAUL_TOKEN: 'secret', XDG_STATE_HOME: '/state' }
    expect(readSettings({}, env, nobody)).toMatchObject({
      url: 'https://env.test/mcp',
      token: 'secret',
      statePath: '/state/longhaul/tasks.db',
      interactive: false,
      showProgress: false,
    })
    expect(readSettings({ url: 'https://o.test/mcp' }, env, nobody)).toMatchObject({
      url: 'https://o.test/mcp',
      command: 'longhaul --url https://o.test/mcp',
    })
    expect(readSettings({}, {}, nobody).url).toBe('http://localhost:8787/mcp')
    expect(() => readSettings({ url: 'ftp://a' }, {}, nobody)).toThrow(UsageError)
  })

  test('ask and show only where somebody is', () => {
    const somebody = { stdin: true, stderr: true }
    expect(readSettings({}, {}, somebody)).toMatchObject({ interactive: true, showProgress: true })
    expect(readSettings({ quiet: true }, {}, somebody)).toMatchObject({
      interactive: false,
      showProgress: false,
    })
    expect(readSettings({}, {}, { stdin: false, stderr: true })).toMatchObject({
      interactive: false,
      showProgress: true,
    })
  })
})
