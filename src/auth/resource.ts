/**
 * This server as an OAuth protected resource: its name for tokens, and the metadata document from
 * which a client learns where to get them. Pure.
 *
 * @see RFC 9728; MCP 2026-07-28, Authorization Server Discovery
 */
import { getOAuthProtectedResourceMetadataUrl } from '@modelcontextprotocol/server'

export const METADATA_PATH = '/.well-known/oauth-protected-resource'
const ENDPOINT = '/mcp'

export interface ResourceOptions {
  readonly name: string
  /** The authorization server. Without one there is nothing to discover. */
  readonly issuer: string | undefined
  /** What a client should ask for to begin with; more is asked for step by step. */
  readonly scopes: readonly string[]
}

export interface ProtectedResource {
  readonly metadataUrl: string
  /** RFC 9728 section 2. */
  readonly metadata: {
    readonly resource: string
    readonly resource_name: string
    readonly authorization_servers: readonly [string]
    readonly bearer_methods_supported: readonly ['header']
    readonly scopes_supported?: readonly string[]
  }
}

/**
 * The same document is served at the root and at the path of the endpoint (the order in which
 * clients look). `resource` is the endpoint in both: a client compares it with the address it called
 * (RFC 9728 section 3.3), and tokens need one audience only.
 */
export function protectedResource(
  baseUrl: string,
  { name, issuer, scopes }: ResourceOptions,
): ProtectedResource | undefined {
  if (issuer === undefined) return undefined
  const endpoint = new URL(ENDPOINT, baseUrl)
  return {
    metadataUrl: getOAuthProtectedResourceMetadataUrl(endpoint),
    metadata: {
      resource: endpoint.href,
      resource_name: name,
      authorization_servers: [issuer],
      bearer_methods_supported: ['header'],
      ...(scopes.length > 0 && { scopes_supported: scopes }),
    },
  }
}
