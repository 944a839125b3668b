import { describe, expect, test } from 'vitest'
import { mirroredHeaders, mirrorsOf } from '../../../src/client/tools.ts'
import { encodeHeaderValue } from '../../../src/client/header-value.ts'
import { decodeHeaderValue } from '../../../src/protocol/modern'
import * as fc from 'fast-check'

const withProperty = (property: Record<string, unknown>) =>
  mirrorsOf({ type: 'object', properties: { field: property as never } })

describe('which arguments are mirrored', () => {
  test('those that say so, at any depth', () => {
    const schema = {
      type: 'object',
      properties: {
        region: { type: 'string', 'x-mcp-header': 'Region' },
        where: { type: 'object', properties: { zone: { type: 'integer', 'x-mcp-header': 'Zone' } } },
        query: { type: 'string' },
      },
    }
    const found = mirrorsOf(schema)
    const mirrors = found.ok ? found.mirrors : []
    expect(mirroredHeaders(mirrors, { region: 'eu', where: { zone: 7 }, query: 'x' })).toEqual({
      'Mcp-Param-Region': 'eu',
      'Mcp-Param-Zone': '7',
    })
    expect(mirroredHeaders(mirrors, { region: null, where: {} })).toEqual({})
  })

  test('a property that is called like a keyword is a property', () => {
    const schema = {
      type: 'object',
      properties: { 'x-mcp-header': { type: 'string' }, properties: { type: 'string' } },
    }
    expect(mirrorsOf(schema)).toEqual({ ok: true, mirrors: [] })
  })

  test.each([
    ['an empty name', { type: 'string', 'x-mcp-header': '' }],
    ['a name with a space', { type: 'string', 'x-mcp-header': 'My Region' }],
    ['a name with a line break', { type: 'string', 'x-mcp-header': 'A\r\nB' }],
    ['a number', { type: 'number', 'x-mcp-header': 'Number' }],
    ['an object', { type: 'object', 'x-mcp-header': 'Data' }],
    ['a list', { type: 'array', items: { type: 'string' }, 'x-mcp-header': 'Items' }],
    ['an element of a list', { type: 'array', items: { type: 'string', 'x-mcp-header': 'Item' } }],
    ['one branch of several', { anyOf: [{ type: 'string', 'x-mcp-header': 'Branch' }] }],
  ])('a tool that wants a header for %s is not usable', (_, property) => {
    expect(withProperty(property)).toMatchObject({ ok: false })
  })

  test('two properties with one header make the tool unusable, whatever the case', () => {
    const schema = {
      type: 'object',
      properties: { a: { type: 'string', 'x-mcp-header': 'F' }, b: { type: 'string', 'x-mcp-header': 'f' } },
    }
    expect(mirrorsOf(schema)).toMatchObject({ ok: false })
  })
})

test('what the client puts into a header, the server reads out of it', () => {
  fc.assert(
    fc.property(
      fc.string({ unit: 'binary' }).filter((text) => text.isWellFormed()),
      (text) => {
        const value = encodeHeaderValue(text)
        expect(value).toMatch(/^[\x20-\x7e]*$/)
        expect(value.trim()).toBe(value)
        expect(decodeHeaderValue(value)).toBe(text)
      },
    ),
  )
})
