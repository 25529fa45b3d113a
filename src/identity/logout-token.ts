// The logout token of OpenID Connect Back-Channel Logout 1.0: a provider says that a person's session there has ended. Whoever can reach the
// gateway can post one, so everything that is cheap to check is checked before a key is fetched.
import { constants, createPublicKey, verify, type webcrypto } from 'node:crypto'
import { Fault } from '../kernel/fault.ts'

export type Jwk = webcrypto.JsonWebKey & { readonly kid?: string; readonly use?: string; readonly alg?: string }

export interface LogoutClaims {
  readonly id: string
  readonly issuer: string
  readonly subject: string | undefined
  readonly sid: string | undefined
}

interface Expected {
  readonly issuer: string
  readonly clientId: string
  readonly nowSeconds: number
  readonly keys: (kid: string | undefined) => Promise<readonly Jwk[]>
}

const TOKEN_CHARS_MAX = 16_384
/** A logout is told at once; an old token is one that somebody kept. */
export const LOGOUT_MINUTES_MAX = 5
const SKEW_SECONDS = 30
const EVENT = 'http://schemas.openid.net/event/backchannel-logout'

/** The key's type, the hash, and what else the signature needs. `none` and shared secrets are not among them. */
const ALGORITHMS: Readonly<Record<string, readonly [kty: string, hash: string | null, options: object]>> = {
  RS256: ['RSA', 'sha256', {}],
  RS384: ['RSA', 'sha384', {}],
  RS512: ['RSA', 'sha512', {}],
  PS256: ['RSA', 'sha256', { padding: constants.RSA_PKCS1_PSS_PADDING, saltLength: 32 }],
  PS384: ['RSA', 'sha384', { padding: constants.RSA_PKCS1_PSS_PADDING, saltLength: 48 }],
  PS512: ['RSA', 'sha512', { padding: constants.RSA_PKCS1_PSS_PADDING, saltLength: 64 }],
  ES256: ['EC', 'sha256', { dsaEncoding: 'ieee-p1363' }],
  ES384: ['EC', 'sha384', { dsaEncoding: 'ieee-p1363' }],
  ES512: ['EC', 'sha512', { dsaEncoding: 'ieee-p1363' }],
  EdDSA: ['OKP', null, {}],
}

export async function checkLogoutToken(token: string, expected: Expected): Promise<LogoutClaims> {
  if (token.length > TOKEN_CHARS_MAX) throw notAccepted('too long')
  const [head = '', body = '', signature = '', ...more] = token.split('.')
  if (more.length > 0) throw notAccepted('not a JWT')
  const header = objectOf(head)
  const claims = checkClaims(objectOf(body), expected)
  if (typeof header.alg !== 'string' || !Object.hasOwn(ALGORITHMS, header.alg)) throw notAccepted('algorithm')
  if (header.crit !== undefined) throw notAccepted('critical header')
  const [kty, hash, options] = ALGORITHMS[header.alg]! // It is one of them.
  const kid = typeof header.kid === 'string' ? header.kid : undefined
  const fits = (key: Jwk) =>
    key.kty === kty &&
    (kid === undefined || key.kid === kid) &&
    (key.use === undefined || key.use === 'sig') &&
    (key.alg === undefined || key.alg === header.alg)
  const signed = Buffer.from(`${head}.${body}`)
  for (const key of (await expected.keys(kid)).filter(fits))
    if (isSigned(key, { hash, options, signed, signature: Buffer.from(signature, 'base64url') })) return claims
  throw notAccepted('signature')
}

function isSigned(
  key: Jwk,
  { hash, options, signed, signature }: { hash: string | null; options: object; signed: Buffer; signature: Buffer },
): boolean {
  try {
    return verify(hash, signed, { key: createPublicKey({ key, format: 'jwk' }), ...options }, signature)
  } catch {
    return false // A key that cannot be read signs nothing.
  }
}

function checkClaims(
  claims: Readonly<Record<string, unknown>>,
  { issuer, clientId, nowSeconds }: Expected,
): LogoutClaims {
  const { iss, aud, iat, exp, jti, events, nonce, sub, sid } = claims
  const audiences: unknown[] = Array.isArray(aud) ? aud : [aud]
  // Providers for several tenants describe themselves with a placeholder.
  const isIssuer =
    typeof iss === 'string' && (iss === issuer || iss === issuer.replace('{tenantid}', String(claims.tid)))
  if (!isIssuer) throw notAccepted('issuer')
  if (!audiences.includes(clientId)) throw notAccepted('audience')
  if (typeof iat !== 'number' || Math.abs(nowSeconds - iat) > LOGOUT_MINUTES_MAX * 60) throw notAccepted('time')
  if (exp !== undefined && (typeof exp !== 'number' || exp < nowSeconds - SKEW_SECONDS)) throw notAccepted('expired')
  if (typeof jti !== 'string' || jti === '') throw notAccepted('id')
  // An ID token is not a logout token, though the same key signs both.
  if (typeof events !== 'object' || events === null || !(EVENT in events) || nonce !== undefined)
    throw notAccepted('no logout token')
  if (typeof sub !== 'string' && typeof sid !== 'string') throw notAccepted('whose')
  const text = (value: unknown) => (typeof value === 'string' ? value : undefined)
  return { id: jti, issuer: iss, subject: text(sub), sid: text(sid) }
}

function objectOf(part: string): Record<string, unknown> {
  try {
    const value: unknown = JSON.parse(Buffer.from(part, 'base64url').toString('utf8'))
    if (typeof value === 'object' && value !== null && !Array.isArray(value)) return value as Record<string, unknown> // Just checked.
  } catch {
    // It is said below.
  }
  throw notAccepted('not JSON')
}

function notAccepted(why: string): Fault {
  return new Fault('request_invalid', { message: 'This logout token was not accepted.', internal: { why } })
}
