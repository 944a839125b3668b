import { afterEach, expect, test, vi } from 'vitest'
import { start, untilEnded } from '../client'
import { textOf } from './questions'

afterEach(() => vi.restoreAllMocks())

test('a step that is tried again only after a while holds no consumer until then', async () => {
  // Full jitter: nearly the whole delay.
  const dice = vi.spyOn(Math, 'random').mockReturnValue(0.9)
  const [late, short] = await Promise.all([start('late_retry'), start('greet', { name: 'Ada' })])
  expect(textOf(await untilEnded(short))).toBe('Hello, Ada!')
  const task = await untilEnded(late, 30_000)
  expect(dice).toHaveBeenCalled()
  expect(textOf(task)).toBe('Done at attempt 2.')
}, 60_000)
