// Usage in every order: each call once, ties by their ids, and no page that reads a whole account.
import assert from 'node:assert/strict'
import { test } from 'node:test'
import { account, database, rows } from '../../test/ledger-part.ts'
import type { Queryable } from '../database/database.ts'
import { idAtTime, timeOfId } from '../kernel/world.ts'
import type { UsageView } from '../ledger/views.ts'
import { readKeyFigures, readSums } from './figures.ts'
import { createStatements, type UsageFilter } from './statement.ts'

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
  for (const outcome of [undefined, 'refused', 'settled'])
    for (const sort of SORTS)
      for (const ascending of [true, false]) {
        const whole = await allPages({ account: id, sort, ascending, outcome, limit: 100 })
        const wanted = outcome === undefined ? 32 : outcome === 'refused' ? 9 : 16
        assert.equal(whole.length, wanted)
        const placed = whole.map((row) => [order(sort, row), row.id] as const)
        const inOrder = placed.toSorted(([a, one], [b, other]) => a - b || (one < other ? -1 : 1))
        assert.deepEqual(placed, ascending ? inOrder : inOrder.reverse(), `${sort} ${ascending}`)
        // Every boundary: before, inside and after the rows of one place, and those of both kinds.
        for (let limit = 1; limit <= wanted + 1; limit++) {
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
  for (const sort of SORTS)
    for (const ascending of [true, false])
      await database.transaction(async (tx) => {
        const before = await counted(tx)
        const list = createStatements(tx)
        const filter = { account: id, sort, ascending, limit: 50 }
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
  const range = { account: id, fromMs: BEGAN_MS - HOUR_MS, toMs: BEGAN_MS + HOUR_MS, per: 'hour' } as const
  for (const by of ['product', 'key', 'status', 'endpoint'] as const) {
    const { totals, series, groups } = await readSums(database, { ...range, by, outcome: 'refused' })
    assert.deepEqual([totals.requests, totals.errors, totals.refused, totals.charged], [6, 6, 6, '0'], by)
    assert.deepEqual([groups.length, groups[0]?.requests], [1, 6])
    assert.deepEqual(
      series.map(({ at, requests }) => [at, requests]),
      [['2026-10-01T09:00:00.000Z', 6]],
    )
  }
  for (const by of ['status', 'endpoint'] as const) {
    const { totals, series } = await readSums(database, { ...range, by })
    assert.deepEqual([totals.requests, totals.refused], [2, 6])
    // The rows were written just now.
    for (const { at } of series) assert.equal(at, '2026-10-01T09:00:00.000Z')
  }
  const [figures] = await readKeyFigures(database, id, 1)
  assert.equal(figures?.lastError?.requestId, `req_${idOf(-2)}`)
  assert.equal(figures?.lastError?.at, new Date(timeOfId(idOf(-2))).toISOString())
})
