/**
 * The page on which a question is answered by link: what is asked, a form, and what became of it.
 * No scripts. Everything that comes from a tool, a client or a person is escaped by the template.
 */
import { html } from 'hono/html'
import type { LinkedQuestion } from '../task/types'
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
          :root {
            color-scheme: light dark;
            --ink: light-dark(#1c1c1f, #ececf0);
            --soft: light-dark(#5c5c66, #a5a5b0);
            --paper: light-dark(#fff, #1e1e22);
            --back: light-dark(#f3f3f6, #131316);
            --line: light-dark(#c9c9d2, #44444d);
            --strong: light-dark(#1b4fd1, #9db8ff);
            --on-strong: light-dark(#fff, #0b1b45);
            --bad: light-dark(#a8180f, #ffa79f);
          }
          * {
            box-sizing: border-box;
          }
          body {
            margin: 0;
            padding: 1rem;
            background: var(--back);
            color: var(--ink);
            font:
              1rem/1.5 system-ui,
              sans-serif;
            overflow-wrap: anywhere;
          }
          main {
            max-width: 38rem;
            margin: 4vh auto;
            padding: 1.5rem;
            background: var(--paper);
            border: 1px solid var(--line);
            border-radius: 0.75rem;
          }
          h1 {
            margin: 0 0 1rem;
            font-size: 1.5rem;
            line-height: 1.25;
          }
          .from,
          .note,
          .hint,
          .optional {
            color: var(--soft);
            font-size: 0.875rem;
          }
          .from {
            margin: 0 0 0.25rem;
          }
          .note {
            margin: 1rem 0 0;
          }
          .details {
            white-space: pre-wrap;
            padding: 0.75rem 1rem;
            border-inline-start: 3px solid var(--line);
          }
          dl {
            display: grid;
            gap: 0.25rem 1rem;
            margin: 1rem 0;
          }
          dt {
            color: var(--soft);
          }
          dd {
            margin: 0;
          }
          @media (min-width: 30rem) {
            dl {
              grid-template-columns: max-content 1fr;
            }
          }
          .answer {
            font-weight: 600;
          }
          .problem {
            color: var(--bad);
          }
          label,
          fieldset {
            display: block;
            margin: 1rem 0;
          }
          fieldset {
            border: 1px solid var(--line);
            border-radius: 0.5rem;
          }
          .hint {
            display: block;
          }
          .check {
            display: flex;
            gap: 0.5rem;
            align-items: baseline;
          }
          textarea,
          select,
          input[type='text'] {
            display: block;
            width: 100%;
            margin-top: 0.25rem;
            padding: 0.625rem;
            font: inherit;
            color: inherit;
            background: var(--paper);
            border: 1px solid var(--soft);
            border-radius: 0.5rem;
          }
          .buttons {
            display: flex;
            flex-wrap: wrap;
            gap: 0.75rem;
            margin-top: 1.25rem;
          }
          .buttons button {
            flex: 1 1 8rem;
            min-height: 3rem;
            font: inherit;
            font-weight: 600;
            cursor: pointer;
            color: var(--strong);
            background: var(--paper);
            border: 2px solid var(--strong);
            border-radius: 0.5rem;
          }
          .buttons button:first-child {
            color: var(--on-strong);
            background: var(--strong);
          }
          :focus-visible {
            outline: 3px solid var(--strong);
            outline-offset: 2px;
          }
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
