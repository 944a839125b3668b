/**
 * The page on which a question is answered by link: what is asked, a form, and what became of it.
 * No scripts. Everything that comes from a tool, a client or a person is escaped by the template.
 */
import { html, raw } from 'hono/html'
import type { LinkedQuestion } from '../task/types'
import { STYLE } from './answer-style'
import { ACTION, controlOf, decidingField, type Field, fieldsOf } from './answer-form'
import { type AnsweredQuestion, headed, readableTime, whatWasAnswered, whoAnswered } from './answer-words'

type Html = ReturnType<typeof html>
export type OpenQuestion = Extract<LinkedQuestion, { state: 'open' }>

/** The question with its form. `problem`: why the last answer did not fit. */
export function questionPage(question: OpenQuestion, path: string, problem?: string): Promise<Response> {
  const { title, details } = withoutItself(headed(question.request), path)
  const body = html`
    <p class="from">${question.tool}</p>
    <h1>${title}</h1>
    ${details === '' ? '' : html`<div class="details">${details}</div>`}
    <dl>
      <dt>Asked on behalf of</dt>
      <dd>${question.requestedBy}, ${time(question.requestedAt)}</dd>
      <dt>Open until</dt>
      <dd>${time(question.openUntil)}</dd>
    </dl>
    ${problem === undefined ? '' : html`<p class="problem" role="alert">That answer does not fit: ${problem}</p>`}
    ${formOf(question)}
    <p class="note">Opening this page decided nothing. Whoever answers first decides.</p>
  `
  return page(problem === undefined ? 200 : 422, title, body)
}

/** How it was answered. `told`: what that means for the reader. */
export function answeredPage(status: number, question: AnsweredQuestion, told: string): Promise<Response> {
  const { title } = headed(question.request)
  const { by } = question
  const body = html`
    <h1>${title}</h1>
    <p role="status">${told}</p>
    <dl>
      <dt>Answer</dt>
      <dd class="answer">${whatWasAnswered(question)}</dd>
      ${
        by
          ? html`<dt>Answered</dt>
              <dd>${whoAnswered(by)}, ${time(by.at)}</dd>`
          : ''
      }
    </dl>
  `
  return page(status, title, body)
}

/** Anything else there is to say. */
export function sentencePage(
  status: number,
  title: string,
  sentence: string,
  headers?: Record<string, string>,
): Promise<Response> {
  return page(
    status,
    title,
    html`<h1>${title}</h1>
      <p role="status">${sentence}</p>`,
    headers,
  )
}

function formOf({ request }: OpenQuestion): Html {
  const fields = fieldsOf(request)
  const deciding = decidingField(fields)
  // The first button is the one that the return key presses: it must not decide.
  return html`<form method="post">
    <button type="submit" disabled hidden></button>
    ${fields.filter((field) => field !== deciding).map(inputOf)}
    <div class="buttons">
      ${
        deciding
          ? deciding.options.map(({ value, label }) => button(controlOf(deciding), value, label))
          : [button(ACTION, 'accept', 'Send'), button(ACTION, 'decline', 'Decline')]
      }
    </div>
  </form>`
}

function button(name: string, value: string, label: string): Html {
  return html`<button type="submit" name="${name}" value="${value}">${label}</button>`
}

function inputOf(field: Field): Html {
  const { label, hint, required, options, kind } = field
  const name = controlOf(field)
  const about = html`${label}${required ? '' : html` <span class="optional">optional</span>`}${
    hint === undefined ? '' : html`<span class="hint">${hint}</span>`
  }`
  switch (kind) {
    case 'boolean':
      return html`<label class="check"><input type="checkbox" name="${name}" value="true" /> ${about}</label>`
    case 'choices':
      return html`<fieldset>
        <legend>${about}</legend>
        ${options.map(
          (option) =>
            html`<label class="check"
              ><input type="checkbox" name="${name}" value="${option.value}" /> ${option.label}</label
            >`,
        )}
      </fieldset>`
    case 'choice':
      return html`<label
        >${about}<select name="${name}">
          <option value="">–</option>
          ${options.map((option) => html`<option value="${option.value}">${option.label}</option>`)}
        </select></label
      >`
    case 'number':
      return html`<label>${about}<input type="text" inputmode="decimal" name="${name}" /></label>`
    case 'text':
      return html`<label
        >${about}<textarea name="${name}" rows="3" maxlength="${field.maxLength ?? 10_000}"></textarea>
      </label>`
  }
}

/** A message that offers this very page has nothing to say with it here. */
function withoutItself({ title, details }: ReturnType<typeof headed>, path: string) {
  const kept = details.split('\n\n').filter((paragraph) => !paragraph.includes(path))
  return { title, details: kept.join('\n\n') }
}

function time(ms: number): Html {
  return html`<time datetime="${new Date(ms).toISOString()}">${readableTime(ms)}</time>`
}

async function page(
  status: number,
  title: string,
  body: Html,
  headers: Record<string, string> = {},
): Promise<Response> {
  const nonce = crypto.randomUUID()
  const text = await html`<!doctype html>
    <html lang="en">
      <head>
        <meta charset="utf-8" />
        <meta name="viewport" content="width=device-width, initial-scale=1" />
        <meta name="robots" content="noindex, nofollow" />
        <title>${title}</title>
        <style nonce="${nonce}">
          ${raw(STYLE)}
        </style>
      </head>
      <body>
        <main>${body}</main>
      </body>
    </html>`
  return new Response(String(text), {
    status,
    headers: {
      'content-type': 'text/html; charset=utf-8',
      'content-security-policy':
        `default-src 'none'; style-src 'nonce-${nonce}'; form-action 'self'; ` +
        "base-uri 'none'; frame-ancestors 'none'",
      'x-frame-options': 'DENY',
      'x-content-type-options': 'nosniff',
      'x-robots-tag': 'noindex, nofollow',
      'referrer-policy': 'no-referrer',
      'cache-control': 'no-store',
      ...headers,
    },
  })
}
