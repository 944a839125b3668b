/** The user, who is asked by the tools. */
import { expect } from 'vitest'
import { rpc, until } from '../client'

/** Waits for the question and returns its text. */
export async function question(taskId: string): Promise<string> {
  const task = await until(taskId, ['input_required', 'completed', 'failed', 'cancelled'])
  expect(task.status, JSON.stringify(task)).toBe('input_required')
  const [request] = Object.values<{ params: { message: string } }>(task.inputRequests)
  return request?.params.message ?? ''
}

export async function reply(taskId: string, response: Record<string, unknown>): Promise<void> {
  const task = await until(taskId, ['input_required'])
  const inputResponses = Object.fromEntries(Object.keys(task.inputRequests).map((key) => [key, response]))
  await rpc('tasks/update', { taskId, inputResponses })
}

export const YES = { action: 'accept', content: { confirm: true } }
export const NO = { action: 'accept', content: { confirm: false } }
export const DECLINE = { action: 'decline' }

/** Text of a completed task. */
export function textOf(task: { result?: { content: { text: string }[] } }): string {
  return task.result?.content.map(({ text }) => text).join('\n') ?? ''
}
