/**
 * What operators see: one JSON line for each thing that happens to a task, and a data point for the
 * things worth counting. Tasks and tools by name, tenants by hash; never arguments, results, answers,
 * tokens or error texts of tools.
 */

export interface ObserveEnv {
  /** Analytics Engine dataset, optional. See `docs/operating.md` for its columns. */
  readonly METRICS?: AnalyticsEngineDataset
  /** `info` (the default) logs everything, `error` only what went wrong. */
  readonly LOG_LEVEL?: string
}

/** Who and what it is about. */
export interface Subject {
  readonly task: string
  readonly tool: string
  readonly tenant: string
}

export type Occurrence =
  | (Subject & { readonly event: 'task_created' })
  /** Status or phase changed. */
  | (Subject & {
      readonly event: 'task_moved'
      readonly cause: string
      readonly status: string
      readonly phase: string
      readonly dispatch: number
      readonly attempts: number
    })
  | (Subject & {
      readonly event: 'task_settled'
      readonly cause: string
      readonly status: string
      /** Since creation. */
      readonly ms: number
      readonly dispatch: number
      readonly attempts: number
      /** By this instance of the object: a lower bound. */
      readonly polls: number
    })
  | (Subject & { readonly event: 'task_resent'; readonly dispatch: number; readonly sends: number })
  | (Subject & {
      readonly event: 'run_ended'
      readonly n: number
      readonly end: string
      readonly ms: number
      /** From sending the message to claiming the task. */
      readonly queueDelayMs: number
      readonly attempts: number
      readonly traceparent?: string
    })
  | { readonly event: 'run_refused'; readonly task: string; readonly n: number; readonly reason: string }
  | { readonly event: 'dead_letter'; readonly task: string; readonly n: number; readonly settled: boolean }
  | {
      readonly event: 'creation_refused'
      readonly tool: string
      readonly tenant: string
      readonly reason: string
    }

/** Something that should not happen, with its cause. */
export interface Fault {
  readonly event:
    | 'alarm_failed'
    | 'listen_failed'
    | 'blocking_call_failed'
    | 'request_failed'
    | 'slack_update_failed'
    | 'message_unreadable'
    | 'task_unreachable'
    | 'tenant_unreachable'
    | 'issuer_keys_failed'
  readonly task?: string
  readonly path?: string
  readonly queue?: string
}

export interface Observer {
  occurred(occurrence: Occurrence): void
}

export function createObserver(env: ObserveEnv): Observer {
  const quiet = env.LOG_LEVEL === 'error'
  return {
    occurred: (occurrence) => {
      if (!quiet) console.log(JSON.stringify(occurrence))
      count(env.METRICS, occurrence)
    },
  }
}

/** Faults are logged whatever the level. */
export function fault(what: Fault, error?: unknown): void {
  const cause =
    error instanceof Error ? { error: error.stack ?? error.message } : error === undefined ? {} : { error }
  console.error(JSON.stringify({ level: 'error', ...what, ...cause }))
}

/** Index: tool. Blobs: event, tool, outcome, tenant. Doubles: count, ms, queue delay ms, attempts, polls. */
function count(metrics: AnalyticsEngineDataset | undefined, occurrence: Occurrence): void {
  if (!metrics) return
  const point = (tool: string, outcome: string, tenant: string, ...doubles: number[]) =>
    metrics.writeDataPoint({
      indexes: [tool],
      blobs: [occurrence.event, tool, outcome, tenant],
      doubles: [1, ...doubles],
    })
  switch (occurrence.event) {
    case 'task_created':
      return point(occurrence.tool, '', occurrence.tenant)
    case 'task_settled': {
      const { tool, status, tenant, ms, attempts, polls } = occurrence
      return point(tool, status, tenant, ms, 0, attempts, polls)
    }
    case 'run_ended': {
      const { tool, end, tenant, ms, queueDelayMs, attempts } = occurrence
      return point(tool, end, tenant, ms, queueDelayMs, attempts)
    }
    case 'task_resent':
      return point(occurrence.tool, '', occurrence.tenant, occurrence.sends)
    case 'creation_refused':
      return point(occurrence.tool, occurrence.reason, occurrence.tenant)
    case 'dead_letter':
      return point('', occurrence.settled ? 'settled' : 'gone on', '')
    case 'task_moved':
    case 'run_refused':
      return undefined
  }
}
