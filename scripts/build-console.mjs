/**
 * Builds the browser console into `dist/console`, which the Worker serves at `/`. Wrangler runs it by itself
 * (`[build]` in wrangler.toml), at every start and after every change. Files that did not change are not
 * written: a server that serves them already would reload the page.
 */
import { existsSync, mkdirSync, readdirSync, readFileSync, rmSync, writeFileSync } from 'node:fs'
import path from 'node:path'
import { fileURLToPath } from 'node:url'
import { build } from 'esbuild'

const ROOT = fileURLToPath(new URL('..', import.meta.url))
const SOURCE = path.join(ROOT, 'src/console')
const OUT = path.join(ROOT, 'dist/console')

const { outputFiles } = await build({
  entryPoints: [path.join(SOURCE, 'main.ts'), path.join(SOURCE, 'style.css')],
  absWorkingDir: ROOT,
  bundle: true,
  minify: true,
  format: 'esm',
  target: ['chrome123', 'firefox121', 'safari17.5'],
  loader: { '.woff2': 'file' },
  assetNames: '[name]',
  outdir: path.join(OUT, 'console'),
  write: false,
})

/** @type {Map<string, Uint8Array>} */
const files = new Map(outputFiles.map(({ path: file, contents }) => [file, contents]))
const copied = /** @type {const} */ ([
  ['index.html', 'index.html'],
  ['_headers', '_headers'],
  ['favicon.svg', 'console/favicon.svg'],
])
for (const [from, to] of copied) {
  files.set(path.join(OUT, to), readFileSync(path.join(SOURCE, from)))
}

for (const [file, contents] of files) {
  if (existsSync(file) && readFileSync(file).equals(contents)) continue
  mkdirSync(path.dirname(file), { recursive: true })
  writeFileSync(file, contents)
}
if (existsSync(OUT)) {
  for (const entry of readdirSync(OUT, { recursive: true, withFileTypes: true })) {
    const file = path.join(entry.parentPath, entry.name)
    if (entry.isFile() && !files.has(file)) rmSync(file)
  }
}
