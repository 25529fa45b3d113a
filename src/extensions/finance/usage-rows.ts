// Usage rows for exports: read page by page with a cursor, in an order in which no row can appear before the cursor
// later.
import { type Queryable, sql } from '../../database/database.ts'
import { formatCredits } from '../../kernel/credits.ts'
import { timeOfId } from '../../kernel/world.ts'
import type { ChargeLine } from '../../meter/charge.ts'
import { type Unit, unitRow } from '../../meter/kind.ts'

export interface UsageRow {
  readonly account_id: string
  readonly id: string
  readonly posting: bigint | null
  readonly at: Date
  readonly key_id: string
  readonly product: string
  readonly endpoint: string
  readonly outcome: string
  readonly status: number
  readonly charged: bigint
  readonly loss: bigint
  readonly cost: bigint | null
  readonly vendor: string | null
  readonly credential: string | null
  readonly client: string
  readonly stream: boolean
  readonly estimated: boolean
  readonly duration_ms: number
  readonly first_byte_ms: number
  readonly catalog_version: number
  readonly lines: readonly ChargeLine[]
  /** Units with a cost but no price, such as the tokens of a product that is sold by the call. */
  readonly unpriced: Readonly<Partial<Record<Unit, number>>> | null
  /** Of the call: `user`, `session` and its tags. */
  readonly labels: Readonly<Record<string, string>> | null
}

/** The last row that was accepted. */
export interface Cursor {
  readonly posting: bigint
  readonly account: string
  readonly id: string
}

/** A range of ids, and the last row of it that was accepted. */
interface RangeCursor {
  readonly from: string
  readonly to: string
  readonly id: string
  readonly account: string
}

const COLUMNS = `u.account_id, u.id, u.posting, u.at, u.key_id, u.product, u.endpoint, u.outcome, u.status, u.charged, u.loss, u.cost, u.vendor, u.credential,
  u.client, u.stream, u.estimated, u.duration_ms, u.first_byte_ms, u.catalog_version, u.lines, u.cost_basis -> 'units' as unpriced, u.labels`
// Rows below the horizon are complete: every transaction with a smaller number has ended, so this statement sees its
// rows.
const NEW = `u.posting >= $1 and u.posting < usage_horizon() and (u.posting, u.account_id, u.id) > ($1, $2, $3)`
const AFTER = sql('export_after')`
  select ${COLUMNS} from usage u where ${NEW} order by u.posting, u.account_id, u.id limit $4`
const WAITING = sql('export_waiting')`select count(*) as count from (select 1 from usage u where ${NEW} limit $4) x`
const WITHIN = sql('export_within')`
  select ${COLUMNS} from usage u where u.id >= $1 and u.id < $2 and u.id >= $3 and (u.id, u.account_id) > ($3, $4) order by u.id, u.account_id limit $5`

/** Rows that were posted after the cursor, up to the horizon. */
export function readAfter(on: Queryable, { posting, account, id }: Cursor, limit: number): Promise<UsageRow[]> {
  return on.query<UsageRow>(AFTER, [posting, account, id, limit])
}

export async function countAfter(on: Queryable, { posting, account, id }: Cursor, most: number): Promise<number> {
  const [row] = await on.query<{ count: bigint }>(WAITING, [posting, account, id, most])
  return Number(row?.count ?? 0n)
}

/** Rows of calls that began in a range of time. */
export function readWithin(on: Queryable, { from, to, id, account }: RangeCursor, limit: number): Promise<UsageRow[]> {
  return on.query<UsageRow>(WITHIN, [from, to, id, account, limit])
}

/**
 * The id of a row ends in `+late` if the call was settled after its hold had expired, because the expired hold has a
 * row too.
 */
export const requestIdOf = ({ id }: Pick<UsageRow, 'id'>) => `req_${id}`

interface Quantities {
  readonly units: Readonly<Partial<Record<Unit, number>>>
  readonly inputTokens: number
  readonly outputTokens: number
}

export function quantitiesOf({ lines, unpriced }: Pick<UsageRow, 'lines' | 'unpriced'>): Quantities {
  const units: Partial<Record<Unit, number>> = {}
  const tokens = { input: 0, output: 0 }
  const costed = Object.entries(unpriced ?? {}) as [Unit, number][] // its own names
  for (const [unit, quantity] of [...lines, ...costed]) {
    units[unit] = (units[unit] ?? 0) + quantity
    const { side } = unitRow(unit)
    if (side) tokens[side] += quantity
  }
  return { units, inputTokens: tokens.input, outputTokens: tokens.output }
}

/** The data of an event: only values of the usage row, so that a repeated event is identical. */
export function factsOf(row: UsageRow) {
  const { units, inputTokens, outputTokens } = quantitiesOf(row)
  return {
    requestId: requestIdOf(row),
    account: row.account_id,
    key: row.key_id,
    product: row.product,
    endpoint: row.endpoint,
    vendor: row.vendor,
    credential: row.credential,
    client: row.client,
    outcome: row.outcome,
    status: row.status,
    startedAt: new Date(timeOfId(row.id)).toISOString(),
    postedAt: row.at.toISOString(),
    durationMs: row.duration_ms,
    firstByteMs: row.first_byte_ms,
    stream: row.stream,
    estimated: row.estimated,
    catalogVersion: row.catalog_version,
    labels: row.labels ?? {},
    units,
    inputTokens,
    outputTokens,
    /** In credits. */
    charged: formatCredits(row.charged),
    loss: formatCredits(row.loss),
    cost: row.cost === null ? null : formatCredits(row.cost),
  }
}
