// Replays the whole ledger from its rows and says in sentences what does not add up. Everything is read in one snapshot
// and in pages, so it may run beside the load and needs the memory of the accounts, not of the calls.
import type { Catalog } from '../catalog/store.ts'
import type { Database, Queryable } from '../database/database.ts'
import { formatCredits } from '../kernel/credits.ts'
import { idAtTime } from '../kernel/world.ts'
import type { ChargeLine } from '../meter/charge.ts'
import { createRateCheck, type RateCheck } from './rate-check.ts'
import type { Verification } from './views.ts'

interface VerifyOptions {
  /** Usage from before this moment, the start of an hour, may have been trimmed. Absent: none was. */
  readonly usageSinceMs?: number
}

const PAGE_ROWS = 1_000
const ENTRY_ROWS = 50_000
const PROBLEMS_MAX = 200
const LATE = '+late'

type Report = (problem: string) => void

export async function verifyLedger(
  database: Database,
  catalogs: { at(version: number): Promise<Catalog> },
  options: VerifyOptions = {},
): Promise<Verification> {
  const problems: string[] = []
  let unlisted = 0
  const report: Report = (problem) => {
    if (problems.length < PROBLEMS_MAX) problems.push(problem)
    else unlisted += 1
  }
  const rates = createRateCheck(catalogs)
  const checked = await database.transaction(async (tx) => {
    await tx.query({ text: 'set transaction isolation level repeatable read, read only' })
    const sums = new Map<string, Sums>()
    const { transfers, usage } = await checkMovements(tx, sums, { ...options, rates }, report)
    const holds = await checkHolds(tx, sums, report)
    const accounts = await checkAccounts(tx, sums, options, report)
    await checkLimited(tx, report)
    return { accounts, transfers, holds, usage }
  })
  if (unlisted > 0) problems.push(`${unlisted} more problems are not listed.`)
  return { ok: problems.length === 0, checked, problems }
}

/** What the rows say that an account must have. */
interface Sums {
  posted: bigint
  held: bigint
  /** By settlements since usage is kept, for the hourly sums. */
  settled: bigint
}

function sumsOf(sums: Map<string, Sums>, account: string): Sums {
  let entry = sums.get(account)
  if (!entry) {
    entry = { posted: 0n, held: 0n, settled: 0n }
    sums.set(account, entry)
  }
  return entry
}

/** A transfer, the usage row of the same id, or both. */
interface MovementRow {
  transfer_id: string | null
  transfer_account: string
  kind: string
  amount: bigint
  transfer_loss: bigint
  transfer_held: bigint
  recent: boolean
  usage_id: string | null
  usage_account: string
  product: string
  outcome: string
  charged: bigint
  loss: bigint
  held: bigint
  catalog_version: number
  lines: ChargeLine[]
  estimated: boolean
  /** What was held for the call; a late settlement has no hold of its own any more. */
  held_for: bigint
}

async function checkMovements(
  tx: Queryable,
  sums: Map<string, Sums>,
  { rates, usageSinceMs }: VerifyOptions & { readonly rates: RateCheck },
  report: Report,
): Promise<{ transfers: number; usage: number }> {
  const usageSince = usageSinceMs === undefined ? '' : idAtTime(usageSinceMs)
  const counts = { transfers: 0, usage: 0 }
  for await (const page of pages<MovementRow>(
    tx,
    'movements',
    `select t.id as transfer_id, t.account_id as transfer_account, t.kind, t.amount, t.loss as transfer_loss, t.held as transfer_held,
       t.at >= to_timestamp($1::double precision / 1000) as recent, u.id as usage_id, u.account_id as usage_account, u.product, u.outcome, u.charged, u.loss, u.held, u.catalog_version, u.lines,
       u.estimated,
       coalesce((select e.held from transfer e where t.id like '%${LATE}' and e.account_id = t.account_id and e.id = left(t.id, ${-LATE.length})), t.held) as held_for
     from transfer t full join usage u on u.account_id = t.account_id and u.id = t.id`,
    [usageSinceMs ?? 0],
  ))
    for (const row of page) {
      if (row.usage_id !== null) counts.usage += 1
      if (row.transfer_id === null) {
        report(`Usage row ${row.usage_id} of account ${row.usage_account} has no transfer.`)
        continue
      }
      counts.transfers += 1
      if (row.kind === 'settled' && row.recent) sumsOf(sums, row.transfer_account).settled += row.amount
      if (row.amount < 0n || row.transfer_loss < 0n || row.transfer_held < 0n)
        report(`Transfer ${row.transfer_id} has a negative amount.`)
      const ofCall = row.kind !== 'grant' && row.kind !== 'takeback'
      if (row.usage_id === null) {
        if (ofCall && row.transfer_id >= usageSince)
          report(`Transfer ${row.transfer_id} (${row.kind}) has no usage row.`)
      } else if (!ofCall) report(`Transfer ${row.transfer_id} is a ${row.kind} but has a usage row.`)
      else {
        checkPair(row, report)
        if (row.kind === 'settled') {
          const checking = rates.check({ ...row, charge: row.charged + row.loss, held: row.held_for })
          const wrong = checking instanceof Promise ? await checking : checking
          if (wrong) report(`Call ${row.transfer_id}: ${wrong}`)
        }
      }
    }
  await checkLate(tx, report)
  await checkEntries(tx, sums, report)
  return counts
}

/** A resolution and the usage row that its statement wrote say the same. */
function checkPair(row: MovementRow, report: Report): void {
  const id = row.transfer_id
  if (row.transfer_account !== row.usage_account) report(`Transfer ${id} and its usage row name different accounts.`)
  if (row.kind !== row.outcome) report(`Transfer ${id} is ${row.kind}, but its usage row says ${row.outcome}.`)
  const differs = (what: string, moved: bigint, used: bigint) => {
    if (moved !== used)
      report(
        `The ${what} of call ${id} is ${formatCredits(moved)} in the ledger and ${formatCredits(used)} in its usage row.`,
      )
  }
  differs('charge', row.amount, row.charged)
  differs('loss', row.transfer_loss, row.loss)
  differs('hold', row.transfer_held, row.held)
  if (row.kind !== 'settled' && row.charged + row.loss !== 0n)
    report(`Call ${id} was ${row.kind}, but something was charged.`)
}

/** A settlement that came after its hold had expired is a second transfer, and only then. */
async function checkLate(tx: Queryable, report: Report): Promise<void> {
  const wrong = await tx.query<{ id: string }>({
    text: `select t.id from transfer t left join transfer e on e.account_id = t.account_id and e.id = left(t.id, ${-LATE.length}) and e.kind = 'expired'
      where t.id like '%${LATE}' and e.id is null limit 100`,
  })
  for (const { id } of wrong) report(`Transfer ${id} is a late settlement of a hold that did not expire.`)
}

/** The double entry: each transfer's legs sum to zero, so does the whole, and the accounts' legs are their balances. */
async function checkEntries(tx: Queryable, sums: Map<string, Sums>, report: Report): Promise<void> {
  let total = 0n
  let from = ''
  for (;;) {
    const [last] = await tx.query<{ id: string }>(
      { text: `select id from transfer where id > $1 order by id offset ${ENTRY_ROWS - 1} limit 1` },
      [from],
    )
    const legs = await tx.query<{ transfer_id: string | null; account: string; sum: bigint }>(
      {
        text: `select transfer_id, account, sum(amount)::bigint as sum from entry
          where transfer_id > $1 and ($2::text is null or transfer_id <= $2)
          group by grouping sets ((transfer_id), (account)) having transfer_id is null or sum(amount) <> 0`,
      },
      [from, last?.id ?? null],
    )
    for (const { transfer_id, account, sum } of legs) {
      if (transfer_id !== null)
        report(`The entries of transfer ${transfer_id} sum to ${formatCredits(sum)} instead of zero.`)
      else {
        total += sum
        if (account.startsWith('account:')) sumsOf(sums, account.slice('account:'.length)).posted += sum
      }
    }
    if (!last) break
    from = last.id
  }
  if (total !== 0n) report(`The entries of all transfers sum to ${formatCredits(total)} instead of zero.`)
}

async function checkHolds(tx: Queryable, sums: Map<string, Sums>, report: Report): Promise<number> {
  let count = 0
  for await (const page of pages<{ id: string; account_id: string; amount: bigint; resolved: boolean }>(
    tx,
    'hold_rows',
    `select id, account_id, amount, exists (select 1 from transfer t where t.account_id = h.account_id and t.id = h.id) as resolved from held h`,
  )) {
    count += page.length
    for (const hold of page) {
      sumsOf(sums, hold.account_id).held += hold.amount
      if (hold.resolved) report(`Hold ${hold.id} has been resolved, but still stands.`)
      if (hold.amount < 0n) report(`Hold ${hold.id} is negative.`)
    }
  }
  return count
}

async function checkAccounts(
  tx: Queryable,
  sums: Map<string, Sums>,
  options: VerifyOptions,
  report: Report,
): Promise<number> {
  let count = 0
  for await (const page of pages<{ id: string; posted: bigint; held: bigint; hourly: bigint }>(
    tx,
    'account_rows',
    `select a.id, a.posted, a.held,
       (select coalesce(sum(charged), 0)::bigint from usage_hour u
        where u.account_id = a.id and u.hour >= to_timestamp($1::double precision / 1000)) as hourly
     from account a`,
    [options.usageSinceMs ?? 0],
  )) {
    count += page.length
    for (const { id, posted, held, hourly } of page) {
      const due = sums.get(id) ?? { posted: 0n, held: 0n, settled: 0n }
      sums.delete(id)
      const pairs = [
        ['balance', posted, due.posted, 'its entries sum to'],
        ['held amount', held, due.held, 'its holds sum to'],
        ['hourly sum of charges', hourly, due.settled, 'its settlements sum to'],
      ] as const
      for (const [what, is, should, source] of pairs)
        if (is !== should)
          report(`Account ${id}: the ${what} is ${formatCredits(is)}, but ${source} ${formatCredits(should)}.`)
      if (posted < 0n || held < 0n || held > posted)
        report(`Account ${id}: ${formatCredits(held)} of ${formatCredits(posted)} are held, which is not possible.`)
    }
  }
  for (const id of sums.keys()) report(`There are transfers or holds of account ${id}, which does not exist.`)
  return count
}

/** Limits count the same holds as the accounts. */
async function checkLimited(tx: Queryable, report: Report): Promise<void> {
  const wrong = await tx.query<{ scope: string; held: bigint; due: bigint }>({
    text: `select case l.account_id when '' then l.scope else case l.scope when 'account' then 'account:' || l.account_id else 'key:' || l.scope end end as scope,
        l.held, coalesce(h.held, 0)::bigint as due from limited l
      left join (
        select x.account_id, x.scope, sum(h.amount) as held
        from (select account_id, key_id, process_id, job, amount from hold union all select account_id, key_id, process_id, false, amount from lease) h,
          lateral (values (h.account_id, 'account'), (h.account_id, h.key_id), ('', 'system@' || case when h.job then 'jobs' else h.process_id end)) x(account_id, scope)
        group by x.account_id, x.scope
      ) h on h.account_id = l.account_id and h.scope = l.scope
      where l.held <> coalesce(h.held, 0) and l.limits <> '{}' order by l.account_id, l.scope limit 100`,
  })
  for (const { scope, held, due } of wrong)
    report(`The limits of ${scope} count ${formatCredits(held)} as held, but its holds sum to ${formatCredits(due)}.`)
}

/** All rows of a query through a cursor of the transaction. */
async function* pages<R>(
  tx: Queryable,
  cursor: string,
  text: string,
  values: readonly number[] = [],
): AsyncGenerator<R[]> {
  await tx.query({ text: `declare ${cursor} no scroll cursor for ${text}` }, values)
  for (;;) {
    const rows = await tx.query<R>({ text: `fetch ${PAGE_ROWS} from ${cursor}` })
    if (rows.length > 0) yield rows
    if (rows.length < PAGE_ROWS) break
  }
  await tx.query({ text: `close ${cursor}` })
}
