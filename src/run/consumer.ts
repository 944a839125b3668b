/**
 * The Queues consumer. Messages are always acknowledged: what is to happen next is decided by the
 * object, whose alarm sends again what got lost. Only when the object cannot be reached is a message
 * tried again, and ends in the dead-letter queue if that lasts.
 */
import { isObject } from '../json'
import { fault, type Observer } from '../observe/observer'
import { inSpan } from '../observe/trace'
import type { WorkMessage } from '../task/outbox'
import { run, type RunDeps } from './run'
import { callTask, type TaskStubs } from './stub'

const UNREACHABLE_DELAY_SECONDS = 10

export interface ConsumerOptions {
  depsFor(queue: 'work' | 'slow'): RunDeps
  readonly stubs: TaskStubs
  readonly observer: Observer
}

export async function consume(batch: MessageBatch, options: ConsumerOptions): Promise<void> {
  const role = roleOf(batch.queue)
  await Promise.all(
    batch.messages.map(async (message) => {
      const work = workOf(message)
      if (!work) {
        fault({ event: 'message_unreadable', queue: batch.queue })
        message.ack()
        return
      }
      try {
        if (role === 'dead') await bury(work, options)
        else {
          const { taskId, n, traceparent } = work
          const attributes = {
            'longhaul.task': taskId,
            'longhaul.dispatch': n,
            'longhaul.traceparent': traceparent,
          }
          await inSpan('longhaul.run', attributes, () => run(work, options.depsFor(role)))
        }
        message.ack()
      } catch (error) {
        fault({ event: 'task_unreachable', task: work.taskId }, error)
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

function workOf({ body, timestamp }: Message): WorkMessage | undefined {
  if (!isObject(body)) return undefined
  const { taskId, n, sentAt, traceparent } = body
  if (typeof taskId !== 'string' || typeof n !== 'number') return undefined
  return {
    taskId,
    n,
    sentAt: typeof sentAt === 'number' ? sentAt : timestamp.getTime(),
    ...(typeof traceparent === 'string' && { traceparent }),
  }
}

/** A dead letter settles its task, unless the task has gone on without it. */
async function bury({ taskId, n }: WorkMessage, { stubs, observer }: ConsumerOptions): Promise<void> {
  const reason = 'The work could not be started: its message was given up after several attempts.'
  const settled = await callTask(stubs, taskId, (task) => task.deadLetter(n, reason))
  observer.occurred({ event: 'dead_letter', task: taskId, n, settled })
}
