// Answers that a vendor keeps for a caller: stored responses, threads. Only the account that they were made for may go on
// from them, and only at the vendor that has them.
import { isId } from '../catalog/field.ts'
import type { ProtocolName } from '../catalog/kind.ts'
import type { Product } from '../catalog/store.ts'
import { type Database, statement } from '../database/database.ts'
import { removeAll } from '../database/housekeeping.ts'
import type { Fault } from '../kernel/fault.ts'
import { OWN_KEY } from '../ledger/operation.ts'
import type { AskFacts } from '../protocols/protocol.ts'
import type { Principal } from './api-key.ts'
import { mayUse } from './restriction.ts'

/** Who has it: a vendor, and where that has several credentials the one by which it was made. */
export interface Keeper {
  readonly vendor: string
  readonly credential?: string | null | undefined
}

interface KeptAnswer extends Keeper {
  readonly product: string
}

/** Vendors keep them for thirty days at least, and conversations until they are deleted; which are still there, they say themselves. */
const FORGET = statement(
  'kept_answer_forget',
  `with gone as (
     delete from kept_answer where ctid = any(array(
       (select ctid from kept_answer where id not like 'conv%' and created_at < now() - interval '30 days' limit 5000)
       union all (select ctid from kept_answer where id like 'conv%' and created_at < now() - interval '365 days' limit 5000)))
     returning 1
   ) select count(*)::int as count from gone`,
)
const KEEP = statement(
  'kept_answer_keep',
  `insert into kept_answer (account_id, id, vendor, product, credential) select $1, unnest($2::text[]), $3, $4, $5
   on conflict (account_id, id) do update set vendor = excluded.vendor, product = excluded.product, credential = excluded.credential,
     created_at = now()
   where kept_answer.created_at < now() - interval '1 day'
     or (kept_answer.vendor, kept_answer.product, kept_answer.credential) is distinct from (excluded.vendor, excluded.product, excluded.credential)`,
)
const FIND = statement(
  'kept_answer_find',
  'select vendor, product, credential from kept_answer where account_id = $1 and id = $2',
)
const FIND_ALL = statement(
  'kept_answer_find_all',
  'select id, vendor, product, credential from kept_answer where account_id = $1 and id = any($2::text[])',
)
const DROP = statement('kept_answer_drop', 'delete from kept_answer where account_id = $1 and id = $2')

export async function keepAnswer(
  database: Database,
  account: string,
  ids: readonly string[],
  kept: KeptAnswer,
): Promise<void> {
  const right = [...new Set(ids)].filter((id) => isId(id))
  if (right.length === 0) return
  await database.query(KEEP, [account, right, kept.vendor, kept.product, kept.credential ?? null])
}

/** Undefined too where the key may not use what it was made with. */
export async function findKeptAnswer(
  database: Database,
  principal: Pick<Principal, 'accountId' | 'models'>,
  id: string,
): Promise<KeptAnswer | undefined> {
  if (!isId(id)) return undefined
  const [row] = await database.query<KeptAnswer>(FIND, [principal.accountId, id])
  return row && mayUse(principal, row.product) ? row : undefined
}

interface Referring extends Pick<AskFacts, 'continues' | 'door'> {
  readonly principal: Pick<Principal, 'accountId' | 'models'>
  readonly routes: Product['routes']
  /** The keys of the account's own that it may go by. */
  readonly own: { readonly fallback: boolean } | undefined
}

/** Who keeps what a request refers to; undefined when it refers to nothing. It must be one vendor, by one of its keys. */
export async function findKeeper(
  { continues = [], door, principal, routes, own }: Referring,
  database: Database,
): Promise<Keeper | undefined> {
  const isSpoken = routes.some(({ protocol }) => protocol === door)
  const wanted = continues.filter(({ native }) => !native || isSpoken)
  if (wanted.length === 0) return undefined
  const ids = [...new Set(wanted.map(({ id }) => id))].filter((id) => isId(id))
  const rows = await database.query<KeptAnswer & { id: string }>(FIND_ALL, [principal.accountId, ids])
  // What was made with a model that the key may not use is not there for it.
  const byId = new Map(rows.filter(({ product }) => mayUse(principal, product)).map((row) => [row.id, row]))
  let keeper: Keeper | undefined
  let elsewhere: Fault | undefined
  for (const { id, unknown } of wanted) {
    const kept = byId.get(id)
    if (!kept && own?.fallback === false) {
      // The account's own key looks it up, if it goes by that.
      elsewhere ??= unknown
      continue
    }
    if (!kept || !hasRoute(routes, kept, door) || (kept.credential === OWN_KEY && !own)) throw unknown
    keeper ??= kept
    if (keeper.vendor !== kept.vendor || keeper.credential !== kept.credential) throw unknown
  }
  if (elsewhere && keeper && keeper.credential !== OWN_KEY) throw elsewhere
  return keeper
}

/** The catalog may have changed since it was kept. */
export function hasRoute(routes: Product['routes'], { vendor }: Keeper, protocol: ProtocolName | undefined): boolean {
  return routes.some((route) => route.vendor === vendor && route.protocol === protocol)
}

export async function dropKeptAnswer(database: Database, account: string, id: string): Promise<void> {
  await database.query(DROP, [account, id])
}

export async function forgetKeptAnswers(database: Database): Promise<void> {
  await removeAll(database, FORGET)
}
