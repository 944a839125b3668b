/**
 * Messages to Slack, as Block Kit: a question with a button for each answer, and what became of it.
 * Everything that comes from tools, clients or people is `plain_text`, so that it can neither
 * mention people nor disguise a link. Pure.
 */
import { isObject, type Json, type JsonObject } from '../json'
import { type AnsweredQuestion, headed, readableTime, whatWasAnswered, whoAnswered } from './answer-words'

/** `action_id`s of our buttons start with this. */
const ANSWER = 'longhaul.answer.'
// Limits of Block Kit.
const MAX_HEADER_CHARS = 150
const MAX_SECTION_CHARS = 3_000

export interface AskInSlack {
  readonly title: string
  readonly details: string
  /** One line each, below the details. */
  readonly facts: readonly string[]
  /** The page on which it can be answered; see `step.answerLink`. */
  readonly link: string
  /** Buttons; without any, the message only links to the page. */
  readonly choices: readonly Choice[]
}

export interface Choice {
  readonly label: string
  /** Content of the accepted answer. */
  readonly content: JsonObject
  readonly style?: 'primary' | 'danger'
}

/** What one of our buttons says when it is pressed. */
export interface Pressed {
  readonly taskId: string
  readonly token: string
  readonly content: JsonObject
}

export function askMessage({ title, details, facts, link, choices }: AskInSlack): JsonObject {
  const [taskId = '', token = ''] = new URL(link).pathname.split('/').slice(-2)
  return {
    text: escaped(title),
    blocks: [
      { type: 'header', text: plain(title, MAX_HEADER_CHARS) },
      ...(details === '' ? [] : [{ type: 'section', text: plain(details, MAX_SECTION_CHARS) }]),
      ...(facts.length === 0 ? [] : [{ type: 'context', elements: facts.map((fact) => plain(fact, 300)) }]),
      {
        type: 'actions',
        elements: [
          ...choices.map(({ label, content, style }, index) => ({
            type: 'button',
            action_id: `${ANSWER}${index}`,
            text: plain(label, 75),
            value: JSON.stringify({ taskId, token, content }),
            ...(style && { style }),
          })),
          { type: 'button', action_id: 'longhaul.open', text: plain('Open', 75), url: link },
        ],
      },
    ],
  }
}

/** In place of the message with the buttons. */
export function answeredMessage(question: AnsweredQuestion): JsonObject {
  const { by } = question
  const answer = whatWasAnswered(question)
  const outcome = by ? `${answer}: ${whoAnswered(by)}, ${readableTime(by.at)}` : `${answer}.`
  return { replace_original: true, ...noteMessage(headed(question.request).title, outcome) }
}

/** A message that asks nothing. */
export function noteMessage(title: string, text: string): JsonObject {
  return {
    text: escaped(`${title}: ${text}`),
    blocks: [
      { type: 'header', text: plain(title, MAX_HEADER_CHARS) },
      { type: 'section', text: plain(text, MAX_SECTION_CHARS) },
    ],
  }
}

/** To the one person who pressed. */
export function onlyToYou(text: string): JsonObject {
  return { response_type: 'ephemeral', replace_original: false, text: escaped(text) }
}

/** What notifications show in place of the blocks is mrkdwn, where these three mean something. */
function escaped(text: string): string {
  return text.replaceAll('&', '&amp;').replaceAll('<', '&lt;').replaceAll('>', '&gt;')
}

/** The button of ours that was pressed, in a `block_actions` payload. */
export function pressedIn(payload: Record<string, unknown>): Pressed | undefined {
  const actions: readonly unknown[] = Array.isArray(payload['actions']) ? payload['actions'] : []
  const action = actions.find(
    (candidate) => isObject(candidate) && String(candidate['action_id']).startsWith(ANSWER),
  )
  const text = isObject(action) ? action['value'] : undefined
  if (payload['type'] !== 'block_actions' || typeof text !== 'string') return undefined
  const value = parsed(text)
  if (!isObject(value)) return undefined
  const { taskId, token, content } = value
  if (typeof taskId !== 'string' || typeof token !== 'string' || !isObject(content)) return undefined
  // It came out of JSON.parse.
  return { taskId, token, content: content as JsonObject }
}

function parsed(text: string): unknown {
  try {
    return JSON.parse(text)
  } catch {
    return undefined
  }
}

function plain(text: string, maxChars: number): Json {
  const cut = text.length > maxChars ? `${text.slice(0, maxChars - 1)}…` : text
  return { type: 'plain_text', text: cut, emoji: false }
}
