/**
 * A Worker under `wrangler dev`, to be driven from outside and killed: a process group of its own,
 * storage that outlives it, and one address for its whole life.
 */
import { type ChildProcess, execFileSync } from 'node:child_process'
import { mkdtempSync, openSync, readFileSync, rmSync } from 'node:fs'
import { connect } from 'node:net'
import { tmpdir } from 'node:os'
import path from 'node:path'
import { endGroup, spawnWranglerDev, whenReady } from '../../scripts/wrangler-dev.mjs'

const START_LIMIT_MS = 60_000
/** An object in memory holds three files open; the runtime dies when it may open no more. */
const MIN_OPEN_FILES = 1_500

export interface ServerOptions {
  /** Path of a `wrangler.toml`, from the root of the repository. */
  readonly config: string
  /** Path of a module to serve in place of the one that the configuration names. */
  readonly main?: string
  /** Variables of the Worker beside those of the configuration. */
  readonly vars?: Readonly<Record<string, string | number>>
}

export class Server {
  readonly url: string
  readonly #args: readonly string[]
  readonly #folder: string
  #child: ChildProcess

  private constructor(url: string, args: readonly string[], folder: string, child: ChildProcess) {
    this.url = url
    this.#args = args
    this.#folder = folder
    this.#child = child
  }

  static async start({ config, main, vars = {} }: ServerOptions): Promise<Server> {
    checkOpenFiles()
    const folder = mkdtempSync(path.join(tmpdir(), 'longhaul-server-'))
    const args = [
      ...(main === undefined ? [] : [main]),
      `--config=${config}`,
      `--persist-to=${path.join(folder, 'state')}`,
      '--inspector-port=0',
      ...Object.entries(vars).flatMap(([name, value]) => ['--var', `${name}:${value}`]),
    ]
    const { url, child } = await launch([...args, '--port=0'], folder)
    return new Server(url, [...args, `--port=${new URL(url).port}`], folder, child)
  }

  /** Kills everything at once, as a power cut would, and sees that nobody answers any more. */
  async kill(): Promise<void> {
    await endGroup(this.#child, 'SIGKILL')
    if (await accepts(this.url)) throw new Error(`Somebody still listens on ${this.url} after the kill.`)
  }

  /** Starts again, on the same storage and at the same address. */
  async restart(): Promise<void> {
    if (await accepts(this.url)) throw new Error(`Somebody listens on ${this.url} already.`)
    const { child } = await launch(this.#args, this.#folder)
    this.#child = child
  }

  /** Ends it and removes its storage. */
  async stop(): Promise<void> {
    await endGroup(this.#child, 'SIGTERM')
    rmSync(this.#folder, { recursive: true, force: true })
  }

  /** Everything the server has printed, over all its lives. */
  get log(): string {
    return readFileSync(logFile(this.#folder), 'utf8')
  }
}

async function launch(args: readonly string[], folder: string) {
  // Straight into a file: a pipe that nobody reads would stop the server when it is full.
  const log = openSync(logFile(folder), 'a')
  const child = spawnWranglerDev(args, {
    ownGroup: true,
    output: log,
    // Workers of the same name, in other folders, must not find each other.
    env: { WRANGLER_REGISTRY_PATH: path.join(folder, 'registry') },
  })
  try {
    return { url: await whenReady(child, START_LIMIT_MS), child }
  } catch (error) {
    await endGroup(child, 'SIGKILL')
    const output = readFileSync(logFile(folder), 'utf8')
    throw new Error(`wrangler dev did not start: ${String(error)}\n${output.slice(-3_000)}`, { cause: error })
  }
}

function logFile(folder: string): string {
  return path.join(folder, 'server.log')
}

/** Whether anybody accepts connections there. */
function accepts(url: string): Promise<boolean> {
  const { hostname, port } = new URL(url)
  return new Promise((resolve) => {
    const socket = connect({ host: hostname, port: Number(port) })
    socket.on('connect', () => {
      socket.destroy()
      resolve(true)
    })
    socket.on('error', () => resolve(false))
  })
}

function checkOpenFiles(): void {
  const limit = execFileSync('sh', ['-c', 'ulimit -n'], { encoding: 'utf8' }).trim()
  if (limit !== 'unlimited' && Number(limit) < MIN_OPEN_FILES) {
    throw new Error(
      `A process may open only ${limit} files here, and the local runtime needs at least ${MIN_OPEN_FILES}: ` +
        `run "ulimit -n 4096" in this shell first.`,
    )
  }
}
