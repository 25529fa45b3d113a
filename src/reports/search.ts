// One question for whatever has a name or an id: calls, jobs, keys, accounts.
import { type Queryable, statement } from '../database/database.ts'
import { ownAccountOf } from '../kernel/test-account.ts'
import type { Found } from './views.ts'

const LISTED = 8

/** `only`: the accounts that the asker may see; null: all. */
export async function search(database: Queryable, q: string, only: readonly string[] | null): Promise<Found[]> {
  const rows = await database.query<{ kind: Found['kind']; id: string; label: string; account: string }>(SEARCH, [
    q,
    q.replace(/^req_/, ''),
    only,
    LISTED,
  ])
  return rows.map((row) => ({ ...row, account: ownAccountOf(row.account) }))
}

// A test account belongs to whoever sees the account of which it is the twin. What is sought is the text itself, and no pattern.
const SEEN = (COLUMN: string) => `($3::text[] is null or regexp_replace(${COLUMN}, '_test$', '') = any($3))`
const SEARCH = statement(
  'search',
  `(select 'call' as kind, 'req_' || id as id, product || ' · ' || status as label, account_id as account from usage where id = $2 and ${SEEN('account_id')} limit 1)
   union all
   (select 'call', 'req_' || id, 'refused · ' || fault, account_id from refusal where id = $2 and ${SEEN('account_id')} limit 1)
   union all
   (select 'job', id, product || ' · ' || status, account_id from job where id = $1 and ${SEEN('account_id')} limit 1)
   union all
   (select 'key', id, name || ' · …' || last4, account_id from api_key
    where (id = $1 or last4 = $1 or strpos(lower(name), lower($1)) > 0 or $1 = prefix || '…' || last4) and ${SEEN('account_id')} order by id desc limit $4)
   union all
   (select 'account', id, name, id from account where (id = $1 or strpos(search, lower($1)) > 0) and right(id, 5) <> '_test' and ($3::text[] is null or id = any($3)) order by id desc limit $4)`,
)
