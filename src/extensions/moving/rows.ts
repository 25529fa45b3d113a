// The rows of one account, read in one database and written to another, and what they come to at either end.
import { type Database, type Queryable, type Statement, sql, statement, type Value } from '../../database/database.ts'
import { SHARED } from '../../database/tables.ts'
import { sumArrived, WAITING as WAITING_CALLS } from '../../ledger/usage-sums.ts'
import { one } from './steps.ts'

interface Part {
  readonly name: string
  /** Which of its rows are the account's. */
  readonly OF: string
  /** Which are replaced at the target: those, where it is not said. */
  readonly REPLACED?: string
  readonly isTold?: boolean
}

/**
 * These only grow, by ids that follow time. Transfers have moments that are in the order of their commits, as the
 * account is locked, and each call is written with the transfer of its id: what came after a moment is exactly known.
 */
const CALLS = ['transfer', 'usage'] as const
/** When a row of the others was written stands in the column named here. */
const MOVEMENTS = { purse_movement: 'moved_at' } as const
/** Not compared, and copied to the end when the target serves: calls are refused while the account is closed, too. */
const LISTED = { refusal: 'at' } as const
/** Within one installation also what was kept of requests and answers. */
const LISTED_WITHIN = { ...LISTED, recording: 'at' } as const
const COMPARED = { transfer: 'at', usage: 'at', ...MOVEMENTS } as const
const ALL_WITHIN = { ...COMPARED, ...LISTED_WITHIN } as const
type Growing = keyof typeof ALL_WITHIN
/** Those of the table. */
const namesOf = <Name extends string>(tables: Readonly<Record<Name, string>>) => Object.keys(tables) as Name[]
const listed = (isWithin: boolean) => namesOf(isWithin ? LISTED_WITHIN : LISTED)
/** These have rows of an account and are not copied with those that change: some in a way of their own. */
const APART: readonly string[] = [
  'hold',
  'lease',
  'journal',
  'quota_slice',
  'account_move', // of what runs, which is waited for, and of the move
  'membership',
  'team_member',
  'invite',
  'access_token',
  'account_domain',
  'login_domain',
  'login_group', // people are known by their address; the rest is set up anew
  'recording',
  'tool_connection',
  'export',
  'export_customer',
  'audit_export',
  'account_change', // of this gateway alone
]
/**
 * Sums of days that are over change no more, and are copied while the account is in use, a month at a time. Calls are
 * added to those by the day later (ledger/usage-sums.ts), here or there, so that only days that are over are compared.
 */
const DAYS = ['usage_day', 'label_day']
const DATED = [
  { name: 'usage_hour', AT: 'hour', isTold: false },
  ...DAYS.map((name) => ({ name, AT: `(day::timestamp at time zone 'UTC')`, isTold: true })),
]

/**
 * Copied as a whole at the end and not compared: an alert may fire at any moment. What waits to be delivered is
 * delivered from where it fired.
 */
const TOLD: readonly Part[] = [
  ...['alert', 'alert_state', 'alert_setting', 'alert_mailbox'].map((name) => ({ name, OF: 'scope = $1' })),
  { name: 'delivery', OF: 'account_id = $1 and not open' },
]
/** What was set up for this account in this installation. */
const SET_UP = ['tool_connection', 'export'].map((name) => ({ name, OF: 'account_id = $1' }))

export interface Tally {
  readonly rows: number
  /** A sum over hashes of whole rows: no column of any row differs where it is the same. */
  readonly mark: string
}

/**
 * What may differ: numbers of catalog versions and of transactions are each database's own, a key may be used at any
 * time, and what happened here is told from here.
 */
const ROW_HASH = `hashtextextended((to_jsonb(t) - 'catalog_version' - 'posting' - 'last_used_at' - 'untold')::text, 0)`

const AFTER = 'select x.id from transfer x where x.account_id = $1 and x.moved_at > $2::text::timestamptz'
const TALLY = (TABLE: string, OF: string) =>
  `select '${TABLE}' as name, count(*)::int as rows, coalesce(sum(${ROW_HASH}), 0)::text as mark from ${TABLE} t where ${OF}`

const GROWN = Object.fromEntries(
  Object.entries(ALL_WITHIN).map(([TABLE, AT]) => [
    TABLE,
    {
      // Rows that are older than the second moment were copied before.
      page: sql(`move_page_${TABLE}`)`
        select coalesce(jsonb_agg(to_jsonb(t)), '[]')::text as rows, count(*)::int as count, max(t.id) as last from (
        select * from ${TABLE} where account_id = $1 and id > $2 and ${AT} >= $3 order by id limit $4) t`,
      remove: sql(`move_remove_${TABLE}`, 600_000)`delete from ${TABLE} where account_id = $1`,
    },
  ]),
) as Record<Growing, Record<'page' | 'remove', Statement>> // one for each
/** Transfers between two moments, and their calls. */
const PAGE_CALLS = sql('move_page_calls')`
  with page as materialized (
    select * from transfer where account_id = $1 and moved_at > $2::text::timestamptz and moved_at <= $3::text::timestamptz order by moved_at limit $4
  ) select (select coalesce(jsonb_agg(to_jsonb(p)), '[]')::text from page p) as transfer,
    (select coalesce(jsonb_agg(to_jsonb(u)), '[]')::text from usage u where u.account_id = $1 and u.id = any(array(select p.id from page p))) as usage,
    count(*)::int as count, max(moved_at)::text as last from page`
/** Everything up to a moment. */
const TALLY_HISTORY = statement(
  'move_tally_history',
  [
    TALLY('transfer', 't.account_id = $1 and (t.moved_at > $2::text::timestamptz) is not true'),
    TALLY('usage', `t.account_id = $1 and not exists (${AFTER} and x.id = t.id)`),
    TALLY('purse_movement', 't.account_id = $1 and t.moved_at < $3'),
  ].join(' union all '),
  600_000,
)
/** Of what was written between two moments. */
const BETWEEN = `${AFTER} and x.moved_at <= $3::text::timestamptz`
const TALLIES_BETWEEN = CALLS.map((TABLE) => TALLY(TABLE, `t.account_id = $1 and t.id = any(array(${BETWEEN}))`)).join(
  ' union all ',
)
const TALLY_CALLS = statement('move_tally_calls', TALLIES_BETWEEN, 600_000)
const ALL = (TABLE: string, OF: string) =>
  `select coalesce(jsonb_agg(to_jsonb(t)), '[]')::text as rows from ${TABLE} t where ${OF}`
const TABLES = sql('move_tables')`
  select c.relname as name from pg_class c join pg_attribute a on a.attrelid = c.oid and a.attname = 'account_id' and not a.attisdropped
  where c.relnamespace = current_schema()::regnamespace and c.relkind in ('r', 'p') and not c.relispartition and c.relname <> all($1::text[]) order by 1`
const DATED_ROWS = DATED.map(({ name: TABLE, AT, isTold }) => {
  const OF = `account_id = $1 and ${AT} >= $2 and ${AT} < $3`
  return {
    name: TABLE,
    months: sql(`move_months_${TABLE}`, 600_000)`
      select distinct date_trunc('month', ${AT}, 'UTC') as month from ${TABLE} where account_id = $1 and ${AT} < $2 order by 1`,
    all: statement(`move_all_${TABLE}`, ALL(TABLE, OF), 600_000),
    tally: statement(`move_tally_${TABLE}`, TALLY(TABLE, OF), 600_000),
    remove: sql(`move_remove_${TABLE}`, 600_000)`delete from ${TABLE} where ${OF}`,
    /** Since a moment. */
    part: { name: TABLE, OF: `account_id = $1 and ${AT} >= $2`, isTold },
  }
})

/**
 * All other tables with rows of an account, as the schema has them: these change, and are few. Copied at the end, as a
 * whole, and each step of all tables is one statement: the account is closed meanwhile, and on a busy machine each word
 * to a database waits.
 */
async function changing(on: Queryable, isWithin: boolean): Promise<Part[]> {
  const apart = [
    ...APART,
    ...(isWithin ? SHARED : []),
    ...namesOf(ALL_WITHIN),
    ...[...DATED, ...TOLD].map(({ name }) => name),
  ]
  const tables = await on.query<{ name: string }>(TABLES, [apart])
  return tables.map(({ name }) => ({
    name,
    OF: name === 'job' ? 'account_id = $1 and not open' : 'account_id = $1',
    // The archive's files are compared with the checkpoints of all accounts that were here.
    REPLACED: isWithin && name === 'ledger_checkpoint' ? 'false' : 'account_id = $1',
  }))
}

/** What is copied at the end, as statements. */
export async function restOf(on: Queryable, isWithin: boolean) {
  const compared = await changing(on, isWithin)
  const parts = [
    ...compared,
    ...DATED_ROWS.map(({ part }) => part),
    ...TOLD.map((part) => ({ ...part, isTold: true })),
    ...(isWithin ? SET_UP.map((part) => ({ ...part, isTold: true })) : []),
  ]
  const kind = isWithin ? 'within' : 'abroad'
  const ROWS = parts
    .map(({ name: TABLE, OF }) => `select '${TABLE}' as name, (${ALL(TABLE, OF)}) as rows`)
    .join(' union all ')
  // The calls that wait to be added to the sums of days are of the same moment as those.
  const WAITING_IDS = `select '${WAITING}', (select coalesce(jsonb_agg(u.id), '[]')::text from usage u where u.account_id = $1 and ${WAITING_CALLS})`
  const tallied = ({ name: TABLE, OF }: Part) => TALLY(TABLE, OF)
  return {
    parts,
    rows: sql(`move_rest_${kind}`, 600_000)`${ROWS} union all ${WAITING_IDS}`,
    tally: statement(`move_tally_changing_${kind}`, compared.map(tallied).join(' union all '), 600_000),
    /** With the account closed, of what may have been written since it was compared. */
    tallyRest: statement(
      `move_tally_rest_${kind}`,
      [
        ...parts.filter(({ isTold }) => !isTold).map(tallied),
        // Of before they are counted only.
        `select 'purse_movement', count(*)::int, coalesce(sum(${ROW_HASH}) filter (where t.moved_at >= $4), 0)::text from purse_movement t where t.account_id = $1 and t.id >= $5`,
        `select 'account', 1, hashtextextended((to_jsonb(a) - '{frozen_until,ledger,is_moving}'::text[])::text, 0)::text from account a where a.id = $1`,
        ...CALLS.map((TABLE) => TALLY(TABLE, `t.account_id = $1 and t.id = any(array(${AFTER.replace('$2', '$3')}))`)),
      ].join(' union all '),
      600_000,
    ),
  }
}
export type Rest = Awaited<ReturnType<typeof restOf>>
/** In the place of a table's name. */
const WAITING = 'calls that wait'

const REMOVE = ({ name: TABLE, OF, REPLACED = OF }: Part) => `delete from ${TABLE} where ${REPLACED}`
const step = (parts: readonly Part[], write: (part: Part) => string, LAST: string): Statement => ({
  text: `with ${parts.map((part) => `${part.name}_step as (${write(part)})`).join(', ')} ${LAST}`,
  withinMs: 600_000,
})
/** What was kept of requests and answers stays behind, and goes at once: nobody reads it there any more. */
export const REMOVE_CONTENT = sql('move_remove_content')`
  with gone as (delete from recording where (account_id, id) in (select account_id, id from recording where account_id = $1 limit 500) returning 1)
  select count(*)::int as count from gone`
/** Sign-ins at tool servers are for this gateway alone: people sign in anew elsewhere. */
export const REMOVE_SIGN_INS = sql('move_remove_sign_ins')`delete from tool_connection where account_id = $1`
/** Of rows as JSON; the second value says which version of the target's catalog is which of the source's. */
const INSERT = (TABLE: string, ROWS: string) =>
  `insert into ${TABLE} select p.* from jsonb_array_elements(${ROWS}) r, lateral jsonb_populate_record(null::${TABLE},
         r || jsonb_build_object('catalog_version', coalesce($2::jsonb -> (r ->> 'catalog_version'), r -> 'catalog_version'),
           -- Exports of the database where a call was made have sent it, as it tells of purses: neither is done from here again.
           'posting', null, 'untold', null)${TABLE === 'export' ? EXPORTS_FROM_HERE : ''}) p
       on conflict do nothing`
const EXPORTS_FROM_HERE = ` || jsonb_build_object('cursor_posting', usage_horizon(), 'cursor_account', '', 'cursor_id', '', 'backfill', null)`
/** The name is one of the above. */
const insertInto = (TABLE: string) => statement(`move_insert_${TABLE}`, INSERT(TABLE, '$1::jsonb'), 600_000)
// People are known by their address; whoever is an operator here is not therefore one there.
const MEMBERS = sql('move_members')`
  select coalesce(jsonb_agg(jsonb_build_object('id', p.id, 'email', p.email, 'password', p.password, 'verified', p.email_verified_at, 'role', m.role, 'at', m.created_at)), '[]')::text as rows
  from membership m join person p on p.id = m.person_id where m.account_id = $1`
const PUT_PEOPLE = sql('move_put_people')`
  insert into person (id, email, password, email_verified_at) select x.id, x.email, x.password, x.verified
  from jsonb_to_recordset($1::jsonb) as x(id text, email text, password text, verified timestamptz)
  on conflict do nothing`
const PUT_MEMBERS = sql('move_put_members')`
  insert into membership (account_id, person_id, role, created_at) select $1, p.id, x.role, x.at
  from jsonb_to_recordset($2::jsonb) as x(email text, role text, at timestamptz) join person p on p.email = x.email`
const TEAM_MEMBERS = sql('move_team_members')`
  select coalesce(jsonb_agg(jsonb_build_object('team', m.team_id, 'email', p.email)), '[]')::text as rows
  from team_person m join person p on p.id = m.person_id where m.account_id = $1`
const PUT_TEAM_MEMBERS = sql('move_put_team_members')`
  insert into team_member (account_id, team_id, person_id) select $1, x.team, p.id
  from jsonb_to_recordset($2::jsonb) as x(team text, email text) join person p on p.email = x.email on conflict do nothing`
const REMOVE_EXPORTS = sql('move_remove_exports')`delete from export where account_id = $1`
const REMOVE_MEMBERS = sql('move_remove_members')`delete from membership where account_id = $1`
const TALLY_MEMBERS = sql('move_tally_members')`
  select count(*)::int as rows, coalesce(sum(hashtextextended(p.email || ' ' || m.role, 0)), 0)::text as mark
  from membership m join person p on p.id = m.person_id where m.account_id = $1`
const VERSIONS = sql('move_versions')`
  select distinct (r ->> 'catalog_version')::int as version
  from jsonb_path_query($1::jsonb, (case jsonb_typeof($1::jsonb) when 'array' then '$[*]' else '$.*[*]' end)::jsonpath) r where r ? 'catalog_version'`
const DOCUMENT = sql('move_document')`select document from catalog_version where version = $1`
const LOCK_VERSIONS = sql('catalog_lock')`select pg_advisory_xact_lock(7046029259)`
// Below zero, where no version of its own ever is: a price that was valid elsewhere, by which nothing is sold here.
const PUT_DOCUMENT = sql('move_put_document')`
  with known as (select version from catalog_version where document = $1 order by abs(version) limit 1), made as (
    insert into catalog_version (version, document, note, actor)
    select least(min(version), 0) - 1, $1, $2, 'system' from catalog_version having not exists (select 1 from known) returning version)
  select version from known union all select version from made`
const BALANCE = sql('move_balance', 600_000)`
  select coalesce(sum(amount), 0)::bigint as sum from entry where account_id = $1 and account = 'account:' || $1::text`

const PAGE_ROWS = 1_000
/** A recording may have a megabyte. */
const PAGE_RECORDINGS = 20
const ALWAYS = new Date(0)
const EVER = new Date('9999-01-01')

export interface Ends {
  readonly account: string
  readonly source: Database
  readonly target: Queryable
  /** The other database, for the notes of catalog versions that come from there. */
  readonly from: string
  /** Both are of one installation, where people, teams and the catalog have one place. */
  readonly isWithin: boolean
}

/** Which version of the target's catalog is which of the source's. */
export type Versions = Map<number, number>

type Each = (write: (tx: Queryable) => Promise<void>) => Promise<void>

/**
 * Rows of the growing tables from an id on, written since a moment. `each` runs one page's writing, in a transaction
 * that it chooses.
 */
async function copyGrown(
  tables: readonly Growing[],
  ends: Ends,
  versions: Versions,
  { since, each }: { readonly since: { readonly id: string; readonly at?: Date }; readonly each: Each },
): Promise<number> {
  let sum = 0
  for (const table of tables)
    for (let after = since.id; ; ) {
      const limit = table === 'recording' ? PAGE_RECORDINGS : PAGE_ROWS
      const values = [ends.account, after, since.at ?? ALWAYS, limit]
      const page = await one<{ rows: string; count: number; last: string }>(ends.source, GROWN[table].page, values)
      if (page.count === 0) break
      await each((tx) => put(table, page.rows, { ...ends, target: tx }, versions))
      sum += page.count
      if (page.count < limit) break
      after = page.last
    }
  return sum
}

async function put(table: string, rows: string, ends: Ends, versions: Versions): Promise<void> {
  await learnVersions(ends, versions, rows)
  await ends.target.query(insertInto(table), [rows, JSON.stringify(Object.fromEntries(versions))])
}

/** Everything that only grows, from an id on. */
export const copyAll = (ends: Ends, versions: Versions, id: string, each: Each): Promise<number> =>
  copyGrown([...CALLS, ...namesOf(MOVEMENTS), ...listed(ends.isWithin)], ends, versions, { since: { id }, each })

/** What the lists show and nobody compares. */
export const copyListed = (ends: Ends, versions: Versions, at: Date, each: Each): Promise<number> =>
  copyGrown(listed(ends.isWithin), ends, versions, { since: { id: '', at }, each })

/** What was written between two moments. */
export async function copyRecent(ends: Ends, versions: Versions, { from, to, settled }: Stretch): Promise<void> {
  const { account, source } = ends
  const since = { id: settled, at: new Date(from.at.getTime() - MARGIN_MS) }
  await copyGrown(namesOf(MOVEMENTS), ends, versions, { since, each: (write) => write(ends.target) })
  for (let after = from.moved; ; ) {
    const page = await one<CallsPage>(source, PAGE_CALLS, [account, after, to, PAGE_ROWS])
    for (const table of CALLS) if (page.count > 0) await put(table, page[table], ends, versions)
    if (page.count < PAGE_ROWS) break
    after = page.last
  }
}

/** A transaction may have begun before a moment and ended after it. */
const MARGIN_MS = 60_000

/** How far an account has come. */
export interface Moment {
  /** When its last transfer moved, as text: to the microsecond. */
  readonly moved: string
  readonly at: Date
}
export const EVER_MOVED = 'infinity'
interface Stretch {
  readonly from: Moment
  readonly to: string
  /** The first id that can still be written. */
  readonly settled: string
}
interface CallsPage extends Readonly<Record<(typeof CALLS)[number], string>> {
  readonly count: number
  readonly last: string
}

/** Replaces what the target has of sums up to a moment: a month at a time, by transactions of `each`. */
export async function copyDated(
  { account, source }: Ends,
  until: Date,
  each: (write: (tx: Queryable) => Promise<void>) => Promise<void>,
): Promise<void> {
  for (const { name, months, all, remove } of DATED_ROWS) {
    await each(async (tx) => void (await tx.query(remove, [account, ALWAYS, until])))
    for (const { month } of await source.query<{ month: Date }>(months, [account, until])) {
      const next = new Date(Math.min(Date.UTC(month.getUTCFullYear(), month.getUTCMonth() + 1), until.getTime()))
      const found = await one<{ rows: string }>(source, all, [account, month, next])
      await each(async (tx) => void (await tx.query(insertInto(name), [found.rows, '{}'])))
    }
  }
}

/** What the target has of each table, as it was read. */
export type Sent = Map<string, string>

/**
 * Replaces what the target has of the changing tables, of sums those since a moment: of the tables that are not as they
 * were.
 */
export async function copyChanging(ends: Ends, versions: Versions, { rest, since, sent }: Changes): Promise<void> {
  const { account, source, target, isWithin } = ends
  const found = new Map<string, string>()
  // One statement sees one moment: a call is in the sums, or waits to be added to them.
  for (const { name, rows } of await source.query<{ name: string; rows: string }>(rest.rows, [account, since]))
    found.set(name, rows)
  const isAs = (name: string) => sent.get(name) === found.get(name)
  const days = rest.parts.filter(({ name }) => DAYS.includes(name))
  const isSummed = isAs(WAITING) && days.every(({ name }) => isAs(name))
  const changed = rest.parts.filter((part) => !isAs(part.name) || (!isSummed && days.includes(part)))
  if (changed.length > 0) {
    await target.query(step(changed, REMOVE, 'select $1::text, $2::timestamptz'), [account, since])
    const rows = `{${changed.map(({ name }) => `"${name}":${found.get(name)}`).join()}}`
    await learnVersions(ends, versions, rows)
    const insert = ({ name: TABLE }: Part) => INSERT(TABLE, `$1::jsonb -> '${TABLE}'`)
    await target.query(step(changed, insert, 'select 1'), [rows, JSON.stringify(Object.fromEntries(versions))])
  }
  const waiting: string[] = JSON.parse(found.get(WAITING) ?? '[]')
  if (!isSummed && waiting.length > 0) await sumArrived(target, account, waiting)
  for (const [name, rows] of found) sent.set(name, rows)
  if (isWithin) return
  const members = await one<{ rows: string }>(source, MEMBERS, [account])
  await target.query(REMOVE_MEMBERS, [account])
  await target.query(PUT_PEOPLE, [members.rows])
  await target.query(PUT_MEMBERS, [account, members.rows])
  const teams = await one<{ rows: string }>(source, TEAM_MEMBERS, [account])
  await target.query(PUT_TEAM_MEMBERS, [account, teams.rows])
}

interface Changes {
  readonly rest: Rest
  readonly since: Date
  readonly sent: Sent
}

async function learnVersions(ends: Ends, versions: Versions, rows: string): Promise<void> {
  if (ends.isWithin) return
  for (const { version } of await ends.target.query<{ version: number }>(VERSIONS, [rows])) {
    if (versions.has(version)) continue
    const [found] = await ends.source.query<{ document: string }>(DOCUMENT, [version])
    // What the source cannot explain the target cannot either: `ledger verify` names it at both.
    if (!found) continue
    await ends.target.query(LOCK_VERSIONS)
    const note = `version ${version} of ${ends.from}, for account ${ends.account}`
    const made = await one<{ version: number }>(ends.target, PUT_DOCUMENT, [found.document, note])
    versions.set(version, made.version)
  }
}

/** Everything that was ever copied of an account. */
export async function removeRows(tx: Queryable, account: string, isWithin: boolean): Promise<void> {
  for (const table of [...CALLS, ...namesOf(MOVEMENTS), ...listed(isWithin)])
    await tx.query(GROWN[table].remove, [account])
  const parts = [...TOLD, ...(await changing(tx, isWithin))]
  await tx.query(step(parts, REMOVE, 'select $1::text'), [account])
  for (const { remove } of DATED_ROWS) await tx.query(remove, [account, ALWAYS, EVER])
  await tx.query(REMOVE_SIGN_INS, [account])
  await tx.query(isWithin ? REMOVE_EXPORTS : REMOVE_MEMBERS, [account])
}

type Tallies = Record<string, Tally>
type NamedTally = Tally & { readonly name: string }

/** Inside a transaction: times are hashed as text, in the zone of the session. */
async function tally(tx: Queryable, what: Statement, values: readonly Value[]): Promise<Tallies> {
  await tx.query({ text: `set local timezone = 'UTC'` })
  const rows = await tx.query<NamedTally>(what, values)
  return Object.fromEntries(rows.map(({ name, ...of }) => [name, of]))
}

/** Everything that only grows up to a moment, and sums up to another. */
export async function tallyHistory(tx: Queryable, account: string, until: Moment, over = EVER): Promise<Tallies> {
  const margin = until.moved === EVER_MOVED ? EVER : new Date(until.at.getTime() - MARGIN_MS)
  const tallies = await tally(tx, TALLY_HISTORY, [account, until.moved, margin])
  for (const { name, tally } of DATED_ROWS) tallies[name] = await one<Tally>(tx, tally, [account, ALWAYS, over])
  return tallies
}

export const tallyRecent = (tx: Queryable, account: string, from: string, to: string): Promise<Tallies> =>
  tally(tx, TALLY_CALLS, [account, from, to])

/** With the account closed: what was not compared before. */
export const tallyRest = (tx: Queryable, account: string, { rest, over, from, purses, settled }: Compared) =>
  tally(tx, rest.tallyRest, [account, over, from, new Date(purses.getTime() - MARGIN_MS), settled])

interface Compared {
  readonly rest: Rest
  /** Since when sums, calls, and the movements of purses were not. */
  readonly over: Date
  readonly from: string
  readonly purses: Date
  readonly settled: string
}

export async function tallyChanging(tx: Queryable, account: string, isWithin: boolean): Promise<Tallies> {
  const tallies = await tally(tx, (await restOf(tx, isWithin)).tally, [account])
  return isWithin ? tallies : { ...tallies, membership: await tallyMembers(tx, account) }
}

/** People are no rows of the account: they are compared by their addresses. */
export const tallyMembers = (tx: Queryable, account: string): Promise<Tally> => one<Tally>(tx, TALLY_MEMBERS, [account])

/** What the account's entries sum to. */
export async function balanceOf(tx: Queryable, account: string): Promise<bigint> {
  const [row] = await tx.query<{ sum: bigint }>(BALANCE, [account])
  return row?.sum ?? 0n
}
