/** Requests as a client of revision 2026-07-28 sends them. */
import { setTimeout as sleep } from 'node:timers/promises'
import { post } from './http.mjs'

export const TENANT = 'bench'
const KEY = 'bench-key-bench-key'
const REVISION = '2026-07-28'
const META = {
  'io.modelcontextprotocol/protocolVersion': REVISION,
  'io.modelcontextprotocol/clientInfo': { name: 'bench', version: '1.0.0' },
  'io.modelcontextprotocol/clientCapabilities': {
    elicitation: {},
    extensions: { 'io.modelcontextprotocol/tasks': {} },
  },
}

const message = (method, params) => ({
  headers: {
    authorization: `Bearer ${KEY}`,
    'content-type': 'application/json',
    accept: 'application/json, text/event-stream',
    'user-agent': 'longhaul-bench',
    'mcp-protocol-version': REVISION,
    'mcp-method': method,
    ...((params.taskId ?? params.name) && { 'mcp-name': params.taskId ?? params.name }),
  },
  body: JSON.stringify({ jsonrpc: '2.0', id: 1, method, params: { ...params, _meta: META } }),
})
const getTask = (taskId) => message('tasks/get', { taskId })
const listen = (taskIds) => message('subscriptions/listen', { notifications: { taskIds } })
const callTool = (name) => message('tools/call', { name, arguments: {} })

/** The same as bytes, to be sent many times. `path`: `/mcp`, or one of the routes beside it. */
export const getTaskBytes = (baseUrl, path, taskId) => bytes(baseUrl, path, getTask(taskId))
export const callToolBytes = (baseUrl, path, name) => bytes(baseUrl, path, callTool(name))

function bytes(baseUrl, path, { headers, body }) {
  return post(new URL(path, baseUrl), headers, body)
}

/** Headers of a WebSocket. */
export const DOOR_HEADERS = { authorization: `Bearer ${KEY}`, 'user-agent': 'longhaul-bench' }

/** A request that subscribes to tasks. */
export function listenRequest(baseUrl, taskIds, signal) {
  return new Request(new URL('/mcp', baseUrl), { method: 'POST', ...listen(taskIds), signal })
}

/** A client for what is not under load. */
export class Client {
  #endpoint

  constructor(baseUrl) {
    this.#endpoint = new URL('/mcp', baseUrl)
  }

  /** Calls a tool and returns the id of the task it became. */
  async start(tool) {
    return (await this.#send(callTool(tool))).taskId
  }

  /** Calls a tool so many times, several at once, and returns the ids of the tasks. */
  async startAll(tool, count) {
    const taskIds = []
    let begun = 0
    const caller = async () => {
      while (begun++ < count) taskIds.push(await this.start(tool))
    }
    await Promise.all(Array.from({ length: 8 }, caller))
    return taskIds
  }

  get(taskId) {
    return this.#send(getTask(taskId))
  }

  cancel(taskId) {
    return this.#send(message('tasks/cancel', { taskId }))
  }

  /** Polls until the task has this status. */
  async until(taskId, status, everyMs = 20, withinMs = 60_000) {
    const giveUp = performance.now() + withinMs
    for (;;) {
      const task = await this.get(taskId)
      if (task.status === status) return
      if (performance.now() > giveUp) {
        throw new Error(`Task ${taskId} is not ${status} after ${withinMs} ms: ${JSON.stringify(task)}`)
      }
      await sleep(everyMs)
    }
  }

  /** @throws when the answer is anything but a result. */
  async #send({ headers, body }) {
    const response = await fetch(this.#endpoint, { method: 'POST', headers, body })
    const text = await response.text()
    const { result } = response.ok ? JSON.parse(text) : {}
    if (!result) throw new Error(`The Worker answered HTTP ${response.status}: ${text.slice(0, 500)}`)
    return result
  }
}
