/** How a question and its answer read, on the page behind a link and in Slack. Pure. */
import { isObject } from '../json'
import type { AnsweredBy, InputRequest, LinkedQuestion } from '../task/types'
import { decidingField, fieldsOf } from './answer-form'

export type AnsweredQuestion = Extract<LinkedQuestion, { state: 'answered' }>

/** A first paragraph longer than this is no heading. */
const MAX_TITLE_CHARS = 200

/** The message of a question: its first paragraph as a heading, and the rest. */
export function headed(request: InputRequest): { readonly title: string; readonly details: string } {
  const message = request.params?.['message']
  const text = typeof message === 'string' ? message.trim() : ''
  const end = text.indexOf('\n\n')
  const first = end < 0 ? text : text.slice(0, end)
  return first === '' || first.length > MAX_TITLE_CHARS
    ? { title: 'A question', details: text }
    : { title: first, details: text.slice(first.length).trim() }
}

/**
 * What was answered. Choices are told, texts are not: whoever has a link may know how it was
 * decided, not what somebody else wrote.
 */
export function whatWasAnswered({ request, answer, by }: AnsweredQuestion): string {
  if (!by) return 'Nobody answered'
  const { action, content } = isObject(answer) ? answer : {}
  if (action === 'decline') return 'Declined'
  if (action === 'cancel') return 'Dismissed without an answer'
  const deciding = decidingField(fieldsOf(request))
  const chosen = deciding && isObject(content) ? content[deciding.name] : undefined
  const value = typeof chosen === 'boolean' ? String(chosen) : chosen
  return deciding?.options.find((option) => option.value === value)?.label ?? 'Accepted'
}

export function whoAnswered({ via, name }: AnsweredBy): string {
  switch (via) {
    case 'client':
      return 'in the MCP client'
    case 'link':
      return name === undefined ? 'by link' : `by link (${name})`
    case 'slack':
      return name === undefined ? 'in Slack' : `by ${name} in Slack`
  }
}

/** `2026-11-29 15:33 UTC`. */
export function readableTime(ms: number): string {
  return `${new Date(ms).toISOString().slice(0, 16).replace('T', ' ')} UTC`
}
