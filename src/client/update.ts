/** What a caller is told: updates on the way, and the outcome. Pure. */
import type { Via } from './follower.ts'
import type { Question } from './questions.ts'
import type { RpcError, Status, Task, ToolResult } from './wire.ts'

/** A state of the call. Complete in itself: nobody needs the updates before it. */
export interface Update {
  readonly taskId: string | undefined
  readonly status: Status
  /** What the server says about the state, for people. */
  readonly message: string | undefined
  /** Read from a message such as `Copying (12/80)`, while the work goes on. */
  readonly progress: Progress | undefined
  /** Open questions that were not answered from here. */
  readonly questions: readonly Question[]
  /** Cancellation was requested. Whether it happens is for the server to say: by the status `cancelled`. */
  readonly cancelRequested: boolean
  /** How this became known. */
  readonly via: Via
  /** The task as the server told it; `undefined` while, or when, there is none. */
  readonly task: Task | undefined
  /** How it ended; in the last update only. */
  readonly outcome: Outcome | undefined
}

export interface Progress {
  readonly done: number
  readonly total: number
  /** The message without the numbers. */
  readonly label: string
}

export type Outcome =
  | {
      readonly status: 'completed'
      readonly result: ToolResult
      /** Cancellation was requested, and the work was finished all the same. */
      readonly completedAnyway: boolean
      readonly task: Task | undefined
    }
  | {
      readonly status: 'failed'
      readonly error: RpcError
      readonly message: string | undefined
      readonly task: Task
    }
  | {
      readonly status: 'cancelled'
      readonly message: string | undefined
      readonly task: Task | undefined
    }

/** The outcome of a task that is over; `undefined` while it is not. */
export function outcomeOf(task: Task, cancelRequested: boolean): Outcome | undefined {
  const message = task.statusMessage
  if (task.status === 'completed' && task.result) {
    return { status: 'completed', result: task.result, completedAnyway: cancelRequested, task }
  }
  if (task.status === 'failed' && task.error) return { status: 'failed', error: task.error, message, task }
  return task.status === 'cancelled' ? { status: 'cancelled', message, task } : undefined
}

export function updateOf(known: Omit<Update, 'status' | 'message' | 'progress'>): Update {
  const { task, questions, outcome } = known
  const message = task?.statusMessage
  return {
    ...known,
    status: outcome?.status ?? task?.status ?? (questions.length > 0 ? 'input_required' : 'working'),
    message,
    progress: message === undefined || outcome ? undefined : readProgress(message),
  }
}

/** The last `(done/total)` in a message. */
export function readProgress(message: string): Progress | undefined {
  const found = [...message.matchAll(/\((\d+)\s*\/\s*(\d+)\)/g)].at(-1)
  if (!found) return undefined
  const [done, total] = [Number(found[1]), Number(found[2])]
  if (total === 0 || done > total) return undefined
  const label = (message.slice(0, found.index) + message.slice(found.index + found[0].length)).trim()
  return { done, total, label }
}
