import { type ChildProcess, execFileSync, spawn } from 'node:child_process'
import { mkdtempSync, readdirSync, rmSync } from 'node:fs'
import { tmpdir } from 'node:os'
import path from 'node:path'
import { afterEach, beforeEach, expect, test } from 'vitest'
import { McpClient } from '../support/mcp'

let folder: string
let script: Script

beforeEach(() => {
  folder = mkdtempSync(path.join(tmpdir(), 'longhaul-script-'))
})

afterEach(() => {
  // What is left of it after its end, or when the test failed before that.
  for (const pid of processesOf(folder)) process.kill(pid, 'SIGKILL')
  rmSync(folder, { recursive: true, force: true })
})

test('npm run demo migrates a real database, shows how far it is, answers the question and leaves nothing behind', async () => {
  script = run('scripts/demo.mjs', [])
  expect(await script.ended, script.output).toBe(0)
  expect(script.output).toContain('8/8')
  expect(script.output).toMatch(/The task asks:\s+drop_legacy_sessions destroys data/)
  expect(script.output).toMatch(/Applied drop_legacy_sessions: 2 statements/)
  expect(script.output).toMatch(/tables: .*users/)
  expect(script.output).not.toMatch(/tables: .*legacy_sessions/)
  expect(script.output).toContain('users 1: Ada Lovelace')
  expect(processesOf(folder)).toEqual([])
  expect(readdirSync(folder)).toEqual([])
}, 180_000)

test('npm run dev serves this machine without a key, until Ctrl-C', async () => {
  script = run('scripts/dev.mjs', [`--port=0`, '--inspector-port=0', `--persist-to=${folder}/state`])
  await expect.poll(() => script.output, { timeout: 60_000 }).toContain('Longhaul listens on POST')
  const url = /POST (http:\S+)\/mcp/.exec(script.output)?.[1] ?? ''
  const { status, body } = await new McpClient(url).rpc('tools/list')
  expect(status).toBe(200)
  expect(body.result.tools.map(({ name }: { name: string }) => name)).toContain('run_migration')

  script.child.kill('SIGINT')
  expect(await script.ended).toBe(130)
  await expect.poll(() => processesOf(folder)).toEqual([])
}, 120_000)

interface Script {
  readonly child: ChildProcess
  /** Everything it has printed so far. */
  readonly output: string
  /** Its exit code. */
  readonly ended: Promise<number | null>
}

function run(file: string, args: readonly string[]): Script {
  const child = spawn(process.execPath, [file, ...args], {
    env: { ...process.env, TMPDIR: folder },
    stdio: ['ignore', 'pipe', 'pipe'],
  })
  let output = ''
  for (const stream of [child.stdout, child.stderr]) {
    stream.on('data', (chunk: Buffer) => {
      output += chunk.toString()
    })
  }
  return {
    child,
    get output() {
      return output
    },
    ended: new Promise((resolve) => {
      child.on('close', (code) => resolve(code))
    }),
  }
}

/** Every process that was given something in the folder. */
function processesOf(folderInArgs: string): number[] {
  return execFileSync('ps', ['-eo', 'pid=,args='], {
    encoding: 'utf8',
    env: { ...process.env, COLUMNS: '2000' },
  })
    .split('\n')
    .filter((line) => line.includes(folderInArgs))
    .map((line) => Number.parseInt(line, 10))
}
