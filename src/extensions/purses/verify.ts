// Purses, recomputed from their movements: balances and hashes in their order, what running calls hold, and what each
// call cost by its price list and by what the ledger says of it. In words of its own, and not by the functions that
// charge.
import { createHash } from 'node:crypto'
import { type Queryable, sql, statement } from '../../database/database.ts'
import type { AccountRule } from '../../extension.ts'
import { formatCredits } from '../../kernel/credits.ts'
import type { ChargeLine } from '../../meter/charge.ts'
import { type PriceList, purseCharge, readList } from './prices.ts'

interface PurseRow {
  readonly id: string
  readonly status: string
  readonly posted: bigint
  readonly held: bigint
  readonly holds: bigint
  readonly base: bigint
  readonly base_hash: Buffer | null
  readonly chain: Buffer | null
  readonly moved: string | null
  readonly volume: bigint
  readonly volume_month: string | null
}

interface MovementRow {
  readonly id: string
  readonly purse_id: string
  readonly kind: string
  readonly amount: bigint
  readonly balance: bigint
  readonly held: bigint
  readonly charged: bigint
  readonly list: number | null
  readonly product: string | null
  readonly reference: string | null
  readonly note: string | null
  readonly actor: string | null
  readonly hash: Buffer
  readonly at: string
  readonly month: string
  /** Of its call; null where there is none, or it is no longer kept. */
  readonly transfer: string | null
  readonly paid: bigint | null
  readonly lines: readonly ChargeLine[] | null
  readonly used: string | null
}

const GIVES = new Set(['grant', 'topup'])
const TAKES = new Set(['takeback', 'settled'])
const CALLS = new Set(['settled', 'released', 'expired'])
const STATUS: Readonly<Record<string, string>> = { frozen: 'frozen', reopened: 'open', closed: 'closed' }
const PAGE_ROWS = 2_000
const FIRST_ROWS = 20
const LATE = '+late'

export const verifyPurses: AccountRule = async (tx, account) => {
  const problems: string[] = []
  const lists = new Map<number, Promise<PriceList>>()
  const listAt = (version: number) => {
    const known = lists.get(version) ?? readList(tx, account, version)
    lists.set(version, known)
    return known
  }
  for (let last = ''; ; ) {
    const purses = await tx.query<PurseRow>(PURSES, [account, last])
    const first = await firstRows(tx, account, purses)
    for (const purse of purses) {
      const say = (problem: string) => void problems.push(`Account ${account}: purse ${purse.id} ${problem}`)
      await checkPurse(tx, { account, purse, first: first.get(purse.id) ?? [], listAt, say })
      last = purse.id
    }
    if (purses.length < PAGE_ROWS) break
  }
  for (const { id, purse } of await tx.query<{ id: string; purse: string | null }>(STRAYS, [account]))
    problems.push(`Account ${account}: ${id} is one of the purse ${purse}, which does not exist.`)
  for (const { id } of await tx.query<{ id: string }>(UNMOVED, [account]))
    problems.push(`Account ${account}: call ${id} is one of a purse, which it did not charge.`)
  return problems
}

/** The oldest movements of many purses at once: most have no more. */
async function firstRows(
  tx: Queryable,
  account: string,
  purses: readonly PurseRow[],
): Promise<Map<string, MovementRow[]>> {
  const of = new Map(purses.map(({ id }): [string, MovementRow[]] => [id, []]))
  for (const row of await tx.query<MovementRow>(FIRST, [account, [...of.keys()]])) of.get(row.purse_id)?.push(row)
  return of
}

interface Check {
  readonly account: string
  readonly purse: PurseRow
  readonly first: readonly MovementRow[]
  readonly listAt: (version: number) => Promise<PriceList>
  readonly say: (problem: string) => void
}

async function checkPurse(tx: Queryable, check: Check): Promise<void> {
  const { account, purse, first, say } = check
  let [balance, hash, status, at]: [bigint, Buffer | null, string, string] = [
    purse.base,
    purse.base_hash,
    '',
    '-infinity',
  ]
  const paid = { month: '', volume: 0n }
  for (let rows = first; rows.length > 0; ) {
    for (const row of rows) {
      if (GIVES.has(row.kind)) balance += row.amount
      else if (TAKES.has(row.kind)) balance -= row.amount
      else if (row.amount !== 0n) say(`has a movement ${row.id} (${row.kind}) that moves ${formatCredits(row.amount)}.`)
      if (row.balance !== balance)
        say(`says ${formatCredits(row.balance)} after ${row.id}, but what moved came to ${formatCredits(balance)}.`)
      ;({ balance } = row)
      hash = hashOf(hash, account, row)
      if (!hash.equals(row.hash)) say(`has a movement ${row.id} that was changed, or the one before it was.`)
      hash = row.hash
      status = STATUS[row.kind] ?? status
      at = row.at
      if (!CALLS.has(row.kind)) continue
      if (row.kind === 'settled' && row.month !== paid.month) Object.assign(paid, { month: row.month, volume: 0n })
      await checkCall(check, row, paid.volume)
      if (row.kind === 'settled') paid.volume += row.amount
    }
    const isAll = rows.length < (rows === first ? FIRST_ROWS : PAGE_ROWS)
    rows = isAll ? [] : await tx.query<MovementRow>(MOVEMENTS, [account, purse.id, at])
  }
  if (purse.posted !== balance)
    say(`has ${formatCredits(purse.posted)}, but its movements come to ${formatCredits(balance)}.`)
  if (purse.held !== purse.holds)
    say(`holds ${formatCredits(purse.held)}, but the holds of its calls are ${formatCredits(purse.holds)}.`)
  if ((paid.month !== '' || purse.base_hash === null) && `${paid.month} ${paid.volume}` !== volumeOf(purse))
    say(`paid ${formatCredits(purse.volume)} in its month, but its calls in it come to ${formatCredits(paid.volume)}.`)
  const isAllGone = at === '-infinity' && purse.base_hash !== null
  if (!same(purse.chain, hash) || (!isAllGone && (purse.moved ?? '-infinity') !== at))
    say('does not end with its last movement: some were removed or put there.')
  // What decided it may be no longer kept.
  if (status !== purse.status && (status !== '' || (purse.base_hash === null && purse.status !== 'open')))
    say(`is ${purse.status}, but its movements say otherwise.`)
}

const volumeOf = ({ volume_month: month, volume }: PurseRow) => `${month ?? ''} ${volume}`

const same = (a: Buffer | null, b: Buffer | null) => (a === null || b === null ? a === b : a.equals(b))

/** By the ledger, as far as it is kept. */
async function checkCall({ listAt, say }: Check, row: MovementRow, volume: bigint): Promise<void> {
  const { id, kind, amount, held, charged } = row
  if (amount > held) say(`paid ${formatCredits(amount)} for ${id}, and had held ${formatCredits(held)}.`)
  if (row.transfer === null || row.lines === null) return
  if (row.transfer !== kind) say(`has ${id} as ${kind}, but the call is ${row.transfer}.`)
  if (row.used !== row.product) say(`has ${id} as a call of ${row.product}, but it was one of ${row.used}.`)
  if (row.paid !== charged)
    say(`has ${formatCredits(charged)} as what ${id} cost the account, which was ${formatCredits(row.paid ?? 0n)}.`)
  if (kind !== 'settled') return
  const list = await listAt(row.list ?? 0)
  const price = purseCharge(list, { product: row.product ?? '', lines: row.lines, charged, volume })
  const due = price < held ? price : held
  // One that came late takes what is there.
  if (amount !== due && !(id.endsWith(LATE) && amount < due))
    say(`paid ${formatCredits(amount)} for ${id}, whose price is ${formatCredits(due)}.`)
}

function hashOf(before: Buffer | null, account: string, row: MovementRow): Buffer {
  const text = [
    account,
    row.id,
    row.purse_id,
    row.kind,
    row.amount,
    row.balance,
    row.held,
    row.charged,
    row.list ?? '',
    row.product ?? '',
    row.reference ?? '',
    row.note ?? '',
    row.actor ?? '',
  ].join('|')
  return createHash('sha256')
    .update(before ?? Buffer.alloc(0))
    .update(text)
    .digest()
}

const PURSES = sql('verify_purses')`
  select p.id, p.status, p.posted, p.held, p.base, p.base_hash, p.chain, p.moved_at::text as moved, p.volume, p.volume_month::text as volume_month,
     coalesce((select sum((h.purse ->> 'amount')::bigint) from hold h where h.account_id = $1 and h.purse ->> 'id' = p.id), 0)::bigint as holds
   from purse p where p.account_id = $1 and p.id > $2 order by p.id limit ${PAGE_ROWS}`
const ROWS = (WHERE: string, LIMIT: number) =>
  `select m.id, m.purse_id, m.kind, m.amount, m.balance, m.held, m.charged, m.list, m.product, m.reference, m.note, m.actor, m.hash, m.moved_at::text as at, to_char(m.moved_at at time zone 'UTC', 'YYYY-MM-01') as month,
     t.kind as transfer, t.amount + greatest(t.loss, 0) as paid, u.lines, u.product as used
   from (select * from purse_movement where account_id = $1 and ${WHERE} order by moved_at limit ${LIMIT}) m
     left join transfer t on t.account_id = $1 and t.id = m.id and m.product is not null
     left join usage u on u.account_id = $1 and u.id = m.id and m.product is not null order by m.moved_at`
const MOVEMENTS = statement(
  'verify_purse_movements',
  ROWS('purse_id = $2 and moved_at > $3::text::timestamptz', PAGE_ROWS),
)
const FIRST = sql('verify_purse_first')`
  select r.* from unnest($2::text[]) p(id) cross join lateral (${ROWS('purse_id = p.id', FIRST_ROWS)}) r`
const STRAYS = sql('verify_purse_strays')`select s.id, s.purse from (
     select 'hold ' || id as id, purse ->> 'id' as purse from hold where account_id = $1 and purse is not null
     union all select 'movement ' || id, purse_id from purse_movement where account_id = $1
   ) s where not exists (select 1 from purse p where p.account_id = $1 and p.id = s.purse) limit 100`
// Those of before the oldest movement that is kept say nothing.
const UNMOVED = sql('verify_purse_calls')`
  select u.id from usage u where u.account_id = $1 and u.labels ? ':purse' and u.outcome in ('settled', 'released')
     and exists (select 1 from purse p where p.account_id = $1)
     and u.at > (select min(m.moved_at) from purse_movement m where m.account_id = $1)
     and not exists (select 1 from purse_movement m where m.account_id = $1 and m.id = u.id) limit 100`
