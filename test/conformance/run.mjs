/**
 * `npm run conformance [-- --revision 2025-11-25] [--scenario NAME] [--port N]`: the official suite against
 * the fixture Worker, in both revisions. Exits 0 only when every check passed, or failed as `baseline.json` says.
 */
import { mkdtempSync, readFileSync, rmSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { parseArgs } from 'node:util'
import { killAll } from './processes.mjs'
import { judge, printProblems, printRow, printTotals } from './report.mjs'
import { listScenarios, runSuite } from './suite.mjs'
import { startServer } from './server.mjs'

const { values: options } = parseArgs({
  options: {
    /** Whose requirements, and the revision that is spoken. Default: both. */
    revision: { type: 'string', multiple: true, default: ['2026-07-28', '2025-11-25'] },
    /** Only this scenario; for work on one thing. */
    scenario: { type: 'string' },
    /** Default: a free one. */
    port: { type: 'string' },
  },
})

for (const [signal, code] of [
  ['SIGINT', 130],
  ['SIGTERM', 143],
  ['SIGHUP', 129],
]) {
  process.once(signal, () => process.exit(code))
}

const directory = mkdtempSync(join(tmpdir(), 'longhaul-conformance-'))
process.once('exit', () => {
  killAll()
  rmSync(directory, { recursive: true, force: true })
})

try {
  process.exitCode = (await main()) ? 0 : 1
} catch (error) {
  console.error(error instanceof Error ? error.message : error)
  process.exitCode = 1
}
// Whatever is left running is ended by the handler above.
process.exit()

async function main() {
  const baseline = JSON.parse(readFileSync(new URL('baseline.json', import.meta.url), 'utf8'))
  const server = await startServer({ directory, port: options.port })
  let ok = true
  let ran = 0
  for (const revision of options.revision) {
    const scenarios = (await listScenarios(revision)).filter(
      ({ name }) => options.scenario === undefined || name === options.scenario,
    )
    if (ran > 0 && scenarios.length > 0) console.log()
    ran += scenarios.length
    if (scenarios.length > 0) ok = (await runRevision(revision, scenarios, server, baseline)) && ok
  }
  if (ran === 0) {
    throw new Error(
      `No scenario ${options.scenario ?? ''} is required by, or run with, ${options.revision.join(' or ')}.`,
    )
  }
  return ok
}

async function runRevision(revision, scenarios, server, baseline) {
  console.log(`Official suite, revision ${revision}: ${scenarios.length} scenarios against ${server.url}\n`)
  const results = []
  let group
  for await (const result of runSuite({ url: server.url, revision, scenarios, directory })) {
    printRow(result, result.group === group)
    group = result.group
    results.push(result)
  }
  const verdict = judge(results, baseline[revision] ?? [])
  printProblems(verdict)
  if (verdict.unexpected.length > 0) console.log(`\nThe server's last lines:\n${server.lastLines()}`)
  printTotals(results, verdict)
  return verdict.ok
}
