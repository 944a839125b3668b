import {
  isCreateTaskResultV2,
  isDetailedTaskV2,
  isTaskStatusNotificationV2,
  isTaskV2,
} from '@modelcontextprotocol/ext-tasks/core/v2'
import * as fc from 'fast-check'
import { describe, expect, test } from 'vitest'
import {
  checkEnvelope,
  decodeHeaderValue,
  ModernCodec,
  REVISION,
  speaksModern,
  taskNotification,
} from '../../../src/protocol/modern'
import { checkParamHeaders, paramHeadersOf } from '../../../src/protocol/param-headers'
import { INITIAL } from '../../../src/task/machine'
import { snapshotText } from '../../../src/task/snapshot'
import type { StoredOutcome, TaskRow } from '../../../src/task/store'

const VERSION = 'io.modelcontextprotocol/protocolVersion'
const CAPABILITIES = 'io.modelcontextprotocol/clientCapabilities'

describe('the order of the checks', () => {
  /** Each fault on its own, in the order in which they are looked for. */
  const faults: readonly {
    readonly code: number
    readonly spoil: (message: Message) => Message
  }[] = [
    {
      code: -32020,
      spoil: (m) => ({ ...m, headers: { ...m.headers, 'mcp-protocol-version': '2025-11-25' } }),
    },
    {
      code: -32022,
      spoil: (m) => ({
        headers: { ...m.headers, 'mcp-protocol-version': '2099-01-01' },
        meta: { ...m.meta, [VERSION]: '2099-01-01' },
      }),
    },
    { code: -32020, spoil: (m) => ({ ...m, headers: without(m.headers, 'mcp-protocol-version') }) },
    { code: -32602, spoil: (m) => ({ ...m, meta: without(m.meta, CAPABILITIES) }) },
    { code: -32602, spoil: (m) => ({ ...m, meta: { ...m.meta, [CAPABILITIES]: [] } }) },
    { code: -32020, spoil: (m) => ({ ...m, headers: without(m.headers, 'mcp-method') }) },
    { code: -32020, spoil: (m) => ({ ...m, headers: { ...m.headers, 'mcp-method': 'tasks/cancel' } }) },
    { code: -32020, spoil: (m) => ({ ...m, headers: without(m.headers, 'mcp-name') }) },
    { code: -32020, spoil: (m) => ({ ...m, headers: { ...m.headers, 'mcp-name': 'other' } }) },
    { code: -32020, spoil: (m) => ({ ...m, headers: { ...m.headers, 'mcp-name': '=?base64?%?=' } }) },
  ]

  test.each(faults.map((fault, index) => ({ ...fault, index })))(
    'fault $index is answered with $code',
    ({ code, spoil }) => {
      expect(check(spoil(GOOD))).toMatchObject({ ok: false, error: { code } })
    },
  )

  test('of several faults, the first in the order is answered', () => {
    // The first two exclude each other.
    fc.assert(
      fc.property(fc.subarray(faults.slice(1), { minLength: 1 }), (chosen) => {
        const spoiled = chosen.toReversed().reduce((message, { spoil }) => spoil(message), GOOD)
        const checked = check(spoiled)
        expect(checked.ok).toBe(false)
        // A later fault may repair an earlier one (a missing header that is set again): only codes count.
        if (!checked.ok) expect(chosen.map(({ code }) => code)).toContain(checked.error.code)
      }),
    )
    const all = faults.slice(1).reduceRight((message, { spoil }) => spoil(message), GOOD)
    expect(check(all)).toMatchObject({ ok: false, error: { code: -32022 } })
  })

  test('an unsupported version says what is supported and what was asked for', () => {
    const unsupported = {
      headers: { ...GOOD.headers, 'mcp-protocol-version': '2099-01-01' },
      meta: { ...GOOD.meta, [VERSION]: '2099-01-01' },
    }
    expect(check(unsupported)).toMatchObject({
      ok: false,
      error: { data: { supported: [REVISION], requested: '2099-01-01' } },
    })
  })

  test('a request without faults passes, with its capabilities', () => {
    expect(check(GOOD)).toMatchObject({ ok: true, value: { capabilities: { sampling: {} } } })
  })

  test('a name is compared as it was meant: in Base64, and without white space around it', () => {
    fc.assert(
      fc.property(fc.string({ minLength: 1, unit: 'grapheme' }), (name) => {
        const bytes = new TextEncoder().encode(name)
        const encoded = `  =?base64?${btoa(String.fromCharCode(...bytes))}?=\t`
        const checked = check({ ...GOOD, headers: { ...GOOD.headers, 'mcp-name': encoded } }, name)
        expect(checked.ok).toBe(true)
      }),
    )
  })
})

test.each([
  ['plain', 'plain'],
  ['', ''],
  ['=?base64?SGk=?=', 'Hi'],
  ['=?base64??=', ''],
  ['=?base64?w6k=?=', 'é'],
  ['=?base64?SGk?=', undefined],
  ['=?base64?SGk=x?=', undefined],
  ['=?base64?_-__?=', undefined],
  ['=?base64?/w==?=', undefined],
  ['=?base64?SGk=', '=?base64?SGk='],
  ['x=?base64?SGk=?=', 'x=?base64?SGk=?='],
])('a header value %j means %j', (value, meant) => {
  expect(decodeHeaderValue(value)).toBe(meant)
})

test('the revision is recognised by _meta or by the header', () => {
  const none = new Headers()
  expect(speaksModern({ params: { _meta: { [VERSION]: 7 } } }, none)).toBe(true)
  expect(speaksModern({ params: { _meta: {} } }, none)).toBe(false)
  expect(speaksModern({ params: [] }, none)).toBe(false)
  expect(speaksModern({}, new Headers({ 'mcp-protocol-version': REVISION }))).toBe(true)
  expect(speaksModern({}, new Headers({ 'mcp-protocol-version': '2031-01-01' }))).toBe(true)
  expect(speaksModern({}, new Headers({ 'mcp-protocol-version': '2025-11-25' }))).toBe(false)
})

describe('arguments mirrored into headers', () => {
  const declared = paramHeadersOf({
    'x-mcp-header': 'Root',
    properties: {
      region: { type: 'string', 'x-mcp-header': 'Region' },
      deep: { properties: { n: { type: 'number', 'x-mcp-header': 'Deep-N' } } },
      list: { items: { 'x-mcp-header': 'Never' } },
    },
  })

  test('are declared on properties, however deep, and nowhere else', () => {
    expect(declared).toEqual([
      { header: 'Mcp-Param-Region', path: ['region'] },
      { header: 'Mcp-Param-Deep-N', path: ['deep', 'n'] },
    ])
  })

  test.each<[Record<string, unknown>, Record<string, string>, boolean]>([
    [{ region: 'eu' }, { 'mcp-param-region': 'eu' }, true],
    [{ region: 'eu' }, { 'mcp-param-region': ' eu ' }, true],
    [{ region: 'é' }, { 'mcp-param-region': '=?base64?w6k=?=' }, true],
    [{ region: 'eu' }, { 'mcp-param-region': 'us' }, false],
    [{ region: 'eu' }, { 'mcp-param-region': 'EU' }, false],
    [{ region: 'eu' }, {}, false],
    [{ region: 'eu' }, { 'mcp-param-region': '=?base64?%?=' }, false],
    [{ region: '' }, { 'mcp-param-region': '' }, true],
    [{ deep: { n: 42 } }, { 'mcp-param-deep-n': '42' }, true],
    [{ deep: { n: 42 } }, { 'mcp-param-deep-n': '42.0' }, true],
    [{ deep: { n: 42 } }, { 'mcp-param-deep-n': '43' }, false],
    [{ deep: 'flat' }, {}, true],
    [{}, {}, true],
    [{ region: null }, {}, true],
  ])('%j with %j: %s', (args, headers, fine) => {
    expect(checkParamHeaders(declared, args, new Headers(headers)).ok).toBe(fine)
  })
})

describe('what is put together as text', () => {
  const server = { name: 'a "server"', version: '1' }
  const codec = new ModernCodec(server)
  const identity = { 'io.modelcontextprotocol/serverInfo': server }

  test('is JSON with exactly the members of the extension, whatever is in it', () => {
    fc.assert(
      fc.property(rows, ({ row, result }) => {
        const snapshot = snapshotText(row, questionsOf(row), result && JSON.stringify(result))
        const task = JSON.parse(snapshot)

        const detailed = JSON.parse(codec.detailed(snapshot))
        expect(detailed).toEqual({ resultType: 'complete', _meta: identity, ...task })
        expect(isDetailedTaskV2(detailed), JSON.stringify(detailed)).toBe(true)
        expect('result' in detailed).toBe(row.status === 'completed')
        expect('error' in detailed).toBe(row.status === 'failed')
        expect('inputRequests' in detailed).toBe(row.status === 'input_required')

        const created = JSON.parse(codec.created(snapshot))
        expect(isCreateTaskResultV2(created), JSON.stringify(created)).toBe(true)
        expect(isTaskV2(created)).toBe(true)
        for (const member of ['task', 'content', 'result', 'error', 'inputRequests', 'requestState']) {
          expect(created).not.toHaveProperty(member)
        }

        const note = JSON.parse(taskNotification('s1', snapshot))
        expect(isTaskStatusNotificationV2(note), JSON.stringify(note)).toBe(true)
        expect(note.params).toEqual({
          _meta: { 'io.modelcontextprotocol/subscriptionId': 's1' },
          ...task,
        })
      }),
    )
  })

  test('an acknowledgement is empty but for who gives it', () => {
    expect(JSON.parse(codec.acknowledgement())).toEqual({ resultType: 'complete', _meta: identity })
  })

  test('other results keep their own type and _meta', () => {
    expect(JSON.parse(codec.result({ content: [], _meta: { mine: 1 } }))).toEqual({
      resultType: 'complete',
      content: [],
      _meta: { mine: 1, ...identity },
    })
    expect(JSON.parse(codec.result({ resultType: 'input_required' })).resultType).toBe('input_required')
  })
})

// ---------------------------------------------------------------- parts

interface Message {
  readonly headers: Record<string, string>
  readonly meta: Record<string, unknown>
}

const GOOD: Message = {
  headers: { 'mcp-protocol-version': REVISION, 'mcp-method': 'tasks/get', 'mcp-name': 'tsk_1' },
  meta: { [VERSION]: REVISION, [CAPABILITIES]: { sampling: {} } },
}

function check({ headers, meta }: Message, taskId = 'tsk_1') {
  const request = { jsonrpc: '2.0', id: 1, method: 'tasks/get', params: { taskId, _meta: meta } } as const
  return checkEnvelope(request, new Headers(headers), 'taskId')
}

function without<T extends Record<string, unknown>>(object: T, key: string): T {
  return Object.fromEntries(Object.entries(object).filter(([name]) => name !== key)) as T
}

const text = fc.string({ unit: 'binary' })
const time = fc.integer({ min: 0, max: 4_000_000_000_000 })
const ends: fc.Arbitrary<Pick<TaskRow, 'status' | 'phase' | 'outcome' | 'openQuestions'>> = fc.oneof(
  fc.constant({ status: 'working', phase: 'running', outcome: null, openQuestions: 0 } as const),
  fc.constant({ status: 'input_required', phase: 'waiting', outcome: null, openQuestions: 2 } as const),
  fc.constant({ status: 'cancelled', phase: 'ended', outcome: null, openQuestions: 0 } as const),
  fc.constant({
    status: 'completed',
    phase: 'ended',
    outcome: { kind: 'result', text: 'elsewhere' } satisfies StoredOutcome,
    openQuestions: 0,
  } as const),
  fc.record({ code: fc.integer(), message: text }).map((error) => ({
    status: 'failed' as const,
    phase: 'ended' as const,
    outcome: { kind: 'error' as const, error },
    openQuestions: 0,
  })),
)

const rows = fc
  .record({
    end: ends,
    message: fc.option(text, { nil: null }),
    createdAt: time,
    updatedAt: time,
    ttlMs: fc.nat(),
    gaps: fc.array(fc.nat()),
    blocks: fc.array(text.map((t) => ({ type: 'text', text: t }))),
    extra: fc.jsonValue({ maxDepth: 3 }),
  })
  .map(({ end, blocks, extra, ...row }) => ({
    // What a snapshot does not show is left out.
    row: { ...BASE, ...row, ...end } as unknown as TaskRow,
    result:
      end.status === 'completed'
        ? { content: blocks, structuredContent: { extra }, resultType: 'complete' }
        : undefined,
  }))

const BASE = {
  ...INITIAL,
  head: {
    taskId: 'tsk_1',
    policy: { pollMinMs: 1_000, pollMaxMs: 30_000 },
  },
}

function questionsOf({ status }: TaskRow) {
  const request = {
    method: 'elicitation/create',
    params: { mode: 'form', message: '"?\u2028', requestedSchema: {} },
  }
  return status === 'input_required'
    ? ['a', '__proto__', 'a~2'].map((key) => ({ name: key, key, request, tries: 1 }))
    : []
}
