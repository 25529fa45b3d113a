// The rows of one account, read in one database and written to another, and what they come to at either end.
import {
  type Database,
  PATIENT,
  type Queryable,
  type Statement,
  statement,
  type Value,
} from '../../database/database.ts'
import { SHARED } from '../../database/tables.ts'
import { sumArrived } from '../../ledger/usage-sums.ts'

interface Table {
  readonly name: string
  /** Which of its rows are the account's. */
  readonly OF: string
}

/**
 * These only grow, and by ids that follow time: most of them can be copied while the account is in use. When a row was
 * written stands in the column named here.
 */
const GROWING = { transfer: 'at', usage: 'at', purse_movement: 'moved_at' } as const
/**
 * Copied like them, and not compared: calls are refused, and counted to rows that are there, also while the account is
 * closed.
 */
const LISTED = { refusal: 'at' } as const
/** Within one installation also what was kept of requests and answers. */
const ALL_WITHIN = { ...GROWING, ...LISTED, recording: 'at' } as const
type Growing = keyof typeof ALL_WITHIN
const growing = (isWithin: boolean) => namesOf(ALL_WITHIN).filter((name) => isWithin || name !== 'recording')
/** Those of the table. */
const namesOf = <Name extends string>(tables: Readonly<Record<Name, string>>) => Object.keys(tables) as Name[]
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
 * Sums by the day: calls are added to them later (ledger/usage-sums.ts), here or there, so that only days that are over
 * can be compared.
 */
const DAYS = ['usage_day', 'label_day']
/**
 * Sums of hours and days that are over change no more, and are copied while the account is in use, a month at a time.
 */
const DATED = [
  { name: 'usage_hour', AT: 'hour' },
  ...DAYS.map((name) => ({ name, AT: `(day::timestamp at time zone 'UTC')` })),
]

/**
 * Copied as a whole at the end and not compared: an alert may fire at any moment. What waits to be delivered is
 * delivered from where it fired.
 */
const TOLD: readonly Table[] = [
  { name: 'alert', OF: 'scope = $1' },
  { name: 'delivery', OF: 'account_id = $1 and not open' },
  { name: 'alert_state', OF: 'scope = $1' },
  { name: 'alert_setting', OF: 'scope = $1' },
  { name: 'alert_mailbox', OF: 'scope = $1' },
]

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

const GROWN = Object.fromEntries(
  Object.entries(ALL_WITHIN).map(([TABLE, AT]) => [
    TABLE,
    {
      // Rows that are older than the second moment were copied before.
      page: statement(
        `move_page_${TABLE}`,
        `select coalesce(jsonb_agg(to_jsonb(t)), '[]')::text as rows, count(*)::int as count, max(t.id) as last from (
           select * from ${TABLE} where account_id = $1 and id > $2 and ${AT} >= $3 order by id limit $4) t`,
      ),
      // Those of before are counted only: they were compared when they were copied.
      tally: statement(
        `move_tally_${TABLE}`,
        `select count(*)::int as rows, coalesce(sum(${ROW_HASH}) filter (where ${AT} >= $4), 0)::text as mark from ${TABLE} t
         where account_id = $1 and id >= $2 and id < $3 and ${AT} < $5`,
        600_000,
      ),
      remove: statement(`move_remove_${TABLE}`, `delete from ${TABLE} where account_id = $1`, 600_000),
    },
  ]),
) as Record<Growing, Record<'page' | 'tally' | 'remove', ReturnType<typeof statement>>> // one for each
const ALL = ({ name: TABLE, OF }: Table) =>
  statement(
    `move_all_${TABLE}`,
    `select coalesce(jsonb_agg(to_jsonb(t)), '[]')::text as rows from ${TABLE} t where ${OF}`,
  )
const TABLES = statement(
  'move_tables',
  `select c.relname as name from pg_class c join pg_attribute a on a.attrelid = c.oid and a.attname = 'account_id' and not a.attisdropped
   where c.relnamespace = current_schema()::regnamespace and c.relkind in ('r', 'p') and not c.relispartition and c.relname <> all($1::text[]) order by 1`,
)

/**
 * All other tables with rows of an account, as the schema has them: these change, and are few. Copied at the end, as a
 * whole, and each step of all tables is one statement: the account is closed meanwhile, and on a busy machine each word
 * to a database waits.
 */
async function changing(on: Queryable, isWithin: boolean) {
  const apart = [
    ...APART,
    ...(isWithin ? SHARED : []),
    ...namesOf(ALL_WITHIN),
    ...[...DATED, ...TOLD].map(({ name }) => name),
  ]
  const tables = (await on.query<{ name: string }>(TABLES, [apart])).map(({ name }) => name)
  const each = (write: (TABLE: string, OF: string) => string, between = ', ') =>
    tables
      .map((TABLE) => write(TABLE, TABLE === 'job' ? 'account_id = $1 and not open' : 'account_id = $1'))
      .join(between)
  const ROWS = each(
    (TABLE, OF) => `'${TABLE}', (select coalesce(jsonb_agg(to_jsonb(t)), '[]') from ${TABLE} t where ${OF})`,
  )
  const TALLIES = each(
    (TABLE, OF) =>
      `select '${TABLE}' as name, count(*)::int as rows, coalesce(sum(${ROW_HASH}), 0)::text as mark from ${TABLE} t where ${OF}`,
    ' union all ',
  )
  // The archive's files are compared with the checkpoints of all accounts that were here.
  const REMOVALS = each(
    (TABLE) =>
      `${TABLE}_step as (delete from ${TABLE} where account_id = $1${isWithin && TABLE === 'ledger_checkpoint' ? ' and false' : ''})`,
  )
  const INSERTS = each((TABLE) => `${TABLE}_step as (${INSERT(TABLE, `$1::jsonb -> '${TABLE}'`)})`)
  return {
    all: statement('move_all_changing', `select jsonb_build_object(${ROWS})::text as rows`, 600_000),
    tally: statement('move_tally_changing', TALLIES, 600_000),
    remove: statement('move_remove_changing', `with ${REMOVALS} select 1`, 600_000),
    insert: statement('move_insert_changing', `with ${INSERTS} select 1`, 600_000),
  }
}
const DATED_ROWS = DATED.map(({ name: TABLE, AT }) => {
  const OF = `account_id = $1 and ${AT} >= $2 and ${AT} < $3`
  return {
    name: TABLE,
    months: statement(
      `move_months_${TABLE}`,
      `select distinct date_trunc('month', ${AT}, 'UTC') as month from ${TABLE} where account_id = $1 and ${AT} < $2 order by 1`,
      600_000,
    ),
    all: ALL({ name: TABLE, OF }),
    // Those of before are counted only: they were compared when they were copied.
    tally: statement(
      `move_tally_${TABLE}`,
      `select count(*)::int as rows, coalesce(sum(hashtextextended(to_jsonb(t)::text, 0)) filter (where ${AT} >= $2), 0)::text as mark from ${TABLE} t where account_id = $1 and ${AT} < $3`,
      600_000,
    ),
    remove: statement(`move_remove_${TABLE}`, `delete from ${TABLE} where ${OF}`, 600_000),
  }
})
const TOLD_ROWS = TOLD.map((table) => ({ name: table.name, all: ALL(table) }))
const REMOVE_TOLD = [
  ...['alert', 'alert_state', 'alert_setting', 'alert_mailbox'].map((TABLE) =>
    statement(`move_remove_${TABLE}`, `delete from ${TABLE} where scope = $1`),
  ),
  statement('move_remove_delivery', 'delete from delivery where account_id = $1'),
]
/** What was kept of requests and answers stays behind, and goes at once: nobody reads it there any more. */
export const REMOVE_CONTENT = statement(
  'move_remove_content',
  `with gone as (delete from recording where (account_id, id) in (select account_id, id from recording where account_id = $1 limit 500) returning 1)
   select count(*)::int as count from gone`,
)
/** Sign-ins at tool servers are for this gateway alone: people sign in anew elsewhere. */
export const REMOVE_SIGN_INS = statement('move_remove_sign_ins', 'delete from tool_connection where account_id = $1')
/** Of rows as JSON; the second value says which version of the target's catalog is which of the source's. */
const INSERT = (TABLE: string, ROWS: string) =>
  `insert into ${TABLE} select p.* from jsonb_array_elements(${ROWS}) r, lateral jsonb_populate_record(null::${TABLE},
         r || jsonb_build_object('catalog_version', coalesce($2::jsonb -> (r ->> 'catalog_version'), r -> 'catalog_version'),
           -- Exports of the database where a call was made have sent it, as it tells of purses: neither is done from here again.
           'posting', null, 'untold', null)) p
       on conflict do nothing`
/** The name is one of the above. */
const insertInto = (TABLE: string) => statement(`move_insert_${TABLE}`, INSERT(TABLE, '$1::jsonb'), 600_000)
// People are known by their address; whoever is an operator here is not therefore one there.
const MEMBERS = statement(
  'move_members',
  `select coalesce(jsonb_agg(jsonb_build_object('id', p.id, 'email', p.email, 'password', p.password, 'verified', p.email_verified_at, 'role', m.role, 'at', m.created_at)), '[]')::text as rows
   from membership m join person p on p.id = m.person_id where m.account_id = $1`,
)
const PUT_PEOPLE = statement(
  'move_put_people',
  `insert into person (id, email, password, email_verified_at) select x.id, x.email, x.password, x.verified
   from jsonb_to_recordset($1::jsonb) as x(id text, email text, password text, verified timestamptz)
   on conflict do nothing`,
)
const PUT_MEMBERS = statement(
  'move_put_members',
  `insert into membership (account_id, person_id, role, created_at) select $1, p.id, x.role, x.at
   from jsonb_to_recordset($2::jsonb) as x(email text, role text, at timestamptz) join person p on p.email = x.email`,
)
const TEAM_MEMBERS = statement(
  'move_team_members',
  `select coalesce(jsonb_agg(jsonb_build_object('team', m.team_id, 'email', p.email)), '[]')::text as rows
   from team_person m join person p on p.id = m.person_id where m.account_id = $1`,
)
const PUT_TEAM_MEMBERS = statement(
  'move_put_team_members',
  `insert into team_member (account_id, team_id, person_id) select $1, x.team, p.id
   from jsonb_to_recordset($2::jsonb) as x(team text, email text) join person p on p.email = x.email on conflict do nothing`,
)
const SIGN_INS = ALL({ name: 'tool_connection', OF: 'account_id = $1' })
const EXPORTS = ALL({ name: 'export', OF: 'account_id = $1' })
const REMOVE_EXPORTS = statement('move_remove_exports', 'delete from export where account_id = $1')
/** Calls of before are sent from where they were made. */
const EXPORTS_FROM_HERE = statement(
  'move_exports_from_here',
  `update export set cursor_posting = usage_horizon(), cursor_account = '', cursor_id = '', backfill = null where account_id = $1`,
)
const REMOVE_MEMBERS = statement('move_remove_members', 'delete from membership where account_id = $1')
const TALLY_MEMBERS = statement(
  'move_tally_members',
  `select count(*)::int as rows, coalesce(sum(hashtextextended(p.email || ' ' || m.role, 0)), 0)::text as mark
   from membership m join person p on p.id = m.person_id where m.account_id = $1`,
)
const VERSIONS = statement(
  'move_versions',
  `select distinct (r ->> 'catalog_version')::int as version
   from jsonb_path_query($1::jsonb, (case jsonb_typeof($1::jsonb) when 'array' then '$[*]' else '$.*[*]' end)::jsonpath) r where r ? 'catalog_version'`,
)
const DOCUMENT = statement('move_document', 'select document from catalog_version where version = $1')
const LOCK_VERSIONS = statement('catalog_lock', 'select pg_advisory_xact_lock(7046029259)')
// Below zero, where no version of its own ever is: a price that was valid elsewhere, by which nothing is sold here.
const PUT_DOCUMENT = statement(
  'move_put_document',
  `with known as (select version from catalog_version where document = $1 order by abs(version) limit 1), made as (
     insert into catalog_version (version, document, note, actor)
     select least(min(version), 0) - 1, $1, $2, 'system' from catalog_version having not exists (select 1 from known) returning version)
   select version from known union all select version from made`,
)
const BALANCE = statement(
  'move_balance',
  `select coalesce(sum(amount), 0)::bigint as sum from entry where account_id = $1 and account = 'account:' || $1::text`,
  600_000,
)

const PAGE_ROWS = 1_000
/** A recording may have a megabyte. */
const PAGE_RECORDINGS = 20
const ALWAYS = new Date(0)
const EVER = new Date('9999-01-01')
/** After every id. */
const END = '~'

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

/**
 * Rows of the growing tables from an id on, written since a moment. `each` runs one page's writing, in a transaction
 * that it chooses.
 */
export async function copyGrown(
  ends: Ends,
  versions: Versions,
  since: { readonly id: string; readonly at?: Date },
  each: (write: (tx: Queryable) => Promise<void>) => Promise<void>,
): Promise<number> {
  let sum = 0
  for (const table of growing(ends.isWithin))
    for (let after = since.id; ; ) {
      const [page] = await ends.source.query<{ rows: string; count: number; last: string }>(GROWN[table].page, [
        ends.account,
        after,
        since.at ?? ALWAYS,
        table === 'recording' ? PAGE_RECORDINGS : PAGE_ROWS,
      ])
      if (!page || page.count === 0) break
      await each(async (tx) => {
        await learnVersions({ ...ends, target: tx }, versions, page.rows)
        await tx.query(insertInto(table), [page.rows, JSON.stringify(Object.fromEntries(versions))])
      })
      sum += page.count
      after = page.last
    }
  return sum
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

/** Replaces what the target has of the changing tables, of sums those since a moment. */
export async function copyChanging(ends: Ends, versions: Versions, since: Date): Promise<void> {
  const { account, source, target } = ends
  // From one snapshot: a call is in the sums, or waits to be added to them.
  await source.transaction(async (snapshot) => {
    await snapshot.query({ text: 'set transaction isolation level repeatable read, read only' })
    for (const { name, all, remove } of DATED_ROWS) {
      const found = await one<{ rows: string }>(snapshot, all, [account, since, EVER])
      await target.query(remove, [account, since, EVER])
      await target.query(insertInto(name), [found.rows, '{}'])
    }
    await sumArrived(snapshot, target, account)
  }, PATIENT)
  const { all, remove, insert } = await changing(source, ends.isWithin)
  const found = await one<{ rows: string }>(source, all, [account])
  await target.query(remove, [account])
  await learnVersions(ends, versions, found.rows)
  await target.query(insert, [found.rows, JSON.stringify(Object.fromEntries(versions))])
  for (const remove of REMOVE_TOLD) await target.query(remove, [account])
  for (const { name, all } of TOLD_ROWS) {
    const found = await one<{ rows: string }>(source, all, [account])
    await target.query(insertInto(name), [found.rows, '{}'])
  }
  if (ends.isWithin) return copySettings(ends)
  const members = await one<{ rows: string }>(source, MEMBERS, [account])
  await target.query(REMOVE_MEMBERS, [account])
  await target.query(PUT_PEOPLE, [members.rows])
  await target.query(PUT_MEMBERS, [account, members.rows])
  const teams = await one<{ rows: string }>(source, TEAM_MEMBERS, [account])
  await target.query(PUT_TEAM_MEMBERS, [account, teams.rows])
}

/** What was set up for this account in this installation. */
async function copySettings({ account, source, target }: Ends): Promise<void> {
  await target.query(REMOVE_SIGN_INS, [account])
  await target.query(REMOVE_EXPORTS, [account])
  const signIns = await one<{ rows: string }>(source, SIGN_INS, [account])
  await target.query(insertInto('tool_connection'), [signIns.rows, '{}'])
  const exports = await one<{ rows: string }>(source, EXPORTS, [account])
  await target.query(insertInto('export'), [exports.rows, '{}'])
  await target.query(EXPORTS_FROM_HERE, [account])
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
  for (const table of growing(isWithin)) await tx.query(GROWN[table].remove, [account])
  for (const remove of REMOVE_TOLD) await tx.query(remove, [account])
  await tx.query((await changing(tx, isWithin)).remove, [account])
  for (const { remove } of DATED_ROWS) await tx.query(remove, [account, ALWAYS, EVER])
  await tx.query(REMOVE_SIGN_INS, [account])
  await tx.query(isWithin ? REMOVE_EXPORTS : REMOVE_MEMBERS, [account])
}

/** The growing tables from an id on. Inside a transaction: times are hashed as text, in the zone of the session. */
export async function tallyGrown(tx: Queryable, account: string, { id = '', since, until = EVER }: GrownRange) {
  const tallies: Record<string, Tally> = {}
  await tx.query({ text: `set local timezone = 'UTC'` })
  for (const table of namesOf(GROWING))
    tallies[table] = await one<Tally>(tx, GROWN[table].tally, [account, id, END, since ?? ALWAYS, until])
  return tallies
}

/** Sums up to a moment, or since one: then those of hours alone. */
export async function tallyDated(tx: Queryable, account: string, { since, until = EVER }: DateRange) {
  const tallies: Record<string, Tally> = {}
  await tx.query({ text: `set local timezone = 'UTC'` })
  for (const { name, tally } of DATED_ROWS)
    if (!since || !DAYS.includes(name)) tallies[name] = await one<Tally>(tx, tally, [account, since ?? ALWAYS, until])
  return tallies
}

interface DateRange {
  readonly since?: Date
  readonly until?: Date
}
interface GrownRange extends DateRange {
  readonly id?: string
}

export async function tallyChanging(tx: Queryable, account: string, isWithin: boolean) {
  const tallies: Record<string, Tally> = {}
  await tx.query({ text: `set local timezone = 'UTC'` })
  for (const { name, ...tally } of await tx.query<Tally & { name: string }>((await changing(tx, isWithin)).tally, [
    account,
  ]))
    tallies[name] = tally
  if (!isWithin) tallies.membership = await one<Tally>(tx, TALLY_MEMBERS, [account])
  return tallies
}

/** What the account's entries sum to. */
export async function balanceOf(tx: Queryable, account: string): Promise<bigint> {
  const [row] = await tx.query<{ sum: bigint }>(BALANCE, [account])
  return row?.sum ?? 0n
}

// The steps of a move as statements. Whoever changes the state of a move has locked the account, and names the move by
// its id. A test account stays where it is, and is closed and opened with its owner.

/** The row of a statement that always has one. */
export async function one<R>(on: Queryable, what: Statement, values: readonly Value[]): Promise<R> {
  const [row] = await on.query<R>(what, values)
  if (!row) throw new Error(`The statement ${what.name} found nothing, though it always finds something.`)
  return row
}

export const IS_MADE = statement('move_is_made', `select to_regclass('migration') is not null as is`)
export const SCHEMA = statement('move_schema', 'select max(number) as number from migration')
export const STATE = statement('move_state', 'select move_id, state, other from account_move where account_id = $1')
export const OPEN_JOBS = statement(
  'move_jobs',
  'select id from job where account_id = $1 and open order by id limit 10',
)
export const STILL_HELD = statement(
  'move_still_held',
  `select (select count(*)::int from hold where account_id = $1) as holds, (select count(*)::int from lease where account_id = $1) + (select count(*)::int from journal where account_id = $1) as leases`,
)
export const ACCOUNT = statement(
  'move_account',
  `select (to_jsonb(a) - 'search')::text as account, posted from account a where id = $1`,
)
export const TALLY_ACCOUNT = statement(
  'move_tally_account',
  `select 1 as rows, hashtextextended((to_jsonb(a) - '{frozen_until,ledger,is_moving}'::text[])::text, 0)::text as mark from account a where id = $1`,
)

/** At the source: begins, unless it has gone or is still to come. */
export const LEAVE = statement(
  'move_leave',
  `with locked as materialized (select id from account where id = $1 for update)
   insert into account_move as m (account_id, move_id, state, other) select id, $2, 'leaving', $3 from locked
   on conflict (account_id) do update set move_id = excluded.move_id, state = excluded.state, other = excluded.other, at = now()
   where m.state in ('leaving', 'arrived') returning now() as now`,
)
export const NOW = statement('move_now', 'select now() as now')
export const FREEZE = statement(
  'move_freeze',
  `with frozen as (
     update account a set frozen_until = now() + make_interval(secs => $3) from account_move m
     where a.id in ($1, $4) and m.account_id = $1 and m.move_id = $2 and m.state = 'leaving' returning a.id
   ), recalled as (
     update lease e set recalled_at = now() from frozen f where e.account_id = f.id and e.recalled_at is null
   ) select id from frozen`,
)
export const THAW = statement(
  'move_thaw',
  `update account a set frozen_until = null from account_move m
   where a.id in ($1, $3) and m.account_id = $1 and m.move_id = $2 and m.state = 'leaving'`,
)
export const LOCK = statement('move_lock', 'select posted, held <> 0 as busy from account where id = $1 for update')
/** After the account, and by itself: the two may lie on different servers. */
export const LOCK_LEAVING = statement(
  'move_lock_leaving',
  `select exists (select 1 from job j where j.account_id = $1 and j.open) as busy
   from account_move m where m.account_id = $1 and m.move_id = $2 and m.state = 'leaving' for update of m`,
)
export const TAKE_BACK = statement('move_take_back', 'select moved from ledger_grant($1, $2, -$3::bigint, $4, $5)')
export const CLOSE = statement(
  'move_close',
  `update account set posted = case when id = $1 then 0 else posted end, frozen_until = 'infinity' where id in ($1, $2)`,
)
export const GONE = statement(
  'move_gone',
  `update account_move set state = 'gone', other = $3, at = now() where account_id = $1 and move_id = $2`,
)
export const CANCEL = statement(
  'move_cancel',
  `with mine as (
     update account_move set move_id = $2 where account_id = $1 and move_id = $3 and state = 'leaving' returning account_id
   ) update account a set frozen_until = null from mine where a.id in (mine.account_id, $4) returning a.id`,
)
export const PRUNE_LEAVING = statement(
  'move_forget_leaving',
  'delete from account_move where account_id = $1 and move_id = $2',
)

/** At the target. Nothing stands beside an account that is open there in the usual way. */
export const LOCK_ARRIVAL = statement(
  'move_lock_arrival',
  `select m.move_id, m.state, m.other, a.ledger from account a left join account_move m on m.account_id = a.id where a.id = $1 for update of a`,
)
export const PUT_ACCOUNT = statement(
  'move_put_account',
  `insert into account (id, name, created_at, moved_at, chain, status, status_reason, status_at, has_lots, budgets, budget_values, claims, region, posted, frozen_until)
   select x.id, x.name, x.created_at, x.moved_at, x.chain, x.status, x.status_reason, x.status_at, x.has_lots, x.budgets, x.budget_values, x.claims, x.region, $2, 'infinity'
   from jsonb_to_record($1::jsonb) as x(id text, name text, created_at timestamptz, moved_at timestamptz, chain bytea,
     status text, status_reason text, status_at timestamptz, has_lots boolean, budgets int, budget_values int, claims int, region text)
   on conflict (id) do update set name = excluded.name, created_at = excluded.created_at, moved_at = excluded.moved_at, chain = excluded.chain,
     status = excluded.status, status_reason = excluded.status_reason, status_at = excluded.status_at, has_lots = excluded.has_lots, budgets = excluded.budgets, budget_values = excluded.budget_values, claims = excluded.claims, region = excluded.region, posted = excluded.posted, frozen_until = excluded.frozen_until`,
)
export const PUT_ARRIVAL = statement(
  'move_put_arrival',
  `insert into account_move (account_id, move_id, state, other) values ($1, $2, 'arriving', $3)
   on conflict (account_id) do update set move_id = excluded.move_id, state = excluded.state, other = excluded.other, at = now()`,
)
export const OPEN = statement(
  'move_open',
  `with opened as (update account set frozen_until = null where id in ($1, $2))
   update account_move set state = 'arrived', at = now() where account_id = $1`,
)
export const REMOVE_MOVE = statement('move_remove', 'delete from account_move where account_id = $1')
export const PRUNE_ACCOUNT = statement('move_forget_account', 'delete from account where id = $1 and ledger is null')

// Within one installation: the directory of the control database, which says where each account is.

/** For a while before it changes, so that no process serves by what it knew. */
export const PASS = statement(
  'move_pass',
  'update account set is_moving = $2 where id = $1 and is_moving is distinct from $2',
)
export const FLIP = statement('move_flip', 'update account set ledger = $2, is_moving = false where id = $1')
/** What control has decided, and nobody has done yet. */
export const CROSSINGS_FOLLOW = statement(
  'move_crossings',
  `update crossing set ledger = coalesce($2, 'control') where detail ->> 'account' = $1`,
)
/** In the control database it goes on as the row that people's memberships refer to. */
export const EMPTY_SHELL = statement(
  'move_empty_shell',
  `update account set posted = 0, has_lots = false, chain = null, moved_at = null, budgets = 0, budget_values = 0, claims = 0 where id = $1 and ledger is not null`,
)
/** Whether exports of the source have sent all of its calls. */
export const UNSENT = statement(
  'move_unsent',
  `select 1 from export e where e.open and e.account_id in ('', $1) and (e.backfill is not null
     or exists (select 1 from usage u where u.account_id = $1 and u.posting is not null and (u.posting, u.account_id, u.id) > (e.cursor_posting, e.cursor_account, e.cursor_id))) limit 1`,
)
