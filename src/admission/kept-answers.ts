// Answers that a vendor keeps for a caller: stored responses, threads. Only the account that they were made for may go on
// from them, and only at the vendor that has them.
import type { ProtocolName } from '../catalog/kind.ts'
import type { Product } from '../catalog/store.ts'
import { type Database, statement } from '../database/database.ts'
import { removeAll } from '../database/housekeeping.ts'
import type { AskFacts } from '../protocols/protocol.ts'

/** Who has it: a vendor, and where that has several credentials the one by which it was made. */
export interface Keeper {
  readonly vendor: string
  readonly credential?: string | null | undefined
}

interface KeptAnswer extends Keeper {
  readonly product: string
}

/** Vendors keep them for thirty days at least; with which they are still there, they say themselves. */
const FORGET = statement(
  'kept_answer_forget',
  `with gone as (
     delete from kept_answer where ctid = any(array(
       select ctid from kept_answer where created_at < now() - interval '30 days' limit 5000))
     returning 1
   ) select count(*)::int as count from gone`,
)
const KEEP = statement(
  'kept_answer_keep',
  `insert into kept_answer (account_id, id, vendor, product, credential) values ($1, $2, $3, $4, $5)
   on conflict (account_id, id) do update set vendor = excluded.vendor, product = excluded.product, credential = excluded.credential`,
)
const FIND = statement(
  'kept_answer_find',
  'select vendor, product, credential from kept_answer where account_id = $1 and id = $2',
)
const DROP = statement('kept_answer_drop', 'delete from kept_answer where account_id = $1 and id = $2')

/** It stands in an address of the vendor's. */
const ID = /^[\w-]{1,128}$/

export async function keepAnswer(database: Database, account: string, id: string, kept: KeptAnswer): Promise<void> {
  if (ID.test(id)) await database.query(KEEP, [account, id, kept.vendor, kept.product, kept.credential ?? null])
}

export async function findKeptAnswer(database: Database, account: string, id: string): Promise<KeptAnswer | undefined> {
  if (!ID.test(id)) return undefined
  const [row] = await database.query<KeptAnswer>(FIND, [account, id])
  return row
}

/** Who keeps what a request goes on from; undefined when it goes on from nothing. */
export async function findKeeper(
  { continues, door }: Pick<AskFacts, 'continues' | 'door'>,
  { routes }: Pick<Product, 'routes'>,
  account: string,
  database: Database,
): Promise<Keeper | undefined> {
  if (!continues) return undefined
  const kept = await findKeptAnswer(database, account, continues.id)
  if (!kept || !hasRoute(routes, kept, door)) throw continues.unknown
  return kept
}

/** The catalogue may have changed since it was kept. */
export function hasRoute(routes: Product['routes'], { vendor }: Keeper, protocol: ProtocolName | undefined): boolean {
  return routes.some((route) => route.vendor === vendor && route.protocol === protocol)
}

export async function dropKeptAnswer(database: Database, account: string, id: string): Promise<void> {
  await database.query(DROP, [account, id])
}

export async function forgetKeptAnswers(database: Database): Promise<void> {
  await removeAll(database, FORGET)
}
