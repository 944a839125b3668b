/**
 * The queue message of a dispatch. It is sent after the state is written, and sent again by
 * the alarm until a run has claimed it; a lost or doubled message is harmless.
 */
import { backoffMs } from '../retry'

/** The body of a queue message. Arguments stay in the object. */
export interface WorkMessage {
  readonly taskId: string
  /** The dispatch it stands for. */
  readonly n: number
  /** Milliseconds since the epoch. */
  readonly sentAt: number
  readonly traceparent?: string
}

/** A send that hangs must not keep the object awake (workerd#6053: up to 57 s). */
const SEND_LIMIT_MS = 5_000
/** Sent again whatever the queue says about its backlog. */
const UNCONDITIONAL_MS = 10 * 60_000
const RESEND_MAX_MS = 60_000

export async function send(queue: Queue<WorkMessage>, message: WorkMessage): Promise<void> {
  await withinLimit(queue.send(message))
}

/**
 * Whether a message sent at `sentAt` is probably still in the queue, so that sending it again
 * would only add to a backlog. A hint: when in doubt, no.
 */
export async function probablyQueued(
  queue: Queue<WorkMessage>,
  sentAt: number,
  now: number,
): Promise<boolean> {
  if (now - sentAt >= UNCONDITIONAL_MS) return false
  try {
    const { backlogCount, oldestMessageTimestamp } = await withinLimit(queue.metrics())
    return (
      backlogCount > 0 && oldestMessageTimestamp !== undefined && Number(oldestMessageTimestamp) <= sentAt
    )
  } catch {
    return false
  }
}

/** When to look again after `sends` messages, in milliseconds: doubling, with jitter, at most a minute. */
export function resendDelayMs(firstMs: number, sends: number): number {
  const spread = backoffMs({ delayMs: firstMs, maxDelayMs: RESEND_MAX_MS }, sends)
  const whole = Math.min(RESEND_MAX_MS, firstMs * 2 ** Math.min(sends - 1, 30))
  return Math.round((whole + spread) / 2) + Math.round(firstMs / 2)
}

async function withinLimit<T>(work: Promise<T>): Promise<T> {
  let timer: ReturnType<typeof setTimeout> | undefined
  const limit = new Promise<never>((_, reject) => {
    timer = setTimeout(
      () => reject(new Error(`no answer from the queue in ${SEND_LIMIT_MS} ms`)),
      SEND_LIMIT_MS,
    )
  })
  try {
    return await Promise.race([work, limit])
  } finally {
    if (timer !== undefined) clearTimeout(timer)
  }
}
