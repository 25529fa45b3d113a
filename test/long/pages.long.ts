// Pages that show calls: each is as fast after a million calls as after a hundred thousand, because it reads sums or a
// bounded number of rows.
import { performance } from 'node:perf_hooks'
import { DAY_MS, dayOfMs, formatDay, monthStart } from '../../src/kernel/calendar.ts'
import { idAtTime, realWorld } from '../../src/kernel/world.ts'
import { formatMonth, summedUntilMs, sumUsage } from '../../src/ledger/usage-sums.ts'
import { after, assert, atOnce, before, startGateway, type TestGateway, test, testGateway, until } from '../gateway.ts'

const FEW = 100_000
/** TOLLGATE_TEST_PAGES_CALLS=10000000 asks for more. */
const MANY = Number(process.env.TOLLGATE_TEST_PAGES_CALLS ?? 1_000_000)
const TIMES_MAX = 3
/** A page that takes less than this is fast, whatever it was before. */
const FAST_MS = 25
/** Pages that read the newest calls, 100,000 at most, take longer with more until then. */
const BOUNDED = /\/latency$/
const BOUNDED_MS = 1_000
const ROUNDS = 7
/** Rows of one statement: few enough for its time limit. */
const SLICE = 50_000
const ACCOUNTS = 20
const HOURS_A_DAY = 2
const HOUR_MS = 3_600_000

const today = dayOfMs(realWorld.nowMs())
const firstDay = monthStart(today, -1)
const month = formatMonth(today)
const closed = formatMonth(firstDay)
/** When calls came, from the first of last month on: so few hours that the sums of both gateways have the same rows. */
const hours = Array.from(
  { length: (today - firstDay) * HOURS_A_DAY },
  (_, at) => (firstDay + Math.floor(at / HOURS_A_DAY)) * DAY_MS + (9 + (at % HOURS_A_DAY)) * HOUR_MS,
)
const list = (items: readonly string[]) => `{${items.map((item) => `"${item}"`).join()}}`

/** Calls $1 to $2, of the hours in turn: $3 are their ids, $4 their times, $5 the accounts and $6 their keys. */
const MADE = `made as (
  select i, ($3::text[])[1 + i % $7] || lpad(i::text, 16, '0') as id, ($4::timestamptz[])[1 + i % $7] as at,
    ($5::text[])[1 + i / $7 % ${ACCOUNTS}] as account_id, ($6::text[])[1 + i / $7 % ${ACCOUNTS}] as key_id,
    (array['alpha-5.4', 'beta-sonnet-5', 'delta-3.8-flash'])[1 + i / ($7 * ${ACCOUNTS}) % 3] as product,
    (array['alpha', 'beta', 'delta'])[1 + i / ($7 * ${ACCOUNTS}) % 3] as vendor, 'u' || i / ($7 * ${ACCOUNTS} * 3) % 5 as person, i / 7 % 50 = 0 as failed
  from generate_series($1::int, $2::int) i)`
const CALLS = `with ${MADE}, called as (
  insert into usage (account_id, id, key_id, product, endpoint, outcome, status, charged, held, catalog_version, lines, route, duration_ms, first_byte_ms, cost, client, at,
    vendor, labels, attempt_log)
  select account_id, id, key_id, product, 'chat', case when failed then 'released' else 'settled' end, case when failed then 502 else 200 end, case when failed then 0 else 1000 end,
    5000, 1, '[["input",20,"50"]]', 1, 100 + i % 900, 50 + i % 100, case when failed then null else 500 end, case when i % 10 = 1 then 'codex' else '' end, at,
    vendor, jsonb_build_object('user', person),
    case when failed then jsonb_build_object('fault', jsonb_build_object('name', 'upstream_failed', 'message', 'It failed.'),
      'attempts', jsonb_build_array(jsonb_build_object('route', 1, 'vendor', vendor, 'fault', 'upstream_failed', 'status', 500, 'ms', 10))) end
  from made
)
insert into transfer (account_id, id, kind, amount, held, at, moved_at, balance)
select account_id, id, case when failed then 'released' else 'settled' end, case when failed then 0 else 1000 end, 5000, at, at + i * interval '1 microsecond', 1000000000 from made`
const SUMS = [
  `insert into usage_hour select account_id, date_trunc('hour', at), product, key_id, count(*), count(*) filter (where status >= 400), sum(charged), 20 * count(*), 0, sum(duration_ms) from usage group by 1, 2, 3, 4`,
  `insert into margin_hour select date_trunc('hour', at), product, route, count(*), sum(charged), sum(charged), coalesce(sum(cost), 0) from usage group by 1, 2, 3`,
  `insert into vendor_hour select date_trunc('hour', at), vendor, product, count(*), count(*) filter (where status >= 400), '{1}' from usage group by 1, 2, 3`,
  `update account a set posted = coalesce((select sum(amount) from entry e where e.account = 'account:' || a.id), 0)`,
]

const WAITING = `select 1 from usage where posting >= (select (value::jsonb ->> 'posting')::bigint from setting where name = 'usage-sums') limit 1`

async function fill(gateway: TestGateway, calls: number): Promise<{ account: string; call: string }> {
  const accounts = await atOnce(ACCOUNTS, () => gateway.account({ credits: 10n ** 12n }))
  const ids = hours.map((ms) => idAtTime(ms))
  const values = [
    list(ids),
    list(hours.map((ms) => new Date(ms).toISOString())),
    list(accounts.map(({ id }) => id)),
    list(accounts.map(({ keyId }) => keyId)),
    hours.length,
  ]
  const { database } = gateway.gateway
  const text = (what: string) => ({ text: what, withinMs: 3_600_000 })
  for (let from = 1; from <= calls; from += SLICE)
    await database.query(text(CALLS), [from, Math.min(from + SLICE - 1, calls), ...values])
  for (const sum of SUMS) await database.query(text(sum))
  // The gateway adds them too: whoever comes second does nothing.
  await until(async () => {
    await sumUsage(database)
    return (await summedUntilMs(database)) > 0 && (await gateway.sql(WAITING)).length
  }, 0)
  await database.query(text('vacuum analyze'))
  return { account: accounts[0]!.id, call: `req_${ids[hours.length - 1]}${String(hours.length - 1).padStart(16, '0')}` }
}

/** Every page that tells of calls or of what they moved, with the filters that people choose. */
const pagesOf = ({ account, call }: { account: string; call: string }) => {
  const lately = `from=${formatDay(today - 7)}T00:00:00Z`
  const ofAccount = [
    '',
    '/balance',
    '/limits',
    '/labels',
    '/keys',
    '/keys/figures',
    '/ledger',
    '/ledger?kind=settled',
    '/ledger?zero=true',
    '/overview',
    '/overview?days=2',
    '/overview?days=60',
    '/usage-by-client',
    `/statements/${month}`,
    `/statements/${closed}`,
    `/statements/${month}?label=user`,
    `/statements/${closed}?label=user`,
    '/jobs',
    '/batches',
  ].map((path) => `/accounts/${account}${path}`)
  const ofCalls = ['/usage', `/accounts/${account}/usage`].flatMap((path) => [
    path,
    `${path}?outcome=released`,
    `${path}?product=alpha-5.4`,
    `${path}?status=5xx`,
    `${path}?${lately}`,
    ...['product', 'key'].map((by) => `${path}/sums?by=${by}`),
    `${path}/sums?compare=true`,
    `${path}/sums?per=hour&${lately}`,
    `${path}/labels`,
    `${path}/labels?sort=calls`,
    `${path}/latency`,
  ])
  return [
    ...ofAccount,
    ...ofCalls,
    `/accounts/${account}/usage?sort=duration`,
    `/accounts/${account}/usage?sort=charged`,
    '/usage/sums?by=account',
    ...[month, closed].flatMap((of) => [
      ...['product', 'account', 'vendor', 'month', 'label:user'].map((by) => `/margins?by=${by}&from=${of}&to=${of}`),
      `/statements/${of}`,
    ]),
    '/home',
    '/accounts',
    '/audit',
    '/alerts',
    '/margins/unbilled',
    '/requests/live',
    '/ledger/archive',
    '/system',
    `/focus?from=${closed}-01T00:00:00Z&to=${month}-01T00:00:00Z`,
    '/payments',
    '/search?q=test',
    `/search?q=${call}`,
    `/usage/${call}`,
    '/models/alpha-5.4/routes',
    '/vendors',
    '/vendors/history',
    '/vendors/alpha/errors',
    '/invoices',
    '/deliveries',
  ]
}

const many = testGateway()
let few: TestGateway | undefined
let pages: readonly (readonly [small: string, large: string])[] = []
before(async () => {
  few = await startGateway()
  const [small, large] = [pagesOf(await fill(few, FEW)), pagesOf(await fill(many, MANY))]
  pages = small.map((path, at) => [path, large[at] ?? ''])
})

after(() => few?.close())

async function timed(gateway: TestGateway, path: string): Promise<number> {
  const from = performance.now()
  const { status, data } = await gateway.operator('GET', path)
  assert.equal(status, 200, `${path}: ${JSON.stringify(data)}`)
  return performance.now() - from
}
const median = (times: readonly number[]) => times.toSorted((a, b) => a - b)[Math.floor(times.length / 2)] ?? 0

test(`every page takes at most ${TIMES_MAX} times as long with ${MANY} calls as with ${FEW}`, async (t) => {
  assert.ok(few)
  const slow: string[] = []
  for (const [small, large] of pages) {
    const times: Record<'few' | 'many', number[]> = { few: [], many: [] }
    await timed(few, small)
    await timed(many, large)
    for (let round = 0; round < ROUNDS; round++) {
      times.few.push(await timed(few, small))
      times.many.push(await timed(many, large))
    }
    const [before, after] = [median(times.few), median(times.many)]
    const line = `${small}: ${before.toFixed(1)} ms, ${after.toFixed(1)} ms`
    t.diagnostic(line)
    const most = BOUNDED.test(small) ? BOUNDED_MS : Math.max(FAST_MS, TIMES_MAX * before)
    if (after > most) slow.push(line)
  }
  assert.deepEqual(slow, [])
})
