// Margins for finance: exact, by product, customer, vendor, month or label, from the sums by the day.
import { type Database, type Statement, sql } from '../../../database/database.ts'
import { readSetting } from '../../../database/setting.ts'
import { formatCredits, parseCredits } from '../../../kernel/credits.ts'
import { invalid } from '../../../kernel/fault.ts'
import { IS_TEST } from '../../../kernel/test-account.ts'
import { LABELS_SINCE } from '../../../ledger/retention.ts'
import { LABEL_DAYS, monthRange, USAGE_DAYS } from '../../../ledger/usage-sums.ts'
import { LABEL_VALUES_MAX, tooManyValues } from '../../../reports/sums.ts'
import { MARGIN_GROUPINGS, type MarginGrouping, type MarginPage, type MarginRow } from './views.ts'

interface MarginFilter {
  readonly by: MarginGrouping
  /** The first and the last month, each by a day in it. */
  readonly from: number
  readonly to: number
  readonly account?: string | undefined
  readonly product?: string | undefined
  readonly vendor?: string | undefined
}

interface GroupRow {
  group: string
  calls: bigint
  charged: bigint
  costed: bigint
  cost: bigint
  /** What no caller pays, as part of the cost. */
  unbilled?: bigint
}

/** The groupings that are stored by month. */
type Stored = (typeof MARGIN_GROUPINGS)[number]
const GROUPS: Readonly<Record<Stored, string>> = {
  product: 'product',
  account: 'account_id',
  vendor: 'vendor',
  month: `to_char(day, 'YYYY-MM')`,
}
const MARGINS = `sum(calls)::bigint as calls, sum(charged)::bigint as charged, sum(costed)::bigint as costed, coalesce(sum(cost), 0)::bigint as cost`
/** The filter, by the range and account, product and vendor. */
const CHOSEN = `day >= ($1::timestamptz at time zone 'UTC')::date and day < ($2::timestamptz at time zone 'UTC')::date and not ${IS_TEST('account_id')}
     and ($3::text is null or account_id = $3) and ($4::text is null or product = $4) and ($5::text is null or vendor = $5)`
const perGrouping = (make: (by: Stored) => Statement) =>
  Object.fromEntries(MARGIN_GROUPINGS.map((by) => [by, make(by)])) as Record<Stored, Statement> // one for each
const READ_MS = 60_000
const GROUPED = perGrouping(
  (by) =>
    sql(`margin_by_${by}`, READ_MS)`
    select ${GROUPS[by]} as "group", ${MARGINS} from ${USAGE_DAYS} s where ${CHOSEN} group by 1`,
)
/** Unbilled costs belong to no customer. */
const UNBILLED = perGrouping(
  (by) =>
    sql(`margin_unbilled_${by}`)`
    select ${GROUPS[by]} as "group", 0::bigint as calls, 0::bigint as charged, 0::bigint as costed, sum(cost)::bigint as cost, sum(cost)::bigint as unbilled
     from (select product, vendor, cost, day, '' as account_id from unbilled_day) u
     where cost > 0 and day >= ($1::timestamptz at time zone 'UTC')::date and day < ($2::timestamptz at time zone 'UTC')::date
       and $3::text is null and ($4::text is null or product = $4) and ($5::text is null or vendor = $5) group by 1`,
)
const LABELLED = sql('margin_label', READ_MS)`
  select value as "group", ${MARGINS} from ${LABEL_DAYS} s where ${CHOSEN} and name = $6 group by 1 limit ${LABEL_VALUES_MAX + 1}`
const WHOLE = sql('margin_whole', READ_MS)`
  select '' as "group", ${MARGINS} from ${USAGE_DAYS} s where ${CHOSEN} having count(*) > 0`
const NAMES = sql('margin_names')`select id, name from account where id = any($1)`

/** All groups, the largest first; months in their order. */
export async function readMargins(database: Database, filter: MarginFilter): Promise<MarginRow[]> {
  const { by, account = null, product = null, vendor = null } = filter
  const values = [monthRange(filter.from).from, monthRange(filter.to).to, account, product, vendor]
  const groups = new Map<string, GroupRow>()
  const addAll = (rows: readonly GroupRow[]) => {
    for (const row of rows) {
      const sum = groups.get(row.group)
      groups.set(row.group, sum ? { group: row.group, ...plus(sum, row) } : row)
    }
  }
  const label = labelOf(by)
  const stored = label === undefined ? (by as Stored) : 'account' // No label, so one of these.
  addAll(
    label === undefined
      ? await database.query<GroupRow>(GROUPED[stored], values)
      : await readLabelled(database, label, values),
  )
  // By label or customer, unbilled costs are in the group with the empty name.
  addAll(await database.query<GroupRow>(UNBILLED[stored], values))
  const rows = [...groups.values()].sort((a, b) =>
    by === 'month' ? (a.group < b.group ? -1 : 1) : Number(b.charged - a.charged) || (a.group < b.group ? -1 : 1),
  )
  const found = by === 'account' ? await database.query<{ id: string; name: string }>(NAMES, [[...groups.keys()]]) : []
  const names = new Map(found.map(({ id, name }) => [id, name]))
  return rows.map(({ group, ...sums }) => ({ group, name: names.get(group) ?? null, ...marginOf(sums) }))
}

/** The label of a grouping; undefined: it is not a label. */
export const labelOf = (by: string | undefined) => (by?.startsWith('label:') ? by.slice('label:'.length) : undefined)

/**
 * Calls without the label are what the whole has beyond its values. Where labels are no longer stored that would be too
 * much, so the request is rejected.
 */
async function readLabelled(
  database: Database,
  label: string,
  values: readonly (Date | string | null)[],
): Promise<GroupRow[]> {
  const since = await readSetting(database, LABELS_SINCE)
  const first = (values[0] as Date).toISOString().slice(0, 10) // the start of the range
  if (since && first < since)
    throw invalid(`from: the calls of ${first.slice(0, 7)} are no longer stored, and their labels with them.`, 'from')
  const rows = await database.query<GroupRow>(LABELLED, [...values, label])
  if (rows.length > LABEL_VALUES_MAX) throw tooManyValues('by')
  const [whole] = await database.query<GroupRow>(WHOLE, values)
  if (!whole) return rows
  const rest = rows.reduce<Sums>((left, row) => plus(left, row, -1n), whole)
  return rest.calls === 0n ? rows : [...rows, { ...rest, group: '' }]
}

type Sums = Omit<GroupRow, 'group'>

const plus = (a: Sums, b: Sums, sign = 1n): Sums => ({
  unbilled: (a.unbilled ?? 0n) + sign * (b.unbilled ?? 0n),
  calls: a.calls + sign * b.calls,
  charged: a.charged + sign * b.charged,
  costed: a.costed + sign * b.costed,
  cost: a.cost + sign * b.cost,
})

function marginOf({ calls, charged, costed, cost, unbilled = 0n }: Sums): MarginPage['totals'] {
  return {
    calls: Number(calls),
    charged: formatCredits(charged),
    chargedWithKnownCost: formatCredits(costed),
    cost: formatCredits(cost),
    margin: formatCredits(costed - cost),
    marginPercent: costed === 0n ? null : Number(((costed - cost) * 1000n) / costed) / 10,
    unbilled: formatCredits(unbilled),
  }
}

/** Of all rows, also those of other pages. */
export function marginTotals(rows: readonly MarginRow[]): MarginPage['totals'] {
  const read = (amount: string) => parseCredits(amount) ?? 0n
  const none: Sums = { calls: 0n, charged: 0n, costed: 0n, cost: 0n }
  const sums = rows.map(({ calls, charged, chargedWithKnownCost, cost, unbilled }) => ({
    calls: BigInt(calls),
    charged: read(charged),
    costed: read(chargedWithKnownCost),
    cost: read(cost),
    unbilled: read(unbilled),
  }))
  return marginOf(sums.reduce((all, one) => plus(all, one), none))
}
