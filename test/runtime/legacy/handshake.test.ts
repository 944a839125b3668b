/** `initialize`, the stateless session and `tools/list` of the 2025 revisions. */
import { exports } from 'cloudflare:workers'
import { expect, test } from 'vitest'
import { ACME, GLOBEX, post, rpc } from '../client'
import { LegacyClient } from './client'

const supportOf = async (client: LegacyClient, name: string) => {
  const { body } = await client.rpc('tools/list')
  return body.result.tools.find((tool: { name: string }) => tool.name === name)?.execution
}

test.each(['2025-06-18', '2025-11-25'])('revision %s is negotiated as asked for', async (revision) => {
  const { initialized, headers } = await LegacyClient.connect({ revision })
  expect(initialized).toMatchObject({ protocolVersion: revision, serverInfo: { name: 'runtime-tests' } })
  expect(headers['mcp-session-id']).toMatch(/^[\x21-\x7e]+$/)
})

test.each(['2025-03-26', '2024-11-05', '2026-07-28', 'tomorrow'])(
  'a client that asks for %s is offered 2025-11-25',
  async (revision) => {
    const { initialized } = await LegacyClient.connect({ revision })
    expect(initialized.protocolVersion).toBe('2025-11-25')
  },
)

test('tasks are a capability of 2025-11-25 only, without a list', async () => {
  const { initialized } = await LegacyClient.connect()
  expect(initialized.capabilities.tasks).toEqual({ cancel: {}, requests: { tools: { call: {} } } })
  expect(initialized.capabilities.extensions).toBeUndefined()
  const older = await LegacyClient.connect({ revision: '2025-06-18' })
  expect(older.initialized.capabilities.tasks).toBeUndefined()
  const { body } = await rpc('server/discover')
  expect(body.result.capabilities.tasks).toBeUndefined()
  expect(body.result.capabilities.extensions).toHaveProperty('io.modelcontextprotocol/tasks')
})

test('tools say whether they run as tasks, at 2025-11-25 only', async () => {
  const client = await LegacyClient.connect()
  expect(await supportOf(client, 'greet')).toEqual({ taskSupport: 'optional' })
  expect(await supportOf(client, 'needs_tasks')).toEqual({ taskSupport: 'required' })
  expect(await supportOf(client, 'plain')).toBeUndefined()
  const older = await LegacyClient.connect({ revision: '2025-06-18' })
  expect(await supportOf(older, 'greet')).toBeUndefined()
  const modern = await rpc('tools/list')
  expect(modern.body.result.tools[0]).not.toHaveProperty('execution')
})

test('a session that is damaged or of another tenant is 404, so that the client initializes again', async () => {
  const client = await LegacyClient.connect()
  const call = (headers: Record<string, string>) =>
    client.post({ jsonrpc: '2.0', id: 1, method: 'tools/list', params: {} }, headers)
  expect((await call({})).status).toBe(200)
  expect((await call({ authorization: `Bearer ${GLOBEX}` })).status).toBe(404)
  const damaged = `${client.headers['mcp-session-id']?.slice(0, -3)}abc`
  expect((await call({ 'mcp-session-id': damaged })).status).toBe(404)
})

test('a revision that is not spoken here is 400', async () => {
  const client = await LegacyClient.connect()
  const response = await client.post(
    { jsonrpc: '2.0', id: 1, method: 'tasks/get', params: {} },
    { 'mcp-protocol-version': '2025-03-26' },
  )
  expect(response.status).toBe(400)
  expect(await response.text()).toContain('2025-11-25')
})

test('the session survives without a version header, as some clients send none', async () => {
  const client = await LegacyClient.connect()
  const { 'mcp-session-id': session = '' } = client.headers
  const response = await post(
    {
      jsonrpc: '2.0',
      id: 1,
      method: 'tools/call',
      params: { name: 'greet', arguments: { name: 'Ada' }, task: {} },
    },
    { authorization: `Bearer ${ACME}`, 'mcp-session-id': session },
  )
  expect(await response.json()).toMatchObject({ result: { task: { status: 'working' } } })
})

test('there is no session to end and no stream that belongs to no request', async () => {
  const { headers } = await LegacyClient.connect()
  for (const method of ['DELETE', 'GET']) {
    const response = await exports.default.fetch(new Request('http://localhost/mcp', { method, headers }))
    expect(response.status).toBe(405)
    expect(response.headers.get('allow')).toBe('GET, POST')
  }
})

test('notifications are accepted', async () => {
  const client = await LegacyClient.connect()
  const { status } = await client.post({ jsonrpc: '2.0', method: 'notifications/initialized' })
  expect(status).toBe(202)
})
