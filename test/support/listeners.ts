/** Clients that listen to tasks over real connections, which can be cut, paused and counted. */
import { type ClientRequest, type IncomingMessage, request } from 'node:http'
import { createParser } from 'eventsource-parser'
import { vi } from 'vitest'
import { type RawData, WebSocket } from 'ws'

// The wire is what is under test: nothing is assumed about it.
// oxlint-disable-next-line typescript/no-explicit-any
export type Message = any

const PATIENCE_MS = 20_000

/** The counted part of a status text: `Counting (3/8)` is 3. */
export function counted(messages: readonly Message[]): number[] {
  return messages
    .flatMap(
      ({ params }) => /\((\d+)\/\d+\)$/.exec(params?.statusMessage ?? params?.message ?? '')?.[1] ?? [],
    )
    .map(Number)
}

/** One buffer, as `ws` delivers a message unless it is told otherwise. */
export function textOf(data: RawData): string {
  return Array.isArray(data) ? '' : new TextDecoder().decode(data)
}

class Received {
  readonly messages: Message[] = []

  next(matching: (message: Message) => boolean): Promise<Message> {
    return vi.waitUntil(() => this.messages.find(matching), { timeout: PATIENCE_MS, interval: 10 })
  }
}

/** A POST on a connection of its own, whose answer may be an event stream. */
export class Stream extends Received {
  readonly comments: string[] = []
  status = 0
  /** `clean`: the response came to its end; `cut`: the connection did. */
  over: 'clean' | 'cut' | undefined
  readonly #request: ClientRequest

  private constructor(sent: ClientRequest) {
    super()
    this.#request = sent
  }

  /** Resolves with the status line. */
  static async open(url: string, headers: Record<string, string>, body: unknown): Promise<Stream> {
    const sent = request(`${url}/mcp`, { method: 'POST', headers, agent: false })
    const stream = new Stream(sent)
    const answered = new Promise<IncomingMessage>((resolve, reject) => {
      sent.once('response', resolve)
      sent.once('error', reject)
    })
    sent.end(JSON.stringify(body))
    const response = await answered
    sent.on('error', () => (stream.over ??= 'cut'))
    stream.status = response.statusCode ?? 0
    const parser = createParser({
      onEvent: ({ data }) => void stream.messages.push(JSON.parse(data)),
      onComment: (comment) => void stream.comments.push(comment),
    })
    response.setEncoding('utf8')
    response.on('data', (chunk: string) => parser.feed(chunk))
    response.on('end', () => (stream.over ??= 'clean'))
    response.on('error', () => (stream.over ??= 'cut'))
    return stream
  }

  /** Gone without a word. */
  vanish(): void {
    this.#request.destroy()
  }

  ended(): Promise<'clean' | 'cut'> {
    return vi.waitUntil(() => this.over, { timeout: PATIENCE_MS, interval: 10 })
  }
}

/** A client at a task's door. */
export class Door extends Received {
  closed: number | undefined
  readonly socket: WebSocket

  private constructor(socket: WebSocket) {
    super()
    this.socket = socket
    socket.on('message', (data) => {
      const text = textOf(data)
      this.messages.push(text === 'pong' ? text : JSON.parse(text))
    })
    socket.on('close', (code) => (this.closed = code))
    socket.on('error', () => undefined)
  }

  static async open(url: string, taskId: string, headers: Record<string, string> = {}): Promise<Door> {
    const door = new Door(new WebSocket(`${url.replace(/^http/, 'ws')}/mcp/tasks/${taskId}`, { headers }))
    await new Promise((resolve, reject) => {
      door.socket.once('open', resolve)
      door.socket.once('error', reject)
    })
    return door
  }

  async ask(method: string, params: Record<string, unknown>): Promise<Message> {
    const id = crypto.randomUUID()
    this.socket.send(JSON.stringify({ jsonrpc: '2.0', id, method, params }))
    return (await this.next((message) => message.id === id)).result
  }

  /** The code the server closes with. The local runtime keeps the connection for seconds after the close frame. */
  async untilClosed(): Promise<number> {
    await vi.waitUntil(() => this.socket.readyState !== WebSocket.OPEN, {
      timeout: PATIENCE_MS,
      interval: 10,
    })
    this.socket.terminate()
    return vi.waitUntil(() => this.closed, { timeout: PATIENCE_MS, interval: 10 })
  }
}
