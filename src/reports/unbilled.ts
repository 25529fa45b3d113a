// Unbilled costs by day, vendor and model: what vendors billed for answers that no caller pays. Every process counts in
// memory and adds to the rows from time to time, so a killed process loses its last seconds.
import { type Database, type Queryable, sql } from '../database/database.ts'
import { dayOfMs, formatDay } from '../kernel/calendar.ts'
import type { Credits } from '../kernel/credits.ts'
import { isTestAccount } from '../kernel/test-account.ts'
import type { World } from '../kernel/world.ts'
import { inputTokensOf, outputTokensOf, type Usage } from '../meter/usage.ts'
import type { UnbilledKind } from './views.ts'

export type Unbilled = ReturnType<typeof createUnbilled>

interface UnbilledCall {
  readonly kind: UnbilledKind
  /** The account of the call. Calls of test accounts cost nothing and are not counted. */
  readonly account: string
  readonly vendor: string
  readonly product: string
  /** Its name at the vendor. */
  readonly model: string
  readonly credential?: string | undefined
  readonly usage: Usage
  /** Undefined: the route has none. */
  readonly cost: Credits | undefined
}

interface Counted {
  readonly day: string
  readonly kind: UnbilledKind
  readonly vendor: string
  readonly product: string
  readonly model: string
  readonly credential: string
  calls: number
  inputTokens: number
  outputTokens: number
  cost: Credits | undefined
}

/** Names come from the catalog, so there are few. The limit bounds memory while the database is down. */
const COUNTED_MAX = 5_000

export function createUnbilled(database: Database, world: World) {
  const counted = new Map<string, Counted>()

  function add(one: Counted): void {
    const { day, kind, vendor, product, model, credential } = one
    const key = JSON.stringify([day, kind, vendor, product, model, credential])
    const sum = counted.get(key)
    if (!sum) {
      if (counted.size < COUNTED_MAX) counted.set(key, one)
      return
    }
    sum.calls += one.calls
    sum.inputTokens += one.inputTokens
    sum.outputTokens += one.outputTokens
    sum.cost = one.cost === undefined ? sum.cost : (sum.cost ?? 0n) + one.cost
  }

  return {
    count({ account, usage, credential = '', ...one }: UnbilledCall): void {
      if (isTestAccount(account)) return
      const tokens = { inputTokens: inputTokensOf(usage), outputTokens: outputTokensOf(usage) }
      add({ ...one, ...tokens, credential, day: formatDay(dayOfMs(world.nowMs())), calls: 1 })
    },
    /** Writes the counts to the database. */
    async flush(): Promise<void> {
      if (counted.size === 0) return
      const rows = [...counted.values()]
      counted.clear()
      try {
        await database.query(ADD, [
          JSON.stringify(rows.map(({ cost, ...row }) => ({ ...row, cost: cost === undefined ? null : String(cost) }))),
        ])
      } catch (error) {
        // Not an error for anybody: they are written with the next counts.
        for (const row of rows) add(row)
        throw error
      }
    },
  }
}

/** Renames a vendor, and adds its rows to existing rows of the new name. */
export async function renameUnbilled(tx: Queryable, from: string, to: string): Promise<void> {
  await tx.query(RENAME, [from, to])
}

const MERGE = `on conflict (day, kind, vendor, product, model, credential) do update set calls = u.calls + excluded.calls,
     input_tokens = u.input_tokens + excluded.input_tokens, output_tokens = u.output_tokens + excluded.output_tokens,
     cost = coalesce(u.cost + excluded.cost, u.cost, excluded.cost)`
const COLUMNS = 'day, kind, vendor, product, model, credential, calls, input_tokens, output_tokens, cost'
const ADD = sql('unbilled_add')`insert into unbilled_day as u (${COLUMNS})
   select x.day, x.kind, x.vendor, x.product, x.model, x.credential, x.calls, x."inputTokens", x."outputTokens", x.cost
   from jsonb_to_recordset($1::jsonb) as x(day date, kind text, vendor text, product text, model text, credential text,
     calls bigint, "inputTokens" bigint, "outputTokens" bigint, cost bigint)
   order by 1, 2, 3, 4, 5, 6
   ${MERGE}`
const RENAME = sql('unbilled_rename')`with known as (delete from unbilled_day where vendor = $1 returning *)
   insert into unbilled_day as u (${COLUMNS})
   select day, kind, $2, product, model, credential, calls, input_tokens, output_tokens, cost from known order by 1, 2, 3, 4, 5, 6
   ${MERGE}`
