/**
 * Rounds of load, taken in turns. Machines drift: other work comes and goes, clocks change. So every
 * way is measured in every round, a ratio is taken within its round, and what is reported is the median
 * over the rounds. Turns are short, so that what disturbs one way most likely disturbs all, and their
 * order is drawn anew each time, so that no way always cleans up after the same other one.
 */
import { Connection } from './http.mjs'
import { cpuMs } from './runtime.mjs'

const CONNECTIONS = 16
/** A median of less is luck. */
const MIN_ROUNDS = 4

/**
 * @typedef {{ name: string, request: (i: number) => Buffer, check?: (body: string) => void }} Way
 * @typedef {{ perSecond: number, cpuUs: number | undefined }} Sample
 * @param {{ url: URL, pid: number | undefined }} runtime
 * @param {Way[]} ways
 * @param {{ rounds: number, withinMs: number, warmUp: Amount, amount: Amount }} options
 *   `withinMs`: no further round begins after that
 * @typedef {{ ms: number } | { requests: number }} Amount how much load one turn is
 * @returns {Promise<Map<string, Sample[]>>} one sample per round, in the order of the rounds
 */
export async function inTurns(runtime, ways, { rounds, withinMs, warmUp, amount }) {
  const connections = await Promise.all(
    Array.from({ length: CONNECTIONS }, () => Connection.open(runtime.url)),
  )
  const samples = new Map(ways.map(({ name }) => [name, []]))
  try {
    for (const way of ways) {
      const { status, body } = await connections[0].send(way.request(0))
      if (status !== 200) throw new Error(`${way.name} answered HTTP ${status}: ${body.slice(0, 300)}`)
      way.check?.(body)
      await turn(runtime.pid, connections, way, warmUp)
    }
    const lastStart = performance.now() + withinMs
    for (let round = 0; round < rounds && (round < MIN_ROUNDS || performance.now() < lastStart); round++) {
      for (const way of shuffled(ways)) {
        samples.get(way.name).push(await turn(runtime.pid, connections, way, amount))
      }
    }
  } finally {
    for (const connection of connections) connection.close()
  }
  return samples
}

function shuffled(items) {
  return items
    .map((item) => ({ item, at: Math.random() }))
    .toSorted((a, b) => a.at - b.at)
    .map(({ item }) => item)
}

/** Keeps every connection busy with one request at a time. */
async function turn(pid, connections, { name, request }, amount) {
  const cpuBefore = cpuMs(pid)
  const startedAt = performance.now()
  const more =
    'ms' in amount ? () => performance.now() - startedAt < amount.ms : (sent) => sent < amount.requests
  let sent = 0
  await Promise.all(
    connections.map(async (connection) => {
      while (more(sent)) {
        const { status } = await connection.send(request(sent++))
        if (status !== 200) throw new Error(`${name} answered HTTP ${status} under load.`)
      }
    }),
  )
  const ms = performance.now() - startedAt
  const cpuAfter = cpuMs(pid)
  return {
    perSecond: (sent / ms) * 1_000,
    cpuUs: cpuBefore === undefined ? undefined : ((cpuAfter - cpuBefore) / sent) * 1_000,
  }
}

export function median(numbers) {
  const sorted = numbers.toSorted((a, b) => a - b)
  const middle = sorted.length >> 1
  return sorted.length % 2 === 1 ? sorted[middle] : (sorted[middle - 1] + sorted[middle]) / 2
}

/** The median sample. */
export function typical(samples) {
  const cpu = samples.flatMap(({ cpuUs }) => cpuUs ?? [])
  return {
    perSecond: median(samples.map(({ perSecond }) => perSecond)),
    cpuUs: cpu.length > 0 ? median(cpu) : undefined,
  }
}

/**
 * How `samples` compare to `others`, round by round; above 1 is better, in throughput and in CPU.
 */
export function compare(samples, others) {
  const cpu = samples.flatMap(({ cpuUs }, round) => (cpuUs ? others[round].cpuUs / cpuUs : []))
  return {
    throughput: median(samples.map(({ perSecond }, round) => perSecond / others[round].perSecond)),
    cpu: cpu.length > 0 ? median(cpu) : undefined,
  }
}
