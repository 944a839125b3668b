import type { ServerContext } from '@modelcontextprotocol/server'
import { afterEach, expect, test, vi } from 'vitest'
import { SigningKeys } from '../../src/auth/keys'
import { REQUEST_STATE_TTL_MS, requestStateOf } from '../../src/mcp/request-state'

const keys = new SigningKeys('1:a-secret-of-sixteen-characters')
const acme = requestStateOf(keys, 'acme')

function requestFor(method: string, name: string): ServerContext {
  const req = new Request('http://localhost/mcp', { headers: { 'mcp-name': name } })
  // The two members that the seal looks at.
  return { mcpReq: { method }, http: { req } } as ServerContext
}

const ask = requestFor('tools/call', 'ask')

afterEach(() => vi.useRealTimers())

test('a request state comes back as it was sealed', async () => {
  const token = await acme.sealState(ask, { round: 2, names: ['Ada'] })
  expect(await acme.verify(token, ask)).toEqual({ round: 2, names: ['Ada'] })
})

test('a name is the same name when it travels as Base64', async () => {
  const token = await acme.sealState(ask, { round: 1 })
  const encoded = requestFor('tools/call', `=?base64?${btoa('ask')}?=`)
  expect(await acme.verify(token, encoded)).toEqual({ round: 1 })
})

test.each([
  ['damaged', (token: string) => acme.verify(`${token}x`, ask)],
  ['of another tool', (token: string) => acme.verify(token, requestFor('tools/call', 'other'))],
  ['of another method', (token: string) => acme.verify(token, requestFor('prompts/get', 'ask'))],
  ['of another tenant', (token: string) => requestStateOf(keys, 'globex').verify(token, ask)],
])('a request state that is %s is refused', async (_, verify) => {
  const token = await acme.sealState(ask, { round: 1 })
  await expect(verify(token)).rejects.toThrow('damaged, expired, or of another request')
})

test('a request state expires', async () => {
  vi.useFakeTimers({ toFake: ['Date'] })
  const token = await acme.sealState(ask, { round: 1 })
  vi.setSystemTime(Date.now() + REQUEST_STATE_TTL_MS + 1)
  await expect(acme.verify(token, ask)).rejects.toThrow('damaged, expired, or of another request')
})
