// Rows of usage as they are sent, and their sums in both places. Rows are sent in an order in which none can appear
// before the last one later.
import { type Queryable, sql } from '../../database/database.ts'
import { DAY_MS, dayOfMs, formatDay } from '../../kernel/calendar.ts'
import { formatCredits } from '../../kernel/credits.ts'
import { idAtTime, timeOfId } from '../../kernel/world.ts'
import { TOKENS } from '../../ledger/usage-sums.ts'
import { USAGE_FAULT, USAGE_MESSAGE } from '../../reports/dialect.ts'
import { type ClickHouse, literal } from './clickhouse.ts'
import { TABLE } from './table.ts'

/** The last row that has arrived. */
export interface Position {
  readonly posting: string
  readonly account: string
  readonly id: string
}

interface SentRow {
  readonly account_id: string
  readonly id: string
  readonly posting: bigint
  readonly line: string
}

const LABELS = (PART: string) =>
  `coalesce((select array_agg(l.${PART} order by l.key collate "C") from jsonb_each_text(coalesce(u.labels, '{}')) l), '{}')`
const SENT = `select u.account_id, u.id, u.posting, row_to_json(x)::text as line
  from usage u ${TOKENS} cross join lateral (
    select u.account_id, u.id, u.key_id, u.product, u.endpoint, u.outcome, u.status, u.charged, u.loss, u.cost, coalesce(u.vendor, '') as vendor,
      coalesce(u.credential, '') as credential, u.client, u.stream::int as stream, u.estimated::int as estimated, u.duration_ms, u.first_byte_ms,
      u.catalog_version, t.input as input_tokens, t.output as output_tokens, coalesce(${USAGE_FAULT}, '') as fault,
      coalesce(${USAGE_MESSAGE}, '') as message, ${LABELS('key')} as label_names, ${LABELS('value')} as label_values
  ) x`
/** The planner expects few rows of a range with two ends, and uses the index. */
const AFTER = 'u.posting >= $1 and u.posting < 9223372036854775807 and (u.posting, u.account_id, u.id) > ($1, $2, $3)'
const NEXT = sql('warehouse_next')`
  ${SENT} where ${AFTER} and u.posting < usage_horizon() order by u.posting, u.account_id, u.id limit $4`
const WAITING = sql('warehouse_waiting')`
  select count(*) as waiting, count(*) filter (where x.id < $4 and x.at < now() - make_interval(secs => $5)) as old
   from (select u.id, u.at from usage u where ${AFTER} order by u.posting limit $6) x`
const OF_DAY = sql('warehouse_day')`${SENT} where u.account_id = $1 and u.id > $2 and u.id < $3 order by u.id limit $4`
const FIRST = sql('warehouse_first')`select min(id) as id from usage`

/** What has been posted after a position, up to where no other row can appear. */
export function readNext(on: Queryable, { posting, account, id }: Position, limit: number): Promise<SentRow[]> {
  return on.query<SentRow>(NEXT, [posting, account, id, limit])
}

/**
 * How many rows wait, counted up to `most`, and how many of these began before a moment and were posted some seconds
 * ago.
 */
export async function readWaiting(
  on: Queryable,
  { posting, account, id }: Position,
  { toMs, seconds, most }: { readonly toMs: number; readonly seconds: number; readonly most: number },
): Promise<{ waiting: number; old: number }> {
  const [row] = await on.query<{ waiting: bigint; old: bigint }>(WAITING, [
    posting,
    account,
    id,
    idAtTime(toMs),
    seconds,
    most,
  ])
  return { waiting: Number(row?.waiting ?? 0n), old: Number(row?.old ?? 0n) }
}

export async function readFirstDay(on: Queryable): Promise<number | undefined> {
  const [row] = await on.query<{ id: string | null }>(FIRST)
  return row?.id ? dayOfMs(timeOfId(row.id)) : undefined
}

/** Of an account, the calls of a day after the last of the page before. */
export function readOfDay(
  on: Queryable,
  { account, day, last }: { readonly account: string; readonly day: number; readonly last: string },
  limit: number,
): Promise<SentRow[]> {
  const from = last === '' ? idAtTime(day * DAY_MS) : last
  return on.query<SentRow>(OF_DAY, [account, from, idAtTime((day + 1) * DAY_MS), limit])
}

/** Sent again, rows are the same and replace themselves. */
export async function sendRows(clickhouse: ClickHouse, rows: readonly SentRow[]): Promise<void> {
  const lines = rows.map(({ id, line }) => {
    const ms = timeOfId(id)
    return `{"day":"${formatDay(dayOfMs(ms))}","started":${Math.floor(ms / 1000)},${line.slice(1)}\n`
  })
  await clickhouse.run(`insert into ${TABLE} format JSONEachRow`, lines.join(''))
}

// What the calls of a day come to, by account: sums of all numbers, and of a digest of all texts.

interface DaySums {
  readonly account: string
  readonly calls: bigint
  readonly charged: bigint
  readonly loss: bigint
  readonly cost: bigint
  readonly costed: bigint
  readonly numbers: bigint
  readonly digest: bigint
}

const TEXTS = ['id', 'key_id', 'product', 'endpoint', 'outcome', 'client'].map((name) => `u.${name}`)
const TOLD = [`coalesce(u.vendor, '')`, `coalesce(u.credential, '')`]
const NUMBERS = 'u.status + u.duration_ms + u.first_byte_ms + u.catalog_version'
const HERE = [...TEXTS, ...TOLD, `coalesce(${USAGE_FAULT}, '')`, `coalesce(${USAGE_MESSAGE}, '')`]
const LISTED = (PART: string) => `array_to_string(${LABELS(PART)}, chr(31))`
const SUMS_HERE = sql('warehouse_sums', 600_000)`
  select u.account_id as account, count(*) as calls, sum(u.charged)::bigint as charged, sum(u.loss)::bigint as loss,
     coalesce(sum(u.cost), 0)::bigint as cost, count(u.cost) as costed, sum(${NUMBERS} + t.input + t.output)::bigint as numbers,
     sum(('x' || left(md5(concat_ws(chr(31), ${[...HERE, LISTED('key'), LISTED('value')].join(', ')})), 8))::bit(32)::bigint)::bigint as digest
   from usage u ${TOKENS} where u.id >= $1 and u.id < $2 and (u.posting is null or (u.posting, u.account_id, u.id) <= ($3, $4, $5))
   group by u.account_id order by u.account_id`
const THERE = [...TEXTS, ...TOLD, 'u.fault', 'u.message']
const SEPARATED = [...THERE, ...['names', 'values'].map((part) => `arrayStringConcat(u.label_${part}, '\\x1f')`)]
const SUMS_THERE = `select u.account_id as account, count(*) as calls, sum(u.charged) as charged_sum, sum(u.loss) as loss_sum,
   sum(coalesce(u.cost, 0)) as cost_sum, sum(case when isNull(u.cost) then 0 else 1 end) as costed,
   sum(${NUMBERS} + u.input_tokens + u.output_tokens) as numbers,
   sum(reinterpretAsUInt32(reverse(substring(MD5(concat(${SEPARATED.join(`, '\\x1f', `)})), 1, 4)))) as digest
 from ${TABLE} as u final`

/** Of the rows up to a position. */
export function readSumsHere(on: Queryable, day: number, { posting, account, id }: Position): Promise<DaySums[]> {
  const range = [idAtTime(day * DAY_MS), idAtTime((day + 1) * DAY_MS)]
  return on.query<DaySums>(SUMS_HERE, [...range, posting, account, id])
}

export async function readSumsThere(clickhouse: ClickHouse, day: number): Promise<DaySums[]> {
  const DAY = `toDate(${literal(formatDay(day))})`
  const rows = await clickhouse.read<Record<string, bigint> & { account: string }>(
    `${SUMS_THERE} where u.day = ${DAY} group by account order by account`,
  )
  return rows.map(({ account, calls, charged_sum, loss_sum, cost_sum, costed, numbers, digest }) => ({
    account,
    calls: calls ?? 0n,
    charged: charged_sum ?? 0n,
    loss: loss_sum ?? 0n,
    cost: cost_sum ?? 0n,
    costed: costed ?? 0n,
    numbers: numbers ?? 0n,
    digest: digest ?? 0n,
  }))
}

export interface Difference {
  readonly account: string
  readonly text: string
}

const COMPARED = ['calls', 'charged', 'loss', 'cost', 'costed', 'numbers', 'digest'] as const

/** The accounts whose sums differ, each with a sentence. */
export function differences(day: number, here: readonly DaySums[], there: readonly DaySums[]): Difference[] {
  const [ours, theirs] = [here, there].map((rows) => new Map(rows.map((row) => [row.account, row])))
  const accounts = [...new Set([...here, ...there].map(({ account }) => account))]
  return accounts.flatMap((account) => {
    const [a, b] = [ours?.get(account), theirs?.get(account)]
    if (a && b && COMPARED.every((name) => a[name] === b[name])) return []
    const told = (sums: DaySums | undefined) =>
      `${sums?.calls ?? 0n} calls, charged ${formatCredits(sums?.charged ?? 0n)}`
    const hint = a?.calls === b?.calls && a?.charged === b?.charged ? '; other columns differ' : ''
    const text = `Of account ${account} on ${formatDay(day)} the analytics store has ${told(b)}, and the database ${told(a)}${hint}.`
    return [{ account, text }]
  })
}
