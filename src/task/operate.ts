/** What operators see of a task, and what a replay takes over from it. Pure. */
import type { JournalRow, TaskRow } from './store'
import type { Inspection, JournalSeed } from './types'

export function inspectionOf(row: TaskRow, journal: Iterable<JournalRow>): Inspection {
  const { taskId, tool, tenantHash, lineage } = row.head
  const { status, phase, dispatch, attempts, cancelRequested, lastError } = row
  const iso = (ms: number) => new Date(ms).toISOString()
  return {
    taskId,
    tool,
    tenantHash,
    lineage,
    status,
    phase,
    dispatch,
    attempts,
    cancelRequested,
    createdAt: iso(row.createdAt),
    lastUpdatedAt: iso(row.updatedAt),
    expiresAt: iso(row.createdAt + row.ttlMs),
    lastError,
    journal: [...journal].map(({ kind, name, state }) => ({ kind, name, state })),
  }
}

/**
 * What is known stays known: recorded steps, answers, events and the times of sleeps. What failed or was
 * still open begins anew, and so does the start of a wait whose event never came, because the outside
 * system knows the address of the old task only.
 */
export function replayable(journal: ReadonlyMap<string, JournalRow>): JournalSeed[] {
  const kept = [...journal.values()].filter(({ kind, name, state }) => {
    switch (kind) {
      case 'step': {
        const event = name.endsWith(STARTS) ? journal.get(name.slice(0, -STARTS.length)) : undefined
        return state === 'done' && (event?.kind !== 'event' || event.state === 'received')
      }
      case 'question':
        return state === 'answered'
      case 'event':
        return state === 'received'
      case 'sleep':
        return true
    }
  })
  return kept.map(({ kind, name, state, data, at }) => ({ kind, name, state, data, at }))
}

/** The step that starts the outside work of a wait is named after it. */
const STARTS = ': start'
