/** How the command ends, so that a script can tell. Documented in docs/cli.md: numbers here never change. */
import { TasksError } from '../client/index.ts'
import type { Outcome } from '../client/index.ts'

export const EXIT = {
  /** The tool answered. */
  completed: 0,
  /** The tool answered that it went wrong (`isError`). */
  toolError: 1,
  /** The command was not understood. */
  usage: 2,
  /** The task failed. */
  failed: 3,
  /** The task was cancelled. */
  cancelled: 4,
  /** The task goes on without us: detached, out of time, or waiting for an answer that nobody here gives. */
  running: 5,
  /** The server does not know the task, or no longer. */
  unknown: 6,
  /** The server cannot be reached, or refuses. */
  unavailable: 7,
  /** Ctrl-C. The task goes on. */
  interrupted: 130,
} as const

export type ExitCode = (typeof EXIT)[keyof typeof EXIT]

export function exitOf(outcome: Outcome): ExitCode {
  if (outcome.status !== 'completed') return EXIT[outcome.status]
  return outcome.result.isError === true ? EXIT.toolError : EXIT.completed
}

export function exitOfError(error: unknown): ExitCode {
  if (!(error instanceof TasksError)) return EXIT.unavailable
  if (error.code === 'task_not_found' || error.code === 'task_expired') return EXIT.unknown
  if (error.code === 'deadline' || error.code === 'detached') return EXIT.running
  return error.code === 'invalid_tool' ? EXIT.usage : EXIT.unavailable
}

/** Something that the user can put right on the command line. */
export class UsageError extends Error {}
