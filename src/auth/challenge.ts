/**
 * The `WWW-Authenticate` header: what a client learns from a refusal, and where it may get a token.
 * Pure: parameters in, header text out.
 *
 * @see RFC 6750 section 3 (the Bearer challenge), RFC 9728 section 5.1 (`resource_metadata`)
 */

export interface Challenge {
  /** Absent when the request carried no credential: RFC 6750 section 3.1 wants no error code then. */
  readonly error?: 'invalid_token' | 'insufficient_scope'
  readonly description?: string
  /** Scopes that the request needs, all of them. */
  readonly scopes?: readonly string[]
  /** Address of the protected resource metadata, when this server takes tokens. */
  readonly metadataUrl?: string | undefined
  /** Names the server where nothing else does: a challenge must have at least one parameter. */
  readonly realm: string
}

export function challengeHeader({ error, description, scopes, metadataUrl, realm }: Challenge): string {
  const parameters = [
    ...(metadataUrl === undefined ? [['realm', realm]] : [['resource_metadata', metadataUrl]]),
    ...(error === undefined ? [] : [['error', error]]),
    ...(error === undefined || description === undefined ? [] : [['error_description', description]]),
    ...(scopes === undefined || scopes.length === 0 ? [] : [['scope', scopes.join(' ')]]),
  ]
  return `Bearer ${parameters.map(([name, value]) => `${name}="${quotable(value ?? '')}"`).join(', ')}`
}

/** RFC 6750 section 3: printable ASCII without the quote and the backslash. Others would end the value early. */
function quotable(text: string): string {
  return text.replaceAll(/["\\]/g, "'").replaceAll(/[^\x20-\x7E]/g, '?')
}
