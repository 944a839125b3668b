/**
 * What is checked of every HTTP request before anything looks at its content: Host, Origin, content
 * type and size. A web page must not reach tools through a visitor's browser (DNS rebinding).
 */
import { isJsonContentType, validateHostHeader, validateOriginHeader } from '@modelcontextprotocol/server'

export interface DoorOptions {
  /** Only this machine is served: the open local mode has no password. */
  readonly localOnly: boolean
  readonly allowedHosts?: string | undefined
  readonly allowedOrigins?: string | undefined
  /**
   * A page that tells its address to nobody (`Referrer-Policy: no-referrer`) does not tell its origin
   * either: browsers send its forms with `Origin: null`.
   */
  readonly nullOrigin?: boolean
}

export interface Refusal {
  readonly status: 403 | 413 | 415
  readonly message: string
}

const LOCAL_NAMES = ['localhost', '127.0.0.1', '[::1]']

export function checkOrigin(request: Request, options: DoorOptions): Refusal | undefined {
  const host = request.headers.get('host') ?? new URL(request.url).host
  const hosts = options.localOnly ? LOCAL_NAMES : list(options.allowedHosts)
  if (hosts.length > 0) {
    const checked = validateHostHeader(host, hosts)
    if (!checked.ok)
      return { status: 403, message: `${checked.message}. This server does not answer to that name.` }
  }
  const origin = request.headers.get('origin')
  if (options.nullOrigin === true && origin === 'null') return undefined
  if (origin === null || sameHost(origin, host)) return undefined
  const allowed = list(options.allowedOrigins)
  if (allowed.includes(origin)) return undefined
  if (options.localOnly && validateOriginHeader(origin, LOCAL_NAMES).ok) return undefined
  return {
    status: 403,
    message: `Web pages from ${origin} may not call this server. Add it to ALLOWED_ORIGINS.`,
  }
}

export function checkContentType(request: Request): Refusal | undefined {
  if (isJsonContentType(request.headers.get('content-type'))) return undefined
  return { status: 415, message: 'Content-Type must be application/json.' }
}

export function checkFormType(request: Request): Refusal | undefined {
  const type = request.headers.get('content-type')?.split(';')[0]?.trim().toLowerCase()
  if (type === 'application/x-www-form-urlencoded') return undefined
  return { status: 415, message: 'Content-Type must be application/x-www-form-urlencoded.' }
}

/** The body as text, or a refusal when it is larger than `maxBytes`. Nothing beyond the limit is read. */
export async function readBody(request: Request, maxBytes: number): Promise<string | Refusal> {
  const tooLarge: Refusal = { status: 413, message: `The request body is larger than ${maxBytes} bytes.` }
  const length = request.headers.get('content-length')
  if (length !== null) return Number(length) > maxBytes ? tooLarge : request.text()
  if (!request.body) return ''
  const decoder = new TextDecoder()
  let text = ''
  let bytes = 0
  for await (const chunk of request.body as ReadableStream<Uint8Array>) {
    bytes += chunk.byteLength
    if (bytes > maxBytes) return tooLarge
    text += decoder.decode(chunk, { stream: true })
  }
  return text + decoder.decode()
}

function list(commas: string | undefined): string[] {
  return (commas ?? '')
    .split(',')
    .map((item) => item.trim())
    .filter(Boolean)
}

function sameHost(origin: string, host: string): boolean {
  try {
    return new URL(origin).host === host
  } catch {
    return false
  }
}
