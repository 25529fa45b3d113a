// Replays the whole ledger from its rows and says in sentences what does not add up. Everything is read in one snapshot
// and in pages, so it may run beside the load and needs the memory of the accounts, not of the calls.
import type { Catalog } from '../catalog/store.ts'
import type { Database, Queryable } from '../database/database.ts'
import { formatCredits } from '../kernel/credits.ts'
import { idAtTime } from '../kernel/world.ts'
import type { ChargeLine } from '../meter/charge.ts'
import { createRateCheck, type RateCheck } from './rate-check.ts'

export interface Verification {
  readonly ok: boolean
  readonly checked: { accounts: number; transfers: number; holds: number; usage: number }
  readonly problems: string[]
}

export interface VerifyOptions {
  /** Usage of calls that began before this moment may have been trimmed. Absent: none was. */
  readonly usageSinceMs?: number
}

const PAGE_ROWS = 5_000
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
    const { transfers, usage } = await checkMovements(tx, sums, rates, options, report)
    const holds = await checkHolds(tx, sums, report)
    const accounts = await checkAccounts(tx, sums, report)
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
  /** By settlements, for the hourly sums. */
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

interface TransferRow {
  id: string
  account_id: string
  kind: string
  amount: bigint
  loss: bigint
  held: bigint
}

interface UsageRow {
  id: string
  account_id: string
  product: string
  outcome: string
  charged: bigint
  loss: bigint
  held: bigint
  catalog_version: number
  lines: ChargeLine[]
  estimated: boolean
}

/** Transfers and usage rows side by side, both in the order of their ids. */
async function checkMovements(
  tx: Queryable,
  sums: Map<string, Sums>,
  rates: RateCheck,
  options: VerifyOptions,
  report: Report,
): Promise<{ transfers: number; usage: number }> {
  const usageSince = options.usageSinceMs === undefined ? '' : idAtTime(options.usageSinceMs)
  const usage = await readAlong<UsageRow>(
    tx,
    'usage_rows',
    `select id, account_id, product, outcome, charged, loss, held, catalog_version, lines, estimated from usage order by id`,
  )
  const counts = { transfers: 0, usage: 0 }
  let total = 0n
  let previous: TransferRow | undefined

  async function orphansBefore(id: string): Promise<UsageRow | undefined> {
    for (;;) {
      const row = await usage.peek()
      if (row === undefined || row.id > id) return undefined
      usage.take()
      counts.usage += 1
      if (row.id === id) return row
      report(`Usage row ${row.id} of account ${row.account_id} has no transfer.`)
    }
  }

  for await (const page of pages<TransferRow>(
    tx,
    'transfer_rows',
    'select id, account_id, kind, amount, loss, held from transfer order by id',
  )) {
    counts.transfers += page.length
    total += await checkEntries(tx, page, sums, report)
    for (const row of page) {
      if (row.amount < 0n || row.loss < 0n || row.held < 0n) report(`Transfer ${row.id} has a negative amount.`)
      if (row.kind === 'settled') sumsOf(sums, row.account_id).settled += row.amount
      if (row.id.endsWith(LATE) && !(previous && previous.kind === 'expired' && row.id === previous.id + LATE))
        report(`Transfer ${row.id} is a late settlement of a hold that did not expire.`)
      previous = row
      const found = await orphansBefore(row.id)
      const ofCall = row.kind !== 'grant' && row.kind !== 'takeback'
      if (found && !ofCall) report(`Transfer ${row.id} is a ${row.kind} but has a usage row.`)
      else if (found) await checkPair(row, found, rates, report)
      else if (ofCall && row.id >= usageSince) report(`Transfer ${row.id} (${row.kind}) has no usage row.`)
    }
  }
  await orphansBefore('\u{10ffff}')
  if (total !== 0n) report(`The entries of all transfers sum to ${formatCredits(total)} instead of zero.`)
  return counts
}

/** The double entry: each transfer's legs sum to zero, and the accounts' legs are their balances. Answers the page's total. */
async function checkEntries(
  tx: Queryable,
  page: readonly TransferRow[],
  sums: Map<string, Sums>,
  report: Report,
): Promise<bigint> {
  const range = [page[0]!.id, page.at(-1)!.id]
  const unbalanced = await tx.query<{ transfer_id: string; sum: bigint }>(
    {
      text: `select transfer_id, sum(amount)::bigint as sum from entry where transfer_id between $1 and $2
        group by transfer_id having sum(amount) <> 0 limit 100`,
    },
    range,
  )
  for (const { transfer_id, sum } of unbalanced)
    report(`The entries of transfer ${transfer_id} sum to ${formatCredits(sum)} instead of zero.`)
  const legs = await tx.query<{ account: string; sum: bigint }>(
    {
      text: `select account, sum(amount)::bigint as sum from entry where transfer_id between $1 and $2 group by account`,
    },
    range,
  )
  let total = 0n
  for (const { account, sum } of legs) {
    total += sum
    if (account.startsWith('account:')) sumsOf(sums, account.slice('account:'.length)).posted += sum
  }
  return total
}

/** A resolution and the usage row that its statement wrote say the same, and the charge can be computed again. */
async function checkPair(transfer: TransferRow, usage: UsageRow, rates: RateCheck, report: Report): Promise<void> {
  const { id } = transfer
  if (transfer.account_id !== usage.account_id) report(`Transfer ${id} and its usage row name different accounts.`)
  if (transfer.kind !== usage.outcome)
    report(`Transfer ${id} is ${transfer.kind}, but its usage row says ${usage.outcome}.`)
  const pairs = [
    ['charge', transfer.amount, usage.charged],
    ['loss', transfer.loss, usage.loss],
    ['hold', transfer.held, usage.held],
  ] as const
  for (const [what, moved, used] of pairs)
    if (moved !== used)
      report(
        `The ${what} of call ${id} is ${formatCredits(moved)} in the ledger and ${formatCredits(used)} in its usage row.`,
      )
  const charge = usage.charged + usage.loss
  if (transfer.kind !== 'settled') {
    if (charge !== 0n) report(`Call ${id} was ${transfer.kind}, but something was charged.`)
    return
  }
  const wrong = await rates.check({ ...usage, charge })
  if (wrong) report(`Call ${id}: ${wrong}`)
}

async function checkHolds(tx: Queryable, sums: Map<string, Sums>, report: Report): Promise<number> {
  let count = 0
  for await (const page of pages<{ id: string; account_id: string; amount: bigint; resolved: boolean }>(
    tx,
    'hold_rows',
    `select id, account_id, amount, exists (select 1 from transfer t where t.id = h.id) as resolved from hold h order by id`,
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

async function checkAccounts(tx: Queryable, sums: Map<string, Sums>, report: Report): Promise<number> {
  let count = 0
  for await (const page of pages<{ id: string; posted: bigint; held: bigint; hourly: bigint }>(
    tx,
    'account_rows',
    `select a.id, a.posted, a.held,
       (select coalesce(sum(charged), 0)::bigint from usage_hour u where u.account_id = a.id) as hourly
     from account a order by a.id`,
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
    text: `select l.scope, l.held, coalesce(h.held, 0)::bigint as due from limited l
      left join (select scope, sum(amount) as held from hold, unnest(scopes) scope group by scope) h on h.scope = l.scope
      where l.held <> coalesce(h.held, 0) order by l.scope limit 100`,
  })
  for (const { scope, held, due } of wrong)
    report(`The limits of ${scope} count ${formatCredits(held)} as held, but its holds sum to ${formatCredits(due)}.`)
}

/** All rows of a query through a cursor of the transaction. */
async function* pages<R>(tx: Queryable, cursor: string, text: string): AsyncGenerator<R[]> {
  await tx.query({ text: `declare ${cursor} no scroll cursor for ${text}` })
  for (;;) {
    const rows = await tx.query<R>({ text: `fetch ${PAGE_ROWS} from ${cursor}` })
    if (rows.length > 0) yield rows
    if (rows.length < PAGE_ROWS) break
  }
  await tx.query({ text: `close ${cursor}` })
}

/** The same, one row at a time, for reading beside another cursor. */
async function readAlong<R>(tx: Queryable, cursor: string, text: string) {
  const source = pages<R>(tx, cursor, text)
  let page: R[] = []
  let at = 0
  let ended = false
  return {
    async peek(): Promise<R | undefined> {
      if (at >= page.length && !ended) {
        const next = await source.next()
        ended = next.done === true
        page = next.done ? [] : next.value
        at = 0
      }
      return page[at]
    },
    take(): void {
      at += 1
    },
  }
}
