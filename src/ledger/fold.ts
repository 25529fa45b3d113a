// Sums become coarser as they age: hours become days after 60 days, days become months when the calls of the month are
// gone. What was summed stays exact; only when in the day, or in the month, is no longer known. Some accounts at a
// time, by the keys of the tables, so that no statement is long.
import { type Database, sql } from '../database/database.ts'
import { putSetting, readSetting } from '../database/setting.ts'
import { DAY_MS, dayOfMs, formatDay } from '../kernel/calendar.ts'

/** Hours of the last days stay. */
export const HOURS_DAYS = 60
const ACCOUNTS = 200

interface Folded {
  readonly TABLE: string
  /** The column of the time, and what it becomes. */
  readonly TIME: string
  readonly SLOT: string
  /** The rest of the primary key. */
  readonly KEYS: string
  readonly SUMS: readonly string[]
}

// At noon a day lies within the same date in nearly every time zone.
const HOURS: Folded = {
  TABLE: 'usage_hour',
  TIME: 'hour',
  SLOT: `date_trunc('day', hour, 'UTC') + interval '12 hours'`,
  KEYS: 'product, key_id',
  SUMS: ['requests', 'errors', 'charged', 'input_tokens', 'output_tokens', 'duration_ms'],
}
const DAYS: Folded = {
  TABLE: 'usage_day',
  TIME: 'day',
  SLOT: `date_trunc('month', day::timestamp)::date`,
  KEYS: 'product, key_id, vendor',
  SUMS: ['calls', 'costed_calls', 'charged', 'costed', 'cost'],
}

const PAGE = sql('fold_accounts')`select id from account where id > $1 order by id limit ${ACCOUNTS}`
const FOLD = ({ TABLE, TIME, SLOT, KEYS, SUMS }: Folded) =>
  sql(`fold_${TABLE}`, 600_000)`
    with gone as (delete from ${TABLE} where account_id = any($1::text[]) and ${TIME} >= $2 and ${TIME} < $3 returning *)
     insert into ${TABLE} (account_id, ${TIME}, ${KEYS}, ${SUMS.join(', ')})
     select account_id, ${SLOT}, ${KEYS}, ${SUMS.map((SUM) => `sum(${SUM})`).join(', ')} from gone group by 1, 2, ${KEYS}`

/** Folds what lies before a day. The setting `folded-…` says up to which day that was done. */
async function fold(database: Database, table: Folded, before: number): Promise<void> {
  const setting = `folded-${table.TABLE.replace('_', '-')}`
  const until = formatDay(before)
  const done = await readSetting(database, setting)
  if (done && done >= until) return
  for (let last = ''; ; ) {
    const ids = (await database.query<{ id: string }>(PAGE, [last])).map(({ id }) => id)
    if (ids.length > 0) await database.query(FOLD(table), [ids, `${done ?? '0001-01-01'} UTC`, `${until} UTC`])
    if (ids.length < ACCOUNTS) break
    last = ids.at(-1) ?? ''
  }
  await putSetting(database, setting, until)
}

/** `oldest`: the first day whose calls are stored, and the first of a month. */
export async function foldSums(database: Database, nowMs: number, oldest: number): Promise<void> {
  await fold(database, HOURS, dayOfMs(nowMs - HOURS_DAYS * DAY_MS))
  await fold(database, DAYS, oldest)
}
