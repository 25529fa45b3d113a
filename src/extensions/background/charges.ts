// What calls of a batch have cost, and which of them were booked.
import { type Queryable, sql } from '../../database/database.ts'
import type { Credits } from '../../kernel/credits.ts'

const CHARGES = sql('statement_client_charges')`
  select client, sum(charged)::bigint as charged from usage where account_id = $1 and client = any($2) group by client`
const KNOWN = sql('statement_known_calls')`select id from usage where account_id = $1 and id = any($2)`

/** The charges of each of these so far. */
export async function readCharges(
  database: Queryable,
  account: string,
  clients: readonly string[],
): Promise<ReadonlyMap<string, Credits>> {
  const rows = await database.query<{ client: string; charged: bigint }>(CHARGES, [account, clients])
  return new Map(rows.map(({ client, charged }) => [client, charged]))
}

/** Those of the requests that have a row of usage. */
export async function readKnownCalls(
  database: Queryable,
  account: string,
  requestIds: readonly string[],
): Promise<ReadonlySet<string>> {
  const ids = requestIds.map((id) => id.replace(/^req_/, ''))
  const rows = await database.query<{ id: string }>(KNOWN, [account, ids])
  return new Set(rows.map(({ id }) => `req_${id}`))
}
