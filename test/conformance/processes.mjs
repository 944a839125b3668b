/**
 * Child processes that never outlive the run: each leads a process group of its own, so that ending the
 * group also ends what the child has started (`wrangler dev` starts the runtime).
 */
import { spawn } from 'node:child_process'
import { fileURLToPath } from 'node:url'

const ROOT = fileURLToPath(new URL('../..', import.meta.url))
const groups = new Set()

/** Runs a script with the project's own Node, from the project's directory. */
export function start(script, args, { env = {}, stdio = ['ignore', 'pipe', 'pipe'] } = {}) {
  const child = spawn(`${ROOT}node_modules/.bin/node`, [`${ROOT}${script}`, ...args], {
    cwd: ROOT,
    env: { ...process.env, ...env },
    detached: true,
    stdio,
  })
  if (child.pid !== undefined) groups.add(child.pid)
  return child
}

/** Ends every group; synchronous, so that it can be the last thing done. */
export function killAll() {
  for (const pid of groups) kill(pid)
}

export function kill(pid) {
  groups.delete(pid)
  try {
    process.kill(-pid, 'SIGKILL')
  } catch (error) {
    // Nobody is left in it.
    if (error.code !== 'ESRCH') throw error
  }
}
