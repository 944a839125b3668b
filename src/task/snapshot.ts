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
  const task: TaskSnapshot & { readonly [RESULT_KEY]?: string } = {
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
    ...(row.outcome?.kind === 'r2' && { [RESULT_KEY]: row.outcome.key }),
  }
  const text = JSON.stringify(task)
  return resultText === undefined ? text : `${text.slice(0, -1)},"result":${resultText}}`
}

/** Last member of a snapshot whose result is in a bucket; the Worker puts the result in its place. */
const RESULT_KEY = 'longhaul.resultKey'
const REFERENCE = /,"longhaul\.resultKey":"([^"]*)"\}$/

/** The bucket key of a result that is not in the snapshot itself. */
export function resultKeyOf(snapshot: string): string | undefined {
  return snapshot.endsWith('"}') ? REFERENCE.exec(snapshot.slice(-512))?.[1] : undefined
}

/** The snapshot with the JSON text of its result. */
export function withResult(snapshot: string, result: string): string {
  return snapshot.replace(REFERENCE, () => `,"result":${result}}`)
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
