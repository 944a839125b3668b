/**
 * The state machine of a task: a pure function from a state and an event to the next
 * state. It owns what is legal; it touches no storage, no clock, no queue.
 *
 * Two things are tracked side by side. `status` is what clients see, with the moves of
 * SEP-2663. `phase` is where the work is: waiting in a queue, held by a run, waiting for
 * an answer, a time or an event, or ended.
 *
 * An illegal move changes nothing and says why. It is not an exception: late, repeated
 * and stale messages are everyday life here.
 */

export type Status = 'working' | 'input_required' | 'completed' | 'failed' | 'cancelled'
export type TerminalStatus = Exclude<Status, 'working' | 'input_required'>
export type Phase = 'queued' | 'running' | 'waiting' | 'ended'

export interface MachineState {
  readonly status: Status
  readonly phase: Phase
  /** Counts dispatches. Only the current one can be claimed. */
  readonly dispatch: number
  /** The fence of the run that holds the task. Every write of a run carries it. */
  readonly token: string | null
  /** Failed runs since the last recorded step. */
  readonly attempts: number
  readonly cancelRequested: boolean
  readonly openQuestions: number
}

export type MachineEvent =
  /** A run takes dispatch `n`. */
  | { readonly type: 'claim'; readonly n: number; readonly token: string }
  /** A run recorded progress. */
  | { readonly type: 'record'; readonly token: string }
  /** A run put `count` questions. */
  | { readonly type: 'ask'; readonly token: string; readonly count: number }
  /** `count` questions were settled: answered, timed out or given up. */
  | { readonly type: 'answer'; readonly count: number }
  /** A run ends until something it waits for has happened. `ready`: it already has. */
  | { readonly type: 'suspend'; readonly token: string; readonly ready: boolean }
  /** A run used up its slice and goes on in another one. */
  | { readonly type: 'yield'; readonly token: string }
  /** A time or an event that the task waits for has come. */
  | { readonly type: 'wake' }
  /** A run threw; `final` when retrying cannot help. */
  | { readonly type: 'throw'; readonly token: string; readonly limit: number; readonly final: boolean }
  /** The lease ran out: the run's machine is gone. */
  | { readonly type: 'lapse'; readonly limit: number }
  /** A run returned a result. */
  | { readonly type: 'complete'; readonly token: string }
  /** A run noticed the cancellation and stopped. */
  | { readonly type: 'stop'; readonly token: string }
  /** A client asks to cancel: an intent. */
  | { readonly type: 'cancel' }
  /** A 2025-11-25 client cancels: at once. */
  | { readonly type: 'cancelNow' }
  /** The time-to-live is over. */
  | { readonly type: 'expire' }
  /** Dispatch `n` ended in the dead-letter queue. */
  | { readonly type: 'deadLetter'; readonly n: number }

export type Refusal =
  /** The task has ended; nothing changes it any more. */
  | 'ended'
  /** The token or dispatch number is not the current one. */
  | 'stale'
  /** Not possible in this phase. */
  | 'phase'

export type Move =
  | {
      readonly ok: true
      readonly state: MachineState
      /** A message for `state.dispatch` must be sent. */
      readonly dispatched: boolean
      /** Set when this move ended the task. */
      readonly ended?: TerminalStatus
    }
  | { readonly ok: false; readonly refusal: Refusal }

export const INITIAL: MachineState = {
  status: 'working',
  phase: 'queued',
  dispatch: 1,
  token: null,
  attempts: 0,
  cancelRequested: false,
  openQuestions: 0,
}

export function isTerminal(status: Status): status is TerminalStatus {
  return status === 'completed' || status === 'failed' || status === 'cancelled'
}

/** The next state, or why there is none. */
export function move(state: MachineState, event: MachineEvent): Move {
  if (state.phase === 'ended') return refused('ended')
  if ('token' in event && event.type !== 'claim') {
    if (state.phase !== 'running' || event.token !== state.token) return refused('stale')
  }
  switch (event.type) {
    case 'claim':
      if (event.n !== state.dispatch) return refused('stale')
      if (state.phase !== 'queued') return refused('phase')
      return to({ ...state, phase: 'running', token: event.token })

    case 'record':
      return to({ ...state, attempts: 0 })

    case 'ask':
      return to({
        ...state,
        status: event.count > 0 ? 'input_required' : state.status,
        openQuestions: state.openQuestions + event.count,
      })

    case 'answer': {
      if (event.count > state.openQuestions) return refused('phase')
      const openQuestions = state.openQuestions - event.count
      const answered = {
        ...state,
        openQuestions,
        status: openQuestions > 0 ? state.status : 'working',
      } as const
      // A run that is still going picks the answers up when it suspends.
      const last = event.count > 0 && openQuestions === 0
      return last && state.phase === 'waiting' ? dispatch(answered) : to(answered)
    }

    case 'suspend':
      if (state.cancelRequested) return end(state, 'cancelled')
      return event.ready ? dispatch(state) : to({ ...state, phase: 'waiting', token: null })

    case 'yield':
      return state.cancelRequested ? end(state, 'cancelled') : dispatch(state)

    case 'wake':
      return state.phase === 'waiting' ? dispatch(state) : refused('phase')

    case 'throw':
      if (state.cancelRequested) return end(state, event.final ? 'failed' : 'cancelled')
      if (event.final || state.attempts >= event.limit) return end(state, 'failed')
      // Waits for the back-off; a wake brings it back.
      return to({ ...state, phase: 'waiting', token: null, attempts: state.attempts + 1 })

    case 'lapse':
      if (state.phase !== 'running') return refused('phase')
      if (state.cancelRequested) return end(state, 'cancelled')
      if (state.attempts >= event.limit) return end(state, 'failed')
      return dispatch({ ...state, attempts: state.attempts + 1 })

    case 'complete':
      // Questions that nobody waits for any more (a race another branch won) are withdrawn first,
      // so that `completed` is reached from `working` only.
      return end({ ...state, status: 'working', openQuestions: 0 }, 'completed')

    case 'stop':
      return state.cancelRequested ? end(state, 'cancelled') : refused('phase')

    case 'cancel':
      // Nobody runs: nobody else could settle it.
      if (state.phase !== 'running') return end({ ...state, cancelRequested: true }, 'cancelled')
      return to({ ...state, cancelRequested: true })

    case 'cancelNow':
      return end({ ...state, cancelRequested: true }, 'cancelled')

    case 'expire':
      return end(state, 'failed')

    case 'deadLetter':
      if (event.n !== state.dispatch) return refused('stale')
      return state.phase === 'queued' ? end(state, 'failed') : refused('phase')
  }
}

function to(state: MachineState): Move {
  return { ok: true, state, dispatched: false }
}

function dispatch(state: MachineState): Move {
  return {
    ok: true,
    state: { ...state, phase: 'queued', token: null, dispatch: state.dispatch + 1 },
    dispatched: true,
  }
}

function end(state: MachineState, status: TerminalStatus): Move {
  return {
    ok: true,
    state: { ...state, status, phase: 'ended', token: null, openQuestions: 0 },
    dispatched: false,
    ended: status,
  }
}

function refused(refusal: Refusal): Move {
  return { ok: false, refusal }
}
