/**
 * The least a client of revision 2026-07-28 needs: one POST per request, and nothing kept in between.
 * No library, so that everything that travels can be read here.
 */
const REVISION = '2026-07-28'

/** What this client can do: hold tasks, and put a form before a user. */
const CAPABILITIES = { extensions: { 'io.modelcontextprotocol/tasks': {} }, elicitation: {} }

const REQUEST_LIMIT_MS = 30_000

let nextId = 0

/**
 * @param {string} url of the server, without `/mcp`
 * @param {string} method
 * @param {Record<string, unknown>} [params]
 * @returns {Promise<any>} the `result`
 * @throws when the server answers with an error, or not at all.
 */
export async function request(url, method, params = {}) {
  const name = params['name'] ?? params['taskId']
  const response = await fetch(`${url}/mcp`, {
    method: 'POST',
    headers: {
      'content-type': 'application/json',
      accept: 'application/json, text/event-stream',
      'mcp-protocol-version': REVISION,
      'mcp-method': method,
      ...(typeof name === 'string' && { 'mcp-name': name }),
    },
    body: JSON.stringify({
      jsonrpc: '2.0',
      id: ++nextId,
      method,
      params: {
        ...params,
        _meta: {
          'io.modelcontextprotocol/protocolVersion': REVISION,
          'io.modelcontextprotocol/clientCapabilities': CAPABILITIES,
        },
      },
    }),
    signal: AbortSignal.timeout(REQUEST_LIMIT_MS),
  })
  const text = await response.text()
  let message
  try {
    message = JSON.parse(text)
  } catch {
    throw new Error(`${method}: HTTP ${response.status}, and no JSON: ${text.slice(0, 200)}`)
  }
  if (message.error) throw new Error(`${method}: error ${message.error.code}: ${message.error.message}`)
  return message.result
}
