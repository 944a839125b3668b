/**
 * Builds Workers as they are deployed, and runs them in workerd with its HTTP socket open to us: the
 * usual ways to run a Worker locally put a proxy before it that costs more than what is measured.
 */
import { execFile } from 'node:child_process'
import { readdirSync, readFileSync } from 'node:fs'
import { join } from 'node:path'
import { promisify } from 'node:util'
import { convertV4MiniflareOptions, Miniflare } from 'miniflare'
import { unstable_getMiniflareWorkerOptions } from 'wrangler'

const run = promisify(execFile)
const WRANGLER = new URL('../node_modules/wrangler/bin/wrangler.js', import.meta.url).pathname

/** Bundles a Worker into `outDir`, which then holds what would be uploaded. */
export async function build(configPath, outDir) {
  const args = [WRANGLER, 'deploy', '--dry-run', '--config', configPath, '--outdir', outDir]
  await run(process.execPath, args, { env: { ...process.env, WRANGLER_SEND_METRICS: 'false' } })
}

/** The modules in a directory that {@link build} made. */
export function uploaded(outDir) {
  return readdirSync(outDir, { recursive: true })
    .map(String)
    .filter((name) => /\.(m?js|wasm|bin|txt|html|sql)$/.test(name))
    .map((name) => ({ name, bytes: readFileSync(join(outDir, name)) }))
}

/**
 * @param {(options: Record<string, any>) => Record<string, any>} adapt changes the Worker's options
 * @returns {Promise<{ url: URL, pid: number | undefined, stop(): Promise<void> }>}
 */
export async function start(configPath, outDir, adapt = (options) => options) {
  // How to bundle; it is bundled already.
  const { modulesRules: _, ...workerOptions } = unstable_getMiniflareWorkerOptions(configPath).workerOptions
  const before = new Set(workerdPids())
  const miniflare = new Miniflare(
    convertV4MiniflareOptions({
      workers: [
        {
          ...adapt(workerOptions),
          name: 'bench',
          rootPath: outDir,
          modules: true,
          scriptPath: 'worker.js',
          unsafeDirectSockets: [{ host: '127.0.0.1', port: 0 }],
        },
      ],
      host: '127.0.0.1',
      port: 0,
    }),
  )
  await miniflare.ready
  return {
    url: await miniflare.unsafeGetDirectURL('bench'),
    pid: workerdPids().find((pid) => !before.has(pid)),
    stop: () => miniflare.dispose(),
  }
}

/** CPU time of a process so far in ms, all its threads; `undefined` where the system does not say (Linux does). */
export function cpuMs(pid) {
  if (pid === undefined) return undefined
  const threads = `/proc/${pid}/task`
  const ns = readdirSync(threads).map((thread) => {
    try {
      return Number(readFileSync(`${threads}/${thread}/schedstat`, 'latin1').split(' ')[0])
    } catch {
      return 0 // it has ended
    }
  })
  return ns.reduce((sum, each) => sum + each, 0) / 1e6
}

/** Our own children that are workerd. */
function workerdPids() {
  try {
    return readdirSync('/proc')
      .filter((name) => /^\d+$/.test(name))
      .map(Number)
      .filter((pid) => {
        const stat = statOf(pid)
        return stat?.name === 'workerd' && Number(stat.fields[1]) === process.pid
      })
  } catch {
    return []
  }
}

function statOf(pid) {
  try {
    const [, name, rest] = /^\d+ \((.*)\) (.*)/.exec(readFileSync(`/proc/${pid}/stat`, 'latin1')) ?? []
    return { name, fields: rest.split(' ') }
  } catch {
    return undefined // it has ended
  }
}

/** How many objects may live at once: each holds three open files. */
export function objectLimit(pid) {
  try {
    const [, soft] = /^Max open files +(\d+)/m.exec(readFileSync(`/proc/${pid}/limits`, 'latin1')) ?? []
    return Math.floor((Number(soft) - 300) / 4)
  } catch {
    return 200
  }
}
