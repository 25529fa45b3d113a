// What no customer pays, by day, vendor and model.
import { type Queryable, sql } from '../../../database/database.ts'
import { asView } from '../../../kernel/view.ts'
import { type UnbilledRow, unbilledRow } from './views.ts'

interface UnbilledFilter {
  /** Days such as `2026-11-15`, both included. */
  readonly from: string
  readonly to: string
  readonly vendor?: string | undefined
  readonly product?: string | undefined
}

/** The newest first. */
export async function readUnbilled(
  database: Queryable,
  { from, to, vendor, product }: UnbilledFilter,
  { offset, limit }: { readonly offset: number; readonly limit: number },
): Promise<UnbilledRow[]> {
  const rows = await database.query(READ, [from, to, vendor ?? null, product ?? null, offset, limit])
  return rows.map((row) => asView(unbilledRow, row))
}

const READ = sql('unbilled_read')`
  select day::text as day, kind, vendor, product, model, nullif(credential, '') as credential, calls, input_tokens, output_tokens, cost
   from unbilled_day u
   where u.day >= $1::date and u.day <= $2::date and ($3::text is null or vendor = $3) and ($4::text is null or product = $4)
   order by u.day desc, vendor, product, kind, model, u.credential offset $5 limit $6`
