/** Answer links as a person's browser uses them. */
import { exports } from 'cloudflare:workers'

export interface Page {
  readonly status: number
  readonly html: string
  readonly headers: Headers
}

export async function open(url: string, method = 'GET'): Promise<Page> {
  return page(await exports.default.fetch(new Request(url, { method })))
}

/** Sends the form of the page, as a browser does from a page with `Referrer-Policy: no-referrer`. */
export async function send(
  url: string,
  fields: Record<string, string>,
  init: RequestInit = {},
): Promise<Page> {
  const response = await exports.default.fetch(
    new Request(url, {
      method: 'POST',
      headers: { 'content-type': 'application/x-www-form-urlencoded', origin: 'null' },
      body: new URLSearchParams(fields).toString(),
      ...init,
    }),
  )
  return page(response)
}

/** The text that a reader sees. */
export function textOf({ html }: Page): string {
  const main = /<main>([\s\S]*)<\/main>/.exec(html)?.[1] ?? ''
  return main
    .replaceAll(/<[^>]*>/g, ' ')
    .replaceAll(/\s+/g, ' ')
    .trim()
}

/** The buttons of the form, by what they say. */
export function buttonsOf({ html }: Page): Record<string, { name: string; value: string }> {
  const buttons = html.matchAll(/<button type="submit" name="([^"]*)" value="([^"]*)">([^<]*)<\/button>/g)
  return Object.fromEntries(
    [...buttons].map(([, name = '', value = '', label = '']) => [label, { name, value }]),
  )
}

/** Presses a button of the page, with what was filled in. */
export async function press(url: string, label: string, fields: Record<string, string> = {}): Promise<Page> {
  const button = buttonsOf(await open(url))[label]
  if (!button) throw new Error(`The page has no button ${label}.`)
  return send(url, { ...fields, [button.name]: button.value })
}

async function page(response: Response): Promise<Page> {
  return { status: response.status, html: await response.text(), headers: response.headers }
}
