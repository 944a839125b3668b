import { expect, test } from 'vitest'
import { carriedBy, isFree } from '../../../src/task/carriers'
import type { JournalRow } from '../../../src/task/store'
import type { Carrying } from '../../../src/task/types'

const ROW: JournalRow = { seq: 1, kind: 'question', name: 'q', state: 'open', data: { key: 'q' }, at: null }
const NOW = 1_000_000
const by = (stream: string, held: boolean, client = 'c'): Carrying => ({
  keys: ['q'],
  stream,
  client,
  held,
  patience: 0,
})
const open = () => true
const closed = () => false

test('a question that nobody carries is free', () => {
  expect(isFree(ROW, by('s', true), NOW, closed)).toBe(true)
})

test('one on an open stream is not, until that stream is gone', () => {
  const row = carriedBy(ROW, by('s', true), NOW)
  expect(isFree(row, by('t', true), NOW, open)).toBe(false)
  expect(isFree(row, by('t', true), NOW, closed)).toBe(true)
  // It knows by itself what its client has received.
  expect(isFree(row, by('s', true), NOW, open)).toBe(true)
})

test('a client that was asked by a poll is not asked again for five minutes; another one is', () => {
  const row = carriedBy(ROW, by('s', false), NOW)
  const fiveMinutes = 5 * 60_000
  expect(isFree(row, by('t', false), NOW + fiveMinutes - 1, closed)).toBe(false)
  expect(isFree(row, by('t', false), NOW + fiveMinutes, closed)).toBe(true)
  expect(isFree(row, by('t', false, 'another'), NOW, closed)).toBe(true)
})

test('being carried changes nothing else of a question', () => {
  const row = carriedBy(ROW, by('s', true), NOW)
  expect(row).toEqual({ ...ROW, data: { key: 'q', carrier: expect.anything() } })
})
