import { describe, expect, test } from 'vitest'
import { Timeline } from '../../../src/client/timeline.ts'
import { readTask, type Task } from '../../../src/client/wire.ts'
import { completed, told } from '../../support/stub-server.ts'

const at = (second: number, statusMessage: string, more = {}): Task =>
  readTask(told('working', { statusMessage, lastUpdatedAt: `2026-11-29T12:00:0${second}.000Z`, ...more }))

describe('a snapshot', () => {
  test('that looks the same is the same, though its times and interval differ', () => {
    const line = new Timeline()
    expect(line.take(at(1, 'a'), 0)).toBe('new')
    expect(line.take(at(2, 'a', { pollIntervalMs: 7 }), line.mark)).toBe('same')
    expect(line.current?.pollIntervalMs).toBe(7)
  })

  test('asked for before the latest arrived counts only if it is later', () => {
    const line = new Timeline()
    const asked = line.mark
    line.take(at(3, 'pushed'), 0)
    expect(line.take(at(2, 'older'), asked)).toBe('stale')
    expect(line.take(at(3, 'just as old'), asked)).toBe('stale')
    expect(line.take(at(4, 'later'), asked)).toBe('new')
  })

  test('asked for after the latest arrived counts even when a server’s clock went back', () => {
    const line = new Timeline()
    line.take(at(9, 'first'), 0)
    expect(line.take(at(1, 'second'), line.mark)).toBe('new')
  })

  test('of the end counts whenever it was asked for, and is the last', () => {
    const line = new Timeline()
    const asked = line.mark
    line.take(at(9, 'working'), 0)
    expect(line.take(readTask(completed('done')), asked)).toBe('new')
    expect(line.ended).toBe(true)
    expect(line.take(at(9, 'ghost'), line.mark)).toBe('stale')
  })
})
