/**
 * The Queues consumer. Messages are always acknowledged: what is to happen next is decided by the
 * object, whose alarm sends again what got lost. Only when the object cannot be reached is a message
 * tried again, and ends in the dead-letter queue if that lasts.
 */
import { isObject } from '../json'
import type { WorkMessage } from '../task/outbox'
import { run, type RunDeps, type RunEnd } from './run'
import { callTask, type TaskStubs } from './stub'

const UNREACHABLE_DELAY_SECONDS = 10

export interface ConsumerOptions {
  depsFor(queue: 'work' | 'slow'): RunDeps
  readonly stubs: TaskStubs
  onRun?(message: WorkMessage, end: RunEnd | 'unreachable', ms: number): void
}

export async function consume(batch: MessageBatch, options: ConsumerOptions): Promise<void> {
  const role = roleOf(batch.queue)
  await Promise.all(
    batch.messages.map(async (message) => {
      const work = workOf(message.body)
      if (!work) {
        console.error(JSON.stringify({ event: 'message_unreadable', queue: batch.queue, id: message.id }))
        message.ack()
        return
      }
      const startedAt = Date.now()
      try {
        if (role === 'dead') {
          await bury(work, options.stubs)
        } else {
          const end = await run(work, options.depsFor(role))
          options.onRun?.(work, end, Date.now() - startedAt)
        }
        message.ack()
      } catch (error) {
        console.error(JSON.stringify({ event: 'task_unreachable', task: work.taskId, error: String(error) }))
        options.onRun?.(work, 'unreachable', Date.now() - startedAt)
        message.retry({ delaySeconds: UNREACHABLE_DELAY_SECONDS })
      }
    }),
  )
}

/** Queues are told apart by the end of their name: `…-work`, `…-slow`, `…-dead`. */
function roleOf(queue: string): 'work' | 'slow' | 'dead' {
  if (queue.endsWith('-dead')) return 'dead'
  return queue.endsWith('-slow') ? 'slow' : 'work'
}

function workOf(body: unknown): WorkMessage | undefined {
  if (!isObject(body) || typeof body['taskId'] !== 'string' || typeof body['n'] !== 'number') return undefined
  return { taskId: body['taskId'], n: body['n'] }
}

/** A dead letter settles its task, unless the task has gone on without it. */
async function bury(message: WorkMessage, stubs: TaskStubs): Promise<void> {
  await callTask(stubs, message.taskId, (task) =>
    task.deadLetter(
      message.n,
      'The work could not be started: its message was given up after several attempts.',
    ),
  )
}
