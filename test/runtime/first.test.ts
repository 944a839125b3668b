import { expect, test } from 'vitest'
import { start, untilEnded } from './client'

test('a called tool becomes a task and completes', async () => {
  const taskId = await start('greet', { name: 'Ada' })
  const task = await untilEnded(taskId)
  expect(task).toMatchObject({ status: 'completed', result: { content: [{ text: 'Hello, Ada!' }] } })
})
