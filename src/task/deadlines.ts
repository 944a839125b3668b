/** One alarm, many deadlines: which one is next. Pure. */
import type { Phase } from './machine'

export interface Deadlines {
  readonly phase: Phase
  /** The task fails and is deleted. */
  readonly expiresAt: number
  /** The run's machine is taken for dead. */
  readonly leaseUntil: number | null
  /** The queue message is taken for lost. */
  readonly resendAt: number | null
  /** A sleep, a back-off, or a time-out of a question or event. */
  readonly wakeAt: number | null
  /** Nobody can come back for the result after this: the work is cancelled. */
  readonly leashAt: number | null
  /** The tenant's object has not yet heard that the task has ended. */
  readonly releaseAt: number | null
}

/** The earliest deadline that matters in this phase, in milliseconds since the epoch. */
export function nextDeadline(task: Deadlines): number {
  const inPhase =
    task.phase === 'running'
      ? task.leaseUntil
      : task.phase === 'queued'
        ? task.resendAt
        : task.phase === 'waiting'
          ? task.wakeAt
          : null
  const beside = task.phase === 'ended' ? task.releaseAt : task.leashAt
  return Math.min(task.expiresAt, inPhase ?? Infinity, beside ?? Infinity)
}
