// What agents spent, each by its session or its program's name: those that spent most.
import { type Queryable, statement } from '../database/database.ts'
import { type Credits, formatCredits } from '../kernel/credits.ts'
import { idAtTime } from '../kernel/world.ts'
import type { ClientSum } from '../ledger/views.ts'

interface ClientRow {
  client: string
  requests: bigint
  charged: bigint
  first_at: Date
  last_at: Date
}

const CLIENTS = statement(
  'statement_clients',
  `select client, count(*) as requests, sum(charged)::bigint as charged, min(at) as first_at, max(at) as last_at from usage
   where account_id = $1 and id >= $2 and id < $3 and client <> '' group by client order by sum(charged) desc, client limit 100`,
)

const CHARGES = statement(
  'statement_client_charges',
  'select client, sum(charged)::bigint as charged from usage where account_id = $1 and client = any($2) group by client',
)
const KNOWN = statement('statement_known_calls', 'select id from usage where account_id = $1 and id = any($2)')

/** What each of these has cost so far. */
export async function readCharges(
  database: Queryable,
  account: string,
  clients: readonly string[],
): Promise<ReadonlyMap<string, Credits>> {
  const rows = await database.query<Pick<ClientRow, 'client' | 'charged'>>(CHARGES, [account, clients])
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

/** Ids carry the time, and sort before this. */
const LAST = '~'

export async function readClients(
  database: Queryable,
  { account, fromMs, toMs }: { account: string; fromMs?: number | undefined; toMs?: number | undefined },
): Promise<ClientSum[]> {
  const from = fromMs === undefined ? '' : idAtTime(fromMs)
  const to = toMs === undefined ? LAST : idAtTime(toMs)
  const rows = await database.query<ClientRow>(CLIENTS, [account, from, to])
  return rows.map((row) => ({
    client: row.client,
    requests: Number(row.requests),
    charged: formatCredits(row.charged),
    firstAt: row.first_at.toISOString(),
    lastAt: row.last_at.toISOString(),
  }))
}
