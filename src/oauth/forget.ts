// What keeps the table of OAuth small: strangers may register programs, and most of what is written expires within minutes.
import { type Database, statement } from '../database/database.ts'
import { removeAll } from '../database/housekeeping.ts'

/** Over all processes. A program registers once for each of its installations. */
const CLIENTS_PER_HOUR = 2_000
/** One address may have this part of what is left, so that hundreds of them together leave room for the next. */
const ADDRESS_PART = 100

const REGISTERED = statement(
  'oauth_registered',
  `select count(*)::int as count, (count(*) filter (where origin = $1))::int as own
   from oauth_object where model = 'Client' and created_at > now() - interval '1 hour'`,
)
const FORGET = statement(
  'oauth_forget',
  `with gone as (
     delete from oauth_object where ctid = any(array(select ctid from oauth_object where expires_at < now() limit 5000)) returning 1
   ) select count(*)::int as count from gone`,
)

/** Whether another program may register from this address. */
export async function mayRegister(database: Database, address: string): Promise<boolean> {
  const [row] = await database.query<{ count: number; own: number }>(REGISTERED, [address])
  const left = CLIENTS_PER_HOUR - (row?.count ?? 0)
  return left > 0 && (row?.own ?? 0) < Math.max(1, left / ADDRESS_PART)
}

export async function forgetOldTokens(database: Database): Promise<void> {
  await removeAll(database, FORGET)
}
