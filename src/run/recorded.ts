/** What a step leaves in the journal: its value or its failure, as a replay will see them. Pure. */
import { type Json, utf8Bytes } from '../json'
import { MAX_ENTRY_BYTES } from '../task/questions'
import type { StepFailure } from '../task/types'
import { NonRetryableError } from '../tool'
import { StepError } from './errors'

/** Longer messages of errors are cut: they are for people, and travel with every poll. */
const MAX_MESSAGE_CHARS = 2_000

/**
 * The value as a replay will see it.
 * @throws NonRetryableError when it is no JSON or too large: its effect happened, so trying again cannot help.
 */
export function asRecorded(value: unknown): Json | undefined {
  if (value === undefined) return undefined
  let text: string | undefined
  try {
    text = JSON.stringify(value)
  } catch (error) {
    throw new NonRetryableError(`A step must return JSON: ${messageOf(error)}`)
  }
  if (text === undefined) throw new NonRetryableError('A step must return JSON.')
  const bytes = utf8Bytes(text)
  if (bytes > MAX_ENTRY_BYTES) {
    throw new NonRetryableError(
      `A step may return at most ${MAX_ENTRY_BYTES} bytes; this one returned ${bytes}. ` +
        'Store large data elsewhere (R2, D1) and return its key.',
    )
  }
  return JSON.parse(text) as Json
}

export function failureOf(error: unknown): StepFailure {
  return { name: error instanceof Error ? error.name : 'Error', message: messageOf(error) }
}

/** What the tool sees of a failed step, the first time and at every replay. */
export function stepError(step: string, message: string): StepError {
  return new StepError(`Step ${JSON.stringify(step)} failed: ${message}`)
}

export function messageOf(error: unknown): string {
  const message = error instanceof Error ? error.message : String(error)
  return message.length > MAX_MESSAGE_CHARS ? `${message.slice(0, MAX_MESSAGE_CHARS)} …` : message
}
