// Top-ups of purses, against the movements under their ids: what was paid for was put in once, and for money that went back as much was taken as was there.
import { statement } from '../../database/database.ts'
import type { AccountRule } from '../../extension.ts'
import { formatCredits } from '../../kernel/credits.ts'

interface Row {
  readonly id: string
  readonly purse: string
  readonly state: string
  readonly granted: boolean
  readonly price: bigint
  readonly amount: bigint
  readonly refunded: bigint
  readonly disputed: bigint
  readonly credits: bigint
  readonly taken: bigint
  readonly lost: bigint
  /** What its movement put into the purse; null: there is none. */
  readonly given: bigint | null
  readonly back: bigint
  /** Whether its movements are kept. */
  readonly kept: boolean
}

const PAGE_ROWS = 2_000

export const verifyTopUps: AccountRule = async (tx, account) => {
  const problems: string[] = []
  for (let last = ''; ; ) {
    const rows = await tx.query<Row>(TOP_UPS, [account, last])
    for (const row of rows) {
      for (const problem of problemsOf(row)) problems.push(`Account ${account}: top-up ${row.id} ${problem}`)
      last = row.id
    }
    if (rows.length < PAGE_ROWS) break
  }
  for (const { id, purse } of await tx.query<{ id: string; purse: string }>(STRAYS, [account]))
    problems.push(`Account ${account}: purse ${purse} has a movement ${id} of a top-up that does not exist.`)
  return problems
}

function problemsOf(row: Row): string[] {
  const { state, granted, price, amount, refunded, disputed, credits, taken, lost, given, back, kept } = row
  const gone = refunded + disputed
  const owed = !granted ? 0n : gone >= amount ? credits : (credits * gone) / amount
  const due = disputed > 0n ? 'disputed' : refunded === amount ? 'refunded' : 'paid'
  const isWrong = granted ? state !== due : ['paid', 'disputed'].includes(state)
  return [
    ...(isWrong ? [`is ${state}, but its money says otherwise.`] : []),
    ...(granted && amount !== price ? ['brought credits for another amount than was asked for.'] : []),
    ...(refunded < 0n || refunded > amount ? ['says that more was refunded than was paid.'] : []),
    ...(granted && kept && given !== credits
      ? [`put ${formatCredits(given ?? 0n)} credits into ${row.purse}, but stands for ${formatCredits(credits)}.`]
      : []),
    ...(!granted && given !== null ? [`put credits into ${row.purse}, and is ${state}.`] : []),
    ...(taken + lost === owed
      ? []
      : [
          `took back ${formatCredits(taken)} and lost ${formatCredits(lost)} credits, but its money that went back stands for ${formatCredits(owed)}.`,
        ]),
    ...(kept && back !== taken
      ? [`took back ${formatCredits(taken)} credits, but ${formatCredits(back)} by its movements.`]
      : []),
  ]
}

// Movements of before the oldest one that is kept say nothing. What went back stands under the id of the top-up, a hyphen and an id of its own.
const TOP_UPS = statement(
  'verify_topups',
  `select t.id, t.purse_id as purse, t.state, t.granted, t.price_minor as price, t.amount_minor as amount, t.refunded_minor as refunded,
     case when t.dispute in ('open', 'lost') then t.disputed_minor else 0 end as disputed, t.credits, t.taken, t.lost, g.given, coalesce(b.back, 0)::bigint as back,
     g.given is not null or p.base_hash is null or coalesce(t.paid_at > (select min(m.moved_at) from purse_movement m where m.account_id = $1 and m.purse_id = t.purse_id), false) as kept
   from purse_topup t join purse p on p.account_id = $1 and p.id = t.purse_id
     left join lateral (select sum(case m.kind when 'topup' then m.amount else 0 end)::bigint as given from purse_movement m
       where m.account_id = $1 and m.purse_id = t.purse_id and m.reference = t.id) g on true
     left join lateral (select sum(case m.kind when 'takeback' then m.amount else -m.amount end) as back from purse_movement m
       where m.account_id = $1 and m.purse_id = t.purse_id and m.reference > t.id || '-' and m.reference < t.id || '.') b on true
   where t.account_id = $1 and t.id > $2 order by t.id limit ${PAGE_ROWS}`,
)
const STRAYS = statement(
  'verify_topup_strays',
  `select m.id, m.purse_id as purse from purse_movement m where m.account_id = $1 and m.reference >= 'top_' and m.reference < 'top\`'
     and not exists (select 1 from purse_topup t where t.account_id = $1 and t.id = split_part(m.reference, '-', 1) and t.purse_id = m.purse_id) limit 100`,
)
