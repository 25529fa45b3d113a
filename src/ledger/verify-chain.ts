// The chain of an account's transfers: each balance must be the one before it and what moved, and each hash is over the one before. Read in the
// order in which they were written, in pages: nothing ever comes before a transfer that can be read.
import { type Queryable, statement } from '../database/database.ts'
import { formatCredits } from '../kernel/credits.ts'

const PAGE_ROWS = 10_000
/** As functions/chain.sql makes it, in words that a server of accounts understands which has none of our functions. */
const HASH = (BEFORE: string) =>
  `sha256(coalesce(${BEFORE}, '') || convert_to(concat(account_id, '|', id, '|', kind, '|', amount, '|', loss, '|', held, '|', balance, '|', note, '|', actor), 'UTF8'))`
const MOVED = `case kind when 'grant' then amount when 'takeback' then -amount when 'settled' then -amount else 0 end`
/** The moment at which a reading begins. */
const START = `to_timestamp($2::double precision / 1000)`

// Moments as text: they are finer than those of JavaScript.
const BEFORE = statement(
  'verify_chain_before',
  `select moved_at::text as at, balance, hash from transfer where account_id = $1 and moved_at < ${START} order by moved_at desc limit 1`,
)
const PAGE = statement(
  'verify_chain',
  `with page as materialized (
     select account_id, id, kind, amount, loss, held, note, actor, moved_at, balance, hash, ${MOVED} as moved from transfer
     where account_id = $1 and moved_at > $2::text::timestamptz order by moved_at limit ${PAGE_ROWS}
   ), chain as (
     select *, lag(balance, 1, $3::bigint) over (order by moved_at) + moved as expected, lag(moved_at) over (order by moved_at) as earlier,
       lag(hash, 1, $4::bytea) over (order by moved_at) as before from page
   ), wrong as (
     select id, balance, expected from chain where balance is distinct from expected or moved_at = earlier order by moved_at limit 1
   ), broken as (
     select id from chain where moved_at >= to_timestamp($5::double precision / 1000) and hash is distinct from ${HASH('before')} order by moved_at limit 1
   )
   select count(*)::int as rows, max(moved_at)::text as at, (select balance from page order by moved_at desc limit 1) as balance,
     (select hash from page order by moved_at desc limit 1) as hash, (select id from broken) as broken,
     (select id from wrong) as id, (select balance from wrong) as is, (select expected from wrong) as expected from page`,
)

interface PageRow {
  readonly rows: number
  readonly at: string
  readonly balance: bigint
  readonly hash: Buffer | null
  /** The first whose hash is not that of itself and the one before it. */
  readonly broken: string | null
  readonly id: string | null
  readonly is: bigint | null
  readonly expected: bigint | null
}

/** Of what was written since a moment before which it was checked. `chainedMs`: from when on there are hashes. */
export async function checkChain(
  database: Queryable,
  account: string,
  { sinceMs, chainedMs }: { readonly sinceMs: number; readonly chainedMs: number },
): Promise<string[]> {
  const [before] = await database.query<{ at: string; balance: bigint; hash: Buffer | null }>(BEFORE, [
    account,
    sinceMs,
  ])
  let last = before ?? { at: '-infinity', balance: 0n, hash: null }
  for (;;) {
    const [page] = await database.query<PageRow>(PAGE, [account, last.at, last.balance, last.hash, chainedMs])
    if (!page || page.rows === 0) return []
    if (page.id !== null) {
      const [is, should] = [page.is, page.expected].map((amount) =>
        amount === null ? 'nothing' : formatCredits(amount),
      )
      return [
        `Account ${account}: its statement says ${is} after transfer ${page.id}, but what moved came to ${should}.`,
      ]
    }
    if (page.broken !== null)
      return [
        `Account ${account}: transfer ${page.broken} was changed, or the one before it was changed, removed or put there.`,
      ]
    last = page
  }
}
