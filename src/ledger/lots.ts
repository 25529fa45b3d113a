// Lots: credits of an account that end, that only some products may use, or that are spent before or after others. How
// they are held and spent is written in database/functions/lot.sql.
import { type Database, type Queryable, sql } from '../database/database.ts'
import type { Credits } from '../kernel/credits.ts'
import { type LotSource, PRIORITY } from './views.ts'

export interface Lot {
  readonly source: LotSource
  readonly endsAt?: Date | undefined
  /** Names of products; one that ends in * stands for all that begin so. Absent: all. */
  readonly products?: readonly string[] | undefined
  /** 0 is spent first, 100 last; plain credits have 50. */
  readonly priority?: number | undefined
}

/** Whether it needs a row of its own: all other credits are the balance's plain ones. */
export function isSpecial({ endsAt, products, priority = PRIORITY }: Lot): boolean {
  return endsAt !== undefined || products !== undefined || priority !== PRIORITY
}

/**
 * Expires what is left of lots that have ended. Any process may do it at any time: each lot expires once, with its
 * account locked.
 */
export async function endLots(database: Pick<Database, 'query'>): Promise<void> {
  // An account that somebody else has locked waits for the next sweep.
  for (const { account } of await database.query<{ account: string }>(ENDED))
    await database.query(END, [account]).catch(() => undefined)
}

/** Ends the claims of a payment whose money came back. Returns what they took. The account is locked. */
export async function endClaims(tx: Queryable, account: string, payment: string): Promise<Credits> {
  const rows = await tx.query<{ taken: Credits }>(END_CLAIMS, [account, payment])
  return rows.reduce((sum, { taken }) => sum + taken, 0n)
}

const END_CLAIMS = sql('claims_end')`delete from claim where account_id = $1 and payment_id = $2 returning taken`
const ENDED = sql('lots_ended')`
  select distinct account_id as account from lot where remaining > 0 and remaining > held and ends_at <= now() limit 1000`
const END = sql('ledger_end_lots')`select ledger_end_lots($1)`
