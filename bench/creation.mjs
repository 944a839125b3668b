/** How much it costs to make a task durable: over one durable write in a fresh object. */
import { callToolBytes } from './client.mjs'
import { compare, inTurns, typical } from './rounds.mjs'
import { objectLimit } from './runtime.mjs'

const ROUNDS = 20
const REQUESTS = { most: 32, warmUp: 32 }

/**
 * The Worker as it is, except that nobody takes the messages it sends: runs would be measured too,
 * and by chance more of them in one turn than in another.
 */
export function withoutRuns(options) {
  return {
    ...options,
    queueConsumers: {},
    bindings: { ...options.bindings, TASK_RESEND_MS: '3600000' },
  }
}

export async function measureCreation(runtime) {
  const perTurn = Math.floor((objectLimit(runtime.pid) - 2 * REQUESTS.warmUp) / (2 * ROUNDS))
  const requests = Math.max(8, Math.min(REQUESTS.most, perTurn))
  const create = (name, path) => {
    const bytes = callToolBytes(runtime.url, path, 'one_step')
    return { name, request: () => bytes }
  }
  const samples = await inTurns(runtime, [create('floor', '/floor/create'), create('task', '/mcp')], {
    rounds: ROUNDS,
    withinMs: 20_000,
    warmUp: { requests: REQUESTS.warmUp },
    amount: { requests },
  })
  const way = (name) => ({
    ...typical(samples.get(name)),
    toFloor: compare(samples.get(name), samples.get('floor')),
  })
  return { floor: way('floor'), task: way('task') }
}
