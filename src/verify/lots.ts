// An account's lots, checked against the transfers that moved their credits, the holds that hold them, and the balance of which they are a part.
import { type Queryable, statement } from '../database/database.ts'
import { formatCredits } from '../kernel/credits.ts'

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

const ACCOUNT = statement(
  'verify_lots_account',
  `select a.has_lots, l.remaining > 0 as some, (a.posted - l.remaining)::bigint as plain, (a.held - l.held)::bigint as plain_held
   from account a, (select coalesce(sum(remaining), 0) as remaining, coalesce(sum(held), 0) as held from lot where account_id = $1) l where a.id = $1`,
)
// What transfers and holds say of lots, also of lots that are not there.
const LOTS = statement(
  'verify_lots',
  `with moved as (
     select e.key as id, sum(e.value::bigint)::bigint as moved, coalesce(sum(e.value::bigint) filter (where t.id = e.key), 0)::bigint as granted
     from transfer t, jsonb_each_text(t.lots) e where t.account_id = $1 and t.lots is not null group by 1
   ), parts as (
     select p ->> 0 as id, sum((p ->> 1)::bigint)::bigint as holds from hold h, jsonb_array_elements(h.lots) p where h.account_id = $1 and h.lots is not null and p ->> 0 <> '' group by 1
   ), lots as (
     select * from lot where account_id = $1
   )
   select id, l.account_id is not null as known, coalesce(l.amount, 0) as amount, coalesce(l.remaining, 0) as remaining, coalesce(l.held, 0) as held,
     coalesce(m.granted, 0) as granted, coalesce(m.moved, 0) as moved, coalesce(p.holds, 0) as holds
   from lots l full join moved m using (id) full join parts p using (id)
   where l.account_id is null or m.moved is distinct from l.remaining or m.granted is distinct from l.amount or coalesce(p.holds, 0) <> l.held order by id limit 10`,
)
/** A name that ends in * stands for all that begin so. */
const SERVES = `exists (select 1 from unnest(l.products) p where p = u.product or right(p, 1) = '*' and starts_with(u.product, left(p, -1)))`
const TRANSFERS = statement(
  'verify_lots_transfers',
  `select t.id, t.kind from transfer t cross join lateral (
     select count(*) as lots, coalesce(sum(e.value::bigint), 0) as sum, max(e.value::bigint) as most, bool_or(e.key = t.id) as own from jsonb_each_text(t.lots) e) x
   where t.account_id = $1 and t.lots is not null and case
     when t.kind in ('takeback', 'payout', 'writeoff', 'settled', 'refund') then x.most > 0 or -x.sum > t.amount
     when t.kind = 'expiry' then x.lots <> 1 or -x.sum <> t.amount
       or not exists (select 1 from jsonb_object_keys(t.lots) k join lot l on l.account_id = $1 and l.id = k where l.ends_at <= t.moved_at)
     when t.kind in ('released', 'expired') then true
     else x.lots <> 1 or not x.own or x.sum <> t.amount end
   union all
   select t.id, t.kind from transfer t where t.account_id = $1 and t.kind = 'expiry' and t.lots is null
   order by 1 limit 10`,
)
const PRODUCTS = statement(
  'verify_lots_products',
  `select t.id, u.product, l.id as lot from lot l join transfer t on t.account_id = $1 and t.lots is not null and t.lots ? l.id and t.kind = 'settled'
     join usage u on u.account_id = $1 and u.id = t.id
   where l.account_id = $1 and l.products is not null and not ${SERVES} order by 1 limit 10`,
)
const HOLDS = statement(
  'verify_lots_holds',
  `select h.id, h.amount, x.sum from hold h cross join lateral (select coalesce(sum((p ->> 1)::bigint), 0)::bigint as sum from jsonb_array_elements(h.lots) p) x
   where h.account_id = $1 and h.lots is not null and x.sum <> h.amount order by 1 limit 10`,
)

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
  for (const { id, kind } of await tx.query<{ id: string; kind: string }>(TRANSFERS, [account]))
    say(`transfer ${id} (${kind}) does not move of lots what its kind moves.`)
  for (const { id, product, lot } of await tx.query<{ id: string; product: string; lot: string }>(PRODUCTS, [account]))
    say(`call ${id} of ${product} was paid from lot ${lot}, which is not for that product.`)
  return problems
}
