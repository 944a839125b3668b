/**
 * A real HTTP server that keeps tasks and misbehaves as told. It speaks the Tasks extension, pushes over
 * server-sent events and WebSocket, and can be made to do everything a network does to a client.
 */
import { createServer, type IncomingMessage, type ServerResponse } from 'node:http'
import type { AddressInfo } from 'node:net'
import type { Duplex } from 'node:stream'
import { type WebSocket, WebSocketServer } from 'ws'
import type { JsonObject } from '../../src/json.ts'
import { created, NOT_OFFERED, told } from './stub-server.ts'

export interface Exchange {
  readonly method: string
  readonly params: JsonObject
  /** Counts the requests with this method, from 1. */
  readonly n: number
  readonly request: IncomingMessage
  readonly response: ServerResponse
  /** Answers as an honest server would. */
  readonly honestly: () => void
  readonly answer: (message: JsonObject, status?: number, headers?: Record<string, string>) => void
}

export interface HostileOptions {
  /** Instead of the honest answer, by method. */
  readonly on?: Readonly<Record<string, (exchange: Exchange) => void | Promise<void>>>
  /** More of a task as it is created. */
  readonly seed?: JsonObject
  readonly websocket?: 'door' | 'none'
  readonly sse?: boolean
  /** Sees each socket that opens. */
  readonly onSocket?: (socket: WebSocket, request: IncomingMessage) => void
  /** `false`: opens sockets and streams, and never tells anything after the first snapshot. */
  readonly tells?: boolean
}

export interface HostileServer {
  readonly url: string
  /** Every request: the method of a message, or `upgrade`. */
  readonly log: readonly string[]
  count(method: string): number
  /** Changes a task, and tells whoever listens. */
  set(taskId: string, status: string, more?: JsonObject): void
  /** Breaks all sockets and streams that are open for push. */
  dropPush(): void
  readonly sockets: ReadonlySet<WebSocket>
  close(): Promise<void>
}

/** The lifetime of a stream is that of its response. */
interface Stream {
  readonly response: ServerResponse
  readonly requestId: unknown
  readonly taskIds: readonly string[]
}

const ENDED: ReadonlySet<unknown> = new Set(['completed', 'failed', 'cancelled'])

export async function hostileServer(options: HostileOptions = {}): Promise<HostileServer> {
  const tasks = new Map<string, JsonObject>()
  const log: string[] = []
  const streams = new Set<Stream>()
  const sockets = new Map<WebSocket, string>()
  let changes = 0
  let lastTask = 0
  const count = (method: string) => log.filter((entry) => entry === method).length

  function push(taskId: string, isFirst: boolean): void {
    if (options.tells === false && !isFirst) return
    const { resultType: _, ...task } = tasks.get(taskId) ?? {}
    for (const stream of streams) {
      if (!stream.taskIds.includes(taskId)) continue
      const meta = { 'io.modelcontextprotocol/subscriptionId': stream.requestId as number }
      send(stream.response, {
        jsonrpc: '2.0',
        method: 'notifications/tasks',
        params: { ...task, _meta: meta },
      })
      if (stream.taskIds.every((id) => ENDED.has(tasks.get(id)?.['status']))) {
        send(stream.response, {
          jsonrpc: '2.0',
          id: stream.requestId as number,
          result: { resultType: 'complete' },
        })
        stream.response.end()
      }
    }
    for (const [socket, id] of sockets) {
      if (id !== taskId) continue
      socket.send(JSON.stringify({ jsonrpc: '2.0', method: 'notifications/tasks', params: task }))
      if (ENDED.has(task['status'])) socket.close(1000)
    }
  }

  function set(taskId: string, status: string, more: JsonObject = {}): void {
    const lastUpdatedAt = new Date(Date.UTC(2026, 10, 29) + ++changes).toISOString()
    tasks.set(taskId, { ...told(status), pollIntervalMs: 20, lastUpdatedAt, ...more, taskId })
    push(taskId, false)
  }

  function honestAnswer(method: string, params: JsonObject): JsonObject {
    const taskId = typeof params['taskId'] === 'string' ? params['taskId'] : ''
    const task = tasks.get(taskId)
    const unknown = { error: { code: -32602, message: 'Task not found.' } }
    switch (method) {
      case 'tools/call': {
        const id = `tsk_${++lastTask}`
        set(id, 'working', options.seed)
        return { result: { ...created(), ...tasks.get(id), resultType: 'task' } }
      }
      case 'tasks/get':
        return task ? { result: task } : unknown
      case 'tasks/update':
      case 'tasks/cancel':
        return task ? { result: { resultType: 'complete' } } : unknown
      default:
        return NOT_OFFERED
    }
  }

  function listen(id: unknown, params: JsonObject, response: ServerResponse): void {
    const wanted = (params['notifications'] as { taskIds?: string[] } | undefined)?.taskIds ?? []
    const taskIds = wanted.filter((taskId) => tasks.has(taskId))
    response.writeHead(200, { 'content-type': 'text/event-stream' })
    send(response, {
      jsonrpc: '2.0',
      method: 'notifications/subscriptions/acknowledged',
      params: { notifications: { taskIds } },
    })
    const stream = { response, requestId: id, taskIds }
    streams.add(stream)
    response.on('close', () => streams.delete(stream))
    for (const taskId of taskIds) push(taskId, true)
  }

  const server = createServer((request, response) => {
    void (async () => {
      let body = ''
      for await (const chunk of request) body += String(chunk)
      const {
        id,
        method,
        params = {},
      } = JSON.parse(body) as { id: number; method: string; params?: JsonObject }
      log.push(method)
      const answer: Exchange['answer'] = (message, status = 200, headers = {}) => {
        response.writeHead(status, { 'content-type': 'application/json', ...headers })
        response.end(JSON.stringify({ jsonrpc: '2.0', id, ...message }))
      }
      const honestly = () => {
        if (method === 'subscriptions/listen' && options.sse) return listen(id, params, response)
        answer(honestAnswer(method, params))
      }
      const hostility = options.on?.[method]
      if (!hostility) return honestly()
      await hostility({ method, params, n: count(method), request, response, honestly, answer })
    })()
  })

  const door = new WebSocketServer({ noServer: true, handleProtocols: () => 'mcp' })
  server.on('upgrade', (request: IncomingMessage, socket: Duplex, head: Buffer) => {
    log.push('upgrade')
    const taskId = /^\/mcp\/tasks\/([^/?]+)$/.exec(request.url ?? '')?.[1] ?? ''
    if (options.websocket !== 'door' || !tasks.has(taskId)) {
      socket.end('HTTP/1.1 404 Not Found\r\ncontent-length: 0\r\nconnection: close\r\n\r\n')
      return
    }
    door.handleUpgrade(request, socket, head, (webSocket) => {
      sockets.set(webSocket, taskId)
      webSocket.on('close', () => sockets.delete(webSocket))
      webSocket.on('message', (data: Buffer) => {
        if (data.toString() === 'ping') webSocket.send('pong')
      })
      const params = { notifications: { taskIds: [taskId] } }
      const method = 'notifications/subscriptions/acknowledged'
      webSocket.send(JSON.stringify({ jsonrpc: '2.0', method, params }))
      push(taskId, true)
      options.onSocket?.(webSocket, request)
    })
  })

  await new Promise<void>((resolve) => server.listen(0, '127.0.0.1', resolve))
  // Listening on a port, so its address is one.
  const { port } = server.address() as AddressInfo
  const dropPush = () => {
    for (const { response } of streams) response.destroy()
    for (const socket of sockets.keys()) socket.terminate()
  }
  return {
    url: `http://127.0.0.1:${port}/mcp`,
    log,
    count,
    set,
    dropPush,
    get sockets() {
      return new Set(sockets.keys())
    },
    close: () =>
      new Promise((resolve) => {
        dropPush()
        door.close()
        server.close(() => resolve())
        server.closeAllConnections()
      }),
  }
}

function send(response: ServerResponse, message: JsonObject): void {
  response.write(`data: ${JSON.stringify(message)}\n\n`)
}
