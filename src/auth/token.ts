/**
 * Bearer tokens that are JWTs: is it signed by the issuer, is it meant for us, is it of now; and whose
 * is it? The token itself goes no further than this file.
 *
 * @see RFC 9068 section 4 (JWT access tokens), RFC 8725 (JWT best practices), RFC 6750 section 3.1
 */
import { decodeJwt, errors, type JWTPayload, jwtVerify, type JWTHeaderParameters } from 'jose'
import { isObject } from '../json'
import { KeysUnavailableError } from './jwks'
import { type Authentication, type AuthenticationRefusal, type Authenticator, bearerOf } from './principal'
import type { TokenSource } from './sources'

/** Clocks differ. */
const CLOCK_TOLERANCE_SECONDS = 30
const MAX_TOKEN_CHARS = 16 * 1024
const MAX_NAME_CHARS = 256
const RETRY_AFTER_SECONDS = 5
/** Signed, but for other purposes: logout tokens, security events, proofs (RFC 8725 section 3.11). */
const TYPES: ReadonlySet<unknown> = new Set([undefined, 'jwt', 'at+jwt', 'application/at+jwt'])

/** What the rest of the configuration says about the tokens of a source. */
export interface TokenContext {
  /** What an identity holds that is not limited by scopes. */
  readonly everything: readonly string[]
  /** Tenants that are somebody else's: no token may claim them by its subject. */
  readonly reserved: ReadonlySet<string>
}

export function byToken(source: TokenSource, context: TokenContext): Authenticator {
  return async (request) => {
    const token = tokenOf(request, source.header)
    if (token === undefined) return undefined
    const verified = await verify(token, source)
    return verified.ok ? principalOf(verified.claims, source, context) : verified
  }
}

/** The token, when there is one of this kind: a bearer that is no JWT may be an API key. */
function tokenOf(request: Request, header: TokenSource['header']): string | undefined {
  if (header === 'authorization') {
    const bearer = bearerOf(request)
    return bearer !== undefined && bearer.split('.').length === 3 ? bearer : undefined
  }
  return request.headers.get(header)?.trim() || undefined
}

type Verified = { readonly ok: true; readonly claims: JWTPayload } | AuthenticationRefusal

async function verify(token: string, source: TokenSource): Promise<Verified> {
  if (token.length > MAX_TOKEN_CHARS) return invalid('The token is too long.')
  try {
    // Not trusted yet: it only spares the issuer's keys a look for tokens that are not its own.
    if (decodeJwt(token).iss !== source.issuer) return invalid(FOREIGN)
    const { payload, protectedHeader } = await jwtVerify(token, source.keys.find, {
      issuer: source.issuer,
      audience: [...source.audience],
      algorithms: [...source.algorithms],
      clockTolerance: CLOCK_TOLERANCE_SECONDS,
      requiredClaims: ['exp'],
    })
    const problem = unsuitable(protectedHeader, payload)
    return problem === undefined ? { ok: true, claims: payload } : invalid(problem)
  } catch (error) {
    if (error instanceof errors.JOSEError) return invalid(sentenceFor(error))
    // The issuer's fault or ours, not the caller's; in any case nobody gets in.
    const reason = error instanceof KeysUnavailableError ? error.message : 'its keys cannot be used'
    return {
      ok: false,
      status: 503,
      message: `Tokens of ${source.issuer} cannot be checked now (${reason}). Try again soon.`,
      retryAfterSeconds: RETRY_AFTER_SECONDS,
    }
  }
}

/** Valid, and still not for us. */
function unsuitable({ typ }: JWTHeaderParameters, claims: JWTPayload): string | undefined {
  if (!TYPES.has(typ?.toLowerCase())) return 'The token is not an access token: its "typ" says so.'
  // RFC 9449 section 7.2: accepting it as a plain bearer token would undo the binding.
  if (claims['cnf'] !== undefined) {
    return 'The token is bound to a proof of possession ("cnf"), which this server cannot check.'
  }
  return undefined
}

/** Pure: who a verified token is. */
export function principalOf(
  claims: JWTPayload,
  source: Pick<TokenSource, 'subjectClaims' | 'tenantClaim' | 'scoped'>,
  { everything, reserved }: TokenContext,
): Authentication {
  const subject = source.subjectClaims.map((name) => claims[name]).find(isName)
  if (subject === undefined) return invalid('The token has no usable subject ("sub").')
  const tenant = source.tenantClaim === undefined ? subject : claimAt(claims, source.tenantClaim)
  if (!isName(tenant)) {
    return noPlace(`The token has no usable claim "${source.tenantClaim}", which names the tenant here.`)
  }
  if (source.tenantClaim === undefined && reserved.has(tenant)) {
    return noPlace(
      'The subject of the token is the name of another tenant. Set TENANT_CLAIM if they are the same.',
    )
  }
  const scopes = source.scoped ? scopesOf(claims) : everything
  // Verified tokens have one; without it this one has ended already. So long it is accepted.
  const expiresAt = ((claims.exp ?? 0) + CLOCK_TOLERANCE_SECONDS) * 1000
  return { ok: true, principal: { tenant, subject, scopes, expiresAt } }
}

/** A claim by its name, or by a path of names with dots. */
function claimAt(claims: JWTPayload, path: string): unknown {
  if (Object.hasOwn(claims, path)) return claims[path]
  return path
    .split('.')
    .reduce<unknown>(
      (value, name) => (isObject(value) && Object.hasOwn(value, name) ? value[name] : undefined),
      claims,
    )
}

/** `scope` is a text with spaces (RFC 9068 section 2.2.3); some issuers send a list, or call it `scp`. */
function scopesOf(claims: JWTPayload): readonly string[] {
  const value = claims['scope'] ?? claims['scp']
  const words: unknown[] = typeof value === 'string' ? value.split(' ') : Array.isArray(value) ? value : []
  return words.filter((word) => typeof word === 'string' && word !== '').map(String)
}

/** A text that stays the same text in storage, in headers and in signatures. */
function isName(value: unknown): value is string {
  if (typeof value !== 'string' || value === '' || value.length > MAX_NAME_CHARS) return false
  return value.isWellFormed() && !/\p{Cc}/u.test(value)
}

function invalid(message: string): AuthenticationRefusal {
  return { ok: false, status: 401, message, error: 'invalid_token' }
}

function noPlace(message: string): AuthenticationRefusal {
  return { ok: false, status: 403, message }
}

const FOREIGN = 'The token is of another issuer than the one this server trusts.'

/** Says what is wrong, without repeating what the token says. */
function sentenceFor(error: errors.JOSEError): string {
  if (error instanceof errors.JWTExpired) return 'The token has expired.'
  if (error instanceof errors.JWTClaimValidationFailed) {
    switch (error.claim) {
      case 'aud':
        return 'The token is meant for another audience.'
      case 'nbf':
        return 'The token is not valid yet.'
      case 'iss':
        return FOREIGN
      default:
        return `The claim "${error.claim}" of the token is missing or not as it should be.`
    }
  }
  if (error instanceof errors.JOSEAlgNotAllowed)
    return 'The signature algorithm of the token is not accepted.'
  if (error instanceof errors.JWKSNoMatchingKey)
    return 'The key of the token is not one its issuer publishes.'
  if (error instanceof errors.JWKSMultipleMatchingKeys) {
    return 'The token does not say which key ("kid") it was signed with, and its issuer has several.'
  }
  if (error instanceof errors.JWSSignatureVerificationFailed)
    return 'The signature of the token is not right.'
  return 'The token is not a valid JWT.'
}
