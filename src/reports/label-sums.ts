// What the values of one label came to: end users, sessions of agents, teams, features. Calls carry labels and the hourly sums do not, so single calls are read:
// those of an account in a range of time, by the key of the table.
import { type Database, type Queryable, statement } from '../database/database.ts'
import { DAY_MS } from '../kernel/calendar.ts'
import { formatCredits } from '../kernel/credits.ts'
import { invalid } from '../kernel/fault.ts'
import { idAtTime, timeOfId } from '../kernel/world.ts'
import { mayBeUsage, USAGE, Values, whereOf } from './call-filter.ts'
import { readAccountNames, type SumsFilter } from './sums.ts'
import { INPUT_UNITS, OUTPUT_UNITS, TOKENS } from './tokens.ts'
import type { LabelSort, LabelSum, LabelSums, StatementLabel } from './views.ts'

interface LabelOrder {
  readonly label: string
  readonly sort: LabelSort
  readonly offset: number
  readonly limit: number
}

/** Values of one answer or file; a part of them would look like all. */
export const LABEL_VALUES_MAX = 100_000
const NAMED_MAX = 20
const WITHIN_MS = 60_000

interface Row {
  account_id: string
  value: string
  calls: bigint
  errors: bigint
  charged: bigint
  cost: bigint | null
  input: bigint
  output: bigint
  first: string
  last: string
  products: string[]
  clients: string[] | null
  all_values: bigint
  all_calls: bigint
  all_charged: bigint
}

const ORDERS: Readonly<Record<LabelSort, string>> = {
  charged: '5 desc, 3 desc',
  calls: '3 desc, 5 desc',
  last: '10 desc',
}

/** Values of different accounts are different, whatever they are called. */
export async function readLabelSums(database: Database, filter: SumsFilter, order: LabelOrder): Promise<LabelSums> {
  const { label, sort, offset, limit } = order
  const values = new Values()
  const [WHERE, NAME] = [whereOf(filter, USAGE, values), values.put(label)]
  const [INPUT, OUTPUT] = [values.put(INPUT_UNITS), values.put(OUTPUT_UNITS)]
  const [COUNT, FROM] = [values.put(limit + 1), values.put(offset)]
  const text = `select u.account_id, u.labels ->> ${NAME}::text as value, count(*) as calls, count(*) filter (where u.status >= 400) as errors,
     sum(u.charged)::bigint as charged, sum(u.cost)::bigint as cost, sum(t.input)::bigint as input, sum(t.output)::bigint as output,
     min(u.id) as first, max(u.id) as last, (array_agg(distinct u.product))[1:${NAMED_MAX}] as products,
     (array_agg(distinct u.client) filter (where u.client <> ''))[1:${NAMED_MAX}] as clients,
     count(*) over () as all_values, (sum(count(*)) over ())::bigint as all_calls, (sum(sum(u.charged)) over ())::bigint as all_charged
   from usage u ${TOKENS(INPUT, OUTPUT)} where ${WHERE} and u.labels ? ${NAME}::text
   group by 1, 2 order by ${ORDERS[sort]}, 1, 2 limit ${COUNT} offset ${FROM}`
  const rows = mayBeUsage(filter) ? await database.query<Row>({ text, withinMs: WITHIN_MS }, values.list) : []
  const names = filter.account === undefined ? await readAccountNames(database, idsOf(rows)) : undefined
  const [first] = rows
  return {
    ...{ label, from: new Date(filter.fromMs).toISOString(), to: new Date(filter.toMs).toISOString() },
    totals: {
      values: Number(first?.all_values ?? 0n),
      calls: Number(first?.all_calls ?? 0n),
      charged: formatCredits(first?.all_charged ?? 0n),
    },
    items: rows.slice(0, limit).map((row) => shown(row, names)),
    next: rows.length > limit ? String(offset + limit) : null,
  }
}

const idsOf = (rows: readonly Row[]) => [...new Set(rows.map(({ account_id: id }) => id))]

function shown(row: Row, names: ReadonlyMap<string, string> | undefined): LabelSum {
  const at = (id: string) => new Date(timeOfId(id)).toISOString()
  return {
    ...(names && { account: row.account_id, accountName: names.get(row.account_id) ?? row.account_id }),
    ...{ value: row.value, calls: Number(row.calls), errors: Number(row.errors) },
    ...{ inputTokens: Number(row.input), outputTokens: Number(row.output) },
    ...{ charged: formatCredits(row.charged), cost: row.cost === null ? null : formatCredits(row.cost) },
    ...{ firstAt: at(row.first), lastAt: at(row.last), products: row.products, clients: row.clients ?? [] },
  }
}

/** All of them, for a file. */
export async function readAllLabelSums(
  database: Database,
  filter: SumsFilter,
  order: Pick<LabelOrder, 'label' | 'sort'>,
): Promise<readonly LabelSum[]> {
  const { items, next } = await readLabelSums(database, filter, { ...order, offset: 0, limit: LABEL_VALUES_MAX })
  if (next !== null) throw tooManyValues('label')
  return items
}

export const tooManyValues = (field: string) =>
  invalid(`${field}: these are more than ${LABEL_VALUES_MAX} values: choose a shorter time or a filter.`, field)

/** Of a statement: the dearest are listed, the others are one line. */
const LISTED_MAX = 1_000

// By the moment at which calls were posted, as statements are; ids say when they began.
const IN_STATEMENT = statement(
  'label_statement',
  `with of as (
     select coalesce(u.labels ->> $6::text, '') as value, count(*) as calls, sum(u.charged)::bigint as charged from usage u
     where u.account_id = $1 and u.at >= $2 and u.at < $3 and u.id >= $4 and u.id < $5 group by 1 having sum(u.charged) <> 0
   ), placed as (select of.*, row_number() over (order by charged desc, value) as place from of)
   select case when place <= ${LISTED_MAX} then value end as value, sum(calls)::bigint as calls, sum(charged)::bigint as charged, min(place) as place
   from placed group by 1 order by 4`,
  WITHIN_MS,
)

/** `range`: the values of `SUMMED` for a month. */
export async function readStatementLabel(
  database: Queryable,
  account: string,
  range: readonly [Date, Date, string, string],
  name: string,
): Promise<{ label: Omit<StatementLabel, 'unlisted'>; sum: bigint }> {
  const values = [account, ...range, name]
  const rows = await database.query<{ value: string | null; calls: bigint; charged: bigint }>(IN_STATEMENT, values)
  const shownRows = rows.map(({ value, calls, charged }) => ({
    ...{ value, calls: Number(calls), charged: formatCredits(charged) },
  }))
  return { label: { name, values: shownRows }, sum: rows.reduce((all, { charged }) => all + charged, 0n) }
}

/** What an alert looks at: the newest calls of a day, as many as are read in a moment. */
const WATCHED_CALLS = 200_000
const WATCHED_VALUES = 20
const SPENDERS = statement(
  'label_spenders',
  `select x.value, sum(x.charged)::bigint as charged from (
     select u.labels ->> $3::text as value, u.charged from usage u
     where u.account_id = $1 and u.id >= $2 and u.labels ? $3::text order by u.id desc limit ${WATCHED_CALLS}
   ) x group by 1 having sum(x.charged) >= $4::bigint order by 2 desc, 1 limit ${WATCHED_VALUES}`,
)

/** Values of a label that came to an amount within a day, the dearest first. */
export async function readSpenders(
  on: Queryable,
  account: string,
  { label, above }: { readonly label: string; readonly above: bigint },
): Promise<{ value: string; charged: bigint }[]> {
  const [now] = await on.query<{ ms: number }>(NOW)
  return on.query(SPENDERS, [account, idAtTime((now?.ms ?? 0) - DAY_MS), label, above])
}

const NOW = statement('label_now', 'select extract(epoch from now())::float8 * 1000 as ms')
