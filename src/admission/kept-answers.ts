// Answers that a vendor keeps for a caller: stored responses, threads. Only the account that they were made for may go on
// from them, and only at the vendor that has them.
import type { ProtocolName } from '../catalog/kind.ts'
import type { Product } from '../catalog/store.ts'
import { type Database, statement } from '../database/database.ts'
import { removeAll } from '../database/housekeeping.ts'
import type { AskFacts } from '../protocols/protocol.ts'

interface KeptAnswer {
  readonly vendor: string
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
  `insert into kept_answer (account_id, id, vendor, product) values ($1, $2, $3, $4)
   on conflict (account_id, id) do update set vendor = excluded.vendor, product = excluded.product`,
)
const FIND = statement('kept_answer_find', 'select vendor, product from kept_answer where account_id = $1 and id = $2')
const DROP = statement('kept_answer_drop', 'delete from kept_answer where account_id = $1 and id = $2')

/** It stands in an address of the vendor's. */
const ID = /^[\w-]{1,128}$/

export async function keepAnswer(database: Database, account: string, id: string, kept: KeptAnswer): Promise<void> {
  if (ID.test(id)) await database.query(KEEP, [account, id, kept.vendor, kept.product])
}

export async function findKeptAnswer(database: Database, account: string, id: string): Promise<KeptAnswer | undefined> {
  if (!ID.test(id)) return undefined
  const [row] = await database.query<{ vendor: string; product: string }>(FIND, [account, id])
  return row
}

/** The vendor that keeps what a request goes on from; undefined when it goes on from nothing. */
export async function findKeeper(
  { continues, door }: Pick<AskFacts, 'continues' | 'door'>,
  { routes }: Pick<Product, 'routes'>,
  account: string,
  database: Database,
): Promise<string | undefined> {
  if (!continues) return undefined
  const kept = await findKeptAnswer(database, account, continues.id)
  if (!kept || !hasRoute(routes, kept, door)) throw continues.unknown
  return kept.vendor
}

/** The catalogue may have changed since it was kept. */
export function hasRoute(
  routes: Product['routes'],
  { vendor }: KeptAnswer,
  protocol: ProtocolName | undefined,
): boolean {
  return routes.some((route) => route.vendor === vendor && route.protocol === protocol)
}

export async function dropKeptAnswer(database: Database, account: string, id: string): Promise<void> {
  await database.query(DROP, [account, id])
}

export async function forgetKeptAnswers(database: Database): Promise<void> {
  await removeAll(database, FORGET)
}
