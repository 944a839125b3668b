/** What a client sees of a task, as JSON text. Pure. */
import { isTerminal, type Status } from './machine'
import type { OpenQuestion } from './questions'
import type { TaskRow } from './store'
import { pollInterval } from './pace'
import type { TaskSnapshot } from './types'

/**
 * The detailed task of SEP-2663. `resultText` is the JSON text of the result of a completed
 * task; it is spliced in, so that a large result is not parsed to be written again.
 */
export function snapshotText(row: TaskRow, questions: readonly OpenQuestion[], resultText?: string): string {
  const { head } = row
  const task: TaskSnapshot = {
    taskId: head.taskId,
    status: row.status,
    ...(row.message !== null && { statusMessage: row.message }),
    createdAt: new Date(row.createdAt).toISOString(),
    lastUpdatedAt: new Date(row.updatedAt).toISOString(),
    ttlMs: row.ttlMs,
    pollIntervalMs: pollInterval(row.gaps, head.policy.pollMinMs, head.policy.pollMaxMs),
    ...(row.status === 'input_required' && {
      inputRequests: Object.fromEntries(questions.map(({ key, request }) => [key, request])),
    }),
    ...(row.outcome?.kind === 'error' && { error: row.outcome.error }),
  }
  const text = JSON.stringify(task)
  return resultText === undefined ? text : `${text.slice(0, -1)},"result":${resultText}}`
}

/** The status in a snapshot's text, without parsing the rest: results may be large. */
export function statusOf(snapshot: string): Status {
  const status = /^\{"taskId":"[^"]*","status":"([a-z_]+)"/.exec(snapshot)?.[1]
  if (status === undefined) throw new Error('not a snapshot')
  // `snapshotText` wrote it.
  return status as Status
}

export function hasEnded(snapshot: string): boolean {
  return isTerminal(statusOf(snapshot))
}
