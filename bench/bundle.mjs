/** How much is uploaded when the Worker is deployed. */
import { gzipSync } from 'node:zlib'
import { uploaded } from './runtime.mjs'

export function measureBundle(outDir) {
  const files = uploaded(outDir).map(({ bytes }) => ({
    raw: bytes.byteLength,
    gzip: gzipSync(bytes).byteLength,
  }))
  const total = (key) => files.reduce((sum, file) => sum + file[key], 0)
  return { rawBytes: total('raw'), gzipBytes: total('gzip') }
}
