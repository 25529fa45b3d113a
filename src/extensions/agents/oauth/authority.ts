// Our authorization server: OAuth 2.1 for programs that act for a person, such as hosted agents. The library enforces
// the protocol; this file sets our policy: authorization codes with PKCE (S256) for the tools (/mcp), device codes for
// the models too, short-lived access tokens, refresh tokens that rotate with each use, and a person's consent each
// time.
import { createPrivateKey } from 'node:crypto'
import Provider, { errors, type RequestContext } from 'oidc-provider'
import { tokenDigest } from '../../../admission/api-key.ts'
import { logFault } from '../../../api/server/envelope.ts'
import { type Database, sql } from '../../../database/database.ts'
import type { CoreParts } from '../../../extension.ts'
import { Fault } from '../../../kernel/fault.ts'
import type { World } from '../../../kernel/world.ts'
import { createMinuteBudget } from '../../../upstream/budget.ts'
import type { GuardedFetch } from '../../../upstream/guard.ts'
import { apiOf, createResourceName, mayRedirectTo, resourceOf, SCOPE } from './connections.ts'
import { API_SCOPE, createUserCodes } from './device.ts'

export interface AuthorityDeps extends Pick<CoreParts, 'secrets' | 'log'>, Omit<AdapterDeps, 'userCode'> {
  readonly guard: Pick<GuardedFetch, 'download'>
  /** Whether the rate limits allow fetching a program's metadata document from this address now. */
  readonly mayFetch: (url: string) => boolean
  /** The paths that tokens give access to. */
  readonly resources: readonly string[]
}

const ROUTES = {
  authorization: '/oauth/authorize',
  token: '/oauth/token',
  registration: '/oauth/register',
  revocation: '/oauth/revoke',
  jwks: '/oauth/jwks',
  device_authorization: '/oauth/device',
  // A page of the console. The library's own pages are not reachable.
  code_verification: '/console/device',
} as const

const MINUTE = 60
const DAY = 86_400
const TOOLS_SECONDS = 10 * MINUTE
/**
 * Some programs read their token only when they start, so it lasts for a while. A person who leaves ends it at once all
 * the same.
 */
const API_SECONDS = 60 * MINUTE
const TTL = {
  AccessToken: (_: unknown, { resourceServer }: { resourceServer?: { accessTokenTTL: number } }) =>
    resourceServer?.accessTokenTTL ?? TOOLS_SECONDS,
  DeviceCode: 10 * MINUTE,
  AuthorizationCode: MINUTE,
  RefreshToken: 30 * DAY,
  Grant: 365 * DAY,
  Interaction: 15 * MINUTE,
  Session: 15 * MINUTE,
} as const
const DOCUMENT_BYTES_MAX = 10_240
const SCOPES = ['offline_access', SCOPE, API_SCOPE]
/** Of one device code. It is told to ask every five seconds. */
const POLLS_PER_MINUTE = 20
/**
 * How the code is returned. Other modes (form, fragment) would need a page of ours or scripts of the program, and offer
 * nothing more.
 */
const RESPONSE_MODE = 'query'

export function createAuthority(issuer: string, deps: AuthorityDeps): Provider {
  const key = deps.secrets.key('oauth')
  const documents = createClientDocuments(deps.database)
  const nameOf = createResourceName(issuer, deps.resources)
  /**
   * A code or a refresh token can be used once, so a request for another resource is rejected before it consumes one.
   */
  function beforeConsume(): void {
    const params = Provider.ctx?.oidc.params
    if (params?.resource === undefined) return
    params.resource = nameOf(params.resource)
    if (params.resource !== resourceOf(issuer) && params.resource !== apiOf(issuer)) throw new errors.InvalidTarget()
  }
  const polls = createMinuteBudget(deps.world, POLLS_PER_MINUTE)
  function beforeFind(model: string, digest: Buffer): void {
    if (model === 'DeviceCode' && polls.spend(digest.toString('base64'), 1) !== undefined) throw new errors.SlowDown()
  }
  const provider = new Provider(issuer, {
    adapter: createAdapter({ ...deps, userCode: createUserCodes(key) }, { beforeFind, beforeConsume }),
    routes: ROUTES,
    ttl: TTL,
    jwks: { keys: [signingKey(key)] },
    cookies: {
      keys: [key.toString('base64url')],
      names: { session: 'tg_oauth_session', interaction: 'tg_oauth_consent', resume: 'tg_oauth_resume' },
      long: { httpOnly: true, sameSite: 'lax', signed: true },
      short: { httpOnly: true, sameSite: 'lax', signed: true },
    },
    // All clients are public: anybody may register, and neither local nor hosted programs could keep a secret.
    clientAuthMethods: ['none'],
    clientDefaults: {
      token_endpoint_auth_method: 'none',
      application_type: 'native',
      grant_types: ['authorization_code', 'refresh_token'],
      response_types: ['code'],
      id_token_signed_response_alg: 'EdDSA',
    },
    enabledJWA: { idTokenSigningAlgValues: ['EdDSA'] },
    responseTypes: ['code'],
    scopes: SCOPES,
    claims: {},
    pkce: { required: () => true },
    extraClientMetadata: { properties: ['redirect_uris'], validator: checkRedirectUris },
    extraParams: {
      response_mode(_: unknown, mode: string | undefined) {
        if (mode !== undefined && mode !== RESPONSE_MODE) throw new errors.UnsupportedResponseMode()
      },
    },
    rotateRefreshToken: true,
    expiresWithSession: () => false,
    issueRefreshToken: (_: unknown, client: { grantTypeAllowed(type: string): boolean }) =>
      client.grantTypeAllowed('refresh_token'),
    clientBasedCORS: () => true,
    findAccount: (_: unknown, accountId: string) => ({ accountId, claims: () => ({ sub: accountId }) }),
    loadExistingGrant: ({ oidc }: ConsentContext) => {
      // An earlier consent is never reused: the person chooses account and limit each time.
      const grant = oidc.result?.consent?.grantId
      return grant === undefined ? undefined : oidc.provider.Grant.find(grant)
    },
    interactions: { url: (_: unknown, { uid }: { uid: string }) => `/console/api/connect/${uid}` },
    fetch: (url: string) => findDocument(url, documents, deps),
    fetchResponseBodyLimits: { 'client_id metadata document': DOCUMENT_BYTES_MAX },
    renderError,
    features: featuresOf(issuer),
  })
  // The routes set our public name as the forwarded host, so the library can trust it instead of the request's own
  // headers.
  provider.proxy = true
  provider.use(async (context, next) => {
    if (context.path === ROUTES.authorization) {
      const { scope, resource, ...others } = context.query
      for (const name of OF_OPENID) delete others[name]
      context.query = { ...others, scope: scopeOf(scope), ...(resource && { resource: nameOf(resource) }) }
    }
    await next()
    // By default the library lists all scopes and modes that it supports; only ours are published.
    if (context.path.startsWith('/.well-known/') && context.status === 200)
      context.body = {
        ...context.body,
        scopes_supported: SCOPES.filter((scope) => scope !== API_SCOPE),
        response_modes_supported: [RESPONSE_MODE],
      }
  })
  provider.on('authorization.error', keepHere)
  provider.on('server_error', (context, error) => {
    keepHere(context, error)
    logFault(new Fault('internal', { cause: error }), String(context.res.getHeader('x-request-id')), deps.log)
  })
  return provider
}

/**
 * Anybody may register a redirect address, so a link alone must not send a person there (RFC 9700, 4.11.2). Until the
 * person has answered, errors are shown on our page.
 */
function keepHere({ oidc }: RequestContext, error: Error & { allow_redirect?: boolean }): void {
  if (oidc.entities.Interaction?.result === undefined) error.allow_redirect = false
}

/**
 * Parameters that programs send together with the `openid` scope. The library rejects them without that scope, so they
 * are removed.
 */
const OF_OPENID = ['acr_values', 'claims', 'claims_locales', 'id_token_hint', 'max_age', 'nonce']

/**
 * Scopes that nobody can grant a program in this browser: the consent page would return after each Allow. The library
 * always knows `openid`.
 */
const NOT_GRANTED = ['', 'openid', API_SCOPE]

/** Without a scope, a program gets the default one. */
function scopeOf(asked: string | string[] | undefined): string | string[] {
  if (Array.isArray(asked)) return asked
  const scopes = (asked ?? '').split(' ').filter((scope) => !NOT_GRANTED.includes(scope))
  return scopes.join(' ') || SCOPE
}

function checkRedirectUris(_context: unknown, _name: string, uris: unknown): void {
  // The library rejects a value that is not a list of addresses.
  const wrong = Array.isArray(uris) ? uris.find((uri) => URL.canParse(uri) && !mayRedirectTo(new URL(uri))) : undefined
  if (wrong !== undefined)
    throw new errors.InvalidClientMetadata(
      'redirect_uris must be https addresses, http addresses of the machine itself, or of a scheme that no website can claim',
    )
}

interface ConsentContext {
  readonly oidc: { readonly provider: Provider; readonly result?: { consent?: { grantId?: string } } }
}

function featuresOf(issuer: string): Record<string, unknown> {
  const resource = resourceOf(issuer)
  const api = apiOf(issuer)
  return {
    devInteractions: { enabled: false },
    deviceFlow: { enabled: true },
    userinfo: { enabled: false },
    rpInitiatedLogout: { enabled: false },
    dPoP: { enabled: false },
    pushedAuthorizationRequests: { enabled: false },
    registration: { enabled: true, issueRegistrationAccessToken: false },
    clientIdMetadataDocument: { enabled: true, ack: 'draft-02' },
    revocation: {
      enabled: true,
      allowedPolicy: (_: unknown, client: { clientId: string }, token: { clientId: string }) =>
        token.clientId === client.clientId,
    },
    resourceIndicators: {
      enabled: true,
      defaultResource: ({ oidc }: RequestContext) => (oidc.route === 'device_authorization' ? api : resource),
      useGrantedResource: () => true,
      getResourceServerInfo({ oidc }: RequestContext, asked: string) {
        const server = { audience: asked, accessTokenFormat: 'opaque' }
        if (asked === resource) return { ...server, scope: SCOPE, accessTokenTTL: TOOLS_SECONDS }
        // Only by a device code: its page says that models may be called.
        if (asked !== api || (oidc.route !== 'token' && oidc.route !== 'device_authorization'))
          throw new errors.InvalidTarget()
        return { ...server, scope: `${API_SCOPE} ${SCOPE}`, accessTokenTTL: API_SECONDS }
      },
    },
  }
}

/** The library requires a signing key, although we issue nothing that is signed. All processes derive the same key. */
function signingKey(seed: Buffer): object {
  // An Ed25519 key in PKCS 8 is this fixed 16-byte prefix and the seed.
  const key = Buffer.concat([Buffer.from('302e020100300506032b657004220420', 'hex'), seed.subarray(0, 32)])
  return { ...createPrivateKey({ key, format: 'der', type: 'pkcs8' }).export({ format: 'jwk' }), use: 'sig' }
}

/**
 * Fetches a program's current metadata document. If that fails or is rate limited, falls back to the last good copy of
 * an authorized program.
 */
async function findDocument(
  url: string,
  documents: ClientDocuments,
  { guard, mayFetch }: AuthorityDeps,
): Promise<Response> {
  let failure: unknown = new Error('too many documents are asked for')
  if (mayFetch(url))
    try {
      return await fetchDocument(url, documents, guard)
    } catch (error) {
      failure = error
    }
  const kept = await documents.find(url)
  if (!kept) throw failure
  return new Response(kept.text, { headers: { 'content-type': kept.contentType } })
}

/**
 * Fetches the document by whose address a program identifies itself. The address comes from a stranger, so the guarded
 * fetch is used.
 */
async function fetchDocument(
  url: string,
  documents: ClientDocuments,
  guard: AuthorityDeps['guard'],
): Promise<Response> {
  const pieces: Buffer[] = []
  const keep = (piece: Buffer) => {
    pieces.push(piece)
    return undefined
  }
  const signal = AbortSignal.timeout(5_000)
  // Redirects are not followed: the host vouches for the document, and many hosts have open redirects.
  const { contentType } = await guard.download(url, keep, { bytesMax: DOCUMENT_BYTES_MAX, signal, redirectsMax: 0 })
  const text = Buffer.concat(pieces).toString()
  if (isAbout(text, url)) await documents.keep(url, { text, contentType })
  return new Response(text, { headers: { 'content-type': contentType } })
}

/** Only a document that names its own address as client_id is stored. */
function isAbout(text: string, url: string): boolean {
  try {
    return (JSON.parse(text) as { client_id?: unknown } | null)?.client_id === url // A stranger's JSON, of which only one member is compared.
  } catch {
    return false
  }
}

interface Page {
  status: number
  type: string
  body: string
}

/** Shows an error to the person whose browser was sent here. It must not redirect to an unverified address. */
function renderError(page: Page, out: { error: string; error_description?: string }): void {
  // Some errors carry the status of a redirect.
  page.status = Math.max(page.status, 400)
  page.type = 'text/plain; charset=utf-8'
  page.body = `This connection could not be made: ${out.error}${out.error_description ? `, ${out.error_description}` : ''}.`
}

// The OAuth library's storage: in our database, so that any process can continue what another one began. Ids of codes
// and tokens are secrets, so only their digests are stored.

type Payload = Record<string, unknown> & { grantId?: string; jti?: string }

interface PayloadRow {
  readonly payload: Payload
  readonly consumed: number | null
  /** Seconds. */
  readonly left: number | null
}

/** A program that registers and never connects expires after a day; each grant extends the lifetime of its program. */
const CLIENT_SECONDS = 86_400

const UPSERT = sql('oauth_upsert')`insert into oauth_object (model, digest, payload, grant_id, expires_at, origin)
   values ($1, $2, $3, $4, now() + make_interval(secs => $5), $6)
   on conflict (model, digest) do update set payload = excluded.payload, grant_id = excluded.grant_id, expires_at = excluded.expires_at`
const LIVES = `(o.expires_at is null or o.expires_at > now())`
const SELECT = `select o.payload, extract(epoch from o.consumed_at)::float8 as consumed, extract(epoch from o.expires_at - now())::float8 as left
   from oauth_object o`
const FIND = sql('oauth_find')`${SELECT} where o.model = $1 and o.digest = $2 and ${LIVES}`
// Of two concurrent uses, only one finds the row unused.
const CONSUME = sql('oauth_consume')`
  update oauth_object set consumed_at = now() where model = $1 and digest = $2 and consumed_at is null returning 1`
const DESTROY = sql('oauth_destroy')`delete from oauth_object where model = $1 and digest = $2`
const REVOKE = sql('oauth_revoke')`delete from oauth_object where grant_id = $1`
const KEEP_CLIENT = sql('oauth_keep_client')`
  update oauth_object set expires_at = greatest(expires_at, now() + make_interval(secs => $2))
   where model in ('Client', 'ClientDocument') and digest = $1`
/** A document is kept for 15 minutes while a consent is in progress, and after that as long as the grant. */
const DOCUMENT_SECONDS = 900
const KEEP_DOCUMENT = sql('oauth_keep_document')`insert into oauth_object (model, digest, payload, expires_at)
   values ('ClientDocument', $1, $2, now() + make_interval(secs => $3))
   on conflict (model, digest) do update set payload = excluded.payload,
     expires_at = greatest(oauth_object.expires_at, excluded.expires_at)`

interface AdapterDeps extends Pick<CoreParts, 'database' | 'world'> {
  /** What is stored of the code that a person types. */
  readonly userCode: (code: string) => string
  /** Revokes the key of a grant. */
  readonly revoked: (grant: string) => Promise<void>
  /** Whether its key does. */
  readonly lives: (grant: string) => Promise<boolean>
  /** Clears the cached tokens of every process. */
  readonly forget: () => Promise<void>
  /** The caller's network address; undefined for a person at the console. */
  readonly origin: () => string | undefined
}

/** The last good metadata document of each program that identifies itself by one. */
type ClientDocuments = ReturnType<typeof createClientDocuments>

interface ClientDocument {
  readonly text: string
  readonly contentType: string
}

function createClientDocuments(database: Database) {
  return {
    async keep(url: string, document: ClientDocument): Promise<void> {
      await database.query(KEEP_DOCUMENT, [tokenDigest(url), JSON.stringify(document), DOCUMENT_SECONDS])
    },
    async find(url: string): Promise<ClientDocument | undefined> {
      const [row] = await database.query<{ payload: ClientDocument }>(FIND, ['ClientDocument', tokenDigest(url)])
      return row?.payload
    },
  }
}

interface Checks {
  readonly beforeFind: (model: string, digest: Buffer) => void
  readonly beforeConsume: () => void
}

function createAdapter(deps: AdapterDeps, { beforeFind, beforeConsume }: Checks) {
  const { database, revoked, forget, origin } = deps
  return (model: string) => ({
    async upsert(id: string, payload: Payload, seconds: number | undefined): Promise<void> {
      const { jti: _, ...kept } = payload
      if (typeof kept.userCode === 'string') kept.userCode = deps.userCode(kept.userCode)
      const lasts = seconds ?? (model === 'Client' ? CLIENT_SECONDS : null)
      await database.query(UPSERT, [
        model,
        tokenDigest(id),
        JSON.stringify(kept, keepable),
        payload.grantId ?? null,
        lasts,
        origin() ?? null,
      ])
      if (model === 'Grant') await database.query(KEEP_CLIENT, [tokenDigest(String(payload.clientId)), seconds ?? 0])
    },
    async find(id: string): Promise<Payload | undefined> {
      beforeFind(model, tokenDigest(id))
      if (model === 'Grant' && !(await deps.lives(id))) return undefined
      const [row] = await database.query<PayloadRow>(FIND, [model, tokenDigest(id)])
      return row && payloadOf(row, id, deps.world)
    },
    async consume(id: string): Promise<void> {
      beforeConsume()
      const [mine] = await database.query(CONSUME, [model, tokenDigest(id)])
      if (!mine) throw new errors.InvalidGrant('it was used before')
    },
    async destroy(id: string): Promise<void> {
      await database.query(DESTROY, [model, tokenDigest(id)])
      if (model === 'AccessToken') await forget()
      if (model === 'Grant') await revoked(id)
    },
    async revokeByGrantId(grant: string): Promise<void> {
      await database.query(REVOKE, [grant])
      await revoked(grant)
    },
  })
}

/** A value that the database cannot store is rejected as the client's error. */
function keepable(_: string, value: unknown): unknown {
  if (typeof value === 'string' && (value.includes('\0') || !value.isWellFormed()))
    throw new errors.InvalidRequest('a value has a NUL character or half of a surrogate pair')
  return value
}

/**
 * The database says when it ends: the process that wrote it may have had another time than this one, by which the
 * library checks.
 */
function payloadOf({ payload, consumed, left }: PayloadRow, id: string, world: World): Payload {
  const exp = left === null ? {} : { exp: Math.floor(world.nowMs() / 1000 + left) }
  return { ...payload, ...exp, jti: id, ...(consumed === null ? {} : { consumed }) }
}
