// The usage of a statement by the values of a label.
import { type Queryable, sql } from '../../../database/database.ts'
import { formatCredits } from '../../../kernel/credits.ts'
import { LABEL_DAYS, USAGE_DAYS } from '../../../ledger/usage-sums.ts'
import type { StatementLabel } from './views.ts'

/** The days of a range, which $2 and $3 are. */
export const IN_DAYS = `day >= ($2::timestamptz at time zone 'UTC')::date and day < ($3::timestamptz at time zone 'UTC')::date`

/** In a statement, the values with the highest charges are listed; the others are one line. */
const LISTED_MAX = 1_000
const READ_MS = 60_000

// Calls without the label are what the whole has beyond its values.
const IN_STATEMENT = sql('label_statement', READ_MS)`with labelled as (
     select value, sum(calls)::bigint as calls, sum(charged)::bigint as charged from ${LABEL_DAYS} l where account_id = $1 and ${IN_DAYS} and name = $4 group by 1
   ), whole as (
     select '' as value, coalesce(sum(calls), 0)::bigint as calls, coalesce(sum(charged), 0)::bigint as charged from ${USAGE_DAYS} d where account_id = $1 and ${IN_DAYS}
   ), of as (
     select * from labelled where charged <> 0
     union all select w.value, w.calls - l.calls, w.charged - l.charged from whole w,
       (select coalesce(sum(calls), 0)::bigint as calls, coalesce(sum(charged), 0)::bigint as charged from labelled) l where w.charged <> l.charged
   ), placed as (select of.*, row_number() over (order by charged desc, value) as place from of)
   select case when place <= ${LISTED_MAX} then value end as value, sum(calls)::bigint as calls, sum(charged)::bigint as charged, min(place) as place
   from placed group by 1 order by 4`

export async function readStatementLabel(
  database: Queryable,
  account: string,
  { from, to, name }: { readonly from: Date; readonly to: Date; readonly name: string },
): Promise<{ label: Omit<StatementLabel, 'unitemized'>; sum: bigint }> {
  const values = [account, from, to, name]
  const rows = await database.query<{ value: string | null; calls: bigint; charged: bigint }>(IN_STATEMENT, values)
  const shownRows = rows.map(({ value, calls, charged }) => ({
    value,
    calls: Number(calls),
    charged: formatCredits(charged),
  }))
  return { label: { name, values: shownRows }, sum: rows.reduce((all, { charged }) => all + charged, 0n) }
}
