/** The console as people use it: in a real browser, by what they see, read and press. */
import { fileURLToPath } from 'node:url'
import axe from 'axe-core'
import type { Browser, BrowserContext, BrowserContextOptions, Locator, Page } from 'playwright-core'
import { afterAll, afterEach, beforeAll, beforeEach, describe, expect, test } from 'vitest'
import { chromiumPath, HOW_TO_INSTALL, launchBrowser } from '../../scripts/chromium.mjs'
import { McpClient } from '../support/mcp'
import { Server } from '../support/server'

const inCi = process.env['CI'] !== undefined
if (chromiumPath === undefined && !inCi) console.warn(HOW_TO_INSTALL)

/** The deployed configuration, with more tools. */
const WORKER = { config: 'wrangler.toml', main: 'test/e2e/console/worker.ts' }
/** Pictures of what the tests saw; kept, and not committed. */
const SCREENSHOTS = fileURLToPath(new URL('../../.tmp/screenshots/', import.meta.url))

let server: Server
let browser: Browser
let context: BrowserContext
let page: Page
/** What went wrong in the page: errors, and what its Content-Security-Policy refused. */
let troubles: string[]

describe.skipIf(chromiumPath === undefined && !inCi)('the console', () => {
  beforeAll(async () => {
    ;[server, browser] = await Promise.all([
      Server.start({ ...WORKER, vars: { LONGHAUL_DEV: 'local' } }),
      launchBrowser(),
    ])
  })
  afterAll(async () => {
    await browser?.close()
    await server?.stop()
  })

  beforeEach(() => {
    troubles = []
  })
  afterEach(async () => {
    await context?.close()
    expect(troubles).toEqual([])
  })

  async function open(options: BrowserContextOptions = {}): Promise<void> {
    context = await browser.newContext({ viewport: { width: 1_200, height: 820 }, ...options })
    page = await newPage()
  }

  async function newPage(): Promise<Page> {
    const opened = await context.newPage()
    opened.on('pageerror', (error) => troubles.push(error.message))
    opened.on('console', (message) => {
      if (message.type() === 'error' || message.type() === 'warning') troubles.push(message.text())
    })
    await opened.goto(server.url)
    await opened.getByRole('link', { name: 'Delete files' }).waitFor()
    return opened
  }

  const card = (title: string, on = page): Locator => on.getByRole('article', { name: title }).first()
  const says = async (locator: Locator, text: string | RegExp) => locator.getByText(text).first().waitFor()

  async function run(title: string, fields: Record<string, string> = {}): Promise<Locator> {
    await page.getByRole('link', { name: title }).click()
    for (const [label, value] of Object.entries(fields)) await page.getByLabel(label).fill(value)
    await page.getByRole('button', { name: 'Run' }).click()
    await card(title).waitFor()
    return card(title)
  }

  test('deletes files: shows how far it is, asks, and says what came of it', async () => {
    await new McpClient(server.url).rpc('tools/call', {
      name: 'put_files',
      arguments: { prefix: 'logs/2025/', count: 1_200 },
    })
    await open()
    await run('Delete files', { Pattern: 'logs/**' })
    const task = card('Delete files')
    await says(task, 'Waiting for you')
    await says(task, /Delete 1,200 files \(0 bytes\) matching logs\/\*\*\?/)
    await page.getByRole('button', { name: '1 question for you' }).waitFor()
    expect(await page.title()).toBe('(1) Longhaul')
    await page.screenshot({ path: `${SCREENSHOTS}question.png` })

    await task.getByRole('button', { name: 'Yes, delete them' }).click()
    await says(task, 'Completed')
    await says(task, 'Deleted 1,200 files matching logs/**.')
    await task.getByText(/^Timeline/).click()
    const steps = await task.getByRole('listitem').allInnerTexts()
    expect(steps.join('\n')).toMatch(
      /Started.*Counting: 1,200 files.*Asked a question.*Answered; working again.*Completed/s,
    )
    await page.screenshot({ path: `${SCREENSHOTS}completed.png` })
  })

  test('is left in the middle by a reload, and found again; another tab sees the same', async () => {
    await open()
    const task = await run('Count slowly', { To: '30' })
    const bar = task.getByRole('progressbar')
    await expect.poll(() => valueOf(bar), { timeout: 20_000 }).toBeGreaterThan(2)
    await page.screenshot({ path: `${SCREENSHOTS}progress.png` })
    const before = await valueOf(bar)

    await page.reload()
    await expect.poll(() => valueOf(bar), { timeout: 20_000 }).toBeGreaterThanOrEqual(before)
    const other = await newPage()
    await expect
      .poll(() => valueOf(card('Count slowly', other).getByRole('progressbar')), { timeout: 20_000 })
      .toBeGreaterThanOrEqual(before)
    await says(task, 'Counted to 30.')
    await says(card('Count slowly', other), 'Counted to 30.')
  })

  test('asks for a task to be cancelled, and says so until the server says that it is', async () => {
    await open()
    const task = await run('Count slowly', { To: '400' })
    await task.getByRole('button', { name: 'Cancel' }).click()
    await says(task, 'Cancellation requested…')
    await says(task, 'Nothing more is done. What was done before is not undone.')
    expect(await task.locator('.pill').innerText()).toBe('Cancelled')
  })

  test('explains that a task completed although it should not', async () => {
    await open()
    const task = await run('Finish all the same')
    await says(task, 'Working')
    await task.getByRole('button', { name: 'Cancel' }).click()
    await says(task, 'Cancellation requested…')
    await says(task, 'Done all the same.')
    await says(task, /It completed although cancellation was requested/)
  })

  test('says beside the field what is wrong with it, and begins nothing', async () => {
    await open()
    await page.getByRole('link', { name: 'Count slowly' }).click()
    await page.getByRole('button', { name: 'Run' }).click()
    const field = page.getByLabel('To')
    await says(page.locator('form'), 'This is needed.')
    expect(await field.getAttribute('aria-invalid')).toBe('true')
    expect(await focused(field)).toBe(true)
    await field.fill('501')
    await page.getByRole('button', { name: 'Run' }).click()
    await says(page.locator('form'), /500/)
    await page.getByText('No tasks yet').waitFor()
  })

  test('shows what a server says as text, whatever is in it', async () => {
    await open()
    const task = await run('<img src=x onerror=alert(1)>')
    await says(task, '<img src=x onerror="document.title=\'owned\'">')
    await says(task, 'Click me')
    expect(await task.getByRole('link', { name: 'Click me' }).count()).toBe(0)
    expect(await page.title()).toBe('Longhaul')
  })

  test('can be used without a mouse', async () => {
    await open()
    await page.getByRole('link', { name: 'Count slowly' }).focus()
    await page.keyboard.press('Enter')
    await page.getByRole('heading', { name: 'Count slowly' }).waitFor()
    await tabTo(page.getByLabel('To'))
    await page.keyboard.type('2')
    await page.keyboard.press('Enter')
    await says(card('Count slowly'), 'Counted to 2.')
    await expect.poll(() => page.getByRole('status').allInnerTexts()).toContain('Count slowly: completed')
  })

  test('fits a phone, in the dark', async () => {
    await open({ viewport: { width: 360, height: 740 }, colorScheme: 'dark', isMobile: true, hasTouch: true })
    await run('Count slowly', { To: '3' })
    await says(card('Count slowly'), 'Counted to 3.')
    const wide = await page.evaluate('document.documentElement.scrollWidth > innerWidth')
    expect(wide).toBe(false)
    const ground = await page.evaluate('getComputedStyle(document.body).backgroundColor')
    expect(ground).toBe('rgb(20, 19, 18)')
    await page.screenshot({ path: `${SCREENSHOTS}phone.png` })
  })

  test.each(['light', 'dark'] as const)(
    'has no serious fault that axe finds, when it is %s',
    async (colorScheme) => {
      // axe is put into the page, which the page's own policy would refuse.
      await open({ colorScheme, bypassCSP: true, reducedMotion: 'reduce' })
      await run('Request an approval', { Title: 'Deploy 2.0', Details: 'To production.' })
      await says(card('Request an approval'), 'Waiting for you')
      await page.evaluate(axe.source)
      const { violations } = await page.evaluate<axe.AxeResults>('axe.run()')
      const serious = violations.filter(({ impact }) => impact === 'serious' || impact === 'critical')
      expect(serious.map(({ id, nodes }) => [id, ...nodes.map(({ html }) => html)])).toEqual([])
    },
  )

  test('asks for a key where the server wants one, and keeps it in this tab only', async () => {
    const vars = { API_KEYS: '{"acme":"acme-key-acme-key"}', SIGNING_KEYS: '1:signing-key-of-the-tests' }
    const closed = await Server.start({ ...WORKER, vars })
    try {
      context = await browser.newContext()
      page = await context.newPage()
      await page.goto(closed.url)
      await page.getByRole('heading', { name: 'This server wants a key' }).waitFor()
      const key = page.getByLabel('API key or access token')
      expect(await focused(key)).toBe(true)
      await key.fill('wrong-key-wrong-key')
      await page.keyboard.press('Enter')
      await page.getByRole('heading', { name: 'The server does not know this key' }).waitFor()
      await page.getByLabel('API key or access token').fill('acme-key-acme-key')
      await page.keyboard.press('Enter')
      await run('Count slowly', { To: '3' })
      await says(card('Count slowly'), 'Counted to 3.')
      expect(await page.evaluate('JSON.stringify(localStorage)')).not.toContain('acme-key')
      await page.getByRole('button', { name: 'Forget key' }).click()
      await page.getByRole('heading', { name: 'This server wants a key' }).waitFor()
    } finally {
      await closed.stop()
    }
  })

  async function tabTo(target: Locator): Promise<void> {
    for (let presses = 0; presses < 20 && !(await focused(target)); presses++)
      await page.keyboard.press('Tab')
    expect(await focused(target)).toBe(true)
  }
})

const valueOf = async (bar: Locator) => Number((await bar.getAttribute('value', { timeout: 5_000 })) ?? 0)
const focused = async (locator: Locator) =>
  (await locator.and(locator.page().locator(':focus')).count()) === 1
