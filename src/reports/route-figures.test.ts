import { freshDatabase } from '../../test/database.ts'
import { assert, before, pluck, started, test } from '../../test/kit.ts'
import type { Queryable } from '../database/database.ts'
import { idAtTime, realWorld } from '../kernel/world.ts'
import { maintainUsage } from '../ledger/retention.ts'
import { readRouteFigures } from './figures.ts'

const fresh = started(freshDatabase)
const database = started(() => fresh.open({ connectionsMax: 2 }))
before(async () => {
  await maintainUsage(database, realWorld, { usageMonths: 24, tries: 1 })
})

const DAY_MS = 24 * 3_600_000
const ACCOUNTS = 20
const CALLS_A_DAY = 40

/** A month of calls of several accounts, two thirds of them of another product. */
async function fill(nowMs: number): Promise<number> {
  const times: number[] = []
  for (let day = 0; day < 30; day++)
    for (let call = 0; call < CALLS_A_DAY; call++) times.push(nowMs - day * DAY_MS - call * (DAY_MS / CALLS_A_DAY) - 1)
  const ids = times.map((ms, at) => `${idAtTime(ms)}${String(at).padStart(16, '0')}`)
  await database.query(
    {
      text: `insert into usage (account_id, id, key_id, product, endpoint, outcome, status, charged, held, catalog_version, lines, route, first_byte_ms, cost, at)
        select 'acc_' || a, t.id || a, 'key_1', case when (t.n + a) % 3 = 0 then 'one' else 'two' end, 'chat', 'settled', 200, 300, 300, 1, '[]', 1 + t.n % 2, 10, 100, t.at
        from generate_series(1, ${ACCOUNTS}) a cross join unnest($1::text[], $2::timestamptz[]) with ordinality as t (id, at, n)`,
    },
    [ids, times.map((ms) => new Date(ms).toISOString())],
  )
  await database.query({
    text: `insert into usage_hour (account_id, hour, product, key_id, requests, errors, charged, input_tokens, output_tokens, duration_ms)
      select account_id, date_trunc('hour', at, 'UTC'), product, key_id, count(*), 0, sum(charged), 0, 0, 0 from usage group by 1, 2, 3, 4`,
  })
  await database.query({ text: 'analyze usage, usage_hour' })
  return ACCOUNTS * times.length
}

interface Plan {
  readonly 'Node Type': string
  readonly 'Relation Name'?: string
  readonly 'Actual Rows': number
  readonly 'Actual Loops': number
  readonly 'Rows Removed by Filter'?: number
  readonly Plans?: readonly Plan[]
}

const nodesOf = (plan: Plan): Plan[] => [plan, ...(plan.Plans ?? []).flatMap(nodesOf)]

test('the routes of a day are compared from the calls of that day, and a month of others is not read', async () => {
  const nowMs = realWorld.nowMs()
  const all = await fill(nowMs)
  const sinceMs = nowMs - DAY_MS
  let plan: Plan | undefined
  const explained: Queryable = {
    async query(asked, values = []) {
      const text = `explain (analyze, format json) ${asked.text}`
      const [row] = await database.query<{ 'QUERY PLAN': [{ Plan: Plan }] }>({ text }, values)
      plan = row?.['QUERY PLAN'][0].Plan
      return database.query(asked, values)
    },
  }
  const figures = await readRouteFigures(explained, 'one', sinceMs)
  const [{ count } = { count: 0 }] = await database.query<{ count: number }>(
    { text: `select count(*)::int as count from usage where product = 'one' and at >= $1` },
    [new Date(sinceMs)],
  )
  assert.ok(count > 0)
  assert.equal(
    figures.reduce((sum, { answered }) => sum + answered, 0),
    count,
  )
  assert.deepEqual(pluck(figures, 'route', 'firstByteMsP50', 'chargedAvg', 'costAvg'), [
    [1, 10, '0.0003', '0.0001'],
    [2, 10, '0.0003', '0.0001'],
  ])
  assert.ok(plan)
  const reads = nodesOf(plan).filter((node) => /^usage_\d{4}/.test(node['Relation Name'] ?? ''))
  const read = reads.reduce(
    (sum, node) => sum + (node['Actual Rows'] + (node['Rows Removed by Filter'] ?? 0)) * node['Actual Loops'],
    0,
  )
  assert.ok(reads.length > 0)
  // A day of the accounts' calls, of thirty that are there.
  assert.ok(read <= ACCOUNTS * (CALLS_A_DAY + 2), `${Math.round(read)} of ${all} rows were read`)
})
