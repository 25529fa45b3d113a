// Calls in every order and by every filter: each of them once, ties by their ids, the same ones in lists and sums, and
// no page that reads a whole account.
import { assert, pluck, test } from '../../test/kit.ts'
import { account, database, rows } from '../../test/ledger-part.ts'
import type { Queryable } from '../database/database.ts'
import { idAtTime, timeOfId } from '../kernel/world.ts'
import type { UsageView } from '../ledger/views.ts'
import type { CallFilter, UsageFilter } from './calls.ts'
import { callsCsv } from './csv.ts'
import { readKeyFigures } from './figures.ts'
import { createStatements } from './statement.ts'
import { readLatency, readSums, type SumsFilter } from './sums.ts'

const HOUR_MS = 3_600_000
const BEGAN_MS = Date.UTC(2026, 9, 1, 9, 59, 59)
const idOf = (n: number) => `${idAtTime(BEGAN_MS + n * 1000)}${String(n).padStart(16, '0')}`
const listOf = (ids: readonly string[]) => `{${ids.join()}}`

/** Calls with many of the same duration and charge, every third of them failed. */
const called = (id: string, ids: readonly string[]) =>
  rows(
    `insert into usage (account_id, id, key_id, product, endpoint, outcome, status, charged, held, catalog_version, lines, duration_ms)
     select $1, x.id, 'k', 'p', 'chat', case n % 3 when 0 then 'released' else 'settled' end, case n % 3 when 0 then 502 else 200 end,
       case n % 3 when 0 then 0 else n / 4 end, 0, 1, '[]', n / 5
     from unnest($2::text[]) with ordinality as x(id, n)`,
    [id, listOf(ids)],
  )
const refused = (id: string, ids: readonly string[]) =>
  rows(
    `insert into refusal (account_id, id, key_id, product, endpoint, status, fault, message, count)
     select $1, x, 'k', 'p', 'chat', 429, 'rate_limited', 'Too many.', 2 from unnest($2::text[]) x`,
    [id, listOf(ids)],
  )

const SORTS = ['time', 'duration', 'charged'] as const

async function allPages(filter: UsageFilter): Promise<UsageView[]> {
  const statements = createStatements(database)
  const items: UsageView[] = []
  let cursor: string | undefined
  do {
    const page = await statements.usage({ ...filter, cursor })
    assert.ok(page.items.length === filter.limit || page.next === null)
    items.push(...page.items)
    cursor = page.next ?? undefined
  } while (cursor !== undefined)
  return items
}

test('pages of every size and order hold each call and each rejection once, in order, ties by their ids', async () => {
  const id = await account(0n)
  const calls = Array.from({ length: 23 }, (_, n) => idOf(n * 2))
  const rejections = Array.from({ length: 9 }, (_, n) => idOf(n * 4 + 1))
  await called(id, calls)
  await refused(id, rejections)
  const order = (sort: (typeof SORTS)[number], row: { charged: string; durationMs: number }) =>
    sort === 'time' ? 0 : sort === 'duration' ? row.durationMs : Number(row.charged)
  for (const outcome of [undefined, 'rejected', 'settled'])
    for (const sort of SORTS)
      for (const ascending of [true, false]) {
        const whole = await allPages({ account: id, sort, ascending, outcome, limit: 100 })
        const wanted = outcome === undefined ? 32 : outcome === 'rejected' ? 9 : 16
        assert.equal(whole.length, wanted)
        const placed = whole.map((row) => [order(sort, row), row.id] as const)
        const inOrder = placed.toSorted(([a, one], [b, other]) => a - b || (one < other ? -1 : 1))
        assert.deepEqual(placed, ascending ? inOrder : inOrder.reverse(), `${sort} ${ascending}`)
        // Every boundary: before, inside and after the rows of one place, and those of both kinds.
        for (const limit of outcome ? [1, wanted] : [1, 3, 8, wanted - 1, wanted, wanted + 1]) {
          const paged = await allPages({ account: id, sort, ascending, outcome, limit })
          assert.deepEqual(paged, whole, `${sort} ${ascending} ${limit}`)
        }
      }
})

test('a cursor that no page gave is an empty or a first page, and no error', async () => {
  const id = await account(0n)
  await called(id, [idOf(1)])
  const statements = createStatements(database)
  for (const cursor of ['9999999999999999999_x', '-9999999999999999999_x', '2147483648_~', 'x', '_', '0_'])
    for (const sort of SORTS)
      for (const ascending of [true, false])
        assert.ok((await statements.usage({ account: id, sort, ascending, cursor, limit: 5 })).items.length <= 1)
})

const MANY = 20_000
const READ_MAX = 1_000

test('a page in any order reads few rows, however many calls the account has', async () => {
  const id = await account(0n)
  await called(
    id,
    Array.from({ length: MANY }, (_, n) => idOf(n)),
  )
  await rows('analyze usage')
  const counted = async (tx: Queryable) => {
    const text = `select coalesce(sum(seq_tup_read + coalesce(idx_tup_fetch, 0)), 0)::int as read from pg_stat_xact_user_tables where relname like 'usage%'`
    return (await tx.query<{ read: number }>({ text }))[0]?.read ?? 0
  }
  // Of all accounts together only the order of time has an index: the others read what lies in the range.
  for (const [account, sort] of [...SORTS.map((one) => [id, one] as const), [undefined, 'time' as const] as const])
    for (const ascending of [true, false])
      await database.transaction(async (tx) => {
        const before = await counted(tx)
        const list = createStatements(tx)
        const filter = { account, sort, ascending, limit: 50 }
        const { next } = await list.usage(filter)
        await list.usage({ ...filter, cursor: next ?? undefined })
        const read = (await counted(tx)) - before
        assert.ok(read <= READ_MAX, `${sort} ${ascending}: ${read} rows were read`)
      })
})

test('rejections are counted once, under that outcome and without one, and steps are by when calls began', async () => {
  const id = await account(0n)
  const calls = [idOf(0), idOf(-1)]
  await called(id, calls)
  await refused(id, [idOf(-2), idOf(-3), idOf(-4)])
  const range = { account: id, fromMs: BEGAN_MS - HOUR_MS, toMs: BEGAN_MS + HOUR_MS }
  for (const by of ['product', 'key', 'status', 'endpoint', 'vendor', 'account'] as const) {
    const order = { by, per: 'hour', zone: 'UTC' } as const
    const { totals, series, groups } = await readSums({ database }, { ...range, outcome: 'rejected' }, order)
    assert.deepEqual([totals.requests, totals.errors, totals.rejected, totals.charged], [0, 0, 6, '0'], by)
    assert.deepEqual([groups.length, groups[0]?.rejected], [1, 6])
    assert.deepEqual(pluck(series, 'at', 'rejected'), [['2026-10-01T09:00:00.000Z', 6]])
    const whole = await readSums({ database }, range, order)
    assert.deepEqual([whole.totals.requests, whole.totals.rejected], [2, 6])
    // The rows were written just now.
    for (const { at } of whole.series) assert.equal(at, '2026-10-01T09:00:00.000Z')
  }
  const [figures] = await readKeyFigures(database, id, 1)
  assert.equal(figures?.lastError?.requestId, `req_${idOf(-2)}`)
  assert.equal(figures?.lastError?.at, new Date(timeOfId(idOf(-2))).toISOString())
})

/** What a filter means, said once more: for the test alone. */
const MEANINGS: readonly (readonly [Partial<CallFilter>, (row: Told) => boolean])[] = [
  [{ product: 'q' }, ({ product }) => product === 'q'],
  [{ key: 'k2' }, ({ keyId }) => keyId === 'k2'],
  [{ endpoint: 'responses' }, ({ endpoint }) => endpoint === 'responses'],
  [{ vendor: 'beta' }, ({ vendor }) => vendor === 'beta'],
  [{ client: 'agent' }, ({ client }) => client === 'agent'],
  [{ outcome: 'settled' }, ({ outcome }) => outcome === 'settled'],
  [{ outcome: 'released' }, ({ outcome }) => outcome === 'released'],
  [{ outcome: 'rejected' }, ({ outcome }) => outcome === 'rejected'],
  [{ outcome: 'failed' }, ({ outcome, status }) => outcome !== 'rejected' && status >= 400],
  [{ outcome: 'succeeded' }, ({ status }) => status < 400],
  [{ status: '429' }, ({ status }) => status === 429],
  [{ status: '5xx' }, ({ status }) => status >= 500 && status < 600],
  [{ fault: 'upstream_failed' }, ({ fault }) => fault === 'upstream_failed'],
  [{ durationMsMin: 30 }, ({ durationMs }) => durationMs >= 30],
  [{ chargedMin: 20n }, ({ charged }) => Number(charged) >= 20e-6],
  [{ q: 'TOO many' }, ({ message }) => message?.includes('Too many') ?? false],
  [{ q: '100%_' }, ({ message }) => message?.includes('100%_') ?? false],
  [{ fromMs: BEGAN_MS + 60_000 }, ({ at }) => Date.parse(at) >= BEGAN_MS + 60_000],
  [{ toMs: BEGAN_MS + 120_000 }, ({ at }) => Date.parse(at) < BEGAN_MS + 120_000],
]
type Told = UsageView

/** Calls that differ in everything that can be asked for. */
async function mixed(id: string, count: number): Promise<void> {
  await rows(
    `insert into usage (account_id, id, key_id, product, endpoint, outcome, status, charged, held, catalog_version, lines, duration_ms, vendor, client, attempt_log)
     select $1, x.id, 'k' || n % 3, case n % 4 when 0 then 'q' else 'p' end, case n % 5 when 0 then 'responses' else 'chat' end,
       case n % 6 when 0 then 'released' else 'settled' end, case n % 6 when 0 then 502 when 1 then 499 else 200 end,
       case n % 6 when 0 then 0 else n end, 0, 1, '[]', n % 50, case n % 7 when 0 then null when 1 then 'beta' else 'alpha' end,
       case n % 8 when 0 then 'agent' else '' end,
       case n % 6 when 0 then '{"attempts": [], "fault": {"name": "upstream_failed", "message": "It is 100%_ broken."}}'::jsonb end
     from unnest($2::text[]) with ordinality as x(id, n)`,
    [id, listOf(Array.from({ length: count }, (_, n) => idOf(n * 2)))],
  )
  await refused(
    id,
    Array.from({ length: count / 10 }, (_, n) => idOf(n * 20 + 1)),
  )
}

test('a filter means the same calls in lists, sums, latencies and CSV files, alone and with any other', async () => {
  const id = await account(0n)
  await mixed(id, 200)
  const range = { account: id, fromMs: BEGAN_MS - HOUR_MS, toMs: BEGAN_MS + HOUR_MS }
  const every = await allPages({ ...range, limit: 1000 })
  assert.equal(every.length, 220)
  const pairs = MEANINGS.flatMap((one, at) => MEANINGS.slice(at).map((other) => [one, other] as const))
  for (const [[one, isOne], [other, isOther]] of pairs) {
    const filter = { ...range, ...one, ...other } as SumsFilter // none of them takes a moment away
    // Two of one name: the second replaces the first.
    const replaced = Object.keys(one).some((name) => name in other)
    const wanted = every.filter((row) => (replaced || isOne(row)) && isOther(row))
    const told = JSON.stringify([one, other], (_, value) => (typeof value === 'bigint' ? String(value) : value))
    const got = await allPages({ ...filter, limit: 1000 })
    assert.deepEqual(
      pluck(got, 'id'),
      wanted.map((row) => row.id),
      told,
    )
    const order = { by: 'vendor', per: 'hour', zone: 'UTC' } as const
    const { totals } = await readSums({ database }, filter, order)
    const calls = wanted.filter(({ outcome }) => outcome !== 'rejected')
    assert.deepEqual(
      [totals.requests, totals.errors, totals.rejected, Math.round(Number(totals.charged) * 1e6)],
      [
        calls.length,
        calls.filter(({ status }) => status >= 400).length,
        wanted.filter(({ outcome }) => outcome === 'rejected').reduce((sum, row) => sum + row.calls, 0),
        calls.reduce((sum, row) => sum + Math.round(Number(row.charged) * 1e6), 0),
      ],
      told,
    )
    const latency = await readLatency({ database }, filter, order)
    assert.equal(
      latency.overall?.calls ?? 0,
      calls.filter(({ status, outcome }) => status < 400 && outcome === 'settled').length,
      told,
    )
  }
  const lines: string[] = []
  for await (const part of callsCsv(
    createStatements(database).usage,
    { ...range, vendor: 'beta', limit: 7 },
    'operator',
  ))
    lines.push(...part.trim().split('\r\n'))
  assert.equal(lines.length - 1, every.filter(({ vendor }) => vendor === 'beta').length)
})

test('sums of more rows than an answer holds are rejected with what to do, instead of totals of a part', async () => {
  const id = await account(0n)
  await rows(
    `insert into usage_hour (account_id, hour, product, key_id, requests, errors, charged, input_tokens, output_tokens, duration_ms)
     select $1, '2026-10-01T10:00:00Z'::timestamptz, 'p' || n, 'k', 1, 0, 1, 0, 0, 1 from generate_series(1, 100001) n`,
    [id],
  )
  const filter = { account: id, fromMs: Date.UTC(2026, 9, 1), toMs: Date.UTC(2026, 9, 2) }
  const sum = (by: 'product' | 'key', more: Partial<SumsFilter> = {}) =>
    readSums({ database }, { ...filter, ...more }, { by, per: 'day', zone: 'UTC' })
  await assert.rejects(sum('product'), { status: 400, message: /100000 rows.*longer step.*shorter time.*filter/ })
  assert.equal((await sum('key')).totals.requests, 100_001)
  assert.equal((await sum('product', { product: 'p7' })).totals.requests, 1)
  await rows('delete from usage_hour where account_id = $1', [id])
})

test('a request id is found among all accounts, and its tests are apart from the rest', async () => {
  const id = await account(0n)
  await called(id, [idOf(-77)])
  const twin = `${id}_test`
  await called(twin, [idOf(-78)])
  const find = (q: string, isTest?: boolean) => createStatements(database).usage({ q, test: isTest, limit: 5 })
  const accounts = async (...asked: Parameters<typeof find>) => (await find(...asked)).items.map((row) => row.account)
  assert.deepEqual(await accounts(`req_${idOf(-77)}`), [id])
  assert.deepEqual(await accounts(`req_${idOf(-78)}`), [])
  assert.deepEqual(await accounts(`req_${idOf(-78)}`, true), [twin])
})

test('days are those of the zone that was asked for, and every one of them has its step', async () => {
  const id = await account(0n)
  // 22:30 UTC of the 24th of October is the 25th in Berlin and in Kolkata, and summer time ends in Berlin on that day.
  const at = Date.UTC(2026, 9, 24, 22, 30)
  await called(id, [`${idAtTime(at)}0000000000000000`])
  const days = async (zone: string, fromMs: number, toMs: number) => {
    const { steps, series } = await readSums(
      { database },
      { account: id, fromMs, toMs, outcome: 'failed' },
      { by: 'status', per: 'day', zone },
    )
    return { steps, at: series.map((row) => row.at) }
  }
  await rows('update usage set status = 502 where account_id = $1', [id])
  const berlin = await days('Europe/Berlin', Date.UTC(2026, 9, 23, 22), Date.UTC(2026, 9, 26, 23))
  assert.deepEqual(berlin.steps, ['2026-10-23T22:00:00.000Z', '2026-10-24T22:00:00.000Z', '2026-10-25T23:00:00.000Z'])
  assert.deepEqual(berlin.at, ['2026-10-24T22:00:00.000Z'])
  const kolkata = await days('Asia/Kolkata', Date.UTC(2026, 9, 23, 18, 30), Date.UTC(2026, 9, 25, 18, 30))
  assert.deepEqual(kolkata.steps, ['2026-10-23T18:30:00.000Z', '2026-10-24T18:30:00.000Z'])
  assert.deepEqual(kolkata.at, ['2026-10-24T18:30:00.000Z'])
})

test('every zone that a browser may name is one that the database knows', async () => {
  const unknown = await rows(
    'select z from unnest($1::text[]) z where lower(z) not in (select lower(name) from pg_timezone_names)',
    [listOf(Intl.supportedValuesOf('timeZone'))],
  )
  assert.deepEqual(unknown, [])
})
