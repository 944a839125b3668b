/**
 * Stands between the queues and the Worker under test: every message passes here, is written down, and
 * meets the fate that the test decides: delivered, lost, delivered three times, or refused.
 */
import { isObject } from '../../src/json'

export type Fate = 'deliver' | 'lose' | 'thrice' | 'refuse'

export interface Delivery {
  readonly queue: string
  readonly taskId: string
  readonly n: number
}

type Rule = (delivery: Delivery) => Fate | Promise<Fate>

const deliverEverything: Rule = () => 'deliver'

let rule: Rule = deliverEverything

/** Every message the queues brought, unreadable ones (as task ``, dispatch 0) and dead letters included. */
export const deliveries: Delivery[] = []

/** From now on; without a rule everything is delivered, once. */
export function decideFates(next: Rule = deliverEverything): void {
  rule = next
}

/** From now on nothing is delivered, until the returned function is called. */
export function hold(): () => void {
  let release = () => undefined as void
  const released = new Promise<void>((resolve) => {
    release = resolve
  })
  decideFates(() => released.then(() => 'deliver'))
  return release
}

export async function passOn(batch: MessageBatch, consume: (batch: MessageBatch) => Promise<void>) {
  const messages: Message[] = []
  await Promise.all(
    batch.messages.map(async (message) => {
      const delivery = { queue: batch.queue, ...addressOf(message.body) }
      deliveries.push(delivery)
      switch (await rule(delivery)) {
        case 'lose':
          return message.ack()
        case 'refuse':
          return message.retry()
        case 'deliver':
          return messages.push(message)
        case 'thrice':
          return messages.push(message, message, message)
      }
    }),
  )
  const { queue, metadata } = batch
  await consume({ queue, metadata, messages, ackAll: () => undefined, retryAll: () => undefined })
}

function addressOf(body: unknown): { taskId: string; n: number } {
  const { taskId, n } = isObject(body) ? body : {}
  return { taskId: typeof taskId === 'string' ? taskId : '', n: typeof n === 'number' ? n : 0 }
}
