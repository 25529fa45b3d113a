// Compares the hourly sums by product and key with the usage rows, and the margins by product and route over all
// accounts.
import { type Queryable, sql } from '../../database/database.ts'
import { DAY_MS, dayOfMs } from '../../kernel/calendar.ts'
import { formatCredits } from '../../kernel/credits.ts'
import { HOURS_DAYS } from '../../ledger/fold.ts'
import { INPUT_UNITS, OUTPUT_UNITS } from '../../meter/usage.ts'
import type { UsageRow } from './call.ts'
import { find } from './rules.ts'

export interface HourSums {
  requests: bigint
  errors: bigint
  charged: bigint
  duration_ms: bigint
  input_tokens: bigint
  output_tokens: bigint
  /**
   * Of usage rows: how many were charged by something else than tokens, so that their lines do not say how many there
   * were.
   */
  untold?: bigint
}

interface HourRow extends HourSums {
  readonly hour: Date
  readonly product: string
  readonly key_id: string
}

type Hours = ReadonlyMap<string, HourSums>

const HOUR_MS = 3_600_000
const SUMS = 'hour, product, key_id, requests, errors, charged, duration_ms, input_tokens, output_tokens'
/** What a row's lines have of such units. A price that is not by the token has no lines for tokens. */
const OF_LINES = (UNITS: string) =>
  `(select coalesce(sum(case when jsonb_typeof(l -> 1) = 'number' then (l ->> 1)::numeric end), 0) from jsonb_array_elements(lines) l where l ->> 0 = any((${UNITS})::text[]))`

const WRITTEN = sql('verify_hours')`select ${SUMS} from usage_hour where account_id = $1 and hour >= $2 and hour < $3`
const COUNTED = sql('verify_young_hours')`
  select date_trunc('hour', at, 'UTC') as hour, product, key_id, count(*) as requests, count(*) filter (where status >= 400) as errors,
     sum(charged)::bigint as charged, sum(duration_ms)::bigint as duration_ms,
     sum(${OF_LINES('$4')})::bigint as input_tokens, sum(${OF_LINES('$5')})::bigint as output_tokens,
     count(*) filter (where outcome = 'settled' and ${OF_LINES('$4::text[] || $5')} = 0) as untold
   from usage where account_id = $1 and id >= $2 and at >= $3 group by 1, 2, 3`

export function addHour(hours: Map<string, HourSums>, usage: UsageRow, foldedMs: number): void {
  const name = nameOf(usage.at.getTime(), usage, foldedMs)
  let sums = hours.get(name)
  if (!sums) {
    sums = { ...NONE }
    hours.set(name, sums)
  }
  sums.requests += 1n
  if (usage.status >= 400) sums.errors += 1n
  sums.charged += usage.charged
  sums.duration_ms += BigInt(usage.duration_ms)
  let isTold = usage.outcome !== 'settled'
  for (const [unit, quantity] of usage.lines) {
    const side = SIDES.get(unit)
    if (!side || !Number.isSafeInteger(quantity)) continue
    sums[side] += BigInt(quantity)
    isTold = true
  }
  if (!isTold) sums.untold = (sums.untold ?? 0n) + 1n
}

export async function readHours(
  on: Queryable,
  account: string,
  { fromMs, untilMs, foldedMs }: { readonly fromMs: number; readonly untilMs: number; readonly foldedMs: number },
): Promise<Hours> {
  return byName(await on.query<HourRow>(WRITTEN, [account, new Date(fromMs), new Date(untilMs)]), foldedMs)
}

/** Reads the hours that are not over yet, in one snapshot. */
export async function readYoungHours(
  tx: Queryable,
  account: string,
  { since, oldest }: { readonly since: Date; readonly oldest: string },
): Promise<{ written: Hours; counted: Hours }> {
  const written = await tx.query<HourRow>(WRITTEN, [account, since, FAR])
  const counted = await tx.query<HourRow>(COUNTED, [account, oldest, since, INPUT_UNITS, OUTPUT_UNITS])
  return { written: byName(written), counted: byName(counted) }
}

const FAR = new Date('9999-01-01')
const NONE: HourSums = { requests: 0n, errors: 0n, charged: 0n, duration_ms: 0n, input_tokens: 0n, output_tokens: 0n }
const SIDES = new Map<string, 'input_tokens' | 'output_tokens'>([
  ...INPUT_UNITS.map((unit) => [unit, 'input_tokens'] as const),
  ...OUTPUT_UNITS.map((unit) => [unit, 'output_tokens'] as const),
])

const HOUR_SUMS: readonly (readonly [
  what: string,
  sum: Exclude<keyof HourSums, 'untold'>,
  shown: (sum: bigint) => string,
])[] = [
  ['requests', 'requests', String],
  ['errors', 'errors', String],
  ['charges', 'charged', formatCredits],
  ['durations', 'duration_ms', String],
]
const TOKEN_SUMS = [
  ['input tokens', 'input_tokens'],
  ['output tokens', 'output_tokens'],
] as const

export function* compareHours(account: string, written: Hours, counted: Hours): Generator<string> {
  for (const name of new Set([...written.keys(), ...counted.keys()])) {
    const is = written.get(name) ?? NONE
    const should = counted.get(name) ?? NONE
    for (const [what, sum, shown] of HOUR_SUMS)
      if (is[sum] !== should[sum])
        yield `Account ${account}: the hourly sum of ${what} (${inWords(name)}) is ${shown(is[sum])}, but its usage rows give ${shown(should[sum])}.`
    for (const [what, sum] of TOKEN_SUMS)
      if (should.untold ? is[sum] < should[sum] : is[sum] !== should[sum])
        yield `Account ${account}: the hourly sum of ${what} (${inWords(name)}) is ${is[sum]}, but its usage rows give ${should[sum]}.`
  }
}

function byName(rows: readonly HourRow[], foldedMs = 0): Hours {
  const hours = new Map<string, HourSums>()
  for (const row of rows) {
    const name = nameOf(row.hour.getTime(), row, foldedMs)
    const sums = hours.get(name)
    if (!sums) hours.set(name, row)
    else for (const column of SUMMED) sums[column] += row[column]
  }
  return hours
}
const SUMMED = ['requests', 'errors', 'charged', 'duration_ms', 'input_tokens', 'output_tokens'] as const

/** Before this, hours may have become days at any moment (ledger/fold.ts), so that days are compared. */
export const foldedBefore = (nowMs: number) => Math.max(0, dayOfMs(nowMs) - HOURS_DAYS + 1) * DAY_MS

/** The hour stays a number: millions of rows need a name, and hardly any is ever displayed. */
function nameOf(atMs: number, { product, key_id }: Pick<HourRow, 'product' | 'key_id'>, foldedMs: number): string {
  const unitMs = atMs < foldedMs ? DAY_MS : HOUR_MS
  return `${Math.floor(atMs / unitMs) * unitMs} ${product} ${key_id}`
}

function inWords(name: string): string {
  return name.replace(/^\d+/, (hourMs) => new Date(Number(hourMs)).toISOString())
}

const MARGINS = ['calls', 'charged', 'costed', 'cost'] as const
type MarginSums = Record<(typeof MARGINS)[number], bigint>

/** Charges of calls and the vendors' costs, by product and route. */
export interface Margins {
  /** The hours whose sums are complete and not pruned yet. */
  readonly fromMs: number
  readonly untilMs: number
  readonly counted: Map<string, { readonly all: MarginSums; readonly ofHours: MarginSums }>
}

const NO_MARGINS: MarginSums = { calls: 0n, charged: 0n, costed: 0n, cost: 0n }

export function addMargin({ fromMs, untilMs, counted }: Margins, usage: UsageRow): void {
  const name = `${usage.product} by route ${usage.route}`
  let sums = counted.get(name)
  if (!sums) {
    sums = { all: { ...NO_MARGINS }, ofHours: { ...NO_MARGINS } }
    counted.set(name, sums)
  }
  addTo(sums.all, usage)
  const atMs = usage.at.getTime()
  if (atMs >= fromMs && atMs < untilMs) addTo(sums.ofHours, usage)
}

function addTo(sums: MarginSums, { charged, cost }: UsageRow): void {
  sums.calls += 1n
  sums.charged += charged
  if (cost === null) return
  sums.costed += charged
  sums.cost += cost
}

const IMPOSSIBLE = {
  'The margin of {product} by route {route} ({at}) cannot be: it is negative, or has a cost for more than was charged.': `(
     select *, to_char(hour at time zone 'UTC', 'YYYY-MM-DD"T"HH24:MI:SS.MS"Z"') as at from margin_hour) m
   where least(calls, charged, costed, cost) < 0 or costed > charged`,
}
const MARGIN_SUMS = sql('verify_margins')`
  select product || ' by route ' || route as name, sum(calls)::bigint as calls, sum(charged)::bigint as charged, sum(costed)::bigint as costed, sum(cost)::bigint as cost
   from margin_hour where hour >= $1 and hour < $2 group by product, route order by product, route`
const MOVES = sql('verify_margins_moves')`
  select exists (select 1 from account_move where state in ('gone', 'arriving')) as gone, exists (select 1 from account_move) as some`

/**
 * Processes sum margins in memory, and a killed one loses its last seconds. So margins are at most what the usage rows
 * give, and for many calls at least half of it. This can be checked only if all usage was read. The usage of an account
 * that moved to another database is missing here, and an account that moved here has its margins in the old database.
 */
export async function* checkMargins(
  on: Queryable,
  margins: Margins | undefined,
  { sinceMs, callsMin }: { readonly sinceMs: number; readonly callsMin: number },
): AsyncGenerator<string> {
  yield* find(on, IMPOSSIBLE)
  if (!margins) return
  const { fromMs, untilMs, counted } = margins
  const read = (ms: number) => on.query<MarginSums & { name: string }>(MARGIN_SUMS, [new Date(ms), new Date(untilMs)])
  const [moves] = await on.query<{ gone: boolean; some: boolean }>(MOVES)
  if (!moves?.gone)
    for (const row of await read(sinceMs))
      for (const what of MARGINS) {
        const most = counted.get(row.name)?.all[what] ?? 0n
        if (row[what] > most)
          yield `The margins of ${row.name} sum to ${row[what]} (${what}), but its usage rows give ${most} at most.`
      }
  if (moves?.some) return
  const written = new Map((await read(fromMs)).map((row) => [row.name, row]))
  for (const [name, { ofHours }] of counted) {
    if (ofHours.calls < callsMin) continue
    for (const what of MARGINS) {
      const is = written.get(name)?.[what] ?? 0n
      if (is * 2n < ofHours[what])
        yield `The margins of ${name} sum to ${is} (${what}), but its usage rows give ${ofHours[what]}, of which no more than the last seconds of a process can be missing.`
    }
  }
}
