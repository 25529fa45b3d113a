// Our authorization server: OAuth 2.1 for programs that act for a person, such as hosted agents. The library keeps the protocol's rules; what
// is ours is said here. A code for PKCE with S256, tokens for one resource (/mcp), short access tokens, refresh tokens that are exchanged with each
// use, and a person who consents each time.
import { createPrivateKey } from 'node:crypto'
import Provider, { errors, type RequestContext } from 'oidc-provider'
import { tokenDigest } from '../admission/api-key.ts'
import { type Database, statement } from '../database/database.ts'
import { Fault } from '../kernel/fault.ts'
import type { Log } from '../kernel/log.ts'
import type { Secrets } from '../kernel/secret.ts'
import { logFault } from '../server/server.ts'
import type { GuardedFetch } from '../upstream/guard.ts'
import { createResourceName, mayRedirectTo, resourceOf, SCOPE } from './connections.ts'

export interface AuthorityDeps extends AdapterDeps {
  readonly secrets: Secrets
  readonly guard: Pick<GuardedFetch, 'download'>
  /** Whether a program's own document may be fetched now from this address. */
  readonly mayFetch: (url: string) => boolean
  readonly log: Log
  /** The paths of what tokens are for. */
  readonly resources: readonly string[]
}

const ROUTES = {
  authorization: '/oauth/authorize',
  token: '/oauth/token',
  registration: '/oauth/register',
  revocation: '/oauth/revoke',
  jwks: '/oauth/jwks',
} as const

const MINUTE = 60
const DAY = 86_400
const TTL = {
  AccessToken: 10 * MINUTE,
  AuthorizationCode: MINUTE,
  RefreshToken: 30 * DAY,
  Grant: 365 * DAY,
  Interaction: 15 * MINUTE,
  Session: 15 * MINUTE,
} as const
const DOCUMENT_BYTES_MAX = 10_240
const SCOPES = ['offline_access', SCOPE]
/** How a code is sent back. A form or a fragment would need a page of ours, or scripts of theirs, for nothing that a query cannot do. */
const RESPONSE_MODE = 'query'

export function createAuthority(issuer: string, deps: AuthorityDeps): Provider {
  const key = deps.secrets.key('oauth')
  const documents = createClientDocuments(deps.database)
  const nameOf = createResourceName(issuer, deps.resources)
  /** A code or a refresh token is good once: a request that asks for something else must not use it up. */
  function beforeConsume(): void {
    const params = Provider.ctx?.oidc.params
    if (params?.resource === undefined) return
    params.resource = nameOf(params.resource)
    if (params.resource !== resourceOf(issuer)) throw new errors.InvalidTarget()
  }
  const provider = new Provider(issuer, {
    adapter: createAdapter(deps, beforeConsume),
    routes: ROUTES,
    ttl: TTL,
    jwks: { keys: [signingKey(key)] },
    cookies: {
      keys: [key.toString('base64url')],
      names: { session: 'tg_oauth_session', interaction: 'tg_oauth_consent', resume: 'tg_oauth_resume' },
      long: { httpOnly: true, sameSite: 'lax', signed: true },
      short: { httpOnly: true, sameSite: 'lax', signed: true },
    },
    // Programs on people's machines and hosted ones alike cannot keep a secret that everybody may register.
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
      // Nothing is allowed by an earlier consent: which account and how much is asked each time.
      const grant = oidc.result?.consent?.grantId
      return grant === undefined ? undefined : oidc.provider.Grant.find(grant)
    },
    interactions: { url: (_: unknown, { uid }: { uid: string }) => `/console/api/connect/${uid}` },
    fetch: (url: string) => findDocument(url, documents, deps),
    fetchResponseBodyLimits: { 'client_id metadata document': DOCUMENT_BYTES_MAX },
    renderError,
    features: featuresOf(issuer),
  })
  // Who is asked under which name is known, and not read from what a request says; the routes put it there.
  provider.proxy = true
  provider.use(async (context, next) => {
    if (context.path === ROUTES.authorization) {
      const { scope, resource, ...others } = context.query
      for (const name of OF_OPENID) delete others[name]
      context.query = { ...others, scope: scopeOf(scope), ...(resource && { resource: nameOf(resource) }) }
    }
    await next()
    // The library names all that it could do.
    if (context.path.startsWith('/.well-known/') && context.status === 200)
      context.body = { ...context.body, scopes_supported: SCOPES, response_modes_supported: [RESPONSE_MODE] }
  })
  provider.on('authorization.error', keepHere)
  provider.on('server_error', (context, error) => {
    keepHere(context, error)
    logFault(new Fault('internal', { cause: error }), String(context.res.getHeader('x-request-id')), deps.log)
  })
  return provider
}

/**
 * Anybody may register an address, so that nobody is sent to it by a link alone (RFC 9700, 4.11.2): until a person has answered, what is wrong is
 * said on a page.
 */
function keepHere({ oidc }: RequestContext, error: Error & { allow_redirect?: boolean }): void {
  if (oidc.entities.Interaction?.result === undefined) error.allow_redirect = false
}

/** What belongs to `openid`: a program that asks for that sends these along, and the library refuses them without it. */
const OF_OPENID = ['acr_values', 'claims', 'claims_locales', 'id_token_hint', 'max_age', 'nonce']

/**
 * A program that names no scope wants what there is. `openid` is known to the library whatever it is told, and nobody can grant it: the consent would be
 * asked for again after each Allow.
 */
function scopeOf(asked: string | string[] | undefined): string | string[] {
  if (Array.isArray(asked)) return asked
  const scopes = (asked ?? '').split(' ').filter((scope) => scope !== '' && scope !== 'openid')
  return scopes.join(' ') || SCOPE
}

function checkRedirectUris(_context: unknown, _name: string, uris: unknown): void {
  // What is no list of addresses, the library refuses.
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
  return {
    devInteractions: { enabled: false },
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
      defaultResource: () => resource,
      useGrantedResource: () => true,
      getResourceServerInfo(_: unknown, asked: string) {
        if (asked !== resource) throw new errors.InvalidTarget()
        return { scope: SCOPE, audience: resource, accessTokenFormat: 'opaque', accessTokenTTL: TTL.AccessToken }
      },
    },
  }
}

/** The library wants a key to sign with, though nothing is signed that anybody is given. All processes have the same. */
function signingKey(seed: Buffer): object {
  // An Ed25519 key in PKCS 8 is these sixteen bytes and its seed.
  const key = Buffer.concat([Buffer.from('302e020100300506032b657004220420', 'hex'), seed.subarray(0, 32)])
  return { ...createPrivateKey({ key, format: 'der', type: 'pkcs8' }).export({ format: 'jwk' }), use: 'sig' }
}

/** As it is now; where that cannot be known, or is asked for too often, the last good one of a program that somebody has allowed. */
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

/** A program may name itself by the address of a document about it: a stranger's address, fetched by the rules for such. */
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
  // Not along redirects: its host vouches for it, and many hosts send visitors on to wherever a link says.
  const { contentType } = await guard.download(url, keep, { bytesMax: DOCUMENT_BYTES_MAX, signal, redirectsMax: 0 })
  const text = Buffer.concat(pieces).toString()
  if (isAbout(text, url)) await documents.keep(url, { text, contentType })
  return new Response(text, { headers: { 'content-type': contentType } })
}

/** What is no document about this program is not a good one. */
function isAbout(text: string, url: string): boolean {
  try {
    return (JSON.parse(text) as { client_id?: unknown } | null)?.client_id === url // A stranger's JSON, of which one member is compared.
  } catch {
    return false
  }
}

interface Page {
  status: number
  type: string
  body: string
}

/** For the person whose browser was sent here with something wrong; it must not go on to an address that nobody vouches for. */
function renderError(page: Page, out: { error: string; error_description?: string }): void {
  // Some errors are made for a redirect, and have its status.
  page.status = Math.max(page.status, 400)
  page.type = 'text/plain; charset=utf-8'
  page.body = `This connection could not be made: ${out.error}${out.error_description ? `, ${out.error_description}` : ''}.`
}

// Where the library for OAuth keeps what it must not forget: in our database, so that any process goes on with what another began. Ids of
// codes and tokens are secrets, and only their digests are written.

type Payload = Record<string, unknown> & { grantId?: string; jti?: string }

interface Row {
  readonly payload: Payload
  readonly consumed: number | null
}

/** Whoever registers and never connects is forgotten; a program that is in use is written anew with each grant. */
const CLIENT_SECONDS = 86_400

const UPSERT = statement(
  'oauth_upsert',
  `insert into oauth_object (model, digest, payload, grant_id, expires_at, origin)
   values ($1, $2, $3, $4, now() + make_interval(secs => $5), $6)
   on conflict (model, digest) do update set payload = excluded.payload, grant_id = excluded.grant_id, expires_at = excluded.expires_at`,
)
const LIVES = `(o.expires_at is null or o.expires_at > now())`
const SELECT = `select o.payload, extract(epoch from o.consumed_at)::float8 as consumed from oauth_object o`
const FIND = statement('oauth_find', `${SELECT} where o.model = $1 and o.digest = $2 and ${LIVES}`)
// A grant lives as long as the key that it is listed as.
const FIND_GRANT = statement(
  'oauth_find_grant',
  `${SELECT} join api_key k on k.grant_id = $3 where o.model = $1 and o.digest = $2 and ${LIVES}
   and (k.revoked_at is null or k.revoked_at > now()) and (k.expires_at is null or k.expires_at > now())`,
)
// Of two that come at once, one finds it unused.
const CONSUME = statement(
  'oauth_consume',
  'update oauth_object set consumed_at = now() where model = $1 and digest = $2 and consumed_at is null returning 1',
)
const DESTROY = statement('oauth_destroy', 'delete from oauth_object where model = $1 and digest = $2')
const REVOKE = statement('oauth_revoke', 'delete from oauth_object where grant_id = $1')
const KEEP_CLIENT = statement(
  'oauth_keep_client',
  `update oauth_object set expires_at = greatest(expires_at, now() + make_interval(secs => $2))
   where model in ('Client', 'ClientDocument') and digest = $1`,
)
/** A document is kept for a consent that is under way, and from then on as long as the grant. */
const DOCUMENT_SECONDS = 900
const KEEP_DOCUMENT = statement(
  'oauth_keep_document',
  `insert into oauth_object (model, digest, payload, expires_at)
   values ('ClientDocument', $1, $2, now() + make_interval(secs => $3))
   on conflict (model, digest) do update set payload = excluded.payload,
     expires_at = greatest(oauth_object.expires_at, excluded.expires_at)`,
)

interface AdapterDeps {
  readonly database: Database
  /** The key of a grant ends with it. */
  readonly revoked: (grant: string) => Promise<void>
  /** Every process forgets the tokens that it knows. */
  readonly forget: () => Promise<void>
  /** The network address of whoever asks; undefined for a person at the console. */
  readonly origin: () => string | undefined
}

/** The last good document of each program that names itself by one. */
interface ClientDocuments {
  keep(url: string, document: ClientDocument): Promise<void>
  find(url: string): Promise<ClientDocument | undefined>
}

interface ClientDocument {
  readonly text: string
  readonly contentType: string
}

function createClientDocuments(database: Database): ClientDocuments {
  return {
    async keep(url, document) {
      await database.query(KEEP_DOCUMENT, [tokenDigest(url), JSON.stringify(document), DOCUMENT_SECONDS])
    },
    async find(url) {
      const [row] = await database.query<{ payload: ClientDocument }>(FIND, ['ClientDocument', tokenDigest(url)])
      return row?.payload
    },
  }
}

function createAdapter({ database, revoked, forget, origin }: AdapterDeps, beforeConsume: () => void) {
  return (model: string) => ({
    async upsert(id: string, payload: Payload, seconds: number | undefined): Promise<void> {
      const { jti: _, ...kept } = payload
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
      const isGrant = model === 'Grant'
      const values = [model, tokenDigest(id), ...(isGrant ? [id] : [])]
      const [row] = await database.query<Row>(isGrant ? FIND_GRANT : FIND, values)
      return row && shown(row, id)
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

/** What the database cannot keep is the fault of whoever sent it. */
function keepable(_: string, value: unknown): unknown {
  if (typeof value === 'string' && (value.includes('\0') || !value.isWellFormed()))
    throw new errors.InvalidRequest('a value has a NUL character or half of a surrogate pair')
  return value
}

function shown({ payload, consumed }: Row, id: string): Payload {
  return { ...payload, jti: id, ...(consumed === null ? {} : { consumed }) }
}
