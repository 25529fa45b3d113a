// API keys: `tg_live_` or `tg_test_` + 32 characters + a checksum, stored as a digest and cached by it. Imported keys
// of other gateways are known only by their hash; their digest is made from that hash.
import { hash } from 'node:crypto'
import { BlockList, isIP } from 'node:net'
import { crc32 } from 'node:zlib'
import type { EndpointSpec } from '../catalog/endpoint.ts'
import { accessNameOf } from '../catalog/endpoint-access.ts'
import type { Changes } from '../database/changes.ts'
import { type Database, SHORT_MS, type Statement, sql, statement } from '../database/database.ts'
import type { Credits } from '../kernel/credits.ts'
import { Fault } from '../kernel/fault.ts'
import { sign } from '../kernel/secret.ts'
import { isTestAccount, ownAccountOf } from '../kernel/test-account.ts'
import type { World } from '../kernel/world.ts'
import type { Blocked } from '../ledger/operation.ts'
import { networkOf, plainAddress } from '../upstream/address.ts'
import { createMinuteBudget } from '../upstream/budget.ts'
import { createKeyFilter } from './key-filter.ts'
import type { Labels } from './labels.ts'
import { createLastUsed } from './last-used.ts'
import { labelsOfPlace, type PersonPlace, type PersonRules, RULES_OF } from './teams.ts'
import type { KeyRouting, RecordingPolicy } from './views.ts'

/** Who calls, and what they may use. */
export interface Principal {
  readonly keyId: string
  readonly accountId: string
  /** The key from which it was rotated first; absent: it was not rotated. */
  readonly firstKeyId?: string | undefined
  /** Uids of models, `socialapi` and `siteanalytics`; null: everything. */
  readonly models: ReadonlySet<string> | null
  /** The most that one call may cost. Absent: no bound. */
  readonly callMax?: Credits | undefined
  /** Names of endpoint-access.ts; null: every endpoint. */
  readonly endpoints: ReadonlySet<string> | null
  /** Names of labels that its calls must carry. Absent: none. */
  readonly requiredLabels?: readonly string[] | undefined
  /** The team, project and member of the key, as labels of its calls: `:team`, `:project`, `:member`. Absent: none. */
  readonly place?: Readonly<Record<string, string>> | undefined
  /** Of the place, what the request said and not the key: it goes with what is stored to run later. Absent: nothing. */
  readonly named?: Labels | undefined
  /**
   * Whether its member created the key, so nobody else knows its value. Only then may it use the member's personal
   * sign-ins.
   */
  readonly isOwn?: boolean | undefined
  readonly expiresAtMs: number
  readonly addresses: BlockList | null
  /** Whether its calls use the response cache; absent: the model's default. */
  readonly responseCache?: boolean | undefined
  /** The routing restriction of its calls. Absent: none. */
  readonly routing?: KeyRouting | undefined
  /** Its content logging policy. Absent: nothing is logged. */
  readonly content?: RecordingPolicy | undefined
}

/** The account of a key, and whom its people may ask. */
const ACCOUNT = `a.status, a.status_reason as reason, (select s.value::jsonb ->> 'contact' from setting s where s.name = 'billing') as contact`

export interface KeyHeader {
  readonly authorization: string | undefined
  readonly xApiKey: string | undefined
}

/** What a person allowed a program: `api` to call like a key, `mcp` to use the tools. */
export type TokenScope = 'api' | 'mcp'

/** The last key header of a connection and its hash, so that the same header is not hashed again. */
export interface KeyMemory {
  header?: KeyHeader
  name?: string | undefined
}

const SHAPE = /^tg_(?:live|test)_([0-9A-Za-z]{32})([0-9A-Za-z]{6})$/
/** What other gateways give out. */
const IMPORTED = /^sk-[\x21-\x7e]{5,300}$/
export const IMPORTED_PREFIX = 'sk-'
const BASE62 = '0123456789ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz'

/** Test keys can be told by their first letters; what they may do follows from their account. */
export function makeKey(world: World, account = ''): string {
  let body = ''
  while (body.length < 32) {
    // Bytes past the last multiple of 62 are thrown away, so that every character is equally likely.
    for (const byte of world.bytes(48)) if (byte < 248 && body.length < 32) body += BASE62[byte % 62]
  }
  return `${isTestAccount(account) ? 'tg_test_' : 'tg_live_'}${body}${checksum(body)}`
}

/** The digest under which OAuth tokens are stored. */
export function tokenDigest(id: string): Buffer {
  return hash('sha256', id, 'buffer')
}

export function digestOf(pepper: Buffer, key: string): Buffer {
  return sign(pepper, key)
}

/**
 * For a key of which only the SHA-256 (hexadecimal) is known. It is keyed with the secret too, so the database alone
 * does not allow guessing.
 */
export function importedDigest(pepper: Buffer, sha256: string): Buffer {
  return sign(pepper, `sha256 ${sha256}`)
}

function checksum(body: string): string {
  let rest = crc32(body)
  let text = ''
  for (let i = 0; i < 6; i++) {
    text = BASE62[rest % 62] + text
    rest = Math.floor(rest / 62)
  }
  return text
}

/** Values that cannot be keys are rejected without a database lookup. */
function looksLikeKey(key: string): boolean {
  const match = SHAPE.exec(key)
  return match !== null && checksum(match[1]!) === match[2]
}

export function readIpRanges(ranges: readonly string[]): BlockList {
  const list = new BlockList()
  for (const range of ranges) {
    const [address = '', bits] = range.split('/')
    const family = isIP(address) === 6 ? 'ipv6' : 'ipv4'
    if (isIP(address) === 0)
      throw new Fault('request_invalid', {
        message: `ipRanges: "${range}" is not an address or a range such as 10.0.0.0/8.`,
        param: 'ipRanges',
      })
    const width = family === 'ipv6' ? 128 : 32
    const prefix = bits === undefined ? width : Number(bits)
    if (!Number.isInteger(prefix) || prefix < 0 || prefix > width || bits === '')
      throw new Fault('request_invalid', {
        message: `ipRanges: "${range}" has no valid prefix length.`,
        param: 'ipRanges',
      })
    list.addSubnet(address, prefix, family)
  }
  return list
}

/** Whether every address of the range is in one of the others. Both have been read by `readIpRanges`. */
export function isRangeWithin(range: string, others: readonly string[]): boolean {
  const [address = '', bits] = range.split('/')
  const family = isIP(address) === 6 ? 'ipv6' : 'ipv4'
  return others.some((other) => {
    const [base = '', fewer] = other.split('/')
    if (isIP(base) !== isIP(address)) return false
    const width = family === 'ipv6' ? 128 : 32
    return Number(bits ?? width) >= Number(fewer ?? width) && readIpRanges([other]).check(address, family)
  })
}

interface KeyRow {
  id: string
  first_id: string | null
  team_id: string | null
  parent_id: string | null
  member_id: string | null
  is_own: boolean | null
  account_id: string
  models: string[] | null
  endpoints: string[] | null
  required_labels: string[] | null
  ip_ranges: string[] | null
  response_cache: boolean | null
  routing: KeyRouting | null
  expires_at: Date | null
  left_ms: number | null
  rules: PersonRules | null
  content: RecordingPolicy | null
  status: string
  reason: string | null
  contact: string | null
  /** Of a token. */
  scope?: string | null
}

/** The key's own policy takes precedence over the account's. */
const CONTENT = `(select jsonb_build_object('days', r.days, 'maxBytes', r.bytes) from recording_policy r
     where r.account_id = k.account_id and r.scope in ('account', k.id) order by r.scope = 'account' limit 1)`
/** A test account's keys are in the teams of its owner. */
const OWNER = `regexp_replace(k.account_id, '_test$', '')`
const PARENT = `(select t.parent_id from team t where t.id = k.team_id and t.account_id = ${OWNER})`
const PLACE = `k.team_id, k.member_id, k.member_id = k.maker_id as is_own, ${PARENT} as parent_id,
   case when k.member_id is not null then ${RULES_OF(OWNER, 'k.team_id', PARENT)} end as rules`
// The database computes the remaining lifetime: the clocks of processes may differ or be changed.
const FIND = sql('key_find', SHORT_MS)`
  select k.id, k.first_id, ${PLACE}, k.account_id, k.models, k.endpoints, k.required_labels, k.ip_ranges, k.response_cache, k.routing, k.expires_at, ${CONTENT} as content, ${ACCOUNT},
     (extract(epoch from least(k.expires_at, k.revoked_at) - now()) * 1000)::float8 as left_ms
   from api_key k join account a on a.id = k.account_id where k.digest = $1`
const FIND_BY_ID = statement('key_find_by_id', FIND.text.replace('where k.digest = $1', 'where k.id = $1'), SHORT_MS)
/** An access token of OAuth stands for the key of its grant, while both live. */
const FIND_BY_TOKEN = sql('key_find_by_token', SHORT_MS)`
  select o.payload ->> 'scope' as scope, k.id, k.first_id, ${PLACE}, k.account_id, k.models, k.endpoints, k.required_labels, k.ip_ranges, k.response_cache, k.routing, k.expires_at, ${CONTENT} as content, ${ACCOUNT},
     (extract(epoch from least(k.expires_at, k.revoked_at, o.expires_at) - now()) * 1000)::float8 as left_ms
   from oauth_object o join api_key k on k.grant_id = o.grant_id join account a on a.id = k.account_id where o.model = 'AccessToken' and o.digest = $1`
/** While their role lets them call: viewers and the billing role do not (`playground:write`). */
const MEMBER = sql('key_console_member')`
  select 1 from membership where account_id = $1 and person_id = $2 and role in ('owner', 'admin', 'member')`
const TOKEN = /^[\w-]{43}$/

const FRESH_MS = 30_000
const STALE_MS = 60_000
const BEHIND_MS = 2_500
const KNOWN_MAX = 100_000
const UNKNOWN_MAX = 10_000
const UNKNOWN_MS = 10_000

type Query = readonly [find: Statement, digest: Buffer]

interface Known {
  readonly principal: Principal
  /** Of a token; undefined: a key, which is for everything. */
  readonly scopes: readonly string[] | undefined
  /** Its account is suspended or closed. */
  readonly blocked: Blocked | undefined
  /** On the monotonic clock. */
  readonly endsMs: number
  readonly readMs: number
}

export type ApiKeys = ReturnType<typeof createApiKeys>

export function createApiKeys(options: {
  database: Database
  changes: Changes
  world: World
  pepper: Buffer
  /** How many unknown keys one address may have looked up. */
  unknownPerMinute: number
}) {
  const { database, changes, world, pepper } = options
  const guesses = createMinuteBudget(world, options.unknownPerMinute)
  const filter = createKeyFilter(database, world)
  /** By a hash of the whole key, never by a part of it. */
  const known = new Map<string, Known>()
  const unknown = new Map<string, number>()
  const underWay = new Map<string, Promise<Known | undefined>>()
  const used = createLastUsed(database)
  /** An answer that was in flight when keys changed may be outdated: it is neither cached nor shared. */
  let changesSeen = 0
  const listeners = new Set<() => void>()
  const holders = new Map<`${string}:`, (account: string, labels: Labels) => Promise<Principal | undefined>>()
  changes.watch('keys', () => {
    changesSeen += 1
    known.clear()
    unknown.clear()
    underWay.clear()
    for (const listener of listeners) listener()
  })

  async function lookUp(queries: readonly Query[], name: string): Promise<Known | undefined> {
    const askedMs = world.elapsedMs()
    const changed = changesSeen
    let row: KeyRow | undefined
    let isToken = false
    for (const [find, digest] of queries) {
      isToken = find === FIND_BY_TOKEN
      ;[row] = await database.query<KeyRow>(find, [digest])
      if (row) break
    }
    if (!row) {
      if (changed !== changesSeen) return undefined
      if (unknown.size >= UNKNOWN_MAX) unknown.clear()
      unknown.set(name, world.elapsedMs())
      return undefined
    }
    const entry: Known = {
      principal: principalOf(row),
      scopes: isToken ? (row.scope ?? '').split(' ') : undefined,
      blocked: row.status === 'open' ? undefined : row,
      endsMs: askedMs + (row.left_ms ?? Number.POSITIVE_INFINITY),
      readMs: askedMs,
    }
    if (changed !== changesSeen) return entry
    if (known.size >= KNOWN_MAX) known.delete(known.keys().next().value!)
    known.set(name, entry)
    return entry
  }

  // A plain hash identifies the entry in memory. The keyed digest, four times as expensive, is computed only for a
  // database lookup.
  const hashOfKey = (key: string) => hash('sha256', key, 'base64')
  /** Few tokens look like imported keys, and few imported keys like tokens: they are looked up as both. */
  const queriesFor = (key: string): Query[] => [
    ...(IMPORTED.test(key) ? [[FIND, importedDigest(pepper, hash('sha256', key, 'hex'))] as const] : []),
    ...(TOKEN.test(key) ? [[FIND_BY_TOKEN, tokenDigest(key)] as const] : []),
    ...(looksLikeKey(key) ? [[FIND, digestOf(pepper, key)] as const] : []),
  ]
  async function isAmong(queries: readonly Query[]): Promise<boolean> {
    for (const [, digest] of queries) if (await filter.has(digest)) return true
    return false
  }
  const isBehind = (nowMs: number) => nowMs - changes.current.atMs > BEHIND_MS

  /** An unknown key uses up part of its address's budget; beyond the budget only existing keys are looked up. */
  async function lookUpFor(ip: string, queries: readonly Query[], name: string): Promise<Known | undefined> {
    const address = networkOf(ip)
    const waitSeconds = guesses.spend(address, 1)
    // Others may share an address with an attacker: their valid keys keep working.
    if (waitSeconds !== undefined && !(await isAmong(queries))) throw tooManyGuesses(waitSeconds)
    let isGuess = false
    try {
      const found = await lookUp(queries, name)
      isGuess = found === undefined
      return found
    } finally {
      if (!isGuess && waitSeconds === undefined) guesses.giveBack(address, 1)
    }
  }

  function find(key: string, from: { readonly ip: string }): Known | undefined | Promise<Known | undefined> {
    const name = hashOfKey(key)
    const nowMs = world.elapsedMs()
    const entry = known.get(name)
    const behind = isBehind(nowMs)
    if (entry && nowMs - entry.readMs < FRESH_MS && !behind) return entry
    const queries = queriesFor(key)
    if (queries.length === 0) throw new Fault('key_unknown')
    const missedMs = unknown.get(name)
    if (missedMs !== undefined && !behind && nowMs - missedMs < UNKNOWN_MS) return undefined
    // Concurrent calls with the same uncached key share one lookup.
    let asking = underWay.get(name)
    if (!asking) {
      asking = (entry ? lookUp(queries, name) : lookUpFor(from.ip, queries, name))
        .catch((error: unknown) => {
          // The database is not available: a recently cached key is good enough for reading; paid calls need the
          // database anyway.
          if (entry && nowMs - entry.readMs < STALE_MS) return entry
          throw error
        })
        .finally(() => {
          if (underWay.get(name) === asking) underWay.delete(name)
        })
      underWay.set(name, asking)
    }
    return asking
  }

  function admit(entry: Known | undefined, from: { readonly ip: string }, scope: TokenScope): Principal {
    if (!entry || entry.scopes?.includes(scope) === false) throw new Fault('key_unknown')
    const whose = entry.principal
    if (world.elapsedMs() >= entry.endsMs) throw new Fault('key_unknown', { whose })
    if (entry.blocked) throw accountInactive(entry.blocked, whose)
    const { addresses, keyId } = whose
    if (addresses) {
      const ip = plainAddress(from.ip)
      if (!addresses.check(ip, isIP(ip) === 6 ? 'ipv6' : 'ipv4'))
        throw new Fault('access_denied', { message: 'This key may not be used from your address.', whose })
    }
    used.ids.add(keyId)
    return entry.principal
  }

  return {
    /** Asked for its address only when the key is bound to some: that costs a system call. */
    /** What an OAuth access token must be for; by default every endpoint but the tools. */
    /** The principal of a cached key without an address restriction; undefined: `authenticate` must be called. */
    known(header: KeyHeader, memory: KeyMemory): Principal | undefined {
      const { authorization, xApiKey } = memory.header ?? {}
      if (!memory.header || authorization !== header.authorization || xApiKey !== header.xApiKey) {
        const key = keyIn(header)
        memory.header = header
        memory.name = key === undefined ? undefined : hashOfKey(key)
      }
      const entry = memory.name === undefined ? undefined : known.get(memory.name)
      const nowMs = world.elapsedMs()
      if (!entry || nowMs - entry.readMs >= FRESH_MS || nowMs >= entry.endsMs || isBehind(nowMs)) return undefined
      if (entry.principal.addresses || entry.blocked || entry.scopes) return undefined
      used.ids.add(entry.principal.keyId)
      return entry.principal
    },
    /**
     * Throws key_missing, key_unknown, or rate_limited for an address that tries too many unknown ones; `unavailable`
     * when the database cannot say.
     */
    authenticate(
      header: KeyHeader,
      from: { readonly ip: string },
      scope: TokenScope = 'api',
    ): Promise<Principal> | Principal {
      const { authorization } = header
      const key = keyIn(header)
      if (key === undefined || key === '') throw new Fault(authorization ? 'key_unknown' : 'key_missing')
      const found = find(key, from)
      return found instanceof Promise ? found.then((entry) => admit(entry, from, scope)) : admit(found, from, scope)
    },
    /**
     * The principal of the key behind a client secret; throws key_unknown or account_inactive when it, or its account,
     * has ended.
     */
    async behind(keyId: string): Promise<Principal> {
      const [row] = await database.query<KeyRow>(FIND_BY_ID, [keyId])
      if (!row || (row.left_ms !== null && row.left_ms <= 0)) throw new Fault('key_unknown')
      if (row.status !== 'open') throw accountInactive(row)
      return principalOf(row)
    },
    /**
     * The principal of a key that is still valid, for work in its name; for work from the console, while the person of
     * its labels is a member.
     */
    async holder(keyId: string, account: string, labels: Labels = {}): Promise<Principal | undefined> {
      const { ':member': member } = labels
      const other = holders.get(`${keyId.split(':', 1)[0]}:`)
      if (other) return other(account, labels)
      if (keyId === CONSOLE) {
        const hasLeft = member !== undefined && !(await database.query(MEMBER, [ownAccountOf(account), member]))[0]
        return hasLeft ? undefined : playerOf(account)
      }
      const [row] = await database.query<KeyRow>(FIND_BY_ID, [keyId])
      return row && (row.left_ms === null || row.left_ms > 0) ? principalOf(row) : undefined
    },
    /** Under which a key, or a token that stands for one, may be stored. */
    digestsOf: (key: string) => queriesFor(key).map(([find, digest]) => ({ digest, isToken: find === FIND_BY_TOKEN })),
    /** Of callers who have no key, by how their ids begin. Extensions have such. */
    holders,
    /** Called after every change of keys or accounts, until the returned function is called. */
    whenChanged(listener: () => void): () => void {
      listeners.add(listener)
      return () => listeners.delete(listener)
    },
    flushLastUsed: used.flush,
  }
}

/** Names the reason, and whom to ask. */
export function accountInactive({ status, reason, contact }: Blocked, whose?: Principal): Fault {
  const why = reason ? `: ${reason.replace(/\.$/, '')}` : ''
  const message = `This account is ${status}${why}. Its calls are rejected until it is reopened. Ask ${contact ?? 'the operator of this gateway'}.`
  return new Fault('account_inactive', { message, ...(whose ? { whose } : {}) })
}

function tooManyGuesses(retryAfterSeconds: number): Fault {
  return new Fault('rate_limited', {
    message: `Too many API keys that do not exist were tried from this network address. Try again in ${retryAfterSeconds} s; valid keys keep working.`,
    retryAfterSeconds,
  })
}

const CONSOLE = 'console'

/** A person at the console: acts for the account without a key. Without a place: no member, for reading only. */
export function playerOf(account: string, place: PersonPlace = NOWHERE): Principal {
  const unrestricted = { endpoints: null, addresses: null, place: labelsOfPlace(place), isOwn: true }
  const own = { ...unrestricted, ...ruled(null, place.rules) }
  return { keyId: CONSOLE, accountId: account, ...own, expiresAtMs: Number.POSITIVE_INFINITY }
}

/** Stored with background work from the console: a key's team can be looked up later, a person's cannot. */
export function storedPlace({ keyId, place, named }: Principal): Principal['place'] {
  return keyId === CONSOLE ? place : named
}

const NOWHERE: PersonPlace = { memberId: null, teamId: null, projectId: null }

function placeOfKey({ team_id: team, parent_id: parent, member_id: memberId }: KeyRow): Principal['place'] {
  return labelsOfPlace({ memberId, teamId: parent ?? team, projectId: parent === null ? null : team })
}

function principalOf(row: KeyRow): Principal {
  return {
    keyId: row.id,
    accountId: row.account_id,
    firstKeyId: row.first_id ?? undefined,
    ...ruled(row.models, row.rules),
    endpoints: row.endpoints && new Set(row.endpoints),
    requiredLabels: row.required_labels ?? undefined,
    place: placeOfKey(row),
    isOwn: row.is_own === true,
    expiresAtMs: row.expires_at?.getTime() ?? Number.POSITIVE_INFINITY,
    addresses: row.ip_ranges && readIpRanges(row.ip_ranges),
    responseCache: row.response_cache ?? undefined,
    routing: row.routing ?? undefined,
    content: row.content ?? undefined,
  }
}

/** A key's own list of models, within the settings of its person's team. */
function ruled(own: readonly string[] | null, rules?: PersonRules | null): Pick<Principal, 'models' | 'callMax'> {
  const listed = rules?.models ?? null
  const both = own && listed ? own.filter((name) => listed.includes(name)) : (own ?? listed)
  return { models: both && new Set(both), callMax: rules?.callMax == null ? undefined : BigInt(rules.callMax) }
}

export function keyIn({ authorization, xApiKey }: KeyHeader): string | undefined {
  const bearer = authorization === undefined ? undefined : /^bearer +(\S+) *$/i.exec(authorization)?.[1]
  return bearer ?? xApiKey
}

// What a key's restriction lets it use and see. One that is not restricted sees everything of its account; a restricted
// one what it made: applications that share an account do not read each other's files and prompts.

export type Viewer = Pick<Principal, 'keyId' | 'models' | 'endpoints'>

/** The one place that knows which models a key may use. */
export function mayUse({ models }: Pick<Principal, 'models'>, name: string): boolean {
  return models === null || models.has(name)
}

/** The one place that knows which endpoints a key may use. */
export function mayCall({ endpoints }: Pick<Principal, 'endpoints'>, spec: EndpointSpec): boolean {
  if (endpoints === null) return true
  const name = accessNameOf(spec)
  return name === undefined || endpoints.has(name)
}

/** Throws access_denied. */
export function requireEndpoint(principal: Pick<Principal, 'endpoints'>, spec: EndpointSpec): void {
  if (!mayCall(principal, spec))
    throw new Fault('access_denied', { message: `This key may not use the endpoint ${accessNameOf(spec)}.` })
}

/**
 * Files, batches, jobs, stored responses and conversations are for the key that made them, and for keys without a
 * restriction.
 */
export function maySee(viewer: Viewer, made: { readonly key_id: string | null }): boolean {
  return !isRestricted(viewer) || made.key_id === viewer.keyId
}

/** The same for a statement that lists: the key; null: without a restriction. */
export const keySeenBy = (viewer: Viewer): string | null => (isRestricted(viewer) ? viewer.keyId : null)

export function isRestricted({ models, endpoints }: Viewer): boolean {
  return models !== null || endpoints !== null
}
