/**
 * `wrangler dev` as a child process: how it is started, when it is ready, and how the whole of it
 * ends. It is several processes, so it gets a process group of its own unless a terminal drives it.
 */
import { spawn } from 'node:child_process'
import { fileURLToPath } from 'node:url'

export const ROOT = fileURLToPath(new URL('..', import.meta.url))
export const WRANGLER = fileURLToPath(new URL('../node_modules/wrangler/bin/wrangler.js', import.meta.url))

/** No usage reports, no look-ups on the network, no banner: the local server works offline and quietly. */
export const QUIET = {
  WRANGLER_SEND_METRICS: 'false',
  CLOUDFLARE_CF_FETCH_ENABLED: 'false',
  WRANGLER_HIDE_BANNER: 'true',
}

/**
 * @typedef {object} WranglerOptions
 * @property {boolean} [ownGroup] A process group of its own, for {@link endGroup}. A terminal's Ctrl-C does not reach it.
 * @property {import('node:child_process').IOType | number} [output] Where stdout and stderr go. Default: where ours go.
 * @property {Record<string, string>} [env]
 */

/**
 * @param {readonly string[]} args
 * @param {WranglerOptions} [options]
 * @returns {import('node:child_process').ChildProcess}
 */
export function spawnWranglerDev(args, { ownGroup = false, output = 'inherit', env = {} } = {}) {
  return spawn(process.execPath, [WRANGLER, 'dev', ...args], {
    cwd: ROOT,
    detached: ownGroup,
    // The IPC channel carries the news that the server is ready.
    stdio: [ownGroup ? 'ignore' : 'inherit', output, output, 'ipc'],
    env: { ...QUIET, ...process.env, ...env },
  })
}

/**
 * The base URL of the server, once the Worker itself answers.
 *
 * @param {import('node:child_process').ChildProcess} child
 * @param {number} [limitMs] Default: as long as it takes; a developer may be mending a build error.
 * @returns {Promise<string>}
 * @throws when it exits instead, or takes longer than the limit.
 */
export function whenReady(child, limitMs) {
  return new Promise((resolve, reject) => {
    const timer =
      limitMs === undefined
        ? undefined
        : setTimeout(() => done(() => reject(new Error(`no answer within ${limitMs} ms`))), limitMs)
    /** @param {unknown} message */
    const onMessage = (message) => {
      const port = readyPort(message)
      if (port === undefined) return
      const url = `http://127.0.0.1:${port}`
      // The port is open before the Worker is loaded; until then it holds requests back.
      fetch(`${url}/mcp`).then(
        () => done(() => resolve(url)),
        (error) => done(() => reject(error)),
      )
    }
    /** @param {number | null} code @param {string | null} signal */
    const onExit = (code, signal) =>
      done(() => reject(new Error(`it ended at once (${signal ?? `exit code ${code}`})`)))
    /** @param {() => void} settle */
    const done = (settle) => {
      clearTimeout(timer)
      child.off('message', onMessage).off('exit', onExit)
      settle()
    }
    child.on('message', onMessage).on('exit', onExit)
  })
}

/**
 * @param {unknown} message
 * @returns {number | undefined}
 */
function readyPort(message) {
  /** @type {unknown} */
  const event = typeof message === 'string' ? JSON.parse(message) : message
  const ready =
    typeof event === 'object' && event !== null && 'event' in event && event.event === 'DEV_SERVER_READY'
  return ready && 'port' in event && typeof event.port === 'number' ? event.port : undefined
}

/**
 * Signals the whole process group and waits until nothing of it is left.
 *
 * @param {import('node:child_process').ChildProcess} child started with `ownGroup`
 * @param {'SIGTERM' | 'SIGKILL'} signal SIGTERM turns into SIGKILL when it is not enough.
 */
export async function endGroup(child, signal) {
  const { pid } = child
  if (pid === undefined) return
  signalGroup(pid, signal)
  for (let waitedMs = 0; signalGroup(pid, 0); waitedMs += 20) {
    if (waitedMs === 5_000) signalGroup(pid, 'SIGKILL')
    if (waitedMs > 15_000) throw new Error(`Process group ${pid} does not end.`)
    await new Promise((resolve) => {
      setTimeout(resolve, 20)
    })
  }
}

/**
 * Whether there was anybody to signal. Signal 0 only asks.
 *
 * @param {number} groupId
 * @param {NodeJS.Signals | 0} signal
 */
function signalGroup(groupId, signal) {
  try {
    return process.kill(-groupId, signal)
  } catch {
    return false
  }
}
