// The monthly statement of an account: opening balance, top-ups, usage, corrections and closing balance. They come from
// transfers, so they add up even if calls were pruned. A transfer belongs to the month in which its transaction began
// (`at`), like its usage row and the hourly totals; `moved_at` may be a moment later.
import { type Database, sql } from '../../../database/database.ts'
import { formatCredits } from '../../../kernel/credits.ts'
import { IS_TEST } from '../../../kernel/test-account.ts'
import { asView, type Page, type Paging } from '../../../kernel/view.ts'
import type { World } from '../../../kernel/world.ts'
import { formatMonth, monthRange, OVER_AFTER_MS, USAGE_DAYS } from '../../../ledger/usage-sums.ts'
import type { Movement } from '../../../ledger/views.ts'
import type { Billing } from '../../../reports/billing.ts'
import { APART, BALANCE_AT, GIVEN_KINDS, MOVED_BY, movedBy } from '../../../reports/movements.ts'
import { IN_DAYS, readStatementLabel } from './labelled.ts'
import { type MonthlyStatement, type StatementSummary, statementSummary } from './views.ts'

const LAST = '~'

interface SumRow {
  name: string
  opening: bigint
  closing: bigint
  top_ups: bigint
  corrections: bigint
  settlement: bigint
  expired: bigint
}

const IN_MONTH = `t.account_id = a.id and t.moved_at >= $2 and t.moved_at < $3::timestamptz + ${APART} and t.at >= $2 and t.at < $3`
const SUM = (NAME: string, KINDS: string) =>
  `coalesce(sum(${MOVED_BY}) filter (where t.kind in (${KINDS})), 0)::bigint as ${NAME}`
const SUMS = `select a.id, a.name, ${BALANCE_AT('$2::timestamptz')} as opening, ${BALANCE_AT('$3::timestamptz')} as closing, s.*
   from account a cross join lateral (
     select ${SUM('top_ups', `'grant', 'purchase', 'plan', 'code'`)}, ${SUM('corrections', `'takeback', 'correction', 'refund'`)}, ${SUM('settlement', `'payout', 'writeoff'`)}, ${SUM('expired', `'expiry'`)}
     from transfer t where ${IN_MONTH} and t.kind in (${GIVEN_KINDS})
   ) s`
const ONE = sql('monthly_sums')`${SUMS} where a.id = $1`
const ALL = sql('monthly_all')`${SUMS} where a.id = any($1) order by a.id desc`
const ACCOUNTS = sql('monthly_accounts')`
  select id from account where id < $1 and ledger is null and not ${IS_TEST('id')} and created_at < $2 order by id desc limit $3`
const MOVEMENTS = sql('monthly_movements')`
  select t.at, t.kind, t.amount, t.note from account a join transfer t on ${IN_MONTH} and t.kind in (${GIVEN_KINDS}) where a.id = $1 and t.amount <> 0 order by t.moved_at`
const BY_PRODUCT = sql('monthly_products')`
  select x.product, x.key_id, k.name, sum(x.calls)::int as calls, sum(x.charged)::bigint as charged from ${USAGE_DAYS} x left join api_key k on k.id = x.key_id
   where x.account_id = $1 and ${IN_DAYS}
   group by 1, 2, 3 having sum(x.charged) <> 0 order by 5 desc, 1, 2`

interface ProductRow {
  product: string
  key_id: string
  name: string | null
  calls: number
  charged: bigint
}

/**
 * The usage is computed from the balances and the other movements, because a month has few of these but may have
 * millions of calls.
 */
const usageOf = ({ opening, closing, top_ups, corrections, settlement, expired }: SumRow) =>
  opening + top_ups + corrections + settlement + expired - closing
const sumOf = (rows: readonly ProductRow[]) => rows.reduce((sum, { charged }) => sum + charged, 0n)

export function createMonthlyStatements(options: {
  database: Database
  world: World
  billing: Pick<Billing, 'get' | 'worthAt'>
}) {
  const { database, world, billing } = options

  return {
    /** `month`: a day in it. With a label, also by its values. */
    async read(account: string, month: number, label?: string): Promise<MonthlyStatement | undefined> {
      const { from, to } = monthRange(month)
      const found = await database.transaction(async (tx) => {
        await tx.query({ text: 'set transaction isolation level repeatable read, read only' })
        const values: [string, Date, Date] = [account, from, to]
        const [sums] = await tx.query<SumRow>(ONE, values)
        if (!sums) return undefined
        const movements = await tx.query<{ at: Date; kind: Movement; amount: bigint; note: string | null }>(
          MOVEMENTS,
          values,
        )
        const usage = usageOf(sums)
        const labelled =
          label === undefined ? undefined : await readStatementLabel(tx, account, { from, to, name: label })
        return {
          sums,
          movements,
          products: await tx.query<ProductRow>(BY_PRODUCT, values),
          ...(labelled && { label: { ...labelled.label, unitemized: formatCredits(usage - labelled.sum) } }),
        }
      })
      if (!found) return undefined
      const { sums, movements, products } = found
      return {
        ...summaryOf(account, month, sums),
        from: from.toISOString(),
        to: to.toISOString(),
        final: world.nowMs() >= to.getTime() + OVER_AFTER_MS,
        products: products.map(({ key_id, name, charged, ...row }) => ({
          ...row,
          keyId: key_id,
          keyName: name,
          charged: formatCredits(charged),
        })),
        unitemized: formatCredits(usageOf(sums) - sumOf(products)),
        ...(found.label && { label: found.label }),
        movements: movements.map(({ at, kind, amount, note }) => ({
          at: at.toISOString(),
          kind,
          moved: formatCredits(movedBy({ kind, amount })),
          note,
        })),
        worth: await billing.worthAt(to.getTime()),
        contact: (await billing.get()).contact,
      }
    },

    /** Of all customers, the newest first. */
    async list(month: number, { cursor = LAST, limit }: Paging): Promise<Page<StatementSummary>> {
      const { from, to } = monthRange(month)
      const ids = (await database.query<{ id: string }>(ACCOUNTS, [cursor, to, limit + 1])).map(({ id }) => id)
      const shown = ids.slice(0, limit)
      const rows = await database.query<SumRow & { id: string }>(ALL, [shown, from, to])
      return {
        items: rows.map((row) => summaryOf(row.id, month, row)),
        next: ids.length > limit ? (shown.at(-1) ?? null) : null,
      }
    },
  }
}

function summaryOf(id: string, month: number, row: SumRow): StatementSummary {
  return {
    ...asView(statementSummary, row),
    account: { id, name: row.name },
    month: formatMonth(month),
    usage: formatCredits(usageOf(row)),
  }
}
