/**
 * A small HTTP/1.1 client over kept-alive sockets, for load: it costs a fraction of what `fetch` does,
 * so that on a small machine the server is what is measured. It reads what this Worker sends: bodies
 * with a length, or in chunks.
 */
import { connect } from 'node:net'

const HEADER_END = Buffer.from('\r\n\r\n')

/** One socket; one request at a time. */
export class Connection {
  #socket
  #received = Buffer.alloc(0)
  #answered
  #failed

  /** @param {URL} url */
  static async open(url) {
    const connection = new Connection()
    const socket = connect(Number(url.port), url.hostname)
    connection.#socket = socket
    await new Promise((resolve, reject) => {
      socket.once('connect', resolve)
      socket.once('error', reject)
    })
    socket.setNoDelay(true)
    socket.on('data', (data) => connection.#take(data))
    socket.on('error', (error) => connection.#failed?.(error))
    socket.on('close', () => connection.#failed?.(new Error('The server closed the connection.')))
    return connection
  }

  /**
   * @param {Buffer} request as it goes over the wire
   * @returns {Promise<{ status: number, body: string }>}
   */
  send(request) {
    return new Promise((resolve, reject) => {
      this.#answered = resolve
      this.#failed = reject
      if (this.#socket.destroyed) reject(new Error('The server has closed the connection.'))
      this.#socket.write(request)
    })
  }

  close() {
    this.#failed = undefined
    this.#socket.destroy()
  }

  #take(data) {
    this.#received = this.#received.length === 0 ? data : Buffer.concat([this.#received, data])
    const response = parse(this.#received)
    if (!response) return
    this.#received = Buffer.alloc(0)
    this.#failed = undefined
    this.#answered?.(response)
  }
}

/** The response, once it is there as a whole. */
function parse(received) {
  const headerEnd = received.indexOf(HEADER_END)
  if (headerEnd < 0) return undefined
  const head = received.latin1Slice(0, headerEnd)
  const rest = received.subarray(headerEnd + HEADER_END.length)
  const status = Number(head.slice(9, 12))
  const length = /\r\ncontent-length: *(\d+)/i.exec(head)?.[1]
  if (length !== undefined) {
    return rest.length < Number(length) ? undefined : { status, body: rest.utf8Slice(0, Number(length)) }
  }
  if (!/\r\ntransfer-encoding: *chunked/i.test(head)) return { status, body: '' }
  const body = unchunk(rest)
  return body === undefined ? undefined : { status, body }
}

function unchunk(bytes) {
  const parts = []
  for (let at = 0; ;) {
    const lineEnd = bytes.indexOf('\r\n', at)
    if (lineEnd < 0) return undefined
    const size = Number.parseInt(bytes.latin1Slice(at, lineEnd), 16)
    const end = lineEnd + 2 + size
    if (bytes.length < end + 2) return undefined
    if (size === 0) return Buffer.concat(parts).toString()
    parts.push(bytes.subarray(lineEnd + 2, end))
    at = end + 2
  }
}

/**
 * A POST request as bytes, made once and sent many times.
 * @param {URL} url
 * @param {Record<string, string>} headers
 */
export function post(url, headers, body) {
  const lines = Object.entries({
    host: url.host,
    'content-length': String(Buffer.byteLength(body)),
    ...headers,
  }).map(([name, value]) => `${name}: ${value}\r\n`)
  return Buffer.from(`POST ${url.pathname} HTTP/1.1\r\n${lines.join('')}\r\n${body}`)
}
