/** Chromium, headless, as far away from the network as it can be. */
import { existsSync } from 'node:fs'
import { chromium } from 'playwright-core'

const PLACES = [
  process.env['CHROMIUM_PATH'],
  '/usr/bin/chromium',
  '/usr/bin/chromium-browser',
  '/usr/bin/google-chrome',
]

/** Where it is, if it is installed. `CHROMIUM_PATH` names another place. */
export const chromiumPath = PLACES.find((path) => path !== undefined && existsSync(path))

export const HOW_TO_INSTALL =
  'This needs Chromium: install it (`apt-get install chromium`), or say where it is in CHROMIUM_PATH.'

/** @returns {Promise<import('playwright-core').Browser>} @throws when there is none. */
export async function launchBrowser() {
  if (chromiumPath === undefined) throw new Error(HOW_TO_INSTALL)
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
