// OpenID Connect by openid-client: the authorization code flow with PKCE, nonce, state and `iss`. Every address of a
// provider, also those in its metadata, is checked by the SSRF guard.

import { constants, createPublicKey, verify, type webcrypto } from 'node:crypto'
import type { Configuration, CustomFetchOptions } from 'openid-client'
import { Fault } from '../../kernel/fault.ts'
import { readJson } from '../../kernel/json.ts'
import type { World } from '../../kernel/world.ts'
import type { GuardedFetch } from '../../upstream/guard.ts'

/** The part of a provider that the protocol needs. */
export interface OidcClient {
  readonly id: string
  readonly issuer: string
  readonly clientId: string
  readonly secret: string | undefined
  readonly scopes: readonly string[]
  readonly groupsClaim: string
  /** Changes whenever one of the above does. */
  readonly version: string
}

/** The values that bind the login to the browser. */
export interface Journey {
  readonly state: string
  readonly nonce: string
  readonly verifier: string
  readonly redirectUri: string
  /** The provider must authenticate the person again. */
  readonly again: boolean
}

export interface Claims {
  readonly issuer: string
  readonly subject: string
  readonly email: string | undefined
  readonly emailVerified: boolean
  readonly groups: readonly string[]
  readonly sid: string | undefined
}

export type Oidc = ReturnType<typeof createOidc>

const ANSWER_BYTES_MAX = 1_000_000
const TIMEOUT_SECONDS = 15
/** Providers rotate their keys and move their endpoints seldom. */
const CONFIGURATION_MS = 3_600_000
const KEYS_MS = 300_000
const KEYS_AGAIN_MS = 10_000
/** How far the clocks of the provider and this machine may differ. */
const CLOCK_TOLERANCE_SECONDS = 30
/** With "again", the provider's login must be this young. */
const AGAIN_SECONDS = 60
const GROUPS_MAX = 5_000

export function createOidc({ world, guard }: { world: World; guard: Pick<GuardedFetch, 'request'> }) {
  const configurations = new Map<string, { version: string; atMs: number; made: Promise<Configuration> }>()
  const keys = new Map<string, { uri: string; atMs: number; keys: readonly Jwk[] }>()
  // Loaded at first use, because most gateways never need it.
  const library = () => import('openid-client')

  async function guardedFetch(url: string, { method, headers, body, signal }: CustomFetchOptions): Promise<Response> {
    const text = body === undefined || body === null ? undefined : String(body) // It sends forms and nothing else.
    const call = { method: method === 'POST' ? ('POST' as const) : ('GET' as const), url, headers, body: text }
    const answer = await guard.request(call, {
      bytesMax: ANSWER_BYTES_MAX,
      signal: signal ?? AbortSignal.timeout(TIMEOUT_SECONDS * 1000),
    })
    const hasBody = answer.status !== 204 && answer.status !== 304
    return new Response(hasBody ? new Uint8Array(answer.body) : null, {
      status: answer.status,
      headers: { ...answer.headers },
    })
  }

  async function discover({ issuer, clientId, secret }: OidcClient): Promise<Configuration> {
    const client = await library()
    const plain = new URL(issuer).protocol === 'http:' // Only of this machine itself: providers.ts refuses others.
    const metadata = { [client.clockTolerance]: CLOCK_TOLERANCE_SECONDS }
    const configuration = await client.discovery(
      new URL(issuer),
      clientId,
      metadata,
      // The specification's default is the header; some providers take only the body.
      (as, ...rest) => {
        const methods = as.token_endpoint_auth_methods_supported ?? ['client_secret_basic']
        if (secret === undefined) return client.None()(as, ...rest)
        const how = methods.includes('client_secret_basic') ? client.ClientSecretBasic : client.ClientSecretPost
        return how(secret)(as, ...rest)
      },
      {
        [client.customFetch]: guardedFetch,
        timeout: TIMEOUT_SECONDS,
        execute: [client.enableNonRepudiationChecks, ...(plain ? [client.allowInsecureRequests] : [])],
      },
    )
    // People are sent there; the library checks only the addresses that it fetches itself.
    const { protocol, hostname } = new URL(configuration.serverMetadata().authorization_endpoint ?? '')
    if (protocol !== 'https:' && !(plain && protocol === 'http:' && hostname === new URL(issuer).hostname))
      throw new Error('Its authorization address is not https.')
    return configuration
  }

  function configurationOf(provider: OidcClient): Promise<Configuration> {
    const known = configurations.get(provider.id)
    const isFresh = known && world.elapsedMs() - known.atMs < CONFIGURATION_MS
    if (known && isFresh && known.version === provider.version) return known.made
    const made = discover(provider).catch((cause: unknown) => {
      configurations.delete(provider.id) // The next one tries again.
      throw new Fault('upstream_failed', {
        message: 'The login provider does not answer as expected. Try again, or sign in another way.',
        internal: { provider: provider.id, ...whyOf(cause) },
        cause,
      })
    })
    configurations.set(provider.id, { version: provider.version, atMs: world.elapsedMs(), made })
    return made
  }

  /** The provider's signing keys; fetched again if a token names an unknown one. */
  async function keysOf(provider: OidcClient, kid: string | undefined): Promise<readonly Jwk[]> {
    const uri = (await configurationOf(provider)).serverMetadata().jwks_uri ?? ''
    const known = keys.get(provider.id)
    const age = known?.uri === uri ? world.elapsedMs() - known.atMs : Number.POSITIVE_INFINITY
    const has = kid === undefined || known?.keys.some((key) => key.kid === kid)
    if (known && age < (has ? KEYS_MS : KEYS_AGAIN_MS)) return known.keys
    const signal = AbortSignal.timeout(TIMEOUT_SECONDS * 1000)
    const headers = { accept: 'application/json' }
    const { body } = await guard.request({ method: 'GET', url: uri, headers }, { bytesMax: ANSWER_BYTES_MAX, signal })
    const { value } = readJson(body)
    const given = typeof value === 'object' && value !== null && 'keys' in value ? value.keys : undefined
    const found = Array.isArray(given) ? (given.filter((key) => typeof key === 'object' && key !== null) as Jwk[]) : [] // The check of a token looks at each field.
    keys.set(provider.id, { uri, atMs: world.elapsedMs(), keys: found })
    return found
  }

  return {
    /** Returns the provider's address for the browser. Throws upstream_failed if the provider does not answer. */
    async begin(
      provider: OidcClient,
      redirectUri: string,
      { again }: { again: boolean },
    ): Promise<Journey & { readonly url: string }> {
      const client = await library()
      const configuration = await configurationOf(provider)
      const [state, nonce, verifier] = [client.randomState(), client.randomNonce(), client.randomPKCECodeVerifier()]
      const url = client.buildAuthorizationUrl(configuration, {
        redirect_uri: redirectUri,
        scope: provider.scopes.join(' '),
        state,
        nonce,
        code_challenge: await client.calculatePKCECodeChallenge(verifier),
        code_challenge_method: 'S256',
        ...(again ? { prompt: 'login', max_age: '0' } : {}),
      })
      return { state, nonce, verifier, redirectUri, again, url: url.href }
    },

    /** Returns who has signed in. Throws access_denied unless everything matches the started login. */
    async finish(
      provider: OidcClient,
      parameters: string,
      { state, nonce, verifier, redirectUri, again }: Journey,
    ): Promise<Claims> {
      const client = await library()
      const configuration = await configurationOf(provider)
      try {
        const tokens = await client.authorizationCodeGrant(configuration, new URL(`${redirectUri}?${parameters}`), {
          expectedState: state,
          expectedNonce: nonce,
          pkceCodeVerifier: verifier,
          ...(again ? { maxAge: AGAIN_SECONDS } : {}),
        })
        const token = tokens.claims()
        if (!token) throw new Error('there is no ID token')
        const lacking = token.email === undefined || token[provider.groupsClaim] === undefined
        const hasMore = lacking && configuration.serverMetadata().userinfo_endpoint !== undefined
        const more = hasMore ? await client.fetchUserInfo(configuration, tokens.access_token, token.sub) : {}
        return claimsOf({ ...more, ...token }, provider.groupsClaim)
      } catch (error) {
        throw refused(provider, error)
      }
    },

    /** Throws access_denied if the token is not the provider's. */
    async readLogout(provider: OidcClient, token: string): Promise<LogoutClaims> {
      const configuration = await configurationOf(provider)
      return checkLogoutToken(token, {
        issuer: configuration.serverMetadata().issuer,
        clientId: provider.clientId,
        nowSeconds: world.nowMs() / 1000,
        keys: (kid) => keysOf(provider, kid),
      })
    },

    /** Returns what is wrong with the provider, as a sentence; undefined: nothing. */
    async problem(provider: OidcClient): Promise<string | undefined> {
      try {
        const metadata = (await discover(provider)).serverMetadata()
        if (!metadata.authorization_endpoint || !metadata.token_endpoint || !metadata.jwks_uri)
          return 'Its metadata lacks an authorization, token or key address.'
        return undefined
      } catch (error) {
        const { why } = whyOf(error)
        return `Its metadata could not be read at ${provider.issuer}: ${why}`
      }
    },
  }
}

/**
 * Entra ID has no `email_verified`; it says instead whether the address is of a domain that the tenant has verified.
 */
const ENTRA =
  /^https:\/\/(?:login\.microsoftonline\.com|login\.microsoftonline\.us|login\.partner\.microsoftonline\.cn)\//

function claimsOf(claims: Readonly<Record<string, unknown>>, groupsClaim: string): Claims {
  const text = (value: unknown, charsMax: number) =>
    typeof value === 'string' && value.length <= charsMax && value.isWellFormed() ? value : undefined
  const issuer = text(claims.iss, 500)
  const subject = text(claims.sub, 255)
  if (!issuer || !subject) throw new Error('there is no issuer or subject')
  const edov = claims.xms_edov
  const isEntraVerified = ENTRA.test(issuer) && (edov === true || edov === 1 || edov === '1' || edov === 'true')
  const given = claims[groupsClaim]
  const groups = Array.isArray(given) ? given : typeof given === 'string' ? [given] : []
  return {
    issuer,
    subject,
    email: text(claims.email, 254)?.trim().toLowerCase(),
    emailVerified: claims.email_verified === true || isEntraVerified,
    groups: groups.slice(0, GROUPS_MAX).flatMap((group) => text(group, 500) ?? []),
    sid: text(claims.sid, 255),
  }
}

function refused(provider: OidcClient, error: unknown): Fault {
  const { why, code } = whyOf(error)
  const internal = { provider: provider.id, why, code }
  // The OAuth error code of the provider.
  const said = code === 'OAUTH_AUTHORIZATION_RESPONSE_ERROR' && error instanceof Error && 'error' in error
  if (said && error.error === 'access_denied')
    return new Fault('access_denied', { message: 'The sign-in was cancelled at the provider.', internal })
  return new Fault('access_denied', {
    message: 'The provider’s answer was not accepted. Start the sign-in again.',
    internal,
    cause: error,
  })
}

/** For the log, and for the operator who tests a provider; the library's messages hold no secrets. */
function whyOf(error: unknown): { why: string; code: string | undefined } {
  const cause = error instanceof Error && error.cause instanceof Fault ? error.cause : error
  const inner = cause instanceof Fault ? (cause.details.internal?.why ?? cause.message) : undefined
  const code = error instanceof Error && 'code' in error ? String(error.code) : undefined
  return { why: String(inner ?? (error instanceof Error ? error.message : error)), code }
}

// The logout token of OpenID Connect Back-Channel Logout 1.0: a provider says that a person's session there has ended.
// Anyone who can reach the gateway can post one, so everything that is cheap to check is checked before a key is
// fetched.

type Jwk = webcrypto.JsonWebKey & { readonly kid?: string; readonly use?: string; readonly alg?: string }

interface LogoutClaims {
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
/** Providers send logouts at once, so an older token is a replay. */
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

async function checkLogoutToken(token: string, expected: Expected): Promise<LogoutClaims> {
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
