/**
 * What a way of being told about changes must offer. A push is a convenience: whoever uses one also
 * looks by itself, and loses nothing when the push is silent.
 */
import type { Task } from './wire.ts'

export interface PushSink {
  /** The server agreed to tell. */
  live(): void
  snapshot(task: Task): void
}

export type PushEnd =
  /** The server said that it has told everything. */
  | 'finished'
  /** The server does not offer this. */
  | 'refused'
  /** It broke, or did not come about this time. */
  | 'dropped'
  /** The server offers it, but not for this task. */
  | 'unsuitable'

export interface PushSource {
  readonly via: 'websocket' | 'sse'
  /** Zero, or how long the server should not be asked for this again. */
  restMs(): number
  /** Watches one task until `signal` or the other side ends it. Never rejects. */
  watch(taskId: string, sink: PushSink, signal: AbortSignal): Promise<PushEnd>
}

/** A server that does not offer a way of push is not asked again for a while. */
export const REST_MS = 10 * 60_000
