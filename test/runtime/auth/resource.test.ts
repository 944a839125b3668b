import {
  discoverOAuthProtectedResourceMetadata,
  extractWWWAuthenticateParams,
} from '@modelcontextprotocol/client'
import { afterEach, describe, expect, test, vi } from 'vitest'
import { Deployment, type Variables } from './deployment'
import { Issuer, signingKey } from './issuer'
import { AUDIENCE, ISSUER } from './with-tokens'

const OIDC: Variables = { OIDC_ISSUER: ISSUER, OIDC_AUDIENCE: AUDIENCE }
const KEYS: Variables = { API_KEYS: '{"acme":"acme-key-acme-key"}' }
const key = await signingKey('it')
const WELL_KNOWN = '/.well-known/oauth-protected-resource'
const METADATA_URL = `http://localhost${WELL_KNOWN}/mcp`

afterEach(() => vi.restoreAllMocks())

describe('a server that accepts tokens', () => {
  const document = {
    resource: 'http://localhost/mcp',
    resource_name: 'deployment',
    authorization_servers: [ISSUER],
    bearer_methods_supported: ['header'],
    scopes_supported: ['tasks:read', 'tasks:write'],
  }

  test.each([WELL_KNOWN, `${WELL_KNOWN}/mcp`])('says at %s where to get them, to anybody', async (path) => {
    const response = await new Deployment(OIDC).fetch(path)
    expect(response.status).toBe(200)
    expect(await response.json()).toEqual(document)
  })

  test('says it under its public address, when it has one', async () => {
    const server = new Deployment({ ...OIDC, PUBLIC_URL: 'https://mcp.example.com/' })
    const metadata = await (await server.fetch(WELL_KNOWN)).json()
    expect(metadata).toMatchObject({ resource: 'https://mcp.example.com/mcp' })
    const challenge = (await server.send('server/discover')).headers.get('www-authenticate')
    expect(challenge).toContain(`resource_metadata="https://mcp.example.com${WELL_KNOWN}/mcp"`)
  })

  test('challenges a call without a token, naming the metadata and the scopes to begin with, and no error', async () => {
    const response = await new Deployment(OIDC).send('server/discover')
    expect(response.status).toBe(401)
    expect(response.headers.get('www-authenticate')).toBe(
      `Bearer resource_metadata="${METADATA_URL}", scope="tasks:read tasks:write"`,
    )
    expect(await response.json()).toMatchObject({ jsonrpc: '2.0', error: { code: -32600 } })
  })

  test('is discovered by the official client', async () => {
    const server = new Deployment(OIDC)
    const { resourceMetadataUrl, scope } = extractWWWAuthenticateParams(await server.send('server/discover'))
    expect(scope).toBe('tasks:read tasks:write')
    const through = (input: string | URL, init?: RequestInit) => server.fetch(String(input), init)
    for (const known of [resourceMetadataUrl, undefined]) {
      const metadata = await discoverOAuthProtectedResourceMetadata(
        'http://localhost/mcp',
        known && { resourceMetadataUrl: known },
        through,
      )
      expect(metadata).toEqual(document)
    }
  })

  test('does not speak of scopes when they are off', async () => {
    const server = new Deployment({ ...OIDC, SCOPES: 'off' })
    expect(await (await server.fetch(WELL_KNOWN)).json()).not.toHaveProperty('scopes_supported')
    const challenge = (await server.send('server/discover')).headers.get('www-authenticate')
    expect(challenge).toBe(`Bearer resource_metadata="${METADATA_URL}"`)
  })
})

test('a server with API keys only has no metadata, and its challenge names itself', async () => {
  const server = new Deployment(KEYS)
  expect((await server.fetch(WELL_KNOWN)).status).toBe(404)
  const without = await server.send('server/discover')
  expect(without.headers.get('www-authenticate')).toBe('Bearer realm="deployment"')
  const wrong = await server.send('server/discover', {}, { token: 'wrong' })
  expect(wrong.headers.get('www-authenticate')).toBe(
    'Bearer realm="deployment", error="invalid_token", error_description="The key or token is not known here."',
  )
})

describe('scopes', () => {
  const READ = 'tasks:read'
  const WRITE = 'tasks:write'
  const call = (name: string) => ['tools/call', { name, arguments: {} }] as const
  const task = { taskId: 'tsk_any' }

  const needs: [string, readonly [string, Record<string, unknown>], string][] = [
    ['tasks/get', ['tasks/get', task], READ],
    ['tasks/result', ['tasks/result', task], READ],
    ['subscriptions/listen', ['subscriptions/listen', { notifications: { taskIds: [] } }], READ],
    ['tasks/update', ['tasks/update', { ...task, inputResponses: {} }], WRITE],
    ['tasks/cancel', ['tasks/cancel', task], WRITE],
    ['a call', call('greet'), WRITE],
    ['a call of a tool nobody knows', call('unknown'), WRITE],
    ['a call of a tool with a scope of its own', call('purge'), `${WRITE} files:delete`],
    ['a call of a plain tool with scopes of its own', call('purge_now'), `${WRITE} files:delete files:list`],
  ]

  test.each(needs)(
    '%s needs them all, and the challenge names them together',
    async (_, [method, params], scope) => {
      const issuer = new Issuer([key])
      const server = new Deployment(OIDC)
      const all = scope.split(' ')
      const allButOne = all.map((left) =>
        [READ, WRITE, 'files:delete', 'files:list'].filter((it) => it !== left),
      )
      for (const granted of [[], ['tasks'], ['tasks:*'], ...allButOne]) {
        const token = await issuer.token({ scope: granted.join(' ') })
        const response = await server.send(method, params, { token })
        expect(response.status, granted.join(' ')).toBe(403)
        expect(response.headers.get('www-authenticate')).toBe(
          `Bearer resource_metadata="${METADATA_URL}", error="insufficient_scope", ` +
            `error_description="This needs the ${all.length > 1 ? 'scopes' : 'scope'} ${scope}.", scope="${scope}"`,
        )
        expect(await response.json()).toEqual({
          jsonrpc: '2.0',
          id: 1,
          error: {
            code: -32600,
            message: `This needs the ${all.length > 1 ? 'scopes' : 'scope'} ${scope}.`,
            data: { requiredScopes: all },
          },
        })
      }
      const enough = await server.send(method, params, { token: await issuer.token({ scope }) })
      expect(enough.status).not.toBe(403)
      await enough.body?.cancel()
    },
  )

  test('are asked for in every dialect', async () => {
    const issuer = new Issuer([key])
    const server = new Deployment(OIDC)
    const token = await issuer.token({ scope: READ })
    for (const headers of [{}, { 'mcp-protocol-version': '2025-11-25' }]) {
      for (const body of [
        { id: 1, method: 'tools/call', params: { name: 'purge_now', arguments: {} } },
        { id: 1, method: 'tools/call', params: { name: 'whoami', arguments: {}, task: {} } },
        { method: 'tools/call', params: { name: 'purge_now' } },
        { id: 1, method: 'tasks/cancel', params: task },
        // The answer to a question of a task.
        { id: 'question', result: { action: 'accept', content: {} } },
      ]) {
        const response = await server.fetch('/mcp', {
          method: 'POST',
          headers: {
            'content-type': 'application/json',
            accept: 'application/json, text/event-stream',
            authorization: `Bearer ${token}`,
            ...headers,
          },
          body: JSON.stringify({ jsonrpc: '2.0', ...body }),
        })
        expect(response.status, JSON.stringify(body)).toBe(403)
      }
    }
  })

  test('cannot be gone round by a name that is not a text', async () => {
    const issuer = new Issuer([key])
    const server = new Deployment(OIDC)
    const token = await issuer.token()
    for (const name of ['purge', 'purge_now']) {
      const { body } = await server.call(
        'tools/call',
        { name: [name], arguments: {} },
        { token, headers: { 'mcp-name': name } },
      )
      expect(body).toHaveProperty('error')
    }
  })

  test('are not needed to discover and to list', async () => {
    const issuer = new Issuer([key])
    const token = await issuer.token({ scope: undefined })
    const server = new Deployment(OIDC)
    for (const method of ['server/discover', 'tools/list']) {
      expect((await server.call(method, {}, { token })).status).toBe(200)
    }
  })

  test('are needed to open the WebSocket, which carries both news and answers', async () => {
    const issuer = new Issuer([key])
    const server = new Deployment(OIDC)
    for (const [scope, status] of [
      [READ, 403],
      [WRITE, 403],
      [`${READ} ${WRITE}`, 404],
    ] as const) {
      const response = await server.fetch('/mcp/tasks/tsk_any', {
        headers: { upgrade: 'websocket', authorization: `Bearer ${await issuer.token({ scope })}` },
      })
      expect(response.status).toBe(status)
    }
    const without = await server.fetch('/mcp/tasks/tsk_any', { headers: { upgrade: 'websocket' } })
    expect(without.status).toBe(401)
    expect(without.headers.get('www-authenticate')).toContain('resource_metadata')
  })

  test('are not looked at with SCOPES=off: the identity holds them all', async () => {
    const issuer = new Issuer([key])
    const server = new Deployment({ ...OIDC, SCOPES: 'off' })
    const { principal } = await server.whoami({ token: await issuer.token({ scope: undefined }) })
    expect(principal.scopes).toEqual([READ, WRITE, 'files:delete', 'files:list'])
  })
})
