/** Who is calling. */

export interface Principal {
  /** Owns tasks. Every task method checks it. */
  readonly tenant: string
  /** The person or machine within the tenant, for the tool's own use. */
  readonly subject: string
  readonly scopes: readonly string[]
  /** When the credentials end, in milliseconds since the epoch; not set when they do not. */
  readonly expiresAt?: number
}
