/**
 * `GET /mcp/tasks/:taskId` with `Upgrade: websocket`: a client's own connection to a task.
 *
 * Browsers cannot set headers on a WebSocket, so the key or token may come as a subprotocol:
 * `new WebSocket(url, ['mcp', 'longhaul.bearer.' + base64url(token)])`. Unlike a ticket in the address
 * it needs no extra round trip and is not written to access logs.
 */
import { BASIC_SCOPES, covers } from '../auth/scopes'
import { refuseCaller, refuseScopes } from '../mcp/refuse'
import { connect, type Services } from '../mcp/services'

const SUBPROTOCOL = 'mcp'
const BEARER = 'longhaul.bearer.'

export async function answerDoor(request: Request, taskId: string, services: Services): Promise<Response> {
  if (request.headers.get('upgrade')?.toLowerCase() !== 'websocket') {
    return Response.json(
      { error: 'This address is a WebSocket: connect with "Upgrade: websocket".' },
      { status: 426, headers: { upgrade: 'websocket' } },
    )
  }
  const offered = (request.headers.get('sec-websocket-protocol') ?? '').split(',').map((name) => name.trim())
  const caller = await authenticateSocket(request, offered, services.authenticate)
  if (!caller.ok) return refuseCaller(request, caller, services)
  const { tenant, scopes, expiresAt } = caller.principal
  // It carries answers and cancellations as well as news.
  if (!covers(scopes, BASIC_SCOPES)) return refuseScopes(request, undefined, BASIC_SCOPES, services)
  const known = await services.ids.accept(tenant, taskId)
  const response = known ? await connect(services.env, taskId, 'door', tenant, expiresAt) : undefined
  if (!response?.webSocket) return Response.json({ error: 'Task not found.' }, { status: 404 })
  return new Response(null, {
    status: 101,
    webSocket: response.webSocket,
    headers: offered.includes(SUBPROTOCOL) ? { 'sec-websocket-protocol': SUBPROTOCOL } : {},
  })
}

function authenticateSocket(
  request: Request,
  offered: readonly string[],
  authenticate: Services['authenticate'],
) {
  const bearer = offered.find((name) => name.startsWith(BEARER))?.slice(BEARER.length)
  if (bearer === undefined) return authenticate(request)
  const headers = new Headers(request.headers)
  headers.set('authorization', `Bearer ${decode(bearer)}`)
  return authenticate(new Request(request.url, { headers }))
}

/** Base64url of what an Authorization header can carry; anything else is a wrong token. */
function decode(text: string): string {
  try {
    const token = atob(text.replaceAll('-', '+').replaceAll('_', '/'))
    return /^[\x21-\x7E]+$/.test(token) ? token : '?'
  } catch {
    return '?'
  }
}
