// Management of keys: create, restrict, rotate, revoke. The value is only in the answer that creates it; a digest is
// stored. A change takes effect at once in this process and within a second in all others.

import { checkAccessNames } from '../catalog/endpoint-access.ts'
import { endpointsOf } from '../catalog/index.ts'
import type { CatalogStore } from '../catalog/store.ts'
import { checkModelNames } from '../catalog/unknown-model.ts'
import type { Audit, By } from '../database/audit.ts'
import type { Changes } from '../database/changes.ts'
import { type Database, type Queryable, sql } from '../database/database.ts'
import { Fault, invalid } from '../kernel/fault.ts'
import { isTestAccount, testAccountOf } from '../kernel/test-account.ts'
import type { Page, Paging } from '../kernel/view.ts'
import { newId, type World } from '../kernel/world.ts'
import type { Ledger } from '../ledger/ledger.ts'
import { type Limits, type LimitsPatch, mergeLimits, readLimits, showLimits, storeLimits } from '../ledger/limits.ts'
import { type Accounts, lockAccount } from './accounts.ts'
import { digestOf, IMPORTED_PREFIX, importedDigest, makeKey, readIpRanges } from './api-key.ts'
import { checkPlace } from './teams.ts'
import type { KeyRouting, KeyView, NewKey } from './views.ts'

/** What people choose of a key. */
interface Chosen {
  readonly name: string
  readonly models: readonly string[] | null
  /** Names of catalog/endpoint-access.ts; null: every endpoint. */
  readonly endpoints: readonly string[] | null
  /** Names of labels that its calls must carry. */
  readonly requiredLabels: readonly string[] | null
  /** The team or project that it belongs to, and the person whose it is. */
  readonly teamId: string | null
  readonly memberId: string | null
  readonly ipRanges: readonly string[] | null
  /** Whether its calls use the response cache; null: the model's default. */
  readonly responseCache: boolean | null
  /** The routing restriction of its calls; null: none. */
  readonly routing: KeyRouting | null
}

/** What is absent stays as it is. */
type KeyPatch = { readonly [F in keyof Chosen]?: Chosen[F] | undefined } & {
  readonly expiresAtMs?: number | null | undefined
  readonly limits?: LimitsPatch | null | undefined
}

interface NewKeyInput extends KeyPatch {
  readonly name: string
  /** A key of the account's test account, which is made with the first. */
  readonly test?: boolean | undefined
  /** A connection by OAuth: its grant, and the program's name. */
  readonly grant?: { readonly id: string; readonly client: string } | undefined
}

/** A key that another gateway made. */
interface ImportedKeyInput extends KeyPatch {
  readonly name: string
  /** Of its value, in hexadecimal. */
  readonly sha256: string
  readonly last4: string
}

/** Of `teams`, and of `memberId`; without teams all. */
interface KeyPaging extends Paging {
  readonly teams?: ReadonlySet<string> | undefined
  readonly memberId?: string | undefined
}

interface KeyLeaver {
  readonly account: string
  readonly person: string
  readonly heir?: string | undefined
}

export type Keys = ReturnType<typeof createKeys>

export function createKeys(options: {
  database: Database
  changes: Changes
  catalog: CatalogStore
  world: World
  audit: Audit
  accounts: Pick<Accounts, 'openTest'>
  ledger: Pick<Ledger, 'recalled'>
  pepper: Buffer
}) {
  const { database, changes, catalog, world, audit, accounts, ledger, pepper } = options

  /** The transaction of a change: other processes will see the counter, and this one forgets what it knew at once. */
  async function changing<T>(run: (tx: Queryable) => Promise<T>): Promise<T> {
    const result = await database.transaction(async (tx) => {
      await changes.bump(tx, 'keys')
      return run(tx)
    })
    await changes.notice('keys')
    return result
  }

  function check(input: KeyPatch): void {
    const { document } = catalog.current
    checkModelNames(input.models ?? [], document)
    for (const name of input.routing?.vendors ?? [])
      if (!Object.keys(document.vendors).some((one) => one === name || one.startsWith(`${name}/`)))
        throw invalid(`routing.vendors: there is no vendor "${name}".`, 'routing.vendors')
    if (input.endpoints) checkAccessNames(input.endpoints, endpointsOf(catalog.current))
    if (input.ipRanges) readIpRanges(input.ipRanges)
    if (typeof input.expiresAtMs === 'number' && input.expiresAtMs <= world.nowMs())
      throw invalid('expiresAt: must lie in the future.', 'expiresAt')
  }

  async function insert(tx: Queryable, account: string, row: KeyRowInput): Promise<NewKey> {
    const key = makeKey(world, account)
    const value = { digest: digestOf(pepper, key), prefix: key.slice(0, 12), last4: key.slice(-4) }
    const inserted = await insertRow(tx, account, { ...row, ...value })
    return { ...keyView(inserted!), key }
  }

  async function insertRow(
    tx: Queryable,
    account: string,
    row: KeyRowInput & { readonly digest: Buffer; readonly prefix: string; readonly last4: string },
  ): Promise<KeyRow | undefined> {
    const [inserted] = await tx.query<KeyRow>(INSERT, [
      `key_${newId(world)}`,
      account,
      row.name,
      row.digest,
      row.prefix,
      row.last4,
      row.models,
      row.ipRanges,
      row.expiresAtMs,
      row.grant?.id ?? null,
      row.grant?.client ?? null,
      row.responseCache,
      row.endpoints,
      row.requiredLabels,
      row.teamId,
      row.memberId,
      routingText(row),
      row.makerId ?? null,
    ])
    // They are stored next, when it is known which keys it replaces.
    return inserted && { ...inserted, limits: row.limits }
  }

  async function locked(tx: Queryable, id: string): Promise<KeyRow> {
    const [row] = await tx.query<KeyRow>(LOCK, [id])
    if (!row) throw keyUnknown()
    await lockAccount(tx, row.account_id)
    return { ...row, limits: await readLimits(tx, row.account_id, id) }
  }

  async function revoke(tx: Queryable, id: string, by: By): Promise<KeyView> {
    const was = keyView(await locked(tx, id))
    const [row] = await tx.query<KeyRow>(REVOKE, [id, world.nowMs()])
    const view = keyView(row!)
    const { name, last4 } = view
    await audit.write(tx, by, {
      action: 'key.revoke',
      object: id,
      detail: { name, last4 },
      before: { revokedAt: was.revokedAt },
      after: { revokedAt: view.revokedAt },
    })
    return view
  }

  /** Others may know its value, so it does not count as created by the heir. */
  async function handOver(tx: Queryable, id: string, heir: string, by: By): Promise<void> {
    const { name, last4, memberId } = await locked(tx, id)
    await tx.query(HAND_OVER, [id, heir])
    const change = { before: { memberId }, after: { memberId: heir } }
    await audit.write(tx, by, { action: 'key.change', object: id, detail: { name, last4 }, ...change })
  }

  /** One key per consent. The new key continues the spending of the earlier one, like a rotated key. */
  async function replaceConsent(tx: Queryable, made: { account: string; grant: string; key: string }, by: By) {
    for (const { id } of await tx.query<{ id: string }>(OF_CONSENT, [made.account, made.grant])) {
      await tx.query(REPLACE, [id, made.key, world.nowMs()])
      await revoke(tx, id, by)
    }
  }

  function mustLive(row: KeyRow): void {
    if (row.revokedAt) throw new Fault('conflict', { message: 'This key is revoked or replaced. Create a new one.' })
  }

  return {
    /** Those of its test account among them. */
    /** Of `teams`, and of `memberId`; without teams all. */
    async list(account: string, { cursor, limit, teams, memberId }: KeyPaging): Promise<Page<KeyView>> {
      const both = [account, testAccountOf(account)]
      const of = [teams ? [...teams] : null, memberId ?? null]
      const rows = await database.query<KeyRow>(LIST, [both, cursor ?? '~', limit + 1, ...of])
      const items = rows.slice(0, limit).map(keyView)
      return { items, next: rows.length > limit ? (items.at(-1)?.id ?? null) : null }
    },

    async get(id: string) {
      const [row] = await database.query<KeyRow>(GET, [id])
      return row && { account: row.account_id, key: keyView(row) }
    },

    async create(owner: string, input: NewKeyInput, by: By) {
      check(input)
      const account = input.test ? testAccountOf(owner) : owner
      return changing(async (tx) => {
        await lockAccount(tx, owner, 'new key')
        await checkPlace(tx, owner, input, by.person)
        if (input.test) await accounts.openTest(tx, owner, by)
        const row = patched(BLANK, input)
        const made = await insert(tx, account, { ...row, grant: input.grant, makerId: by.person })
        if (input.grant) await replaceConsent(tx, { account, grant: input.grant.id, key: made.id }, by)
        await storeKeyLimits(tx, { id: made.id, account_id: account }, row.limits)
        await audit.write(tx, by, {
          action: 'key.create',
          object: made.id,
          detail: { account, ...told(made) },
          before: {},
          after: told(made),
          rows: [['api_key', made.id]],
        })
        return made
      })
    },

    /** Callers keep using it. If the account has it already, it stays as it is. */
    async import(account: string, input: ImportedKeyInput, by: By) {
      check(input)
      const digest = importedDigest(pepper, input.sha256)
      return changing(async (tx) => {
        await lockAccount(tx, account, 'new key')
        const row = { ...patched(BLANK, input), last4: input.last4, digest, prefix: IMPORTED_PREFIX }
        const made = await insertRow(tx, account, row)
        if (!made) {
          const [there] = await tx.query<KeyRow>(BY_DIGEST, [digest])
          if (there?.account_id === account) return keyView(there)
          throw new Fault('conflict', { message: 'This key belongs to another account already.' })
        }
        await storeLimits(tx, { kind: 'key', account, key: made.id, earlier: [] }, row.limits)
        const view = keyView(made)
        await audit.write(tx, by, {
          action: 'key.import',
          object: made.id,
          detail: { account, ...told(view) },
          before: {},
          after: told(view),
          rows: [['api_key', made.id]],
        })
        return view
      })
    },

    async change(id: string, input: KeyPatch, by: By) {
      check(input)
      const { view, account } = await changing(async (tx) => {
        const row = await locked(tx, id)
        mustLive(row)
        await checkPlace(tx, row.account_id, input)
        const next = patched(row, input)
        const permits = [next.responseCache, next.endpoints, next.requiredLabels, next.teamId, next.memberId]
        const what = [next.name, next.models, next.ipRanges, next.expiresAtMs]
        // A key that is assigned to another member does not count as created by them, because others may know its
        // value.
        const isGiven = next.memberId !== row.memberId && next.memberId !== by.person
        const fields = [...what, ...permits, routingText(next), isGiven]
        if (input.limits !== undefined) await storeKeyLimits(tx, row, next.limits)
        const [changed] = await tx.query<KeyRow>(CHANGE, [id, ...fields])
        const view = keyView(changed!)
        await audit.write(tx, by, {
          action: 'key.change',
          object: id,
          detail: told(view),
          before: told(keyView(row)),
          after: told(view),
          rows: [['api_key', id]],
        })
        return { view, account: row.account_id }
      })
      // From the answer on they hold in all processes.
      if (input.limits !== undefined) await ledger.recalled(account)
      return view
    },

    revoke: (id: string, by: By) => changing((tx) => revoke(tx, id, by)),

    /**
     * Ends what lets a person call in an account, as part of another transaction: keys that are theirs, keys of nobody
     * that they made, and their OAuth connections. With an heir, the keys become that member's instead. Call `noticed`
     * after the commit.
     */
    async endOf(tx: Queryable, { account, person, heir }: KeyLeaver, by: By) {
      // The bump comes first, as in `changing`: a key that is being created is either among these, or finds that its
      // maker has left.
      await changes.bump(tx, 'keys')
      await lockAccount(tx, account)
      const both = [account, testAccountOf(account)]
      const rows = await tx.query<{ id: string; program: boolean }>(OF_PERSON, [both, person])
      const counts = { keys: 0, programs: 0, handedOver: 0 }
      for (const { id, program } of rows) {
        counts[program ? 'programs' : heir === undefined ? 'keys' : 'handedOver'] += 1
        if (program || heir === undefined) await revoke(tx, id, by)
        else await handOver(tx, id, heir, by)
      }
      return counts
    },

    /** Ends the person's OAuth connections, or only those to accounts of which they are not a member. */
    async endPrograms(tx: Queryable, { person, isOutside }: { person: string; isOutside: boolean }, by: By) {
      await changes.bump(tx, 'keys')
      const rows = await tx.query<{ id: string }>(PROGRAMS, [person, isOutside])
      for (const { id } of rows) await revoke(tx, id, by)
      return rows.length
    },

    noticed: () => changes.notice('keys'),

    /** Ends the key of a grant, if there is one that lives. */
    /** A grant is valid as long as the API key that represents it. */
    grantLives: async (grant: string) => (await database.query(GRANT_LIVES, [grant])).length > 0,

    async revokeGrant(grant: string, by: By) {
      const [row] = await database.query<{ id: string }>(OF_GRANT, [grant])
      if (row) await this.revoke(row.id, by)
    },

    /** A new key with the settings of the old one, except those given. The old key keeps working for the overlap. */
    async rotate(id: string, { overlapSeconds, ...patch }: KeyPatch & { readonly overlapSeconds: number }, by: By) {
      check(patch)
      return changing(async (tx) => {
        const row = await locked(tx, id)
        mustLive(row)
        await checkPlace(tx, row.account_id, patch, by.person)
        if (row.client !== null)
          throw new Fault('conflict', {
            message: 'The tokens of a connection renew themselves. Revoke it, and connect again.',
          })
        const next = patched(row, patch)
        const made = await insert(tx, row.account_id, { ...next, makerId: by.person })
        await tx.query(REPLACE, [id, made.id, world.nowMs() + overlapSeconds * 1000])
        await storeKeyLimits(tx, { id: made.id, account_id: row.account_id }, next.limits)
        await tx.query(KEEP_CONTENT_RULE, [id, made.id])
        const detail = { replacedBy: made.id, overlapSeconds, ...told(made) }
        await audit.write(tx, by, {
          action: 'key.rotate',
          object: id,
          detail,
          before: told(keyView(row)),
          after: told(made),
          rows: [['api_key', made.id]],
        })
        return made
      })
    },
  }
}

/** A rotated key continues the spending of the earlier keys; otherwise rotating would reset a limit. */
async function storeKeyLimits(tx: Queryable, row: { id: string; account_id: string }, limits: Limits): Promise<void> {
  const earlier = await tx.query<{ id: string }>(EARLIER, [row.id])
  const scope = { kind: 'key', account: row.account_id, key: row.id, earlier: earlier.map(({ id }) => id) } as const
  await storeLimits(tx, scope, limits)
}

export function keyUnknown(): Fault {
  return new Fault('not_found', { message: 'There is no key with this id.' })
}

interface KeyRowInput extends Chosen {
  readonly expiresAtMs: number | null
  readonly limits: Limits
  readonly grant?: NewKeyInput['grant']
  /** Who learns its value. */
  readonly makerId?: string | undefined
}

// The rows of keys: how they are read, written and shown.

type Moments = 'expiresAt' | 'revokedAt' | 'lastUsedAt'
interface KeyRow extends Omit<KeyView, Moments | 'createdAt' | 'limits' | 'test'>, Record<Moments, Date | null> {
  account_id: string
  createdAt: Date
  limits: Limits
}

const BLANK = {
  name: '',
  models: null,
  endpoints: null,
  requiredLabels: null,
  teamId: null,
  memberId: null,
  ipRanges: null,
  responseCache: null,
  routing: null,
  expiresAt: null,
  limits: {},
} as const

/** The key after a change: its current settings, except those given. */
function patched(row: Pick<KeyRow, keyof typeof BLANK>, patch: KeyPatch): KeyRowInput {
  const { name = row.name, models = row.models, endpoints = row.endpoints, ipRanges = row.ipRanges } = patch
  const { requiredLabels = row.requiredLabels, teamId = row.teamId, memberId = row.memberId } = patch
  const { responseCache = row.responseCache, routing = row.routing } = patch
  const { expiresAtMs = row.expiresAt?.getTime() ?? null } = patch
  const limits = mergeLimits(row.limits, patch.limits)
  const place = { teamId, memberId }
  return { name, models, endpoints, requiredLabels, ...place, ipRanges, expiresAtMs, responseCache, routing, limits }
}

/** What the audit may keep of a key. */
function told(view: KeyView): Record<string, unknown> {
  const { name, last4, models, endpoints, requiredLabels, expiresAt, limits, ipRanges, responseCache } = view
  const { teamId, memberId, routing, client } = view
  const set = Object.entries({ teamId, memberId, routing, client }).filter(([, value]) => value !== null)
  const some = Object.fromEntries(set)
  return { name, last4, models, endpoints, requiredLabels, expiresAt, limits, ipRanges, responseCache, ...some }
}

const routingText = ({ routing }: Pick<KeyRowInput, 'routing'>) => routing && JSON.stringify(routing)

function keyView({ account_id: account, ...row }: KeyRow): KeyView {
  return {
    ...row,
    test: isTestAccount(account),
    limits: showLimits(row.limits),
    expiresAt: row.expiresAt?.toISOString() ?? null,
    revokedAt: row.revokedAt?.toISOString() ?? null,
    lastUsedAt: row.lastUsedAt?.toISOString() ?? null,
    createdAt: row.createdAt.toISOString(),
  }
}

const COLUMNS = `id, account_id, name, prefix, last4, models, endpoints, required_labels as "requiredLabels", team_id as "teamId",
   member_id as "memberId", ip_ranges as "ipRanges", limits_of(account_id, id) as limits, response_cache as "responseCache", routing,
   expires_at as "expiresAt", revoked_at as "revokedAt", replaced_by as "replacedBy", client, last_used_at as "lastUsedAt", created_at as "createdAt"`
const LIST = sql('key_list')`
  select ${COLUMNS} from api_key where account_id = any($1) and id < $2 and ($4::text[] is null or team_id = any($4) or member_id = $5) order by id desc limit $3`
const GET = sql('key_get')`select ${COLUMNS} from api_key where id = $1`
const LOCK = sql('key_lock')`select ${COLUMNS} from api_key where id = $1 for update`
const INSERT = sql('key_insert')`
  insert into api_key (id, account_id, name, digest, prefix, last4, models, ip_ranges, expires_at, grant_id, client, response_cache, endpoints, required_labels, team_id, member_id, routing, maker_id)
   values ($1, $2, $3, $4, $5, $6, $7, $8, to_timestamp($9::double precision / 1000), $10, $11, $12, $13, $14, $15, $16, $17, $18)
   on conflict (digest) do nothing returning ${COLUMNS}`
const BY_DIGEST = sql('key_by_digest')`select ${COLUMNS} from api_key where digest = $1`
const CHANGE = sql('key_change')`
  update api_key set name = $2, models = $3, ip_ranges = $4, expires_at = to_timestamp($5::double precision / 1000),
     response_cache = $6, endpoints = $7, required_labels = $8, team_id = $9, member_id = $10, routing = $11, maker_id = case when $12 then null else maker_id end
   where id = $1 returning ${COLUMNS}`
// The earlier of the two clocks, so that the key has ended by either clock.
const REVOKE = sql('key_revoke')`
  update api_key set revoked_at = least(revoked_at, now(), to_timestamp($2::double precision / 1000)) where id = $1
   returning ${COLUMNS}`
// Budgets of the first key go on.
const REPLACE = sql('key_replace')`with old as (
     update api_key set replaced_by = $2, revoked_at = to_timestamp($3::double precision / 1000) where id = $1 returning coalesce(first_id, id) as first_id
   ) update api_key k set first_id = coalesce(k.first_id, o.first_id) from old o where k.id = $2`
const KEEP_CONTENT_RULE = sql('key_keep_content_rule')`
  insert into recording_policy (account_id, scope, days, bytes) select account_id, $2, days, bytes from recording_policy where scope = $1`
const OF_GRANT = sql('key_of_grant')`select id from api_key where grant_id = $1 and revoked_at is null`
/** Keys that were replaced count until their overlap ends. */
const LIVE = '(k.revoked_at is null or k.revoked_at > now())'
const GRANT_LIVES = sql('key_grant_lives')`
  select 1 from api_key k where k.grant_id = $1 and ${LIVE} and (k.expires_at is null or k.expires_at > now())`
const OF_PERSON = sql('key_of_person')`select k.id, k.client is not null as program from api_key k
     left join oauth_object o on o.model = 'Grant' and o.digest = sha256(convert_to(k.grant_id, 'UTF8'))
   where k.account_id = any($1) and ${LIVE}
     and (k.member_id = $2 or (k.member_id is null and k.maker_id = $2) or o.payload ->> 'accountId' = $2) order by k.id`
const PROGRAMS = sql('key_programs')`
  select k.id from oauth_object o join api_key k on o.digest = sha256(convert_to(k.grant_id, 'UTF8'))
   where o.model = 'Grant' and o.payload ->> 'accountId' = $1 and ${LIVE}
     and not ($2 and exists (select 1 from membership m where m.person_id = $1 and m.account_id = regexp_replace(k.account_id, '_test$', ''))) order by k.id`
const HAND_OVER = sql('key_hand_over')`update api_key set member_id = $2, maker_id = null where id = $1`
// Earlier connections of the same person and program to the account.
const OF_CONSENT = sql('key_of_consent')`
  select k.id from api_key k join oauth_object o on o.model = 'Grant' and o.digest = sha256(convert_to(k.grant_id, 'UTF8'))
   join oauth_object mine on mine.model = 'Grant' and mine.digest = sha256(convert_to($2, 'UTF8'))
   where k.account_id = $1 and k.grant_id <> $2 and k.revoked_at is null
   and o.payload ->> 'accountId' = mine.payload ->> 'accountId' and o.payload ->> 'clientId' = mine.payload ->> 'clientId' order by k.id`
const EARLIER = sql('key_earlier')`with recursive earlier as (
     select id from api_key where replaced_by = $1
     union select k.id from api_key k join earlier e on k.replaced_by = e.id
   ) select id from earlier`
