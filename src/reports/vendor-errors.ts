// Why calls failed at a vendor lately: attempts that are alike, counted, each with the newest calls that met it.
import { type Database, statement } from '../database/database.ts'
import { idAtTime, timeOfId } from '../kernel/world.ts'
import type { VendorError } from './views.ts'

interface ErrorRow {
  readonly fault: string
  readonly status: number | null
  readonly phase: string | null
  readonly cause: string | null
  readonly fix: string | null
  readonly said: string | null
  readonly calls: number
  readonly products: readonly string[]
  readonly newest: readonly { id: string; account: string; name: string | null; product: string }[]
}

/** Only the newest attempts are read: what is wrong now shows in them. */
const ATTEMPTS_MAX = 2_000
const CAUSES_MAX = 20

const ERRORS = statement(
  'vendor_errors',
  `with failed as (
     select u.id, u.account_id, u.product, a.attempt from usage u
     cross join lateral jsonb_array_elements(u.attempt_log -> 'attempts') as a(attempt)
     where u.id >= $2 and u.attempt_log is not null and a.attempt ->> 'vendor' = $1
       and a.attempt ->> 'fault' is not null and a.attempt -> 'skipped' is distinct from 'true'::jsonb
     order by u.id desc limit ${ATTEMPTS_MAX}
   ), grouped as (
     select attempt ->> 'fault' as fault, (attempt ->> 'status')::int as status, attempt ->> 'phase' as phase, attempt ->> 'cause' as cause,
       max(attempt ->> 'fix') as fix, (array_agg(attempt ->> 'vendorError' order by id desc) filter (where attempt ? 'vendorError'))[1] as said,
       count(distinct id)::int as calls, (array_agg(distinct product))[1:5] as products, (array_agg(distinct id || ' ' || account_id || ' ' || product order by id || ' ' || account_id || ' ' || product desc))[1:3] as last
     from failed group by 1, 2, 3, 4
   )
   select g.fault, g.status, g.phase, g.cause, g.fix, g.said, g.calls, g.products,
     (select jsonb_agg(jsonb_build_object('id', split_part(x, ' ', 1), 'account', split_part(x, ' ', 2), 'product', split_part(x, ' ', 3),
       'name', (select name from account c where c.id = split_part(x, ' ', 2)))) from unnest(g.last) x) as newest
   from grouped g order by g.calls desc, g.last[1] desc limit ${CAUSES_MAX}`,
)

/** The cause of most failures first. */
export async function readVendorErrors(database: Database, vendor: string, sinceMs: number): Promise<VendorError[]> {
  const rows = await database.query<ErrorRow>(ERRORS, [vendor, idAtTime(sinceMs)])
  return rows.map(({ newest, said, products, ...row }) => ({
    ...row,
    vendorError: said,
    products: [...products],
    newest: newest.map(({ id, account, name, product }) => ({
      requestId: `req_${id}`,
      at: new Date(timeOfId(id)).toISOString(),
      account,
      accountName: name,
      product,
    })),
  }))
}
