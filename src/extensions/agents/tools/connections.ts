// Sign-ins of people at foreign MCP servers: OAuth by authorization code with PKCE. What a server says of its sign-in
// is a stranger's: each address goes through the guard, and each document is bounded. Tokens are sealed, sent only to
// the address they were given for, and used for calls of their owner alone.
import type {
  AuthorizationServerMetadata,
  OAuthClientInformationMixed,
  OAuthTokens,
} from '@modelcontextprotocol/client'
import type { By } from '../../../database/audit.ts'
import { openByAccount } from '../../../database/by-account.ts'
import { type Queryable, sql } from '../../../database/database.ts'
import type { CoreParts } from '../../../extension.ts'
import { Fault } from '../../../kernel/fault.ts'
import { seal, unseal } from '../../../kernel/secret.ts'
import { NEVER } from '../../../kernel/timers.ts'
import { newId } from '../../../kernel/world.ts'
import type { GuardedFetch } from '../../../upstream/guard.ts'
import { createTokenCache, createTokenStore, type Token } from '../../logins/token-cache.ts'

/** Whose it is. Without a person: of keys that belong to nobody. Without an account: the operator's, for looking. */
export interface ConnectionOwner {
  readonly account: string | null
  readonly person: string | null
}

export interface ServerAt {
  readonly name: string
  readonly url: string
}

/** Those of one account. */
export interface SignIns {
  /** Gives the token that is valid now, renewed ahead of its end. Undefined: nobody has signed in there. */
  find(person: string | null, server: ServerAt): (() => string | Promise<string>) | undefined
  readonly list: readonly { server: string; person: string | null; url: string; connectedAt: Date }[]
}

export type ToolConnections = Awaited<ReturnType<typeof openToolConnections>>

/** All that is needed to renew and to revoke. */
interface Grant {
  readonly metadata: AuthorizationServerMetadata
  readonly client: OAuthClientInformationMixed
  readonly resource?: string | undefined
  readonly access: string
  readonly refresh?: string | undefined
  readonly expiresMs: number
}
type Pending = Pick<Grant, 'metadata' | 'client' | 'resource'> & {
  readonly server: ServerAt
  readonly redirectUri: string
  readonly verifier: string
}

interface ToolConnectionRow {
  readonly id: string
  readonly person: string | null
  readonly server: string
  readonly url: string
  readonly connectedAt: Date
}

const DOCUMENT_BYTES_MAX = 65_536
const SAID_CHARS_MAX = 200
/** Of a token whose end nobody said. */
const UNSAID_LIFE_MS = 3_600_000

const READ = sql('tool_connection_read')`
  select id, person_id as person, server, url, connected_at as "connectedAt" from tool_connection where coalesce(account_id, '') = $1`
const AT_ISSUER = sql('tool_connection_at')`select id, sealed from tool_connection where issuer = $1 limit 1`
const SEALED = sql('tool_connection_sealed')`select sealed from tool_connection where id = $1`
const RENEWED = sql('tool_connection_renewed')`update tool_connection set sealed = $2 where id = $1 returning id`
const REMOVE = sql('tool_connection_remove')`
  delete from tool_connection where coalesce(account_id, '') = $1 and coalesce(person_id, '') = $2 and server = $3 returning id, issuer, sealed`
const LEAVE = sql('tool_connection_leave')`
  delete from tool_connection where account_id = $1 and person_id = $2 returning id, server, sealed`
const STORE = sql('tool_connection_store')`
  insert into tool_connection (id, account_id, person_id, server, url, issuer, sealed) values ($1, $2, $3, $4, $5, $6, $7)`

interface Deps extends Pick<CoreParts, 'database' | 'changes' | 'audit' | 'secrets' | 'world'> {
  readonly guard: Pick<GuardedFetch, 'request' | 'check'>
}

export async function openToolConnections(deps: Deps) {
  const { database, changes, audit, world, guard } = deps
  const key = deps.secrets.key('credential')
  const tokens = createTokenCache({ world, store: createTokenStore(deps) })
  const library = () => import('@modelcontextprotocol/client')
  const fetchFn = guarded(guard)
  const byAccount = await openByAccount<SignIns>(deps, {
    topic: 'tool-connections',
    TABLE: 'tool_connection',
    ACCOUNT: `coalesce(account_id, '')`,
    async read(account) {
      const list = await database.query<ToolConnectionRow>(READ, [account])
      return {
        list,
        find(person, { name, url }) {
          const row = list.find((one) => one.person === person && one.server === name && one.url === url)
          return row && (() => tokens.get(`tool|${row.id}`, () => renewed(row.id, name)))
        },
      }
    },
  })

  const placeOf = (id: string) => `tool_connection|${id}|sealed|1`
  const opened = (id: string, sealed: Buffer): Grant | undefined => {
    const text = unseal(key, placeOf(id), sealed)
    return text === undefined ? undefined : (JSON.parse(text) as Grant) // As `sealedGrant` wrote it.
  }
  const sealedGrant = (id: string, grant: Grant) => seal(key, placeOf(id), JSON.stringify(grant), world)
  const grantOf = (given: OAuthTokens, rest: Pick<Grant, 'metadata' | 'client' | 'resource'>): Grant => ({
    ...rest,
    access: given.access_token,
    refresh: given.refresh_token,
    expiresMs: world.nowMs() + (given.expires_in === undefined ? UNSAID_LIFE_MS : given.expires_in * 1000),
  })

  /** By one process at a time: a refresh token may be good for one use only. */
  async function renewed(id: string, server: string): Promise<Token> {
    const [row] = await database.query<{ sealed: Buffer }>(SEALED, [id])
    const grant = row && opened(id, row.sealed)
    const { access, refresh, expiresMs } = grant ?? { access: '', expiresMs: 0 }
    if (grant && (refresh === undefined ? expiresMs > world.nowMs() : isFresh(expiresMs, world.nowMs())))
      return { value: access, expiresMs }
    if (!grant || refresh === undefined) throw needed(server, 'the sign-in has ended')
    const { metadata, client, resource } = grant
    const { refreshAuthorization } = await library()
    const given = await refreshAuthorization(metadata.issuer, {
      metadata,
      clientInformation: client,
      refreshToken: refresh,
      fetchFn,
      ...(resource === undefined ? {} : { resource }),
    }).catch((error: unknown) => {
      throw error instanceof Fault ? error : needed(server, 'the sign-in was not renewed')
    })
    const next = grantOf({ refresh_token: refresh, ...given }, { metadata, client, resource })
    await database.query(RENEWED, [id, sealedGrant(id, next)])
    return { value: next.access, expiresMs: next.expiresMs }
  }

  /** The client that this gateway is at an issuer already, if it is one there. */
  async function clientAt(issuer: string, redirectUri: string): Promise<OAuthClientInformationMixed | undefined> {
    const [found] = await database.query<{ id: string; sealed: Buffer }>(AT_ISSUER, [issuer])
    const client = found && opened(found.id, found.sealed)?.client
    const { redirect_uris: uris = [redirectUri] } = (client ?? {}) as { redirect_uris?: string[] } // Of a registration, as the library reads it.
    return uris.includes(redirectUri) ? client : undefined
  }

  async function told(
    tx: Queryable,
    by: By,
    action: 'store' | 'remove',
    of: { owner: ConnectionOwner; server: string },
  ) {
    const isThere = action === 'store'
    const { owner, server } = of
    await audit.write(tx, by, {
      action: `tool-connection.${action}`,
      object: owner.account ?? 'gateway',
      detail: { server, person: owner.person },
      before: { connected: !isThere },
      after: { connected: isThere },
    })
  }

  /** Here they are gone already; a server that does not answer keeps nobody. */
  async function ended(gone: readonly { readonly id: string; readonly sealed: Buffer }[]): Promise<void> {
    if (gone.length === 0) return
    await changes.notice('tool-connections')
    await Promise.allSettled(
      gone.map(async ({ id, sealed }) => {
        const grant = opened(id, sealed)
        if (grant) await revoke(grant, fetchFn)
      }),
    )
  }

  return {
    /** Undefined: nobody of the account has signed in anywhere. */
    of: (account: string | null) => byAccount.of(account ?? ''),
    /** Where the person signs in, without a `state`, and what finishes it, sealed. */
    async begin(server: ServerAt, redirectUri: string) {
      const lib = await library()
      return said(server.name, async () => {
        const asked = await fetchFn(server.url, { method: 'POST', headers: ASKING, body: '{}' })
        const { resourceMetadataUrl, scope: wanted } = lib.extractWWWAuthenticateParams(asked)
        const about = await lib.discoverOAuthServerInfo(server.url, {
          fetchFn,
          ...(resourceMetadataUrl ? { resourceMetadataUrl } : {}),
        })
        const { authorizationServerMetadata: metadata, resourceMetadata, authorizationServerUrl } = about
        if (!metadata) throw new Error('it names no authorization server')
        const resource = await lib.selectResourceURL(
          server.url,
          {} as Parameters<typeof lib.selectResourceURL>[1], // It reads nothing that must be there.
          resourceMetadata,
        )
        const scopes = wanted?.split(' ') ?? resourceMetadata?.scopes_supported ?? []
        const offline = metadata.scopes_supported?.includes('offline_access') ? ['offline_access'] : []
        const scope = [...new Set([...scopes, ...offline])].join(' ')
        const scoped = scope === '' ? {} : { scope }
        const clientMetadata = {
          client_name: 'Tollgate',
          redirect_uris: [redirectUri],
          response_types: ['code'],
          ...scoped,
          grant_types: ['authorization_code', 'refresh_token'],
          token_endpoint_auth_method: 'none',
        }
        const client =
          (await clientAt(metadata.issuer, redirectUri)) ??
          (await lib.registerClient(authorizationServerUrl, { metadata, clientMetadata, fetchFn, ...scoped }))
        const { authorizationUrl: url, codeVerifier: verifier } = await lib.startAuthorization(authorizationServerUrl, {
          metadata,
          clientInformation: client,
          redirectUrl: redirectUri,
          ...scoped,
          ...(resource ? { resource } : {}),
        })
        // A browser is sent there, so it may be no script and no address within.
        await guard.check(url.href, { signal: NEVER })
        const pending: Pending = { metadata, client, resource: resource?.href, server, redirectUri, verifier }
        return { url, pending: seal(key, PENDING, JSON.stringify(pending), world).toString('base64') }
      })
    },
    /** `answer`: what the browser brought back. */
    async finish(sealed: string, owner: ConnectionOwner, answer: URLSearchParams, by: By): Promise<void> {
      const text = unseal(key, PENDING, Buffer.from(sealed, 'base64'))
      if (text === undefined) throw new Fault('not_found', { message: 'This sign-in is not known here. Start again.' })
      const { metadata, client, resource, server, redirectUri, verifier } = JSON.parse(text) as Pending // As `begin` wrote it.
      const { exchangeAuthorization } = await library()
      const [code, iss, error] = ['code', 'iss', 'error'].map((name) => answer.get(name) ?? undefined)
      const given = await said(server.name, async () => {
        if (code === undefined) throw new Error(error ?? 'it sent no code')
        return exchangeAuthorization(metadata.issuer, {
          metadata,
          clientInformation: client,
          authorizationCode: code,
          codeVerifier: verifier,
          redirectUri,
          fetchFn,
          ...(iss === undefined ? {} : { iss }),
          ...(resource === undefined ? {} : { resource }),
        })
      })
      if (!/^[\x21-\x7e]{1,8192}$/.test(given.access_token)) throw unusable(server.name, 'its token is none')
      const id = newId(world)
      await database.transaction(async (tx) => {
        await tx.query(REMOVE, [owner.account ?? '', owner.person ?? '', server.name])
        const grant = sealedGrant(id, grantOf(given, { metadata, client, resource }))
        await tx.query(STORE, [id, owner.account, owner.person, server.name, server.url, metadata.issuer, grant])
        await told(tx, by, 'store', { owner, server: server.name })
      })
      await changes.notice('tool-connections')
    },
    /** Revokes it there too, as far as the server lets it. False: there is none. */
    async remove(owner: ConnectionOwner, server: string, by: By): Promise<boolean> {
      const gone = await database.transaction(async (tx) => {
        const [row] = await tx.query<{ id: string; sealed: Buffer }>(REMOVE, [
          owner.account ?? '',
          owner.person ?? '',
          server,
        ])
        if (row) await told(tx, by, 'remove', { owner, server })
        return row
      })
      if (gone) await ended([gone])
      return gone !== undefined
    },
    /**
     * Removes all of a person who leaves an account, as part of another transaction; what it gives is to be called when
     * that is committed.
     */
    async leave(tx: Queryable, owner: { account: string; person: string }, by: By): Promise<() => Promise<void>> {
      const { account, person } = owner
      const gone = await tx.query<{ id: string; server: string; sealed: Buffer }>(LEAVE, [account, person])
      for (const { server } of gone) await told(tx, by, 'remove', { owner, server })
      return () => ended(gone)
    },
  }
}

const PENDING = 'tool_connection|pending|1'
const ASKING = { 'content-type': 'application/json', accept: 'application/json, text/event-stream' }
/** The cache renews ahead; what it asks for a second time is about to end. */
const AHEAD_MS = 60_000
const isFresh = (expiresMs: number, nowMs: number) => expiresMs - AHEAD_MS > nowMs

type FetchLike = (url: string | URL, init?: RequestInit) => Promise<Response>

/** Every request of the flow: to public addresses only, without redirects, and with a bounded answer. */
function guarded(guard: Pick<GuardedFetch, 'request'>): FetchLike {
  return async (url, { method = 'GET', headers, body } = {}) => {
    const call = {
      method: method === 'POST' ? ('POST' as const) : ('GET' as const),
      url: String(url),
      headers: Object.fromEntries(new Headers(headers)),
      body: body === undefined || body === null ? undefined : String(body),
    }
    const reply = await guard.request(call, { bytesMax: DOCUMENT_BYTES_MAX, signal: NEVER })
    const isEmpty = reply.status === 204 || reply.status === 205 || reply.status === 304
    return new Response(isEmpty ? null : new Uint8Array(reply.body), {
      status: reply.status,
      headers: { ...reply.headers },
    })
  }
}

async function revoke({ metadata, client, access, refresh }: Grant, fetchFn: FetchLike): Promise<void> {
  const { revocation_endpoint: url } = metadata as { revocation_endpoint?: string } // Of either kind of metadata.
  if (url === undefined) return
  const secret = client.client_secret === undefined ? {} : { client_secret: client.client_secret }
  const body = new URLSearchParams({ token: refresh ?? access, client_id: client.client_id, ...secret })
  await fetchFn(url, { method: 'POST', headers: { 'content-type': 'application/x-www-form-urlencoded' }, body })
}

const unusable = (server: string, why: string) =>
  new Fault('upstream_failed', { message: `The sign-in of the tool server "${server}" cannot be used: ${why}.` })

export const needed = (server: string, why: string) =>
  new Fault('tool_sign_in_needed', { message: `Sign in to the tool server "${server}" first: ${why}.` })

/** What is wrong with a stranger's sign-in, in its words or ours. An address that the guard rejects is not named. */
async function said<T>(server: string, run: () => Promise<T>): Promise<T> {
  try {
    return await run()
  } catch (error) {
    const why =
      error instanceof Fault ? 'an address of it cannot be reached, or is not public' : (error as Error).message // The library throws errors.
    throw unusable(
      server,
      why
        .replaceAll(/[\p{Cc}\p{Cf}\s]+/gu, ' ')
        .slice(0, SAID_CHARS_MAX)
        .toWellFormed(),
    )
  }
}
