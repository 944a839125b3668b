/** Who is calling, and what an attempt to find out may come to. */

export interface Principal {
  /** Owns tasks. Every task method checks it. */
  readonly tenant: string
  /** The person or machine within the tenant, for the tool's own use. */
  readonly subject: string
  /** What it was granted. An identity that is not limited by scopes holds all that this server knows. */
  readonly scopes: readonly string[]
  /** When the credentials end, in milliseconds since the epoch; not set when they do not. */
  readonly expiresAt?: number
}

export type Authentication = { readonly ok: true; readonly principal: Principal } | AuthenticationRefusal

export interface AuthenticationRefusal {
  readonly ok: false
  /** 401: another credential may help. 403: the identity is known, but has no place here. 503: it cannot be told now. */
  readonly status: 401 | 403 | 503
  readonly message: string
  /** RFC 6750 section 3.1; only when a credential was given. */
  readonly error?: 'invalid_token'
  readonly retryAfterSeconds?: number
}

/**
 * One way of telling who is calling. `undefined` when the request carries no credential of its kind,
 * so that another may look; a bad credential of its kind is refused for good.
 */
export type Authenticator = (request: Request) => Promise<Authentication | undefined>

/** RFC 6750 section 2.1. Tokens in the address or the body are not looked at. */
export function bearerOf(request: Request): string | undefined {
  return /^Bearer +(\S+) *$/i.exec(request.headers.get('authorization') ?? '')?.[1]
}
