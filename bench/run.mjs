/**
 * `npm run bench [-- --json]`: every figure that the documentation states, measured in one run on
 * this machine. It says what it found and fails only when it could not measure.
 * What the figures mean is in docs/benchmarks.md.
 */
import { mkdtempSync, rmSync } from 'node:fs'
import { arch, availableParallelism, loadavg, platform, tmpdir } from 'node:os'
import { join } from 'node:path'
import { fileURLToPath } from 'node:url'
import { version as workerdVersion } from 'workerd'
import { measureBundle } from './bundle.mjs'
import { measureCompany } from './company.mjs'
import { measureCreation, withoutRuns } from './creation.mjs'
import { counted, measureLives } from './life.mjs'
import { measurePolling } from './polling.mjs'
import { measureFanOut, measureIdle, measureNews } from './push.mjs'
import { AIMS, report } from './report.mjs'
import { build, start } from './runtime.mjs'

const DEPLOYED = fileURLToPath(new URL('../wrangler.toml', import.meta.url))
const BENCH = fileURLToPath(new URL('wrangler.toml', import.meta.url))

const [load = 0] = loadavg()
const machine =
  `${availableParallelism()} cores (${platform()} ${arch()}, load ${load.toFixed(1)} before), ` +
  `workerd ${workerdVersion}, Node ${process.versions.node}`
const json = process.argv.includes('--json')
const tell = (text) => console.error(text)

const dir = mkdtempSync(join(tmpdir(), 'longhaul-bench-'))
try {
  tell('Building …')
  const [deployedDir, benchDir] = [join(dir, 'deployed'), join(dir, 'bench')]
  await build(DEPLOYED, deployedDir)
  await build(BENCH, benchDir)

  /** Each measurement has a runtime of its own, with nothing left of the one before. */
  const measure = async (what, adapt, work) => {
    tell(`Measuring ${what} …`)
    const runtime = await start(BENCH, benchDir, adapt)
    try {
      return await work(runtime)
    } finally {
      await runtime.stop()
    }
  }
  const figures = {
    machine,
    polling: await measure('tasks/get', undefined, measurePolling),
    creation: await measure('creation', withoutRuns, measureCreation),
    lives: await measure('what a task costs', counted, measureLives),
    company: await measure('short tasks beside long ones', undefined, measureCompany),
    news: await measure('how soon subscribers hear', undefined, measureNews),
    fanOut: await measure('a thousand sockets', undefined, measureFanOut),
    idle: await measure('idle subscribers', counted, measureIdle),
    bundle: measureBundle(deployedDir),
  }
  console.log(json ? JSON.stringify({ ...figures, aims: AIMS }, undefined, 2) : `\n${report(figures)}`)
} catch (error) {
  console.error('Could not measure:', error)
  process.exitCode = 1
} finally {
  rmSync(dir, { recursive: true, force: true })
}
