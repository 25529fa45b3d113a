// Session tokens: what an app or a page calls with in the name of one purse, made by its account's server. What a token
// may do is sealed in it; its row says whether it was revoked. A purse that is frozen ends all of its own at once.
import type { ApiKeys, Principal } from '../../admission/api-key.ts'
import type { RequestContext } from '../../api/api.ts'
import { accessNameOf, checkAccessNames } from '../../catalog/endpoint-access.ts'
import { endpointsOf } from '../../catalog/index.ts'
import type { RequestHeaders } from '../../catalog/query.ts'
import { type Catalog, catalogFor } from '../../catalog/store.ts'
import { checkModelNames } from '../../catalog/unknown-model.ts'
import type { By } from '../../database/audit.ts'
import { sql } from '../../database/database.ts'
import { pruneAll } from '../../database/prune.ts'
import type { CoreParts } from '../../extension.ts'
import type { Credits } from '../../kernel/credits.ts'
import { Fault } from '../../kernel/fault.ts'
import { seal, unseal } from '../../kernel/secret.ts'
import { asPage, asView, type Page, type Paging } from '../../kernel/view.ts'
import { newId } from '../../kernel/world.ts'
import { PURSE, PURSE_TOKEN } from './calls.ts'
import { requireAccount } from './purses.ts'
import { type NewSessionView, type SessionView, sessionView } from './views.ts'

interface SessionInput {
  readonly seconds: number
  readonly models: readonly string[] | null
  readonly endpoints: readonly string[] | null
  readonly origins: readonly string[] | null
  readonly callMax: Credits | null
}

interface SessionToken extends Omit<SessionInput, 'seconds' | 'callMax' | 'endpoints'> {
  readonly id: string
  readonly endpoints: readonly string[]
  readonly account: string
  readonly purse: string
  readonly expiresAtMs: number
}

interface SessionRow {
  readonly id: string
  readonly purse_id: string
  readonly prefix: string
  readonly call_max: Credits | null
  readonly expires_at: Date
  readonly revoked_at: Date | null
  readonly created_at: Date
}

const PREFIX = 'tgs_'
const CALLER = 'purse:'
const PLACE = 'purse-session|1'
const BEARER = /^bearer +(\S+) *$/i
const TOKENS_MAX = 20_000

/** Where a session may read what is its own, besides paid endpoints. */
export const OWN_PURSE_PATH = '/v1/purse'
export const PURSE_QUOTE_PATH = '/v1/purse/quote'
const OWN_PATHS = /^\/v1\/purse(?:[/?]|$)/

interface SessionDeps extends Pick<CoreParts, 'database' | 'secrets' | 'world' | 'changes' | 'audit' | 'publicUrl'> {
  readonly apiKeys: Pick<ApiKeys, 'holders'>
  readonly catalog: { readonly current: Catalog }
}

export type PurseSessions = ReturnType<typeof createPurseSessions>

export function createPurseSessions(deps: SessionDeps) {
  const { database, secrets, world, catalog, changes, audit, apiKeys } = deps
  // They are for browsers, like those of Realtime; another place, so that neither opens as the other.
  const key = secrets.key('client-secret')
  const known = new Map<string, { readonly token: SessionToken; readonly principal: Principal }>()
  /** What was read while something changed may be outdated, and is not kept. */
  let changesSeen = 0
  changes.watch('purse-sessions', () => {
    changesSeen += 1
    known.clear()
  })

  /** Of each token that was found; it never changes. */
  const bounds = new Map<string, Credits | null>()

  async function find(account: string, id: string): Promise<SessionRow | undefined> {
    const [row] = await database.query<SessionRow>(FIND, [account, id])
    if (bounds.size >= TOKENS_MAX) bounds.clear()
    bounds.set(id, row?.call_max ?? null)
    return row
  }

  function unsealed(value: string): SessionToken | undefined {
    const text = unseal(key, PLACE, Buffer.from(value.slice(PREFIX.length), 'base64url'))
    return text === undefined ? undefined : (JSON.parse(text) as SessionToken) // Sealed by us.
  }

  async function read(value: string) {
    const token = unsealed(value)
    if (!token) throw new Fault('key_unknown')
    const changed = changesSeen
    const row = await find(token.account, token.id)
    if (!row || row.revoked_at) throw new Fault('key_unknown', { message: 'This session token was revoked.' })
    const made = { token, principal: principalOf(token) }
    if (known.size >= TOKENS_MAX) known.clear()
    if (changed === changesSeen) known.set(value, made)
    return made
  }

  function admit(request: RequestContext, { token, principal }: { token: SessionToken; principal: Principal }) {
    if (token.expiresAtMs <= world.nowMs())
      throw new Fault('key_unknown', { message: 'This session token has expired. Ask your own server for a new one.' })
    checkOrigin(token, request.headers, deps.publicUrl)
    // Lists of what an account has are not a customer's.
    if (request.route.endpoint === undefined && !OWN_PATHS.test(request.raw.url ?? ''))
      throw new Fault('access_denied', { message: 'A session token may only make calls, and read its own purse.' })
    return principal
  }

  // Responses in the background; one that has begun is finished, also when its token has expired.
  apiKeys.holders.set(CALLER, async (account, { [PURSE]: purse = '', [PURSE_TOKEN]: id = '' }) => {
    const row = await find(account, id)
    return row && !row.revoked_at
      ? principalOf({ account, purse, id, models: null, endpoints: null, expiresAtMs: row.expires_at.getTime() })
      : undefined
  })

  return {
    /** The account that a token was made by. */
    accountIn: (value: string): string | undefined => (value.startsWith(PREFIX) ? unsealed(value)?.account : undefined),
    async make(
      account: string,
      purse: string,
      { seconds, callMax, models, endpoints, origins }: SessionInput,
    ): Promise<NewSessionView> {
      const current = catalogFor(account, catalog.current)
      checkModelNames(models ?? [], current.document)
      const specs = endpointsOf(current)
      checkAccessNames(endpoints ?? [], specs)
      // Never unrestricted: what a key without a restriction may read is its whole account's.
      const paid = [...specs, ...current.sockets].flatMap((spec) =>
        spec.sells === undefined ? [] : (accessNameOf(spec) ?? []),
      )
      const expiresAtMs = world.nowMs() + seconds * 1000
      const id = `ses_${newId(world)}`
      const of = { id, account, purse }
      const token: SessionToken = { ...of, models, origins, expiresAtMs, endpoints: endpoints ?? [...new Set(paid)] }
      const value = PREFIX + seal(key, PLACE, JSON.stringify(token), world).toString('base64url')
      const prefix = value.slice(0, PREFIX_CHARS)
      const values = [account, id, purse, prefix, callMax, new Date(expiresAtMs)]
      const [row] = await database.transaction(async (tx) => {
        await requireAccount(tx, account)
        return tx.query<SessionRow>(MAKE, values)
      })
      return { ...viewSession(row!), token: value } // It was just written.
    },
    /** Those that have not expired, newest first. */
    async list(account: string, purse: string, { cursor, limit }: Paging): Promise<Page<SessionView>> {
      const rows = await database.query<SessionRow>(LIST, [account, purse, cursor ?? '~', limit + 1])
      return asPage(rows, limit, viewSession)
    },
    /** At once in this process, within two seconds in all others. Calls that run are finished. */
    async revoke(account: string, purse: string, id: string, by: By): Promise<SessionView> {
      const view = await database.transaction(async (tx) => {
        const [row] = await tx.query<SessionRow>(LOCK, [account, id, purse])
        if (!row) throw new Fault('not_found', { message: 'There is no such session token of this purse.' })
        if (row.revoked_at) return viewSession(row)
        const [after] = await tx.query<SessionRow>(REVOKE, [account, id])
        const [was, is] = [row, after!].map(viewSession) as [SessionView, SessionView] // It is locked.
        const about = { object: id, detail: { account, purse } }
        await audit.write(tx, by, { action: 'purse-session.revoke', ...about, before: was, after: is })
        await changes.bump(tx, 'purse-sessions')
        return is
      })
      await changes.notice('purse-sessions')
      return view
    },
    /** The most that its purse may pay for one call; null: any amount. */
    async callMax(account: string, id: string): Promise<Credits | null> {
      if (!bounds.has(id)) await find(account, id)
      return bounds.get(id) ?? null
    },
    open(request: RequestContext) {
      const value = valueIn(request)
      if (value === undefined) return undefined
      const found = world.elapsedMs() - changes.current.atMs > BEHIND_MS ? undefined : known.get(value)
      return found ? admit(request, found) : read(value).then((one) => admit(request, one))
    },
    prune: (): Promise<void> => pruneAll(database, PRUNE, []).then(() => undefined),
  }
}

const PREFIX_CHARS = 12
/** Without news of changes for so long, each token is looked up again. */
const BEHIND_MS = 3_000

const viewSession = (row: SessionRow): SessionView => ({ ...asView(sessionView, row), purse: row.purse_id })

function valueIn({ headers }: RequestContext): string | undefined {
  const { authorization, 'x-api-key': xApiKey } = headers
  const value = authorization === undefined ? xApiKey : BEARER.exec(authorization)?.[1]
  return value?.startsWith(PREFIX) ? value : undefined
}

/** Every browser names the site; programs do not. The gateway's own page for customers may use every token. */
function checkOrigin({ origins }: SessionToken, headers: RequestHeaders, publicUrl: () => string): void {
  const { origin, 'sec-fetch-site': from } = headers
  if (from === 'same-origin' || (origin !== undefined && origin === URL.parse(publicUrl())?.origin)) return
  if (origins === null ? origin === undefined : origin !== undefined && origins.includes(origin)) return
  throw new Fault('access_denied', {
    message:
      origins === null
        ? 'This session token is not for pages: "origins" names no site.'
        : 'This session token may not be used here: "origins" names the only sites that may.',
  })
}

interface Caller extends Pick<SessionToken, 'id' | 'account' | 'purse' | 'models' | 'expiresAtMs'> {
  readonly endpoints: readonly string[] | null
}

function principalOf({ id, account, purse, models, endpoints, expiresAtMs }: Caller): Principal {
  const place = { [PURSE]: purse, [PURSE_TOKEN]: id }
  return {
    // What a customer stores (files, responses) is seen by the same customer alone.
    keyId: CALLER + purse,
    accountId: account,
    models: models && new Set(models),
    endpoints: endpoints && new Set(endpoints),
    place,
    named: place,
    expiresAtMs,
    addresses: null,
  }
}

const COLUMNS = 'id, purse_id, prefix, call_max, expires_at, revoked_at, created_at'
const MAKE = sql('purse_session_make')`
  insert into purse_session (account_id, id, purse_id, prefix, call_max, expires_at) values ($1, $2, $3, $4, $5, $6) returning ${COLUMNS}`
const FIND = sql('purse_session_find')`select ${COLUMNS} from purse_session where account_id = $1 and id = $2`
const LOCK = sql('purse_session_lock')`
  select ${COLUMNS} from purse_session where account_id = $1 and id = $2 and purse_id = $3 for update`
const LIST = sql('purse_session_list')`
  select ${COLUMNS} from purse_session where account_id = $1 and purse_id = $2 and id < $3 and expires_at > now() order by id desc limit $4`
const REVOKE = sql('purse_session_revoke')`
  update purse_session set revoked_at = now() where account_id = $1 and id = $2 returning ${COLUMNS}`
// Jobs and batches that a token began may still ask what it allows.
const PRUNE = sql('purse_session_forget')`with old as (
     select account_id, id from purse_session where expires_at < now() - interval '3 days' order by expires_at limit 1000 for update skip locked
   ), gone as (
     delete from purse_session s using old where s.account_id = old.account_id and s.id = old.id returning 1
   ) select count(*)::int as count from gone`
