// What control counts for all ledgers, compared with what they have: no database sees both. It is read before and after
// the ledgers, since codes are redeemed and invoices issued meanwhile.
import { type Queryable, sql } from '../../database/database.ts'

const COUNTED = sql('compare_counted')`
  select 'codes of the batch ' || c.batch_id as what, sum(c.uses)::float8 as taken,
    (select count(*) from crossing x join code o on o.hash = decode(x.detail ->> 'hash', 'hex')
      where x.kind = 'code' and o.batch_id = c.batch_id)::float8 as open
  from code c group by c.batch_id
  union all
  select 'invoices of the series ' || series || ' in ' || year || ' ' || account_id, (last - x.free)::float8, x.open
  from invoice_counter c, lateral (
    select count(*) filter (where kind = 'number')::float8 as free, count(*) filter (where kind = 'invoice')::float8 as open
    from crossing where kind in ('number', 'invoice')
      and (detail ->> 'seller', detail ->> 'series', detail ->> 'year') = (c.account_id, c.series, c.year::text)) x`
const FOUND = sql('compare_found')`
  select 'codes of the batch ' || batch_id as what, count(*)::float8 as found from public.code_use group by 1
  union all
  select 'invoices of the series ' || series || ' in ' || year || ' ' || case when purse_id is null then '' else account_id end,
    count(*)::float8 from public.invoice where sequence > 0 group by 1`

interface Counted {
  readonly what: string
  readonly taken: number
  /** Of which it is not known yet whether the ledger has done its part. */
  readonly open: number
}

/** The first is control. Rejects while one does not answer. */
export async function compareLedgers([control, ...ledgers]: readonly [Queryable, ...Queryable[]]): Promise<string[]> {
  const before = await control.query<Counted>(COUNTED)
  const found = new Map<string, number>()
  for (const one of [control, ...ledgers])
    for (const { what, found: count } of await one.query<{ what: string; found: number }>(FOUND))
      found.set(what, (found.get(what) ?? 0) + count)
  const after = new Map((await control.query<Counted>(COUNTED)).map((row) => [row.what, row.taken]))
  return before.flatMap(({ what, taken, open }) => {
    const there = found.get(what) ?? 0
    const most = after.get(what) ?? taken
    const counted = taken === most ? `${taken}` : `${taken} to ${most}`
    return there < taken - open || there > most
      ? [`Control counted ${counted} ${what.trim()}, but all ledgers together have ${there}.`]
      : []
  })
}
