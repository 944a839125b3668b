import { expect, test, vi } from 'vitest'
import { get, start, TERMINAL, untilEnded } from '../client'

test('a run that comes back does not show again what was shown before', async () => {
  const taskId = await start('three_parts')
  const seen: string[] = []
  await vi.waitUntil(
    async () => {
      const { status, statusMessage } = await get(taskId)
      if (statusMessage !== undefined && statusMessage !== seen.at(-1)) seen.push(statusMessage)
      return TERMINAL.includes(status)
    },
    { timeout: 15_000, interval: 80 },
  )
  expect(seen.toSorted()).toEqual(seen)
  expect(seen.slice(-2)).toEqual(['Working (2/3)', 'Working (3/3)'])
})

test('the last status text stays on the finished task, however quickly the end came', async () => {
  const task = await untilEnded(await start('quick_parts'))
  expect(task).toMatchObject({ status: 'completed', statusMessage: 'Working (5/5)' })
})
