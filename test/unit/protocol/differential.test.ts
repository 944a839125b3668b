/** Our envelope checks against those of the official SDK: clients must see no difference between our methods and its own. */
import { createMcpHandler, McpServer } from '@modelcontextprotocol/server'
import * as fc from 'fast-check'
import { expect, test } from 'vitest'
import { z } from 'zod'
import { asRequest } from '../../../src/protocol/jsonrpc'
import { checkEnvelope, speaksModern } from '../../../src/protocol/modern'
import { checkParamHeaders, paramHeadersOf } from '../../../src/protocol/param-headers'

const VERSION = 'io.modelcontextprotocol/protocolVersion'
const CAPABILITIES = 'io.modelcontextprotocol/clientCapabilities'
const input = z.object({ region: z.string().optional().meta({ 'x-mcp-header': 'Region' }) })
const declared = paramHeadersOf(z.toJSONSchema(input, { io: 'input' }))

const sdk = createMcpHandler(() => {
  const server = new McpServer({ name: 'other', version: '1' })
  server.registerTool('greet', { description: 'x', inputSchema: input }, () => ({ content: [] }))
  return server
})

interface Sent {
  readonly version: unknown
  readonly capabilities: unknown
  readonly region: unknown
  readonly headers: Record<string, string>
}

/** What a field may be: first as it should be, then otherwise. */
const fields = {
  version: ['2026-07-28', '2025-11-25', '2099-01-01', 'x', '', 7, null],
  capabilities: [{}, undefined, null, [], 'x'],
  region: ['eu', undefined, 'é', '', ' eu '],
  'mcp-protocol-version': ['2026-07-28', undefined, '2025-11-25', '2099-01-01', 'x'],
  'mcp-method': ['tools/call', undefined, 'tools/list', 'TOOLS/CALL', ''],
  'mcp-name': [
    'greet',
    undefined,
    'other',
    '=?base64?Z3JlZXQ=?=',
    '=?base64?Z3JlZXQ?=',
    '=?base64?b3RoZXI=?=',
  ],
  'mcp-param-region': ['eu', undefined, 'us', '=?base64?w6k=?=', '=?base64?ZXU=?=', '=?base64?x?='],
} as const
type Field = keyof typeof fields

const sentOf = ({ version, capabilities, region, ...headers }: Record<Field, unknown>): Sent => ({
  version,
  capabilities,
  region,
  headers: Object.fromEntries(
    Object.entries(headers).flatMap(([name, value]) =>
      value === undefined ? [] : [[name, value as string]],
    ),
  ),
})

const right = Object.fromEntries(
  Object.entries(fields).map(([field, values]) => [field, values[0]]),
) as Record<Field, unknown>

/** Most fields right, most of the time. */
const messages = fc
  .record(
    Object.fromEntries(
      Object.entries(fields).map(([field, values]) => [
        field,
        fc.oneof(
          { weight: 6, arbitrary: fc.constant(values[0]) },
          { weight: 1, arbitrary: fc.constantFrom(...values) },
        ),
      ]),
    ) as Record<Field, fc.Arbitrary<unknown>>,
  )
  .map(sentOf)

const bodyOf = ({ version, capabilities, region }: Sent): Record<string, unknown> => ({
  jsonrpc: '2.0',
  id: 1,
  method: 'tools/call',
  params: {
    name: 'greet',
    arguments: { ...(region !== undefined && { region }) },
    _meta: { [VERSION]: version, ...(capabilities !== undefined && { [CAPABILITIES]: capabilities }) },
  },
})

function ours(sent: Sent): number | undefined {
  const headers = new Headers(sent.headers)
  const rpc = asRequest(bodyOf(sent))
  if (!rpc.ok) return rpc.error.code
  const checked = checkEnvelope(rpc.value, headers, 'name')
  if (!checked.ok) return checked.error.code
  const args = checked.value.params['arguments'] as Record<string, unknown>
  const mirrored = checkParamHeaders(declared, args, headers)
  return mirrored.ok ? undefined : mirrored.error.code
}

async function theirs(sent: Sent): Promise<number | undefined> {
  const response = await sdk.fetch(
    new Request('http://localhost/mcp', {
      method: 'POST',
      headers: {
        'content-type': 'application/json',
        accept: 'application/json, text/event-stream',
        ...sent.headers,
      },
      body: JSON.stringify(bodyOf(sent)),
    }),
  )
  const text = await response.text()
  const message = JSON.parse(text.startsWith('{') ? text : (/^data: (\{.*)$/m.exec(text)?.[1] ?? '{}'))
  return message.error?.code
}

const singles = Object.entries(fields).flatMap(([field, values]) =>
  values.map((value) => ({ field, value, sent: sentOf({ ...right, [field]: value }) })),
)

test.each(singles)('$field as $value is judged alike, with the same code', async ({ sent }) => {
  expect(ours(sent)).toBe(await theirs(sent))
})

test('a request that one refuses, the other refuses', async () => {
  await fc.assert(
    fc.asyncProperty(messages, async (sent) => {
      if (!speaksModern(bodyOf(sent), new Headers(sent.headers))) return
      // With several faults the two may name different ones first.
      expect(ours(sent) === undefined).toBe((await theirs(sent)) === undefined)
    }),
    { numRuns: 150 },
  )
})
