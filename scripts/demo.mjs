/**
 * `npm run demo`: the Worker on this machine, with an empty database of its own, migrates it through
 * MCP tasks. Shows progress, answers the question (with `--ask`, you do), and leaves nothing behind.
 */
import { spawnSync } from 'node:child_process'
import { mkdtempSync, openSync, readFileSync, rmSync } from 'node:fs'
import { tmpdir } from 'node:os'
import path from 'node:path'
import { createInterface } from 'node:readline/promises'
import { request } from './mcp.mjs'
import { ProgressLine } from './progress-line.mjs'
import { endGroup, QUIET, ROOT, spawnWranglerDev, whenReady, WRANGLER } from './wrangler-dev.mjs'

await import('./preflight.mjs')

const START_LIMIT_MS = 90_000
const MIGRATION_LIMIT_MS = 60_000
const QUERY_LIMIT_MS = 60_000
/** More often than the server suggests: somebody is watching. */
const LOOK_EVERY_MS = 250
/** So that there is something to watch: real statements on an empty database take a millisecond. */
const PAUSE_MS = 400

const asking = process.argv.includes('--ask')
const folder = mkdtempSync(path.join(tmpdir(), 'longhaul-demo-'))
const logFile = path.join(folder, 'server.log')
const state = path.join(folder, 'state')
const progress = new ProgressLine(process.stdout)

let interrupted = false

const log = openSync(logFile, 'a')
const server = spawnWranglerDev(
  [
    '--port=0',
    '--inspector-port=0',
    `--persist-to=${state}`,
    '--var=LONGHAUL_DEV:local',
    // Not the keys of whoever develops here.
    '--env-file=/dev/null',
  ],
  { ownGroup: true, output: log, env: { WRANGLER_REGISTRY_PATH: path.join(folder, 'registry') } },
)

for (const signal of /** @type {const} */ (['SIGINT', 'SIGTERM', 'SIGHUP'])) {
  process.on(signal, () => {
    interrupted = true
    progress.end()
    void cleanUp().then(() => process.exit(130))
  })
}

try {
  console.log('Starting the Worker ...')
  const url = await whenReady(server, START_LIMIT_MS)
  console.log(`POST ${url}/mcp answers, with an empty D1 database.`)
  await migrate(url, 'create_users')
  await migrate(url, 'drop_legacy_sessions')
  await endGroup(server, 'SIGTERM')
  showDatabase()
} catch (error) {
  if (!interrupted) {
    progress.end()
    console.error(`\nThe demo failed: ${error instanceof Error ? error.message : String(error)}`)
    const output = readFileSync(logFile, 'utf8').trim()
    if (output !== '') console.error(`\nWhat the server said last:\n${output.slice(-2_000)}`)
    process.exitCode = 1
  }
} finally {
  await cleanUp()
}

async function cleanUp() {
  await endGroup(server, 'SIGTERM')
  rmSync(folder, { recursive: true, force: true })
}

/**
 * One call of `run_migration`, to its end.
 *
 * @param {string} url
 * @param {string} name
 */
async function migrate(url, name) {
  const call = { name: 'run_migration', arguments: { name, pauseMs: PAUSE_MS } }
  console.log(`\n> tools/call run_migration ${JSON.stringify(call.arguments)}`)
  const startedAt = Date.now()
  const { taskId, ...created } = await request(url, 'tools/call', call)
  if (created.resultType !== 'task') throw new Error(`no task was created: ${JSON.stringify(created)}`)
  console.log(`  task ${taskId} after ${Date.now() - startedAt} ms; everything else happens without us`)

  /** @type {Set<string>} */
  const answered = new Set()
  // A user may take as long as they like.
  const until = asking ? Infinity : startedAt + MIGRATION_LIMIT_MS
  while (Date.now() < until) {
    const task = await request(url, 'tasks/get', { taskId })
    if (task.statusMessage !== undefined && task.status !== 'failed') progress.show(task.statusMessage)
    switch (task.status) {
      case 'completed':
        return report(task.result)
      case 'failed':
        throw new Error(`task failed with ${task.error.code}: ${task.error.message}`)
      case 'cancelled':
        throw new Error('task was cancelled')
      case 'input_required': {
        const open = Object.entries(task.inputRequests).filter(([key]) => !answered.has(key))
        const inputResponses = Object.fromEntries(
          await Promise.all(open.map(async ([key, { params }]) => [key, await answer(params)])),
        )
        await request(url, 'tasks/update', { taskId, inputResponses })
        for (const [key] of open) answered.add(key)
      }
    }
    await new Promise((resolve) => {
      setTimeout(resolve, LOOK_EVERY_MS)
    })
  }
  throw new Error(`task was not done after ${MIGRATION_LIMIT_MS} ms`)
}

/** @param {{ isError?: boolean, content: { text: string }[] }} result */
function report({ isError, content }) {
  progress.end()
  const text = content.map((block) => block.text).join('\n')
  // The user of --ask may well say no.
  if (isError && !asking) throw new Error(text)
  console.log(`  ${text}`)
}

/**
 * Answers a form of yes-or-no questions.
 *
 * @param {{ message: string, requestedSchema: { properties: Record<string, { type: string }> } }} question
 */
async function answer({ message, requestedSchema }) {
  progress.end()
  console.log(`\n  The task asks:\n${message.replace(/^/gm, '    ')}`)
  const yes = asking ? await askUser() : true
  if (!asking) console.log('  > yes   (answered by the demo; `npm run demo -- --ask` lets you)')
  const content = Object.fromEntries(Object.keys(requestedSchema.properties).map((name) => [name, yes]))
  return { action: 'accept', content }
}

async function askUser() {
  const terminal = createInterface({ input: process.stdin, output: process.stdout })
  const text = await terminal.question('  > yes or no? ')
  terminal.close()
  return /^y/i.test(text.trim())
}

/** Asks the database itself, without the Worker: what it holds now. */
function showDatabase() {
  const [tables, users] = query(
    `SELECT name FROM sqlite_master WHERE type = 'table' AND name NOT GLOB '_cf_*' ORDER BY name;
     SELECT id, name, email FROM users ORDER BY id`,
  )
  console.log('\nThe database now, read without the Worker:')
  console.log(`  tables: ${tables?.map(({ name }) => name).join(', ')}`)
  for (const { id, name, email } of users ?? []) console.log(`  users ${id}: ${name} <${email}>`)
}

/**
 * Rows by statement.
 *
 * @param {string} sql
 * @returns {Record<string, string | number>[][]}
 */
function query(sql) {
  const options = ['--local', `--persist-to=${state}`, '--json', `--command=${sql}`]
  const { status, stdout, stderr } = spawnSync(
    process.execPath,
    [WRANGLER, 'd1', 'execute', 'DB', ...options],
    { cwd: ROOT, encoding: 'utf8', env: { ...QUIET, ...process.env }, timeout: QUERY_LIMIT_MS },
  )
  if (status !== 0) throw new Error(`the database could not be read: ${stderr}${stdout}`)
  /** @type {{ results: Record<string, string | number>[] }[]} */
  const answers = JSON.parse(stdout)
  return answers.map(({ results }) => results)
}
