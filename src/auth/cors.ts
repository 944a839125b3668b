/**
 * What browsers are told about calls from other origins. Pure. Only origins that the door let in get
 * here; each is named, never `*`, and credentials (cookies) are never allowed.
 *
 * @see https://fetch.spec.whatwg.org/#http-cors-protocol
 */

const METHODS = 'GET, POST'
const EXPOSED = 'Mcp-Session-Id, WWW-Authenticate, Retry-After'
const PREFLIGHT_SECONDS = 7_200

const REQUEST_HEADERS = new Set([
  'accept',
  'authorization',
  'content-type',
  'idempotency-key',
  'last-event-id',
  'mcp-method',
  'mcp-name',
  'mcp-protocol-version',
  'mcp-session-id',
  'traceparent',
  'tracestate',
])

/** A browser asks before it sends the request itself. */
export function isPreflight(request: Request): boolean {
  return (
    request.method === 'OPTIONS' &&
    request.headers.has('origin') &&
    request.headers.has('access-control-request-method')
  )
}

export function preflightResponse(request: Request): Response {
  const asked = (request.headers.get('access-control-request-headers') ?? '')
    .split(',')
    .map((name) => name.trim().toLowerCase())
  // Parameters that a tool mirrors into headers have names of the tool's own.
  const allowed = asked.filter((name) => REQUEST_HEADERS.has(name) || /^mcp-param-[a-z0-9-]+$/.test(name))
  return new Response(null, {
    status: 204,
    headers: {
      ...corsHeaders(request.headers.get('origin')),
      'access-control-allow-methods': METHODS,
      'access-control-allow-headers': allowed.join(', '),
      'access-control-max-age': String(PREFLIGHT_SECONDS),
      vary: 'Origin, Access-Control-Request-Headers',
    },
  })
}

/** For every other response to an origin that the door let in. */
export function corsHeaders(origin: string | null): Record<string, string> {
  if (origin === null) return {}
  return { 'access-control-allow-origin': origin, 'access-control-expose-headers': EXPOSED }
}
