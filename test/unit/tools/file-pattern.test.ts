import * as fc from 'fast-check'
import { Minimatch } from 'minimatch'
import { describe, expect, test } from 'vitest'
import { filePattern } from '../../../src/tools/file-pattern'

describe('a file pattern', () => {
  const cases: [pattern: string, matching: string[], other: string[]][] = [
    ['logs/*', ['logs/a', 'logs/.hidden', 'logs/a b'], ['logs/', 'logs/a/b', 'logs', 'xlogs/a', 'logs//a']],
    ['logs/**', ['logs/a', 'logs/a/b', 'logs/', 'logs//a'], ['logs', 'log/a', 'blogs/a']],
    ['**', ['a', 'a/b', '/a', 'a//b', '../x', 'a/'], []],
    ['**/*.tmp', ['a.tmp', 'x/a.tmp', 'x/y/.tmp'], ['a.tmp/b', 'a.tmpx']],
    ['a/**/z', ['a/z', 'a/b/z', 'a/b/c/z'], ['az', 'a/bz', 'a/z/b']],
    ['a/**/**/z', ['a/z', 'a/b/z'], ['az']],
    ['a**z', ['az', 'abz'], ['a/z']],
    ['img-??.png', ['img-01.png', 'img-é😀.png'], ['img-1.png', 'img-001.png', 'img-0/.png']],
    ['a/b', ['a/b'], ['a//b', 'a/b/', 'a/./b', '/a/b']],
    ['a/../b', ['a/../b'], ['b']],
    ['\\*.txt', ['*.txt'], ['a.txt']],
    ['a\\', ['a\\'], ['a']],
    ['{a,b}[c]!#+(d)', ['{a,b}[c]!#+(d)'], ['ac!#+(d)']],
    ['!a', ['!a'], ['b']],
    ['A*', ['Ab'], ['ab']],
    ['***', ['abc'], ['a/b', '']],
  ]
  test.each(cases)('%s', (pattern, matching, other) => {
    const { prefix, ...glob } = filePattern(pattern)
    for (const key of matching) {
      expect(glob.matches(key), key).toBe(true)
      expect(key.startsWith(prefix)).toBe(true)
    }
    for (const key of other) expect(glob.matches(key), key).toBe(false)
  })

  test.each([
    ['logs/2026-*/x', 'logs/2026-'],
    ['logs/**', 'logs/'],
    ['a\\*b?', 'a*b'],
    ['exact/key', 'exact/key'],
    ['*', ''],
  ])('%s lists from %j', (pattern, prefix) => {
    expect(filePattern(pattern).prefix).toBe(prefix)
  })

  test('agrees with minimatch on keys that are ordinary paths', () => {
    const segment = fc.string({ unit: fc.constantFrom('a', 'b', '.x'), minLength: 1, maxLength: 4 })
    const key = fc.array(segment, { minLength: 1, maxLength: 4 }).map((parts) => parts.join('/'))
    const part = fc.oneof(
      { weight: 3, arbitrary: fc.string({ unit: fc.constantFrom('a', 'b', '.x', '*', '?'), minLength: 1 }) },
      fc.constant('**'),
    )
    const pattern = fc.array(part, { minLength: 1, maxLength: 4 }).map((parts) => parts.join('/'))
    fc.assert(
      fc.property(pattern, key, (text, path) => {
        const reference = new Minimatch(text, { dot: true, nonegate: true, nocomment: true, noext: true })
        expect(filePattern(text).matches(path)).toBe(reference.match(path))
      }),
      { numRuns: 2_000 },
    )
  })

  test('of many stars does not backtrack', () => {
    const glob = filePattern(`${'*a'.repeat(200)}*b`)
    expect(glob.matches('a'.repeat(1_024))).toBe(false)
    expect(glob.matches(`${'a'.repeat(1_023)}b`)).toBe(true)
  })
})
