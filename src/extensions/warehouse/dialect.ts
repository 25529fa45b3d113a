// Reports in the SQL of ClickHouse: what versions from 18.16 on understand.
import { DAY_MS, dayOfMs, formatDay } from '../../kernel/calendar.ts'
import { idAtTime } from '../../kernel/world.ts'
import type { Dialect } from '../../reports/dialect.ts'
import { literal } from './clickhouse.ts'
import { TABLE } from './table.ts'

const PERCENTILES = [0.5, 0.95, 0.99]
/** A row that was sent twice counts once. */
const CALLS = `${TABLE} as u final`
/**
 * As Postgres interpolates: between the two nearest of the sorted values. Old servers lose columns that only a lambda
 * reads.
 */
function percentileOf(share: number): string {
  const AT = `${share} * (n - 1)`
  const [LOW, HIGH] = [`sorted[toUInt32(floor(${AT})) + 1]`, `sorted[toUInt32(ceil(${AT})) + 1]`]
  return `${LOW} + (${HIGH} - ${LOW}) * (${AT} - floor(${AT}))`
}

const dayOf = (ms: number) => `toDate(${literal(formatDay(dayOfMs(ms)))})`
const label = (name: string) => `u.label_values[indexOf(u.label_names, ${literal(name)})]`
const hasLabel = (name: string) => `has(u.label_names, ${literal(name)})`

export const CLICKHOUSE: Dialect = {
  CALLS,
  CALLS_WITH_TOKENS: CALLS,
  INPUT: 'u.input_tokens',
  OUTPUT: 'u.output_tokens',
  IS_TEST: `endsWith(u.account_id, '_test')`,
  fault: 'u.fault',
  message: 'u.message',
  OVERALL: undefined,
  NO_SUMS: 'toInt64(0) as rejected, null as input_tokens, null as output_tokens',
  BYTES: '',
  text: literal,
  whole: literal,
  page: (from, most) => `limit ${literal(from)}, ${literal(most)}`,
  asText: (column) => `toString(${column})`,
  sum: (column) => `sum(${column})`,
  some: (column, most) => `arraySlice(arraySort(arrayFilter(v -> v <> '', groupUniqArray(${column}))), 1, ${most})`,
  // The day bounds the partitions that are read.
  since: (ms) => `u.day >= ${dayOf(ms)} and u.id >= ${literal(idAtTime(ms))}`,
  before: (ms) => `u.day < ${dayOf(ms + DAY_MS)} and u.id < ${literal(idAtTime(ms))}`,
  // Steps begin at whole seconds.
  step: (steps) =>
    `toInt32(arraySum([${steps.map((at) => `u.started >= ${Math.floor(at.getTime() / 1000)}`).join(', ')}]))`,
  label,
  hasLabel,
  hasLabels: (labels) =>
    Object.entries(labels)
      .map(([name, value]) => `${hasLabel(name)} and ${label(name)} = ${literal(value)}`)
      .join(' and '),
  contains: (column, part) => `position(lower(${column}), ${part}) > 0`,
  // Sums over all steps or groups have zero or nothing in their place; a group may be empty itself.
  spread: (
    ROWS,
    MOST,
  ) => `select step, substring(marked, 2) as "group", step > 0 as is_step, marked <> '' as is_group, n as calls,
     [${PERCENTILES.map(percentileOf).join(', ')}] as spread
   from (
     select step, marked, count() as n, arraySort(groupArray(ms)) as sorted
     from (select step, concat('g', "group") as marked, ms from (${ROWS})) group by step, marked with cube
   ) where n > 0 order by calls desc, marked, step limit ${MOST}`,
}
