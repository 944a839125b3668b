/**
 * `npm run deploy`: `wrangler deploy`, with queue batches of one message. Deployed, CPU time, memory and
 * connections are per invocation, and one bad tool must not retry its neighbours. Locally the queue runs
 * one batch at a time, so there a batch holds ten, which is what `wrangler.toml` says.
 * Flags go on to wrangler: `npm run deploy -- --dry-run --outdir dist`.
 */
import { spawnSync } from 'node:child_process'
import { readFileSync, rmSync, writeFileSync } from 'node:fs'
import path from 'node:path'
import { ROOT, WRANGLER } from './wrangler-dev.mjs'

const LOCAL = 'max_batch_size = 10'
const DEPLOYED = 'max_batch_size = 1'

const source = readFileSync(path.join(ROOT, 'wrangler.toml'), 'utf8')
if (!source.includes(LOCAL)) {
  console.error(`wrangler.toml has no "${LOCAL}"; say there what a batch holds locally.`)
  process.exit(1)
}
// Beside the original, because paths in it are relative to it.
const config = path.join(ROOT, 'wrangler.deploy.toml')
writeFileSync(config, source.replaceAll(LOCAL, DEPLOYED))
try {
  const args = [WRANGLER, 'deploy', '--config', config, ...process.argv.slice(2)]
  const { status } = spawnSync(process.execPath, args, { cwd: ROOT, stdio: 'inherit' })
  process.exitCode = status ?? 1
} finally {
  rmSync(config, { force: true })
}
