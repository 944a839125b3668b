/** Journal rows: what is stored for each kind of entry, and what a run or a client gets of it. Pure. */
import { isObject, type Json, type JsonObject } from '../json'
import { type OpenQuestion, problemBy, sizeProblem } from './questions'
import type { JournalRow } from './store'
import type { AnsweredBy, JournalEntry, JournalRecord, NewQuestion, StepFailure } from './types'

export type NewRow = Omit<JournalRow, 'seq'>

/** The row of something a run records. */
export function rowOf(record: JournalRecord): NewRow {
  const { kind, name } = record
  switch (kind) {
    case 'sleep':
      return { kind, name, state: 'set', data: null, at: record.at }
    case 'event':
      return {
        kind,
        name,
        state: 'open',
        data: record.schema ? { schema: record.schema } : null,
        at: record.at,
      }
    case 'step':
      switch (record.state) {
        case 'done':
          return {
            kind,
            name,
            state: 'done',
            data: record.value === undefined ? {} : { value: record.value },
            at: null,
          }
        case 'failed':
          return { kind, name, state: 'failed', data: { ...record.error }, at: null }
        case 'retry':
          return { kind, name, state: 'retry', data: { attempts: record.attempts }, at: record.at }
      }
  }
}

/** What a run sees of a row. The casts restore what the functions of this file wrote. */
export function entryOf(row: JournalRow): JournalEntry {
  const { kind, name } = row
  const data = isObject(row.data) ? row.data : {}
  switch (kind) {
    case 'sleep':
      return { kind, name, at: row.at ?? 0 }
    case 'question':
      return row.state === 'answered'
        ? {
            kind,
            name,
            state: 'answered',
            answer: data['answer'] ?? null,
            ...(isObject(data['by']) && { by: data['by'] as unknown as AnsweredBy }),
          }
        : { kind, name, state: 'open' }
    case 'event':
      if (row.state === 'received') return { kind, name, state: 'received', payload: data['payload'] ?? null }
      return row.state === 'timeout'
        ? { kind, name, state: 'timeout' }
        : { kind, name, state: 'open', at: row.at ?? 0 }
    case 'step':
      if (row.state === 'failed')
        return { kind, name, state: 'failed', error: data as unknown as StepFailure }
      if (row.state === 'retry') {
        return { kind, name, state: 'retry', attempts: Number(data['attempts']), at: row.at ?? 0 }
      }
      return 'value' in data
        ? { kind, name, state: 'done', value: data['value'] ?? null }
        : { kind, name, state: 'done' }
  }
}

/** The row of a question put for the first time. Its key is the name of the step that asks. */
export function newQuestion({ name, request, at }: NewQuestion): NewRow {
  return {
    kind: 'question',
    name,
    state: 'open',
    data: questionData({ name, key: name, request, tries: 1 }),
    at,
  }
}

/** The same row, put again, with what is left of its time. */
export function askedAgain(row: JournalRow, question: OpenQuestion): JournalRow {
  const until = isObject(row.data) ? row.data['until'] : undefined
  return {
    ...row,
    state: 'open',
    data: questionData(question),
    at: typeof until === 'number' ? until : row.at,
  }
}

/**
 * `until` keeps the time-out, should the tool put the question again; an answered row is due never.
 * Without `by` nobody gave a usable answer in time.
 */
export function answered(row: JournalRow, answer: Json, by?: AnsweredBy, nonce?: string): JournalRow {
  const until = row.at !== null && { until: row.at }
  const from = { ...(by && { by: { ...by } }), ...(nonce !== undefined && { nonce }) }
  const data = { ...questionData(questionOf(row)), answer, ...until, ...from }
  return { ...row, state: 'answered', data, at: null }
}

export function questionOf(row: JournalRow): OpenQuestion {
  const { key, tries, request } = row.data as unknown as Omit<OpenQuestion, 'name'>
  return { name: row.name, key, tries, request }
}

function questionData({ key, tries, request }: OpenQuestion): JsonObject {
  return { key, tries, request: request as unknown as JsonObject }
}

/** Why an event's payload is not what the tool waits for, if so. */
export function eventProblem(row: JournalRow, payload: Json): string | undefined {
  const schema = isObject(row.data) ? row.data['schema'] : undefined
  return sizeProblem(payload) ?? (isObject(schema) ? problemBy(schema, payload) : undefined)
}

export function isOpen(row: JournalRow, kind: 'question' | 'event'): boolean {
  return row.kind === kind && row.state === 'open'
}

/** Whether a run that waits for this entry can go on. Questions are waited for together. */
export function isReady(row: JournalRow, now: number, openQuestions: number): boolean {
  switch (row.kind) {
    case 'question':
      return row.state === 'answered' && openQuestions === 0
    case 'event':
      return row.state !== 'open'
    case 'sleep':
    case 'step':
      return row.at === null || row.at <= now
  }
}

/** The first time at which one of these entries is due by the clock. */
export function firstDue(rows: readonly JournalRow[]): number | null {
  const times = rows.flatMap((row) => row.at ?? [])
  return times.length > 0 ? Math.min(...times) : null
}
