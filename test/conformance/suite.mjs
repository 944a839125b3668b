/** The official suite as a child process: what it would run, and what each scenario's checks came to. */
import { readdirSync, readFileSync } from 'node:fs'
import { join } from 'node:path'
import { createInterface } from 'node:readline'
import { kill, start } from './processes.mjs'

const SUITE = 'node_modules/@modelcontextprotocol/conformance/dist/index.js'
const LIST_WITHIN_MS = 30_000
const RUN_WITHIN_MS = 180_000

/** Server scenarios of a revision, each with the reason it runs: `required`, or why it is not scored. */
export async function listScenarios(revision) {
  const scenarios = []
  let group
  for await (const line of linesOf(['list', '--requirements', revision], LIST_WITHIN_MS)) {
    const heading = /^(Server|Client) scenarios|^ {2}([\w-]+) \(\d+\):$/.exec(line)
    if (heading) group = heading[2] ?? (heading[1] === 'Server' ? 'required' : undefined)
    const [, name, leg] = /^ +- (\S+)(?: \[(\w+)\])?$/.exec(line) ?? []
    if (name !== undefined && group !== undefined && (leg ?? 'server') === 'server') {
      scenarios.push({ name, group })
    }
  }
  if (scenarios.length === 0) throw new Error(`The suite lists no server scenarios for ${revision}.`)
  return scenarios
}

/** Runs the scenarios and yields each with its checks as soon as it has ended, in the order given. */
export async function* runSuite({ url, revision, scenarios, directory }) {
  const output = join(directory, revision)
  const selection =
    scenarios.length === 1
      ? ['--scenario', scenarios[0].name, '--spec-version', revision, '--force']
      : ['--requirements', revision]
  const waiting = [...scenarios]
  const tail = []
  let startedAt = Date.now()
  const take = () => {
    const scenario = waiting.shift()
    const ms = Date.now() - startedAt
    startedAt = Date.now()
    return { ...scenario, ms, checks: readChecks(output, scenario.name) ?? [notFinished(scenario, tail)] }
  }
  for await (const line of linesOf(['server', '--url', url, ...selection, '-o', output], RUN_WITHIN_MS)) {
    if (tail.push(line) > 20) tail.shift()
    const [, next] = /^=== Running scenario: (\S+) ===$/.exec(line) ?? []
    // All before the one that starts now have ended.
    if (next !== undefined) while (waiting.length > 0 && waiting[0].name !== next) yield take()
  }
  while (waiting.length > 0) yield take()
}

/** A scenario's directory is its name and the time. */
function readChecks(output, name) {
  let entries = []
  try {
    entries = readdirSync(output)
  } catch (error) {
    if (error.code !== 'ENOENT') throw error
  }
  const own = entries.find((entry) => /^-\d{4}-\d\d-\d\dT[\d-]+Z$/.test(entry.replace(`server-${name}`, '')))
  if (own === undefined) return undefined
  try {
    return JSON.parse(readFileSync(join(output, own, 'checks.json'), 'utf8'))
  } catch (error) {
    if (error.code === 'ENOENT') return undefined
    throw error
  }
}

function notFinished({ name }, tail) {
  return {
    id: name,
    name,
    status: 'FAILURE',
    description: 'The scenario runs to its end',
    errorMessage: `The suite did not finish it. Its last lines:\n${tail.join('\n')}`,
  }
}

/** The lines the suite prints; ends it when it takes longer than it may. */
async function* linesOf(args, withinMs) {
  const child = start(SUITE, args, { env: { NO_COLOR: '1' }, stdio: ['ignore', 'pipe', 'inherit'] })
  const timer = setTimeout(() => kill(child.pid), withinMs)
  try {
    yield* createInterface({ input: child.stdout })
  } finally {
    clearTimeout(timer)
    kill(child.pid)
  }
}
