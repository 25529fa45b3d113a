import { freshDatabase } from '../../test/database.ts'
import { assert, pluck, started, test, until } from '../../test/kit.ts'
import { settlement } from '../../test/settlement.ts'
import { PATIENT } from '../database/database.ts'
import { idAtTime, newId, realWorld, type World } from '../kernel/world.ts'
import { foldSums } from './fold.ts'
import { createLedger } from './ledger.ts'
import { maintainUsage } from './retention.ts'
import { LABEL_DAYS, sumUsage, USAGE_DAYS } from './usage-sums.ts'

const fresh = started(freshDatabase)
const database = started(() => fresh.open({ connectionsMax: 2 }))

const KEPT_MONTHS = 3
const KEEPING = { usageMonths: KEPT_MONTHS, tries: 1 }
const monthsAgo = (months: number) => {
  const now = new Date(realWorld.nowMs())
  return Date.UTC(now.getUTCFullYear(), now.getUTCMonth() - months, 15)
}

async function makeJob(id: string, atMs: number, row: { status: string; open: boolean; endedMs?: number }) {
  await database.query(
    {
      text: `insert into job (id, account_id, key_id, hold_id, product, catalog_version, input, request, status, verdict, open, created_at, completed_at)
        values ($1, 'acc_1', 'key_1', $2, 'vidu', 1, '{}', '{}', $3, $4, $5, $6, $7)`,
    },
    [
      id,
      `${idAtTime(atMs)}${id}`,
      row.status,
      row.endedMs ? row.status : null,
      row.open,
      new Date(atMs),
      row.endedMs ? new Date(row.endedMs) : null,
    ] as string[],
  )
}

test('jobs that ended before the months that are kept are dropped, and no other', async () => {
  const old = monthsAgo(KEPT_MONTHS + 1)
  await makeJob('1', old, { status: 'COMPLETED', open: false, endedMs: old })
  await makeJob('2', old, { status: 'FAILED', open: false, endedMs: old })
  await makeJob('3', old, { status: 'COMPLETED', open: true, endedMs: old })
  await makeJob('4', old, { status: 'PROCESSING', open: true })
  await makeJob('5', old, { status: 'CANCELLED', open: false, endedMs: monthsAgo(1) })
  await makeJob('6', monthsAgo(1), { status: 'COMPLETED', open: false, endedMs: monthsAgo(1) })
  // What is not summed up yet stays.
  assert.equal((await maintainUsage(database, realWorld, KEEPING)).jobs, 0)
  await sumUsage(database)
  assert.equal((await maintainUsage(database, realWorld, KEEPING)).jobs, 2)
  const left = await database.query<{ id: string }>({ text: 'select id from job order by id' })
  assert.deepEqual(pluck(left, 'id'), ['3', '4', '5', '6'])
  assert.equal((await maintainUsage(database, realWorld, KEEPING)).jobs, 0)
})

/** As it was told before it was set to another time. */
function at(ms: number): World {
  return { ...realWorld, nowMs: () => ms }
}

test('a long reader of usage and a change of month stop no call, and what had to wait is done afterwards', async (t) => {
  const reader = fresh.open({ connectionsMax: 1 })
  const ledger = createLedger({ database, world: realWorld, processId: 'p1' })
  await ledger.sweep()
  await database.query({ text: `insert into account (id, name, posted) values ('acc', 'acc', 1000000)` })
  const longAgo = at(monthsAgo(40))
  await maintainUsage(database, longAgo, KEEPING)
  await maintainUsage(database, realWorld, { usageMonths: 100, tries: 1 })
  const partitions = async () => {
    const rows = await database.query<{ name: string }>({
      text: `select relname as name from pg_class where relname ~ '^usage_[0-9]{4}_[0-9]{2}$' and relkind = 'r' order by 1`,
    })
    return rows.map(({ name }) => name)
  }
  assert.equal((await partitions()).length, 6)

  const nextYear = at(monthsAgo(-12))
  // As if every month until then were summed up.
  const summed = JSON.stringify({ posting: 0, until: new Date(monthsAgo(-12)).toISOString() })
  await database.query({ text: `update setting set value = $1 where name = 'usage-sums'` }, [summed])
  const waitsMs: number[] = []
  let over = false
  const calls = async () => {
    while (!over) {
      const fromMs = performance.now()
      const shared = { id: newId(realWorld), account: 'acc', key: 'k', product: 'p', catalogVersion: 1 }
      await ledger.reserve({ ...shared, want: 10n, floor: 10n, tokens: 1 })
      await ledger.resolve(settlement('acc', shared.id, 7n, shared))
      waitsMs.push(performance.now() - fromMs)
    }
  }
  await reader.transaction(async (tx) => {
    await tx.query({ text: 'select count(*) from usage' })
    const calling = calls()
    const { made, dropped, left } = await maintainUsage(database, nextYear, KEEPING)
    over = true
    await calling
    // Nobody reads transfers, so theirs are made.
    assert.deepEqual([made.filter((name) => name.startsWith('usage')), dropped], [[], []])
    assert.equal(left.length, 9)
  }, PATIENT)
  await reader.close()
  await ledger.idle()
  t.diagnostic(`${waitsMs.length} calls, the slowest ${Math.round(Math.max(...waitsMs))} ms`)

  const { made, dropped, left } = await maintainUsage(database, nextYear, KEEPING)
  assert.deepEqual([made.length, dropped.length, left.length], [3, 6, 0])
  assert.deepEqual(await partitions(), made)
  await maintainUsage(database, realWorld, KEEPING)
})

test('a partition has every key and index of the whole', async () => {
  const rows = await database.query<{ table: string; definitions: string }>({
    text: `select t.relname as table, string_agg(pg_get_indexdef(i.indexrelid), ';' order by pg_get_indexdef(i.indexrelid)) as definitions
      from pg_class t join pg_index i on i.indrelid = t.oid where t.relname ~ '^usage(_[0-9]{4}_[0-9]{2})?$' group by t.relname order by 1`,
  })
  // In the order of what they index: their names differ.
  const shapes = rows.map(({ definitions }) =>
    definitions
      .replaceAll(/ (?:INDEX \w+ ON|ON) (?:ONLY )?\S+/g, '')
      .split(';')
      .sort()
      .join(';'),
  )
  assert.ok(rows.length > 1)
  assert.deepEqual(new Set(shapes).size, 1, shapes.join('\n'))
  assert.deepEqual(
    await database.query({
      text: `select c.relname from pg_class c join pg_index i on i.indexrelid = c.oid join pg_class t on t.oid = i.indrelid
        where t.relname ~ '^usage_[0-9]{4}' and not c.relispartition`,
    }),
    [],
    'an index of a partition that is not part of the whole',
  )
})

test('rows of processes that have gone are removed, and those of living ones stay', async () => {
  await database.query({
    text: `insert into gateway_instance (id, heartbeat_at) values ('gone', now() - interval '2 days'), ('here', now())`,
  })
  await maintainUsage(database, realWorld, KEEPING)
  const rows = await database.query({ text: `select id from gateway_instance where id in ('gone', 'here')` })
  assert.deepEqual(rows, [{ id: 'here' }])
})

test('sums of calls are the same while calls wait, when they are added, and when hours became days and days months', async () => {
  await database.query({ text: `insert into account (id, name, posted) values ('acc_sums', 'acc_sums', 1000000)` })
  const ledger = createLedger({ database, world: realWorld, processId: 'p2' })
  await ledger.sweep()
  const call = async (labels?: Record<string, string>, cost?: bigint) => {
    const shared = { id: newId(realWorld), account: 'acc_sums', key: 'k', product: 'p', catalogVersion: 1 }
    await ledger.reserve({ ...shared, want: 10n, floor: 10n, tokens: 1 })
    await ledger.resolve(
      settlement('acc_sums', shared.id, 7n, { ...shared, labels, cost, vendor: 'v', client: 'agent' }),
    )
    await ledger.posted('acc_sums')
    return shared.id
  }
  for (let n = 0; n < 4; n++) await call({ user: n % 2 ? 'bob' : 'ann', team: 'x' }, n === 3 ? undefined : 2n)
  const read = async () => [
    await database.query({
      text: `select product, vendor, sum(calls)::int as calls, sum(costed_calls)::int as known, sum(charged)::int as charged, sum(cost)::int as cost from ${USAGE_DAYS} d where account_id = 'acc_sums' group by 1, 2`,
    }),
    await database.query({
      text: `select name, value, sum(calls)::int as calls, sum(charged)::int as charged, sum(cost)::int as cost, min(clients) as clients from ${LABEL_DAYS} d where account_id = 'acc_sums' group by 1, 2 order by 1, 2`,
    }),
    await database.query({
      text: `select product, sum(requests)::int as requests, sum(charged)::int as charged, sum(duration_ms)::int as ms from usage_hour where account_id = 'acc_sums' group by 1`,
    }),
  ]
  const before = await read()
  assert.deepEqual(before[0], [{ product: 'p', vendor: 'v', calls: 4, known: 3, charged: 28, cost: 6 }])
  assert.deepEqual(before[1], [
    { name: 'team', value: 'x', calls: 4, charged: 28, cost: 6, clients: ['agent'] },
    { name: 'user', value: 'ann', calls: 2, charged: 14, cost: 4, clients: ['agent'] },
    { name: 'user', value: 'bob', calls: 2, charged: 14, cost: 2, clients: ['agent'] },
  ])
  await Promise.all([sumUsage(database), sumUsage(database)])
  assert.deepEqual(await read(), before, 'added, once')
  await call({ user: 'ann', team: 'x' })
  const more = await read()
  assert.deepEqual(more[0], [{ product: 'p', vendor: 'v', calls: 5, known: 3, charged: 35, cost: 6 }])
  // Calls are added when no older transaction runs, also of other databases of the server.
  const added = `select coalesce(sum(calls), 0)::int as calls from usage_day where account_id = 'acc_sums'`
  await until(() => sumUsage(database).then(() => database.query({ text: added })), [{ calls: 5 }])
  assert.deepEqual(await read(), more)
  // As if its calls were of the hours of a day of long ago.
  const old = `date_trunc('month', now(), 'UTC') - interval '4 months' + interval '2 days'`
  await database.query({
    text: `with gone as (delete from usage_hour where account_id = 'acc_sums' returning *)
      insert into usage_hour select account_id, ${old} + h * interval '1 hour', product, key_id, case h when 12 then requests - 1 else 1 end, errors, case h when 12 then charged - 7 else 7 end,
        input_tokens, output_tokens, case h when 12 then duration_ms - 1 else 1 end from gone, unnest(array[12, 23]) h`,
  })
  await database.query({ text: `update usage_day set day = (${old})::date where account_id = 'acc_sums'` })
  await database.query({ text: `delete from setting where name like 'folded-%'` })
  await foldSums(database, realWorld.nowMs(), Math.floor(monthsAgo(2) / 86_400_000))
  assert.deepEqual(await read(), more, 'folded')
  const [row] = await database.query({
    text: `select count(*)::int as hours, min(extract(hour from hour at time zone 'UTC'))::int as hour, (select min(extract(day from day))::int from usage_day where account_id = 'acc_sums') as day
      from usage_hour where account_id = 'acc_sums'`,
  })
  assert.deepEqual(row, { hours: 1, hour: 12, day: 1 })
})
