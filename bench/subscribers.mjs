/** Subscribers that note when they hear what, over WebSockets and event streams. */
import { WebSocket } from 'ws'
import { DOOR_HEADERS, listenRequest } from './client.mjs'

const OPEN_WITHIN_MS = 30_000

/**
 * A WebSocket at the door of a task, greeted.
 * @returns {Promise<{ ended: Promise<number>, close(): void }>} `ended`: when it heard the end, by `performance.now()`
 */
export async function openSocket(baseUrl, taskId) {
  const url = new URL(`/mcp/tasks/${taskId}`, baseUrl)
  url.protocol = 'ws:'
  const socket = new WebSocket(url, { headers: DOOR_HEADERS, perMessageDeflate: false })
  const greeted = Promise.withResolvers()
  const ended = Promise.withResolvers()
  socket.on('message', (data) => {
    const text = Array.isArray(data) ? '' : new TextDecoder().decode(data)
    if (isEnd(text)) ended.resolve(performance.now())
    // After the acknowledgement comes the state.
    if (text.includes('"method":"notifications/tasks"')) greeted.resolve()
  })
  socket.on('error', (error) => greeted.reject(error))
  socket.on('close', (code) => greeted.reject(new Error(`The socket was closed with ${code}.`)))
  await within(greeted.promise, 'A WebSocket was not greeted')
  return { ended: ended.promise, close: () => socket.terminate() }
}

/** An event stream for some tasks, each of them greeted; `ended` is of the first that ends. */
export async function openStream(baseUrl, taskIds) {
  const gone = new AbortController()
  const response = await fetch(listenRequest(baseUrl, taskIds, gone.signal))
  if (!response.ok) throw new Error(`HTTP ${response.status} for a stream: ${await response.text()}`)
  const greeted = Promise.withResolvers()
  const ended = Promise.withResolvers()
  const read = async () => {
    let notes = 0
    for await (const chunk of response.body.pipeThrough(new TextDecoderStream())) {
      // A small note arrives in one piece.
      if (isEnd(chunk)) ended.resolve(performance.now())
      notes += chunk.split('"method":"notifications/tasks"').length - 1
      if (notes >= taskIds.length) greeted.resolve()
    }
  }
  read().catch((error) => greeted.reject(error))
  await within(greeted.promise, 'A stream was not greeted')
  return { ended: ended.promise, close: () => gone.abort() }
}

function isEnd(text) {
  return /"status":"(?:completed|failed|cancelled)"/.test(text)
}

async function within(promise, what) {
  let timer
  const late = new Promise((_, reject) => {
    timer = setTimeout(() => reject(new Error(`${what} in ${OPEN_WITHIN_MS} ms.`)), OPEN_WITHIN_MS)
  })
  try {
    return await Promise.race([promise, late])
  } finally {
    clearTimeout(timer)
  }
}
