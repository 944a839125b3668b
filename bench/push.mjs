/** How soon subscribers hear of the end of a task, how many it can have, and what it costs that they are there. */
import { setTimeout as sleep } from 'node:timers/promises'
import { Client } from './client.mjs'
import { median } from './rounds.mjs'
import { objectLimit } from './runtime.mjs'
import { openSocket, openStream } from './subscribers.mjs'

const TASKS = 150
/** So many at a time: enough to be done soon, too few to stand in each other's way. */
const AT_ONCE = 5
const SOCKETS = 1_000
const ROUNDS = 5
const IDLE_TASKS = 1_000
const IDS_PER_STREAM = 100
/** The runtime hibernates an object after ten seconds; the Worker's own pings come every twenty. */
const IDLE_MS = 25_000

/**
 * From the request that ends a waiting task (a cancellation, which ends it at once): until the request is
 * answered, until subscribers have heard, and until a poller that keeps to the interval it was told has seen it.
 */
export async function measureNews({ url }) {
  const client = new Client(url)
  const times = { answer: [], websocket: [], sse: [], poll: [] }
  let begun = 0
  const worker = async () => {
    while (begun++ < TASKS) await hear(client, url, times)
  }
  await Promise.all(Array.from({ length: AT_ONCE }, worker))
  return Object.fromEntries(Object.entries(times).map(([name, all]) => [name, summary(all)]))
}

async function hear(client, url, times) {
  const taskId = await client.start('rest')
  const subscribers = [await openSocket(url, taskId), await openStream(url, [taskId])]
  const { pollIntervalMs } = await client.get(taskId)
  let seen
  const polling = (async () => {
    for (;;) {
      await sleep(pollIntervalMs)
      const { status } = await client.get(taskId)
      seen = performance.now()
      if (status === 'cancelled') return
    }
  })()
  // At no particular point between two polls.
  await sleep(100 + Math.random() * pollIntervalMs)
  const startedAt = performance.now()
  const answered = client.cancel(taskId).then(() => performance.now())
  const heard = await Promise.all([answered, ...subscribers.map(({ ended }) => ended)])
  await polling
  const all = [...heard, seen].map((at) => at - startedAt)
  for (const [i, name] of ['answer', 'websocket', 'sse', 'poll'].entries()) times[name].push(all[i])
  for (const subscriber of subscribers) subscriber.close()
}

/** One change, told to many sockets of one task. */
export async function measureFanOut({ url }) {
  const client = new Client(url)
  const rounds = []
  for (let round = 0; round < ROUNDS; round++) {
    const taskId = await client.start('rest')
    const sockets = []
    while (sockets.length < SOCKETS) {
      sockets.push(...(await Promise.all(Array.from({ length: 50 }, () => openSocket(url, taskId)))))
    }
    const startedAt = performance.now()
    const ended = Promise.all(sockets.map((socket) => socket.ended))
    await client.cancel(taskId)
    const times = (await ended).map((at) => at - startedAt)
    rounds.push({ medianMs: median(times), lastMs: Math.max(...times) })
    for (const socket of sockets) socket.close()
  }
  return {
    sockets: SOCKETS,
    medianMs: median(rounds.map(({ medianMs }) => medianMs)),
    lastMs: median(rounds.map(({ lastMs }) => lastMs)),
  }
}

/**
 * Tasks that sleep, each with a subscriber: half at WebSockets of their own, half on shared event streams. An object
 * that is touched after the wait is constructed again if it was asleep, and is not if it was awake.
 */
export async function measureIdle({ url, pid }) {
  const client = new Client(url)
  const count = Math.min(IDLE_TASKS, objectLimit(pid))
  const taskIds = await client.startAll('rest', count)
  const half = Math.floor(count / 2)
  const subscribers = []
  for (const taskId of taskIds.slice(0, half)) subscribers.push(await openSocket(url, taskId))
  for (let at = half; at < count; at += IDS_PER_STREAM) {
    subscribers.push(await openStream(url, taskIds.slice(at, at + IDS_PER_STREAM)))
  }
  const constructions = async () => (await fetch(new URL('/constructions', url))).json()
  const touch = async () => {
    const before = await constructions()
    for (const taskId of taskIds) await client.get(taskId)
    return (await constructions()) - before
  }
  const sleptAtOnce = await touch()
  await sleep(IDLE_MS)
  const slept = await touch()
  for (const subscriber of subscribers) subscriber.close()
  return { tasks: count, awakeAtOnce: count - sleptAtOnce, awake: count - slept, afterMs: IDLE_MS }
}

function summary(times) {
  const sorted = times.toSorted((a, b) => a - b)
  return { medianMs: median(sorted), p99Ms: sorted[Math.ceil(sorted.length * 0.99) - 1] }
}
