/** What can end a run, other than a result. */
import { NonRetryableError } from '../tool'

/** The task was cancelled: thrown at the next step boundary. */
export class CancelledError extends Error {
  override name = 'CancelledError'
}

/** Another run holds the task, or it is over: everything this run does is void. */
export class LeaseLostError extends Error {
  override name = 'LeaseLostError'
}

/** The task could not be reached; whether the last write got there is not known. */
export class UnreachableError extends Error {
  override name = 'UnreachableError'
}

/** A step failed for good; what the tool sees, the first time and at every replay. */
export class StepError extends Error {
  override name = 'StepError'
}

/** The code and the journal do not belong together. */
export class JournalMismatchError extends NonRetryableError {
  override name = 'JournalMismatchError'
}
