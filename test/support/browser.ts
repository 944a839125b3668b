/** Chromium, headless, as far away from the network as it can be. */
import { existsSync, mkdirSync } from 'node:fs'
import { fileURLToPath } from 'node:url'
import { type Browser, chromium } from 'playwright-core'

const PLACES = [
  process.env['CHROMIUM_PATH'],
  '/usr/bin/chromium',
  '/usr/bin/chromium-browser',
  '/usr/bin/google-chrome',
]

/** Where it is, if it is installed. `CHROMIUM_PATH` names another place. */
export const chromiumPath = PLACES.find((path) => path !== undefined && existsSync(path))

export const HOW_TO_INSTALL =
  'The tests of the console need Chromium: install it (`apt-get install chromium`), or say where it is in CHROMIUM_PATH.'

/** Pictures of what the tests saw; kept, and not committed. */
export const SCREENSHOTS = fileURLToPath(new URL('../../.tmp/screenshots/', import.meta.url))

export async function launchBrowser(): Promise<Browser> {
  if (chromiumPath === undefined) throw new Error(HOW_TO_INSTALL)
  mkdirSync(SCREENSHOTS, { recursive: true })
  return chromium.launch({
    executablePath: chromiumPath,
    args: [
      '--no-sandbox',
      '--disable-gpu',
      '--disable-quic',
      '--no-first-run',
      '--disable-background-networking',
      '--disable-component-update',
      '--disable-sync',
    ],
  })
}
