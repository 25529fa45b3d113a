// The recent history of each vendor by hour and model. Every process counts its calls in memory and adds the counts to
// the hour's rows from time to time, so a call costs one map lookup.
import { type Database, type Queryable, sql } from '../database/database.ts'
import type { World } from '../kernel/world.ts'
import type { Asked } from './vendor.ts'
import type { VendorHistory } from './views.ts'

export type VendorHours = ReturnType<typeof createVendorHours>

interface Counted {
  readonly hourMs: number
  readonly vendor: string
  readonly product: string
  requests: number
  errors: number
  readonly latencies: number[]
}

const HOUR_MS = 3_600_000
const KEPT_DAYS = 8
/** Histogram buckets, each up to a fifth longer than the one before: from a millisecond to an hour. */
const RATIO = 1.2
const PLACES = 84
/** Model names come from the catalog, so there are few. The limit bounds memory while the database is down. */
const COUNTED_MAX = 5_000

export function createVendorHours(database: Database, world: World) {
  let counted = new Map<string, Counted>()
  /** The last counter used: consecutive calls often go to the same vendor and model. */
  let last: Counted | undefined

  function rowOf(vendor: string, product: string, nowMs: number): Counted | undefined {
    const hourMs = Math.floor(nowMs / HOUR_MS) * HOUR_MS
    const key = `${hourMs} ${vendor} ${product}`
    let row = counted.get(key)
    if (!row && counted.size < COUNTED_MAX) {
      row = { hourMs, vendor, product, requests: 0, errors: 0, latencies: new Array(PLACES).fill(0) }
      counted.set(key, row)
    }
    last = row
    return row
  }

  return {
    /** Few rows, which the operator watches. */
    everyMs: 5_000,
    count({ vendor, product, failed, latencyMs }: Asked): void {
      const nowMs = world.nowMs()
      const isLast = last?.vendor === vendor && last.product === product && nowMs - last.hourMs < HOUR_MS
      const row = isLast ? last : rowOf(vendor, product, nowMs)
      if (!row) return
      row.requests += 1
      if (failed) row.errors += 1
      if (latencyMs === undefined) return
      const bucket = Math.floor(Math.log(Math.max(1, latencyMs)) / Math.log(RATIO))
      const place = Math.min(PLACES - 1, bucket)
      row.latencies[place] = (row.latencies[place] ?? 0) + 1
    },
    /** Adds the counts to the database. */
    async flush(): Promise<void> {
      if (counted.size === 0) return
      const rows = [...counted.values()]
      counted = new Map()
      last = undefined
      try {
        await database.query(ADD, [
          JSON.stringify(rows.map(({ hourMs, ...row }) => ({ ...row, hour: new Date(hourMs).toISOString() }))),
        ])
      } catch (error) {
        // The counts stay in memory and are added with the next flush.
        for (const row of rows) keep(counted, row)
        throw error
      }
    },
    async prune(): Promise<void> {
      await database.query(PRUNE, [KEPT_DAYS])
    },
  }
}

function keep(counted: Map<string, Counted>, row: Counted): void {
  const key = `${row.hourMs} ${row.vendor} ${row.product}`
  const since = counted.get(key)
  if (!since) {
    if (counted.size < COUNTED_MAX) counted.set(key, row)
    return
  }
  since.requests += row.requests
  since.errors += row.errors
  for (const [place, count] of row.latencies.entries()) since.latencies[place] = (since.latencies[place] ?? 0) + count
}

interface HourRow {
  hour: Date
  vendor: string
  product: string
  requests: bigint
  errors: bigint
  latencies: number[]
}

/** All vendors by the hour, oldest first; models with the most errors first. */
export async function readVendorHistory(database: Database, hours: number): Promise<VendorHistory[]> {
  const rows = await database.query<HourRow>(HISTORY, [hours])
  return [...Map.groupBy(rows, ({ vendor }) => vendor)].map(([vendor, own]) => ({
    vendor,
    hours: [...Map.groupBy(own, ({ hour }) => hour.toISOString())].map(([at, group]) => ({ at, ...summed(group) })),
    models: [...Map.groupBy(own, ({ product }) => product)]
      .map(([product, group]) => ({ product, ...summed(group) }))
      .sort((a, b) => b.errors - a.errors || b.requests - a.requests),
  }))
}

function summed(rows: readonly HourRow[]) {
  const latencies = rows.reduce<number[]>(
    (sum, row) => row.latencies.map((count, place) => count + (sum[place] ?? 0)),
    [],
  )
  return {
    requests: rows.reduce((sum, { requests }) => sum + Number(requests), 0),
    errors: rows.reduce((sum, { errors }) => sum + Number(errors), 0),
    latencyMsP50: medianOf(latencies),
  }
}

/** The figures of a vendor under another name, added to those that are there under it. */
export async function renameVendorHours(tx: Queryable, from: string, to: string): Promise<void> {
  await tx.query(RENAME, [from, to])
}

/** The midpoint of the bucket that contains the median, so accurate to about a tenth. */
function medianOf(latencies: readonly number[]): number | null {
  const all = latencies.reduce((sum, count) => sum + count, 0)
  let left = all / 2
  for (const [place, count] of latencies.entries()) {
    left -= count
    if (count > 0 && left <= 0) return Math.round(RATIO ** (place + 0.5))
  }
  return null
}

const MERGE = `on conflict (hour, vendor, product) do update set requests = v.requests + excluded.requests, errors = v.errors + excluded.errors,
     latencies = array(select coalesce(a, 0) + coalesce(b, 0) from unnest(v.latencies, excluded.latencies) with ordinality as t(a, b, place) order by place)`
const ADD = sql('vendor_hour_add')`insert into vendor_hour as v (hour, vendor, product, requests, errors, latencies)
   select x.hour, x.vendor, x.product, x.requests, x.errors, array(select jsonb_array_elements_text(x.latencies)::int)
   from jsonb_to_recordset($1::jsonb) as x(hour timestamptz, vendor text, product text, requests bigint, errors bigint, latencies jsonb)
   order by x.hour, x.vendor, x.product
   ${MERGE}`
const RENAME = sql('vendor_hour_rename')`
  with known as (delete from vendor_hour where vendor = $1 returning hour, product, requests, errors, latencies)
   insert into vendor_hour as v (hour, vendor, product, requests, errors, latencies)
   select hour, $2, product, requests, errors, latencies from known order by hour, product
   ${MERGE}`
const HISTORY = sql('vendor_hour_read')`select hour, vendor, product, requests, errors, latencies from vendor_hour
   where hour > date_trunc('hour', now(), 'UTC') - make_interval(hours => $1::int) order by hour, vendor, product limit 100000`
const PRUNE = sql('vendor_hour_prune')`delete from vendor_hour where hour < now() - make_interval(days => $1::int)`
