/** A stream is resumed by whoever may make the request that it answers. */
import { expect, test } from 'vitest'
import { Deployment } from '../auth/deployment'
import { Issuer, signingKey } from '../auth/issuer'
import { AUDIENCE, ISSUER } from '../auth/with-tokens'
import { Events } from '../events'

test('resuming a call needs identity and the scope of the call', async () => {
  const issuer = new Issuer([await signingKey('it')])
  const server = new Deployment({ OIDC_ISSUER: ISSUER, OIDC_AUDIENCE: AUDIENCE })
  const full = await issuer.token({ scope: 'tasks:read tasks:write' })
  const response = await server.fetch('/mcp', {
    method: 'POST',
    headers: {
      authorization: `Bearer ${full}`,
      'content-type': 'application/json',
      accept: 'application/json, text/event-stream',
      'mcp-protocol-version': '2025-11-25',
    },
    body: JSON.stringify({
      jsonrpc: '2.0',
      id: 1,
      method: 'tools/call',
      params: { name: 'count', arguments: { to: 3 } },
    }),
  })
  const events = new Events(response)
  await events.all()
  const resume = (token?: string) =>
    server.fetch('/mcp', {
      headers: {
        'last-event-id': String(events.ids[0]),
        ...(token !== undefined && { authorization: `Bearer ${token}` }),
      },
    })
  expect((await resume()).status).toBe(401)
  const reader = await resume(await issuer.token({ scope: 'tasks:read' }))
  expect(reader.status).toBe(403)
  expect(reader.headers.get('www-authenticate')).toContain('scope="tasks:write"')
  const resumed = await resume(full)
  expect((await new Events(resumed).all()).at(-1).result.content[0].text).toBe('Counted to 3.')
})
