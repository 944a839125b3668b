/**
 * `npm run pictures`: makes the pictures of the README from the real thing: a server, the console in Chromium,
 * the command line in a terminal (`script` of util-linux). They go to docs/images.
 */
import { spawn } from 'node:child_process'
import { mkdirSync, mkdtempSync, rmSync, writeFileSync } from 'node:fs'
import { tmpdir } from 'node:os'
import path from 'node:path'
import { setTimeout as sleep } from 'node:timers/promises'
import { launchBrowser } from './chromium.mjs'
import { terminalSvg } from './terminal-svg.mjs'
import { endGroup, ROOT, spawnWranglerDev, whenReady } from './wrangler-dev.mjs'

const IMAGES = path.join(ROOT, 'docs/images')
const [COLUMNS, ROWS] = [92, 18]

mkdirSync(IMAGES, { recursive: true })
await withServer(pictureCommandLine)
await withServer(pictureConsole)

/** A server of its own, with nothing in it. @param {(url: string, folder: string) => Promise<void>} work */
async function withServer(work) {
  const folder = mkdtempSync(path.join(tmpdir(), 'longhaul-pictures-'))
  const server = spawnWranglerDev(
    ['--port=0', '--inspector-port=0', `--persist-to=${folder}/state`, '--var', 'LONGHAUL_DEV:local'],
    { ownGroup: true, output: 'ignore' },
  )
  try {
    await work(await whenReady(server, 60_000), folder)
  } finally {
    await endGroup(server, 'SIGTERM')
    rmSync(folder, { recursive: true, force: true })
  }
}

/** @param {string} url @param {string} folder */
async function pictureCommandLine(url, folder) {
  const first = record(url, folder, [
    'call',
    'run_migration',
    '-a',
    'name=create_users',
    '-a',
    'pauseMs:=450',
  ])
  await first.ended
  const second = record(url, folder, ['call', 'run_migration', '-a', 'name=drop_legacy_sessions'])
  await second.until(/destroys data/)
  await sleep(2_500)
  second.type('y')
  await sleep(800)
  second.type('\r')
  await second.ended
  const startsAt = (first.chunks.at(-1)?.at ?? 0) + 1_500
  const chunks = [...first.chunks, ...second.chunks.map(({ at, data }) => ({ at: at + startsAt, data }))]
  const title = 'The command line: progress of a migration, a question, and its result'
  writeFileSync(
    path.join(IMAGES, 'cli.svg'),
    await terminalSvg(chunks, { columns: COLUMNS, rows: ROWS, title }),
  )
}

/** Runs the command in a terminal. @param {string} url @param {string} folder @param {readonly string[]} args */
function record(url, folder, args) {
  const quoted = args.map((arg) => `'${arg}'`).join(' ')
  const child = spawn(
    'script',
    ['-qfec', `stty cols ${COLUMNS} rows ${ROWS}; node src/cli/longhaul.mjs ${quoted}`, '/dev/null'],
    {
      cwd: ROOT,
      env: {
        ...process.env,
        PATH: `${path.join(ROOT, 'node_modules/.bin')}:${process.env['PATH']}`,
        LONGHAUL_URL: `${url}/mcp`,
        LONGHAUL_STATE: path.join(folder, 'tasks.db'),
        TERM: 'xterm-256color',
        FORCE_COLOR: '1',
      },
      stdio: ['pipe', 'pipe', 'inherit'],
    },
  )
  const began = Date.now()
  /** @type {{ at: number, data: string }[]} */
  const chunks = [{ at: 0, data: `$ \x1b[1mlonghaul ${args.join(' ')}\x1b[0m\r\n` }]
  child.stdout.on('data', (data) => chunks.push({ at: Date.now() - began, data: String(data) }))
  return {
    chunks,
    ended: new Promise((resolve) => child.on('close', resolve)),
    /** @param {string} keys */
    type: (keys) => child.stdin.write(keys),
    /** @param {RegExp} text */
    async until(text) {
      for (let tries = 0; tries < 200; tries++) {
        if (text.test(chunks.map(({ data }) => data).join(''))) return
        await sleep(100)
      }
      throw new Error(`The command did not print ${text}.`)
    },
  }
}

/** @param {string} url */
async function pictureConsole(url) {
  const browser = await launchBrowser()
  try {
    const context = await browser.newContext({
      viewport: { width: 1_240, height: 860 },
      deviceScaleFactor: 1.5,
    })
    const page = await context.newPage()
    await page.goto(url)
    /** @param {string} tool @param {(() => Promise<unknown>)} fillIn */
    const run = async (tool, fillIn) => {
      await page.getByRole('link', { name: tool }).click()
      await fillIn()
      await page.getByRole('button', { name: 'Run' }).click()
      await page.getByRole('article', { name: tool }).first().waitFor()
      await page.getByRole('link', { name: 'All tools' }).click()
    }
    await run('Request an approval', async () => {
      await page.getByLabel('Title').fill('Deploy 2.0 to production')
      await page.getByLabel('Details').fill('342 tests passed. It can be rolled back.')
    })
    await run('Run a database migration', async () => {
      await page.getByText('create_users', { exact: true }).click()
      await page.getByLabel('Pause ms').fill('1500')
    })
    await page.getByText('5 of 8').waitFor()
    await page.screenshot({ path: path.join(IMAGES, 'console.png') })

    const state = await context.storageState()
    const phone = await browser.newContext({
      storageState: state,
      viewport: { width: 390, height: 844 },
      deviceScaleFactor: 2,
      colorScheme: 'dark',
      isMobile: true,
    })
    const small = await phone.newPage()
    await small.goto(url)
    await small.getByRole('button', { name: '1 question for you' }).click()
    await sleep(800)
    await small.screenshot({ path: path.join(IMAGES, 'console-phone.png') })
  } finally {
    await browser.close()
  }
}
