/** The fixture Worker under `wrangler dev`: its own storage, a free port, ready when it answers. */
import { appendFileSync, readFileSync } from 'node:fs'
import { createServer } from 'node:net'
import { join } from 'node:path'
import { start } from './processes.mjs'

const READY_WITHIN_MS = 60_000

/** @returns the endpoint's URL, and what the server printed last. */
export async function startServer({ directory, port }) {
  const [own, inspector] = [port ?? (await freePort()), await freePort()]
  const log = join(directory, 'server.log')
  const child = start(
    'node_modules/wrangler/bin/wrangler.js',
    [
      ['dev', '--config', 'test/conformance/wrangler.toml'],
      ['--ip', '127.0.0.1', '--port', own, '--inspector-port', inspector],
      ['--persist-to', join(directory, 'state')],
      ['--var', 'LONGHAUL_DEV:local'],
      ['--show-interactive-dev-session', 'false'],
    ]
      .flat()
      .map(String),
    {
      env: {
        WRANGLER_SEND_METRICS: 'false',
        // `Request.cf` is not used, and to look it up needs the network.
        CLOUDFLARE_CF_FETCH_ENABLED: 'false',
        // Not the registry that all dev servers of this user share.
        WRANGLER_REGISTRY_PATH: join(directory, 'registry'),
      },
    },
  )
  let exited = false
  child.once('exit', () => (exited = true))
  child.once('error', (error) => {
    appendFileSync(log, String(error))
    exited = true
  })
  for (const stream of [child.stdout, child.stderr]) stream.on('data', (chunk) => appendFileSync(log, chunk))
  const lastLines = () =>
    readFileSync(log, { encoding: 'utf8', flag: 'a+' }).split('\n').slice(-25).join('\n')

  const origin = `http://127.0.0.1:${own}`
  const until = Date.now() + READY_WITHIN_MS
  while (!(await answers(origin))) {
    // A Worker that does not build leaves `wrangler dev` waiting for a better one.
    const failed = exited || lastLines().includes('Build failed')
    if (failed || Date.now() > until) {
      throw new Error(`The server ${failed ? 'failed' : 'did not become ready'}:\n${lastLines()}`)
    }
    await new Promise((resolve) => setTimeout(resolve, 100))
  }
  return { url: `${origin}/mcp`, lastLines }
}

/**
 * A real request, so that what a Worker builds once is built: some scenarios wait only half a second for
 * the first bytes of an answer.
 */
async function answers(origin) {
  try {
    const response = await fetch(`${origin}/mcp`, {
      method: 'POST',
      headers: {
        'content-type': 'application/json',
        accept: 'application/json, text/event-stream',
        'mcp-protocol-version': '2026-07-28',
        'mcp-method': 'tools/list',
      },
      body: JSON.stringify({
        jsonrpc: '2.0',
        id: 1,
        method: 'tools/list',
        params: {
          _meta: {
            'io.modelcontextprotocol/protocolVersion': '2026-07-28',
            'io.modelcontextprotocol/clientCapabilities': {},
          },
        },
      }),
      signal: AbortSignal.timeout(5_000),
    })
    await response.body?.cancel()
    return response.ok
  } catch {
    return false
  }
}

function freePort() {
  return new Promise((resolve, reject) => {
    const probe = createServer()
    probe.once('error', reject)
    probe.listen(0, '127.0.0.1', () => {
      const { port } = probe.address()
      probe.close(() => resolve(port))
    })
  })
}
