// Replays one account, in pieces. Pieces are cut by the time at which rows were written, on the database's clock. Rows
// written before a completed full hour never change, so their sums are saved and they are not read again. Rows are
// ordered by id, and an id is as old as its call, so a row can be written late with an old id. The check saves where
// the next piece's rows begin, and compares with the hourly sums, which are updated by the same statement as the row
// and so reveal a row with an even older id.
import { type Database, type Queryable, sql } from '../../database/database.ts'
import { DAY_MS } from '../../kernel/calendar.ts'
import { formatCredits } from '../../kernel/credits.ts'
import { isTestAccount } from '../../kernel/test-account.ts'
import { idAtTime, timeOfId } from '../../kernel/world.ts'
import { GIVEN_KINDS, MOVED_BY, movedBy } from '../../reports/movements.ts'
import {
  BATCH,
  checkCharge,
  isOfCall,
  judgePair,
  judgeTransfer,
  LATE,
  type RateCheck,
  type TransferRow,
  type UsageRow,
} from './call.ts'
import { type Archived, readArchived } from './checkpoints.ts'
import { addHour, addMargin, compareHours, type HourSums, type Margins, readHours, readYoungHours } from './hours.ts'
import { checkBudgets, checkLimits } from './limits.ts'

type Rule = (tx: Queryable, account: string) => Promise<readonly string[]>
const ADDED: Rule[] = []

/** Rules of extensions, whose rows are checked in the snapshot in which the account's balance is read. */
export function addAccountRules(rules: readonly Rule[]): void {
  ADDED.push(...rules)
}

export interface AccountCheck {
  readonly database: Database
  readonly rates: RateCheck
  /** With which checkpoints are signed. Absent: their signatures are not checked. */
  readonly key?: Buffer | undefined
  /** Usage rows from before this moment (the start of an hour) may have been pruned. */
  readonly usageSinceMs: number
  /** On the database's clock: now, and the full hour before which all rows are committed. */
  readonly nowMs: number
  readonly settledMs: number
  /** Before this, sums are compared by the day. */
  readonly foldedMs: number
  /** Whether to read the account from its beginning in any case. */
  readonly whole: boolean
  /** Returns what is wrong with a grant according to the audit trail. Absent: the audit trail is not checked. */
  readonly audited?: ((account: string, grant: TransferRow) => Promise<string | undefined>) | undefined
  /** Sums over all accounts; only in a run that reads everything. */
  readonly margins: Margins | undefined
  readonly pieceRows: number
  /** Called after each page, because a large account takes a while. */
  readonly onPage: () => Promise<void> | undefined
}

/** The verify watermark: up to where an account was checked, and the sums until then. */
interface Mark {
  readonly untilMs: number
  readonly oldest: string
  readonly posted: bigint
  readonly settled: bigint
}

interface Replayed {
  readonly problems: string[]
  readonly transfers: number
  readonly usage: number
  /** The number of charges that were recomputed. */
  readonly charges: number
}

const HOUR_MS = 3_600_000
/** No call takes longer, except for jobs, whose holds are known. */
const CALL_MS = HOUR_MS
/** The second attempt starts this much earlier, to find late rows before everything is read. */
const LATE_MS = 72 * HOUR_MS
const END = '~'
const PAGE_ROWS = 2_000
const PROBLEMS_MAX = 50

const MARK = sql('verified_read')`select until, oldest, posted, settled from verified where account_id = $1`
const SAVE = sql('verified_save')`
  insert into verified (account_id, until, oldest, posted, settled) values ($1, $2, $3, $4, $5)
   on conflict (account_id) do update set until = excluded.until, oldest = excluded.oldest, posted = excluded.posted, settled = excluded.settled`
const PRUNE = sql('verified_forget')`delete from verified where account_id = $1`
const OPEN = sql('verify_open')`select min(id) as id from hold where account_id = $1`
const FAR = sql('verify_far')`select id from transfer where account_id = $1 and id >= $2 order by id offset $3 limit 1`
// Only whether `moved_at` is set is selected: parsing the date for each of millions of rows would be slow.
const TRANSFER_COLUMNS = 'id, kind, amount, loss, held, note, actor, at, moved_at is not null as has_place, balance'
const TRANSFERS = sql('verify_transfers')`
  select ${TRANSFER_COLUMNS}, moved_at <= $4::text::timestamptz as archived from transfer
   where account_id = $1 and id >= $2 and id < $3 order by id limit ${PAGE_ROWS}`
const USAGE_COLUMNS =
  'id, key_id, product, outcome, status, charged, loss, held, catalog_version, lines, estimated, duration_ms, first_byte_ms, credential, endpoint, route, attributes, cost, cost_basis, client, at'
const USAGE = sql('verify_usage')`
  select ${USAGE_COLUMNS} from usage where account_id = $1 and id >= $2 and id < $3 and at >= $4 order by id limit ${PAGE_ROWS * 10}`
const ONE_TRANSFER = sql('verify_transfer')`select ${TRANSFER_COLUMNS} from transfer where account_id = $1 and id = $2`
const ONE_USAGE = sql('verify_usage_row')`select ${USAGE_COLUMNS} from usage where account_id = $1 and id = $2`

/**
 * If a replay finds a problem, it is repeated from further back, and at last from the account's beginning. Only
 * problems of the last replay are reported.
 */
export async function verifyAccount(check: AccountCheck, account: string): Promise<Replayed> {
  const [row] = check.whole ? [] : await check.database.query<Omit<Mark, 'untilMs'> & { until: Date }>(MARK, [account])
  const mark = row && { ...row, untilMs: row.until.getTime() }
  const archived = await readArchived(check.database, account, check.key)
  // What is in the archive is not replayed: the beginning is what it came to.
  const beginning: Mark = { untilMs: 0, oldest: '', posted: archived.balance, settled: archived.settled }
  const late = mark && { ...mark, oldest: idAtTime(Math.max(0, mark.untilMs - LATE_MS)) }
  let found: Replayed = { problems: [], transfers: 0, usage: 0, charges: 0 }
  for (const start of mark && late ? [mark, late, beginning] : [beginning]) {
    found = await replay(check, account, { start, archived })
    if (found.problems.length === 0) return found
  }
  await check.database.query(PRUNE, [account])
  return found
}

interface From {
  readonly start: Mark
  readonly archived: Archived
}

async function replay(check: AccountCheck, account: string, { start, archived }: From): Promise<Replayed> {
  const { database } = check
  const problems = [...archived.problems]
  const done = { problems, transfers: 0, usage: 0, charges: 0 }
  for (let mark = start; ; ) {
    // Read first: any row written from now on belongs to a call that is already held, or to one that begins later.
    const [open] = await database.query<{ id: string | null }>(OPEN, [account])
    const piece = await nextPiece(check, account, mark)
    const walked = await walk(check, account, { ...piece, archived: archived.place })
    done.transfers += walked.transfers
    done.usage += walked.usage
    done.charges += walked.charges
    problems.push(...walked.problems)
    const from = Math.max(mark.untilMs, check.usageSinceMs)
    const written = await readHours(database, account, {
      fromMs: from,
      untilMs: piece.untilMs,
      foldedMs: check.foldedMs,
    })
    problems.push(...compareHours(account, written, walked.hours))
    mark = {
      untilMs: piece.untilMs,
      oldest: least(walked.oldest, idAtTime(Math.max(0, piece.untilMs - CALL_MS)), open?.id ?? END),
      posted: mark.posted + walked.posted,
      settled: mark.settled + walked.settled,
    }
    if (piece.last) {
      problems.push(...(await checkChain(database, account, start.untilMs)))
      problems.push(...(await checkBalance(check, account, mark)))
    }
    if (problems.length === 0)
      await database.query(SAVE, [account, new Date(mark.untilMs), mark.oldest, mark.posted, mark.settled])
    if (piece.last || problems.length > PROBLEMS_MAX) return done
  }
}

interface Piece {
  readonly fromMs: number
  readonly untilMs: number
  readonly low: string
  readonly high: string
  /** Whether the piece reaches to the present. */
  readonly last: boolean
}

interface Walk extends Piece {
  /** Up to here transfers are in the archive too. */
  readonly archived: string | null
}

/** As many full hours as contain about `pieceRows` rows. */
async function nextPiece(check: AccountCheck, account: string, mark: Mark): Promise<Piece> {
  const [far] = await check.database.query<{ id: string }>(FAR, [account, mark.oldest, check.pieceRows])
  const settledMs = Math.max(check.settledMs, mark.untilMs)
  const hourMs = far ? Math.floor(timeOfId(far.id) / HOUR_MS) * HOUR_MS : settledMs
  // Days are compared whole.
  const unitMs = mark.untilMs + HOUR_MS < check.foldedMs ? DAY_MS : HOUR_MS
  const untilMs = Math.max(Math.floor(hourMs / unitMs) * unitMs, Math.floor(mark.untilMs / unitMs) * unitMs + unitMs)
  const common = { fromMs: mark.untilMs, low: mark.oldest }
  if (!far || untilMs >= settledMs) return { ...common, untilMs: settledMs, high: END, last: true }
  return { ...common, untilMs, high: idAtTime(untilMs + CALL_MS), last: false }
}

class Walked {
  readonly problems: string[] = []
  readonly hours = new Map<string, HourSums>()
  /** The lowest id among the rows written after the piece. */
  oldest = END
  posted = 0n
  settled = 0n
  transfers = 0
  usage = 0
  charges = 0
  /** One call of each batch in the page. */
  readonly batched = new Map<string, UsageRow>()
  /** The previous transfer: a late settlement follows the transfer of its expired hold. */
  previous: TransferRow | undefined

  readonly say = (problem: string | undefined): void => {
    if (problem !== undefined && this.problems.length < PROBLEMS_MAX) this.problems.push(problem)
  }
}

async function walk(check: AccountCheck, account: string, piece: Walk): Promise<Walked> {
  const walked = new Walked()
  for (let low = piece.low; ; ) {
    const rows = await check.database.query<TransferRow>(TRANSFERS, [account, low, piece.high, piece.archived])
    const last = rows.length === PAGE_ROWS ? rows.at(-1)?.id : undefined
    // The id with a space appended is its direct successor in sort order.
    const high = last === undefined ? piece.high : `${last} `
    const usage = await check.database.query<UsageRow>(USAGE, [account, low, high, new Date(piece.fromMs)])
    const byId = new Map(usage.map((row) => [row.id, row]))
    for (const row of rows) {
      if (row.at.getTime() >= piece.fromMs) await take(check, account, piece, { row, usage: byId.get(row.id), walked })
      byId.delete(row.id)
      walked.previous = row
    }
    // The remaining usage rows have no transfer, unless it was written after the page was read.
    for (const id of byId.keys())
      if (!(await check.database.query(ONE_TRANSFER, [account, id]))[0])
        walked.say(`Usage row ${id} of account ${account} has no transfer.`)
    await checkBatched(check, account, walked)
    await check.onPage()
    if (last === undefined || walked.problems.length >= PROBLEMS_MAX) return walked
    low = high
  }
}

const BATCHES = sql('verify_batches_of')`select id from batch where account_id = $1 and id = any($2)`
/** Batches are kept for longer than this after they have ended. */
const BATCH_MS = 29 * 24 * HOUR_MS

/** A call with the batch price must belong to a batch. */
async function checkBatched(
  { database, nowMs }: AccountCheck,
  account: string,
  { batched, say }: Walked,
): Promise<void> {
  const young = [...batched].filter(([, { at }]) => at.getTime() > nowMs - BATCH_MS)
  batched.clear()
  if (young.length === 0) return
  const rows = await database.query<{ id: string }>(BATCHES, [account, young.map(([id]) => id)])
  const known = new Set(rows.map(({ id }) => id))
  for (const [id, usage] of young)
    if (!known.has(id)) say(`Call ${usage.id} has the price of batches, but account ${account} has no batch "${id}".`)
}

interface Movement {
  readonly row: TransferRow
  readonly usage: UsageRow | undefined
  readonly walked: Walked
}

async function take(check: AccountCheck, account: string, piece: Piece, movement: Movement): Promise<void> {
  const { row, walked } = movement
  const isYoung = row.at.getTime() >= piece.untilMs
  if (isYoung && row.id < walked.oldest) walked.oldest = row.id
  if (isYoung && !piece.last) return
  walked.transfers += 1
  judgeTransfer(row, { nowMs: check.nowMs }, walked.say)
  if (!isYoung && !row.archived) {
    walked.posted += movedBy(row)
    walked.settled += row.kind === 'settled' ? row.amount : 0n
  }
  let usage = movement.usage
  if (!usage && isOfCall(row) && timeOfId(row.id) >= check.usageSinceMs) {
    usage = (await check.database.query<UsageRow>(ONE_USAGE, [account, row.id]))[0]
    if (!usage) walked.say(`Transfer ${row.id} (${row.kind}) has no usage row.`)
  }
  // What expires is nobody's act: it must be the end of a lot, which is checked with the lots.
  // Nor is what a claim takes, which is checked with the claims.
  if (!isOfCall(row) && row.kind !== 'expiry' && row.loss >= 0n) walked.say(await check.audited?.(account, row))
  if (!usage) return
  walked.usage += 1
  if (usage.outcome === 'settled') {
    walked.charges += 1
    if (check.margins && !isTestAccount(account)) addMargin(check.margins, usage)
  }
  if (isOfCall(row)) judgePair(row, usage, walked.say)
  else walked.say(`Transfer ${row.id} is a ${row.kind} but has a usage row.`)
  const expired = row.id.endsWith(LATE) ? await expiredBefore(check.database, account, movement) : undefined
  const heldFor = expired?.held ?? usage.held
  walked.say(await checkCharge(usage, heldFor, check.rates))
  if (usage.endpoint.startsWith(BATCH)) walked.batched.set(usage.client, usage)
  if (!isYoung && usage.at.getTime() >= check.usageSinceMs) addHour(walked.hours, usage, check.foldedMs)
}

/** A late settlement is a second transfer, and is allowed only after its hold has expired. */
async function expiredBefore(
  database: Queryable,
  account: string,
  { row, walked }: Movement,
): Promise<TransferRow | undefined> {
  const id = row.id.slice(0, -LATE.length)
  const expired =
    walked.previous?.id === id ? walked.previous : (await database.query<TransferRow>(ONE_TRANSFER, [account, id]))[0]
  if (expired?.kind !== 'expired') walked.say(`Transfer ${row.id} is a late settlement of a hold that did not expire.`)
  return expired
}

function least(...ids: readonly string[]): string {
  return ids.reduce((low, id) => (id < low ? id : low))
}

/** The last transfer of an account, or the checkpoint that stands for it. */
const LAST_PLACE = (WHERE: string) =>
  `(select * from ((select moved_at, balance, hash from transfer where account_id = $1 and ${WHERE} order by moved_at desc limit 1)
     union all (select moved_at, balance, hash from ledger_checkpoint where account_id = $1 order by moved_at desc limit 1)) x order by moved_at desc limit 1)`
const BALANCE = sql('verify_balance')`select a.posted, a.held, a.status, a.id is not null as known,
     coalesce((select sum(${MOVED_BY})
       from transfer t where t.account_id = $1 and t.id >= $2 and t.at >= $3), 0)::bigint as young,
     coalesce((select sum(t.amount) from transfer t where t.account_id = $1 and t.id >= $2 and t.at >= $3 and t.kind = 'settled'), 0)::bigint as spent,
     coalesce((select sum(h.amount) from held h where h.account_id = $1), 0)::bigint as holds,
     coalesce(l.balance, 0)::bigint as told,
     a.chain is not distinct from l.hash and a.moved_at is not distinct from l.moved_at as whole
   from (select 1) one left join account a on a.id = $1
   left join ${LAST_PLACE('moved_at is not null')} l on true`

/** Compares the account's row with the replayed sums and the rows after the watermark, in one snapshot. */
function checkBalance({ database, usageSinceMs }: AccountCheck, account: string, mark: Mark): Promise<string[]> {
  return database.transaction(async (tx) => {
    await tx.query({ text: 'set transaction isolation level repeatable read, read only' })
    const since = new Date(mark.untilMs)
    const [state] = await tx.query<{
      known: boolean
      status: string
      posted: bigint
      held: bigint
      young: bigint
      spent: bigint
      holds: bigint
      told: bigint
      whole: boolean
    }>(BALANCE, [account, mark.oldest, since])
    if (!state?.known) return [`There are transfers or holds of account ${account}, which does not exist.`]
    const problems: string[] = []
    const pairs = [
      ['balance', state.posted, mark.posted + state.young, 'its transfers sum to'],
      ['balance', state.posted, state.told, 'its statement ends with'],
      ['held amount', state.held, state.holds, 'its holds sum to'],
    ] as const
    for (const [what, is, should, source] of pairs)
      if (is !== should)
        problems.push(
          `Account ${account}: the ${what} is ${formatCredits(is)}, but ${source} ${formatCredits(should)}.`,
        )
    // A closed account's balance was paid out or written off. Test credits have no value and may remain.
    if (state.status === 'closed' && state.posted + state.held !== 0n && !isTestAccount(account))
      problems.push(`Account ${account} is closed, but has a balance of ${formatCredits(state.posted)}.`)
    if (!state.whole)
      problems.push(
        `Account ${account}: its last transfer is not the one that was written last: some were removed or put there.`,
      )
    const { written, counted } = await readYoungHours(tx, account, { since, oldest: mark.oldest })
    problems.push(...compareHours(account, written, counted))
    problems.push(...(await checkLimits(tx, account, mark.settled + state.spent)))
    problems.push(...(await checkBudgets(tx, account, { settled: mark.settled + state.spent, usageSinceMs })))
    problems.push(...(await checkLots(tx, account)))
    for (const rule of ADDED) problems.push(...(await rule(tx, account)))
    return problems
  })
}

// The chain of an account's transfers: each balance must be the previous one plus the amount moved, and each hash
// covers the previous one. It is read in pages, in the order of writing; no row is ever inserted before a transfer that
// is already visible.

const CHAIN_ROWS = 10_000
/**
 * The same hash as in functions/chain.sql, written without our functions because a server of distributed accounts does
 * not have them.
 */
const HASH = (BEFORE: string) =>
  `sha256(coalesce(${BEFORE}, '') || convert_to(concat(account_id, '|', id, '|', kind, '|', amount, '|', loss, '|', held, '|', balance, '|', note, '|', actor, '|' || lots::text), 'UTF8'))`
/** The start of the reading. */
const SINCE = `to_timestamp($2::double precision / 1000)`

// Timestamps are read as text, because they are more precise than JavaScript's dates.
const BEFORE = sql('verify_chain_before')`
  select moved_at::text as at, balance, hash from ${LAST_PLACE(`moved_at < ${SINCE}`)} l`
const AT = sql('verify_chain_at')`
  select moved_at::text as at, balance, hash from transfer where account_id = $1 and moved_at = $2::text::timestamptz limit 1`
// One pass in index order. Written as several common table expressions, the page was sorted and stored five times, at
// nearly twice the cost.
const CHAIN = `(
  select *, lag(balance, 1, $3::bigint) over following + moved as expected, lag(moved_at) over following as earlier,
    lag(hash, 1, $4::bytea) over following as before
  from (
    select account_id, id, kind, amount, loss, held, note, actor, lots, moved_at, balance, hash, ${MOVED_BY} as moved from transfer
    where account_id = $1 and moved_at > $2::text::timestamptz order by moved_at limit ${CHAIN_ROWS}
  ) page window following as (order by moved_at)
) chain`
const WRONG = 'balance is distinct from expected or moved_at is not distinct from earlier'
const BROKEN = `hash is distinct from ${HASH('before')}`
const PAGE = sql('verify_chain')`
  select count(*)::int as rows, max(moved_at)::text as at, coalesce(bool_or(${WRONG} or ${BROKEN}), false) as bad from ${CHAIN}`
const FIRST_BAD = sql('verify_chain_bad')`
  select id, balance as is, expected, ${WRONG} as wrong from ${CHAIN} where ${WRONG} or ${BROKEN} order by wrong desc, moved_at limit 1`

interface TransferPlace {
  readonly at: string
  readonly balance: bigint
  readonly hash: Buffer | null
}
interface PageRow {
  readonly rows: number
  readonly at: string
  readonly bad: boolean
}
interface BadRow {
  readonly id: string
  readonly is: bigint | null
  readonly expected: bigint | null
  /** True: the balance is wrong. False: the hash does not match the row and its predecessor. */
  readonly wrong: boolean
}

/** Checks the chain's rows since a moment up to which it is already checked. */
async function checkChain(database: Queryable, account: string, sinceMs: number): Promise<string[]> {
  const [before] = await database.query<TransferPlace>(BEFORE, [account, sinceMs])
  const start: TransferPlace = before ?? { at: '-infinity', balance: 0n, hash: null }
  for (let last = start; ; ) {
    const values = [account, last.at, last.balance, last.hash]
    const [page] = await database.query<PageRow>(PAGE, values)
    if (!page || page.rows === 0) return []
    const [bad] = page.bad ? await database.query<BadRow>(FIRST_BAD, values) : []
    if (bad) return [inWords(account, bad)]
    const [end] = await database.query<TransferPlace>(AT, [account, page.at])
    if (!end) return [`Account ${account}: a transfer was removed while it was read.`]
    last = end
  }
}

function inWords(account: string, { id, is, expected, wrong }: BadRow): string {
  if (!wrong)
    return `Account ${account}: transfer ${id} was changed, or the one before it was changed, removed or put there.`
  const amountWords = (amount: bigint | null) => (amount === null ? 'nothing' : formatCredits(amount))
  return `Account ${account}: its statement says ${amountWords(is)} after transfer ${id}, but what moved came to ${amountWords(expected)}.`
}

// An account's lots, checked against the transfers that moved their credits, the holds that hold them, and the balance
// of which they are a part.

interface AccountRow {
  readonly has_lots: boolean
  readonly some: boolean
  /** The balance and what is held of it, without lots. */
  readonly plain: bigint
  readonly plain_held: bigint
}
interface LotRow {
  readonly id: string
  readonly known: boolean
  readonly amount: bigint
  readonly remaining: bigint
  readonly held: bigint
  readonly granted: bigint
  readonly moved: bigint
  readonly holds: bigint
}

const ACCOUNT = sql('verify_lots_account')`
  select a.has_lots, l.remaining > 0 as some, (a.posted - l.remaining)::bigint as plain, (a.held - l.held)::bigint as plain_held
   from account a, (select coalesce(sum(remaining), 0) as remaining, coalesce(sum(held), 0) as held from lot where account_id = $1) l where a.id = $1`
// What transfers and holds say of lots, also of lots that are not there.
const LOTS = sql('verify_lots')`with moved as (
     select e.key as id, sum(e.value::bigint)::bigint as moved, coalesce(sum(e.value::bigint) filter (where t.id = e.key), 0)::bigint as granted
     from (
       select id, lots from transfer where account_id = $1 and lots is not null and (kind in (${GIVEN_KINDS})
         or moved_at > coalesce((select max(c.moved_at) from ledger_checkpoint c where c.account_id = $1), '-infinity'))
       union all select '', jsonb_object_agg(l ->> 0, l ->> 1) from ledger_checkpoint, jsonb_array_elements(lots) l where account_id = $1 group by month
     ) t, jsonb_each_text(t.lots) e group by 1
   ), parts as (
     select p ->> 0 as id, sum((p ->> 1)::bigint)::bigint as holds from hold h, jsonb_array_elements(h.lots) p where h.account_id = $1 and h.lots is not null and p ->> 0 <> '' group by 1
   ), lots as (
     select * from lot where account_id = $1
   )
   select id, l.account_id is not null as known, coalesce(l.amount, 0) as amount, coalesce(l.remaining, 0) as remaining, coalesce(l.held, 0) as held,
     coalesce(m.granted, 0) as granted, coalesce(m.moved, 0) as moved, coalesce(p.holds, 0) as holds
   from lots l full join moved m using (id) full join parts p using (id)
   where l.account_id is null or m.moved is distinct from l.remaining or m.granted is distinct from l.amount or coalesce(p.holds, 0) <> l.held order by id limit 10`
/** A name that ends in * stands for all that begin so. */
const SERVES = `exists (select 1 from unnest(l.products) p where p = u.product or right(p, 1) = '*' and starts_with(u.product, left(p, -1)))`
const LOT_TRANSFERS = sql('verify_lots_transfers')`select t.id, t.kind from transfer t cross join lateral (
     select count(*) as lots, coalesce(sum(e.value::bigint), 0) as sum, max(e.value::bigint) as most, bool_or(e.key = t.id) as own from jsonb_each_text(t.lots) e) x
   where t.account_id = $1 and t.lots is not null and case
     when t.kind in ('takeback', 'payout', 'writeoff', 'settled', 'refund') then x.most > 0 or -x.sum > t.amount
     when t.kind = 'expiry' then x.lots <> 1 or -x.sum <> t.amount
       or not exists (select 1 from jsonb_object_keys(t.lots) k join lot l on l.account_id = $1 and l.id = k where l.ends_at <= t.moved_at)
     when t.kind in ('released', 'expired') then true
     else x.lots <> 1 or not x.own or x.sum <> t.amount end
   union all
   select t.id, t.kind from transfer t where t.account_id = $1 and t.kind = 'expiry' and t.lots is null
   order by 1 limit 10`
const PRODUCTS = sql('verify_lots_products')`
  select t.id, u.product, l.id as lot from lot l join transfer t on t.account_id = $1 and t.lots is not null and t.lots ? l.id and t.kind = 'settled'
     join usage u on u.account_id = $1 and u.id = t.id
   where l.account_id = $1 and l.products is not null and not ${SERVES} order by 1 limit 10`
const HOLDS = sql('verify_lots_holds')`
  select h.id, h.amount, x.sum from hold h cross join lateral (select coalesce(sum((p ->> 1)::bigint), 0)::bigint as sum from jsonb_array_elements(h.lots) p) x
   where h.account_id = $1 and h.lots is not null and x.sum <> h.amount order by 1 limit 10`

/** In the snapshot in which the account's balance is read. */
export async function checkLots(tx: Queryable, account: string): Promise<string[]> {
  const [of] = await tx.query<AccountRow>(ACCOUNT, [account])
  if (!of) return []
  const problems: string[] = []
  const say = (problem: string) => problems.push(`Account ${account}: ${problem}`)
  if (of.has_lots !== of.some)
    say(of.some ? 'it has lots, but is said to have none.' : 'it is said to have lots, but has none.')
  if (of.plain < 0n) say(`its lots have ${formatCredits(-of.plain)} more than its balance.`)
  if (of.plain_held < 0n || of.plain_held > of.plain)
    say(`${formatCredits(of.plain_held)} of its ${formatCredits(of.plain)} plain credits are held.`)
  for (const lot of await tx.query<LotRow>(LOTS, [account])) {
    const name = `lot ${lot.id}`
    if (!lot.known) say(`transfers or holds name ${name}, which does not exist.`)
    else if (lot.granted !== lot.amount)
      say(`${name} is one of ${formatCredits(lot.amount)}, but ${formatCredits(lot.granted)} were granted.`)
    else if (lot.moved !== lot.remaining)
      say(`${name} has ${formatCredits(lot.remaining)} left, but its transfers sum to ${formatCredits(lot.moved)}.`)
    else say(`${formatCredits(lot.held)} of ${name} are held, but its holds sum to ${formatCredits(lot.holds)}.`)
  }
  for (const { id, amount, sum } of await tx.query<{ id: string; amount: bigint; sum: bigint }>(HOLDS, [account]))
    say(`hold ${id} is one of ${formatCredits(amount)}, but took ${formatCredits(sum)} of lots and plain credits.`)
  for (const { id, kind } of await tx.query<{ id: string; kind: string }>(LOT_TRANSFERS, [account]))
    say(`transfer ${id} (${kind}) does not move of lots what its kind moves.`)
  for (const { id, product, lot } of await tx.query<{ id: string; product: string; lot: string }>(PRODUCTS, [account]))
    say(`call ${id} of ${product} was paid from lot ${lot}, which is not for that product.`)
  return problems
}
