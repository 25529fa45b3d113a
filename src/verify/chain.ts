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
const AT = statement(
  'verify_chain_at',
  'select moved_at::text as at, balance, hash from transfer where account_id = $1 and moved_at = $2::text::timestamptz limit 1',
)
// One pass in the order of the index: written as parts that name each other, the page was sorted and stored five times, at nearly twice the cost.
const CHAIN = `(
  select *, lag(balance, 1, $3::bigint) over following + moved as expected, lag(moved_at) over following as earlier,
    lag(hash, 1, $4::bytea) over following as before
  from (
    select account_id, id, kind, amount, loss, held, note, actor, moved_at, balance, hash, ${MOVED} as moved from transfer
    where account_id = $1 and moved_at > $2::text::timestamptz order by moved_at limit ${PAGE_ROWS}
  ) page window following as (order by moved_at)
) chain`
const WRONG = 'balance is distinct from expected or moved_at is not distinct from earlier'
const BROKEN = `moved_at >= to_timestamp($5::double precision / 1000) and hash is distinct from ${HASH('before')}`
const PAGE = statement(
  'verify_chain',
  `select count(*)::int as rows, max(moved_at)::text as at, coalesce(bool_or(${WRONG} or ${BROKEN}), false) as bad from ${CHAIN}`,
)
const FIRST_BAD = statement(
  'verify_chain_bad',
  `select id, balance as is, expected, ${WRONG} as wrong from ${CHAIN} where ${WRONG} or ${BROKEN} order by wrong desc, moved_at limit 1`,
)

interface Place {
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
  /** Its balance; otherwise its hash is not that of itself and the one before it. */
  readonly wrong: boolean
}

/** Of what was written since a moment before which it was checked. `chainedMs`: from when on there are hashes. */
export async function checkChain(
  database: Queryable,
  account: string,
  { sinceMs, chainedMs }: { readonly sinceMs: number; readonly chainedMs: number },
): Promise<string[]> {
  const [before] = await database.query<Place>(BEFORE, [account, sinceMs])
  const start: Place = before ?? { at: '-infinity', balance: 0n, hash: null }
  for (let last = start; ; ) {
    const values = [account, last.at, last.balance, last.hash, chainedMs]
    const [page] = await database.query<PageRow>(PAGE, values)
    if (!page || page.rows === 0) return []
    const [bad] = page.bad ? await database.query<BadRow>(FIRST_BAD, values) : []
    if (bad) return [inWords(account, bad)]
    const [end] = await database.query<Place>(AT, [account, page.at])
    if (!end) return [`Account ${account}: a transfer was removed while it was read.`]
    last = end
  }
}

function inWords(account: string, { id, is, expected, wrong }: BadRow): string {
  if (!wrong)
    return `Account ${account}: transfer ${id} was changed, or the one before it was changed, removed or put there.`
  const shown = (amount: bigint | null) => (amount === null ? 'nothing' : formatCredits(amount))
  return `Account ${account}: its statement says ${shown(is)} after transfer ${id}, but what moved came to ${shown(expected)}.`
}
