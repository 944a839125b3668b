/** The names of the wire, revision 2026-07-28: what server and client must spell alike. Imports nothing. */
export const REVISION = '2026-07-28'
export const TASKS_EXTENSION = 'io.modelcontextprotocol/tasks'
export const META_PROTOCOL_VERSION = 'io.modelcontextprotocol/protocolVersion'
export const META_CLIENT_CAPABILITIES = 'io.modelcontextprotocol/clientCapabilities'
export const META_CLIENT_INFO = 'io.modelcontextprotocol/clientInfo'
export const META_SERVER_INFO = 'io.modelcontextprotocol/serverInfo'
export const META_SUBSCRIPTION_ID = 'io.modelcontextprotocol/subscriptionId'
/** `_meta` key of a call that may be retried: the same key, tool and arguments get the same task. */
export const META_IDEMPOTENCY_KEY = 'longhaul.dev/idempotencyKey'

export const PARSE_ERROR = -32700
export const INVALID_REQUEST = -32600
export const METHOD_NOT_FOUND = -32601
export const INVALID_PARAMS = -32602
export const INTERNAL_ERROR = -32603
/** MCP 2026-07-28: a routing header is missing or disagrees with the body. */
export const HEADER_MISMATCH = -32020
export const MISSING_CLIENT_CAPABILITY = -32021
export const UNSUPPORTED_PROTOCOL_VERSION = -32022
