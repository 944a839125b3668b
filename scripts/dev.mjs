/**
 * `npm run dev`: the Worker on this machine, POST /mcp on port 8787. Everybody on this machine is
 * the tenant `local`. Further arguments go to `wrangler dev`: `npm run dev -- --port 9000`.
 */
import { spawnWranglerDev, whenReady } from './wrangler-dev.mjs'

await import('./preflight.mjs')

const given = process.argv.slice(2)
/** @param {string} option */
const isGiven = (option) => given.some((argument) => argument === option || argument.startsWith(`${option}=`))

const child = spawnWranglerDev([
  ...given,
  // Said aloud, so that a port in use is an error and not another port.
  ...(isGiven('--port') ? [] : ['--port', '8787']),
  ...(isGiven('--show-interactive-dev-session') ? [] : ['--show-interactive-dev-session=false']),
  '--var',
  'LONGHAUL_DEV:local',
])

// Ctrl-C reaches the child by itself; whoever signals only this process means both.
for (const signal of /** @type {const} */ (['SIGINT', 'SIGTERM', 'SIGHUP'])) {
  process.on(signal, () => child.kill(signal))
}
// A signal to npm ends its shell but not this process (npm/cli#6684): without a parent, stop.
const parent = process.ppid
setInterval(() => {
  if (process.ppid !== parent) child.kill('SIGTERM')
}, 500).unref()
child.on('error', (error) => {
  console.error(`wrangler dev could not be started: ${error.message}`)
  process.exitCode = 1
})
child.on('exit', (code, signal) => {
  process.exitCode = signal === 'SIGINT' || code === 130 ? 130 : (code ?? 1)
})

try {
  const url = await whenReady(child)
  console.log(`
Longhaul listens on POST ${url}/mcp (this machine only, no key needed).
  Try it:    npm run demo          runs a migration against a server of its own
  Stop:      Ctrl-C
`)
} catch {
  // It ended, and has said why.
}
