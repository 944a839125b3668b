/**
 * Follows a task from the Worker: its state now, and every change, over one hibernatable WebSocket to
 * the object, so that an idle follower costs no object time. Connects again when the object restarts;
 * the present state comes first each time, so nothing is missed. A slow reader gets the latest state,
 * not a backlog.
 */
import { backoffMs } from '../retry'
import { CLOSE_REPLACED } from '../task/listeners'
import { hasEnded } from '../task/snapshot'
import { Inbox } from './inbox'

export interface TaskFeed {
  /** A connected, not yet accepted socket; `null` when there is no such task for this tenant. */
  open(): Promise<WebSocket | null>
  /** The state by a plain call, for what is too large to push. */
  read(): Promise<string | null>
  /** A pushed state with its result, should that be kept elsewhere. */
  whole(snapshot: string): string | Promise<string>
}

const RECONNECT = { delayMs: 200, maxDelayMs: 5_000 }
const CLOSE_TOO_BIG = 1009

/**
 * Snapshots, as JSON text. Ends after the terminal one, when the task is gone, when `signal` aborts, or
 * when another follower takes over the stream that this one feeds.
 * @param first a socket that was opened already.
 */
export async function* follow(
  feed: TaskFeed,
  signal: AbortSignal,
  first?: WebSocket,
): AsyncGenerator<string, void, undefined> {
  let last: string | undefined
  for (let attempt = 0; !signal.aborted; attempt++) {
    if (attempt > 0) await pause(backoffMs(RECONNECT, attempt) + 50, signal)
    let socket: WebSocket | null
    try {
      socket = attempt === 0 && first ? first : await feed.open()
    } catch {
      // The object cannot be reached now.
      continue
    }
    if (!socket) return
    const inbox = new Inbox(socket, signal, 'latest')
    try {
      for (;;) {
        const news = await inbox.next()
        if (news.kind === 'aborted' || (news.kind === 'closed' && news.code === CLOSE_REPLACED)) return
        if (news.kind === 'closed' && news.code !== CLOSE_TOO_BIG) break
        const snapshot = news.kind === 'message' ? await feed.whole(news.text) : await feed.read()
        if (snapshot === null) return
        attempt = 0
        if (snapshot !== last) yield snapshot
        last = snapshot
        if (hasEnded(snapshot)) return
        if (news.kind === 'closed') break
      }
    } finally {
      inbox.close()
    }
  }
}

async function pause(ms: number, signal: AbortSignal): Promise<void> {
  await scheduler.wait(ms, { signal }).catch(() => undefined)
}
