import { readFileSync } from 'node:fs'
import { expect, test } from 'vitest'

/** Everything that a module imports when it runs, and what those import. */
function importsOf(module: URL, seen = new Map<string, string>()): Map<string, string> {
  const source = readFileSync(module, 'utf8')
  for (const [, specifier = ''] of source.matchAll(/^(?:import|export) (?!type\b)[^'"]*?from '([^']+)'/gms)) {
    const next = specifier.startsWith('.') ? new URL(specifier, module) : undefined
    const key = next?.href ?? specifier
    if (seen.has(key)) continue
    seen.set(key, module.pathname)
    if (next) importsOf(next, seen)
  }
  return seen
}

test('the library is made of its own files, without a package or a Node module, so it runs anywhere', () => {
  const imports = importsOf(new URL('../../../src/client/index.ts', import.meta.url))
  expect(imports.size).toBeGreaterThan(15)
  const files = [...imports.keys()]
  expect(files.filter((file) => !/\/src\/(client|protocol|json)/.test(file))).toEqual([])
  expect(files.filter((file) => !file.endsWith('.ts') || file.endsWith('node.ts'))).toEqual([])
})
