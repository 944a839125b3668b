import * as fc from 'fast-check'
import { describe, expect, test } from 'vitest'
import { challengeHeader } from '../../../src/auth/challenge'
import { jwksUrlOf, metadataUrls } from '../../../src/auth/issuer'
import { allScopes, covers, isScope, scopesFor } from '../../../src/auth/scopes'

describe('a challenge', () => {
  test('can be sent and taken apart whatever is said in it', () => {
    const texts = fc.string({ unit: 'binary', maxLength: 60 })
    fc.assert(
      fc.property(texts, texts, texts, (description, realm, metadataUrl) => {
        const header = challengeHeader({ error: 'invalid_token', description, realm, metadataUrl })
        expect(new Headers({ 'www-authenticate': header }).get('www-authenticate')).toBe(header)
        const parameters = /^Bearer (?:[a-z_]+="[\x20\x21\x23-\x5B\x5D-\x7E]*"(?:, |$))+$/
        expect(header).toMatch(parameters)
        expect(header.match(/[a-z_]+="/g)).toEqual(
          expect.arrayContaining(['resource_metadata="', 'error="', 'error_description="']),
        )
      }),
      { seed: 20_260_728 },
    )
  })

  test('always has a parameter, as its grammar wants', () => {
    expect(challengeHeader({ realm: '' })).toBe('Bearer realm=""')
  })
})

describe('scopes', () => {
  const tools = new Map([
    ['purge', { scopes: ['files:delete', 'tasks:write'] }],
    ['greet', {}],
  ])

  test('are told once each', () => {
    expect(allScopes(tools)).toEqual(['tasks:read', 'tasks:write', 'files:delete'])
    expect(scopesFor({ method: 'tools/call', params: { name: 'purge' } }, tools)).toEqual([
      'tasks:write',
      'files:delete',
    ])
  })

  test('of a tool are not those of what every object has', () => {
    for (const name of ['__proto__', 'constructor', 'toString']) {
      expect(scopesFor({ method: 'tools/call', params: { name } }, tools)).toEqual(['tasks:write'])
    }
  })

  test('do not imply each other', () => {
    expect(covers(['tasks:write'], ['tasks:read'])).toBe(false)
    expect(covers(['tasks:read'], ['tasks:write'])).toBe(false)
    expect(covers(['tasks'], ['tasks:read'])).toBe(false)
    expect(covers([], [])).toBe(true)
  })

  test.each(['', 'a b', 'a"b', 'a\\b', 'ä', 'a\n'])('%j is no scope', (text) => {
    expect(isScope(text)).toBe(false)
  })
})

describe('metadata of an issuer', () => {
  test.each([
    [
      'https://issuer.example',
      'https://issuer.example/.well-known/openid-configuration',
      'https://issuer.example/.well-known/oauth-authorization-server',
    ],
    [
      'https://issuer.example/',
      'https://issuer.example/.well-known/openid-configuration',
      'https://issuer.example/.well-known/oauth-authorization-server',
    ],
    [
      'https://issuer.example/realms/a',
      'https://issuer.example/realms/a/.well-known/openid-configuration',
      'https://issuer.example/.well-known/oauth-authorization-server/realms/a',
    ],
  ])('of %s is looked for where the standards put it', (issuer, ...urls) => {
    expect(metadataUrls(issuer)).toEqual(urls)
  })

  test('must name the issuer to the letter', () => {
    const metadata = { issuer: 'https://issuer.example/', jwks_uri: 'https://issuer.example/keys' }
    expect(jwksUrlOf(metadata, 'https://issuer.example/')).toBe('https://issuer.example/keys')
    expect(() => jwksUrlOf(metadata, 'https://issuer.example')).toThrow(/OIDC_ISSUER/)
    expect(() => jwksUrlOf(null, 'https://issuer.example')).toThrow()
  })
})
