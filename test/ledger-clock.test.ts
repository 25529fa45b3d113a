// The database's clock is what silence and budgets are measured by, and somebody may set it. `now()` and
// `clock_timestamp()` are found in `public` before Postgres's own, as much ahead as the test says, or standing still.

import pg from 'pg'
import type { Database } from '../src/database/database.ts'
import { migrate } from '../src/database/migrate.ts'
import { newId, realWorld, type World } from '../src/kernel/world.ts'
import { createLedger } from '../src/ledger/ledger.ts'
import { storeLimits } from '../src/ledger/limits.ts'
import type { Reservation } from '../src/ledger/operation.ts'
import { emptyDatabase, type FreshDatabase } from './database.ts'
import { after, assert, before, test } from './kit.ts'
import { settlement } from './settlement.ts'

const CLOCK = `
  create table clock (ahead interval not null, stands timestamptz);
  insert into clock values ('0', null);
  create function public.now() returns timestamptz language sql stable
    as 'select coalesce(stands, pg_catalog.now() + ahead) from public.clock';
  create function public.clock_timestamp() returns timestamptz language sql volatile
    as 'select coalesce(stands, pg_catalog.clock_timestamp() + ahead) from public.clock';`

let fresh: FreshDatabase
let database: Database
before(async () => {
  fresh = await emptyDatabase()
  const client = new pg.Client({ ...fresh.connection })
  await client.connect()
  await client.query(`alter database ${fresh.connection.database} set search_path = public, pg_catalog`)
  await client.query(CLOCK)
  await client.end()
  database = fresh.open({ connectionsMax: 4 })
  await migrate(database)
})
after(async () => {
  await database.close()
  await fresh.drop()
})

const setClock = (ahead: string) =>
  database.query({ text: 'update clock set ahead = $1::interval, stands = null' }, [ahead])

async function account(credits: bigint): Promise<string> {
  const id = `acc_${newId(realWorld)}`
  await database.query({ text: 'insert into account (id, name, posted) values ($1, $1, $2)' }, [id, credits])
  return id
}

const reservation = (of: string, want: bigint): Reservation => ({
  id: newId(realWorld),
  account: of,
  key: 'k1',
  product: 'alpha-5.4',
  catalogVersion: 1,
  want,
  floor: want,
  tokens: 1,
  // A hold of its own, whatever the process has in advance.
  idempotency: { key: newId(realWorld), requestHash: 'x' },
})

for (const jump of ['1 hour', '-1 hour'])
  test(`a database whose clock jumps by ${jump} takes nobody for dead who is only silent by the clock, and the dead all the same`, async () => {
    await setClock('0')
    let elapsedMs = 0
    const world: World = { ...realWorld, elapsedMs: () => elapsedMs }
    const [living, dead, judge] = ['living', 'dead', 'judge'].map((name) =>
      createLedger({ database, world, processId: `${name} ${jump}`, graceMs: 10_000 }),
    )
    const acc = await account(1_000n)
    const sweepAll = async () => {
      await living!.sweep()
      return judge!.sweep()
    }
    /** Five seconds for everybody: the process' clock, and the database's. */
    const pass = async (ahead: string) => {
      elapsedMs += 5_000
      await setClock(ahead)
    }
    await dead!.sweep()
    await living!.reserve(reservation(acc, 10n))
    await dead!.reserve(reservation(acc, 10n))
    for (const ahead of ['0', '5 seconds', '10 seconds', '15 seconds']) {
      await pass(ahead)
      assert.equal(await sweepAll(), 0)
    }
    // Set while nobody looked: by this clock all have been silent for an hour, or speak from the future.
    await pass(`20 seconds ${jump}`)
    assert.equal(await judge!.sweep(), 0, 'the silence of a jump was believed')
    let gone = 0
    for (let seconds = 25; seconds <= 60; seconds += 5) {
      await pass(`${seconds} seconds ${jump}`)
      gone += await sweepAll()
    }
    assert.equal(gone, 1)
    const left = await database.query({ text: 'select process_id as process from hold where account_id = $1' }, [acc])
    assert.deepEqual(left, [{ process: `living ${jump}` }])
  })

test('a clock that steps back over midnight gives no second budget for the day, and the next day begins anew', async () => {
  await setClock('0')
  const ledger = createLedger({ database, world: realWorld, processId: 'spender', graceMs: 0 })
  await ledger.sweep()
  const acc = await account(1_000n)
  await database.transaction((tx) => storeLimits(tx, { kind: 'account', account: acc }, { spendPerDay: '100' }))
  const [row] = await database.query<{ left: number }>({
    text: `select extract(epoch from date_trunc('day', now(), 'UTC') + interval '1 day' - now())::float8 as left`,
  })
  const at = (seconds: number) => setClock(`${row!.left + seconds} seconds`)
  const spend = async (amount: bigint) => {
    const wanted = reservation(acc, amount)
    const { outcome } = await ledger.reserve(wanted)
    if (outcome !== 'held') return outcome
    await ledger.resolve(settlement(acc, wanted.id, amount, { idempotent: true }))
    return 'spent'
  }
  await at(60)
  assert.equal(await spend(80n), 'spent')
  assert.equal(await spend(80n), 'limited')
  await at(-60)
  assert.equal(await spend(80n), 'limited', 'a second budget for the day before')
  await at(120)
  assert.equal(await spend(80n), 'limited', 'a second budget for the same day')
  assert.equal(await spend(20n), 'spent')
  await at(86_400 + 60)
  assert.equal(await spend(80n), 'spent')
  await ledger.idle()
})

// A day, a week and a month that end at once. Of much, slices are for 16 seconds; of little, for one.
for (const max of [1_000_000, 400])
  for (const before of ['2027-01-31T23:59:50Z', '2027-01-31T23:59:58Z', '2027-01-31T23:59:59Z'])
    test(`what is leased of ${max} at ${before} and comes back when day, week and month are over is not taken off the next`, async () => {
      const at = (moment: string) => database.query({ text: 'update clock set stands = $1' }, [moment])
      const ledger = createLedger({ database, world: realWorld, processId: `late ${max} ${before}`, graceMs: 0 })
      await at(before)
      await ledger.sweep()
      const acc = await account(1_000_000n)
      for (const unit of ['requests', 'tokens'])
        for (const span of ['day', 'week', 'month'])
          await database.query(
            {
              text: `insert into counter (account_id, scope, name, unit, span, max, second, since)
                values ($1, 'account', $2 || ' ' || $3, $2, $3, $4, extract(epoch from date_trunc($3, clock_timestamp(), 'UTC'))::bigint, clock_timestamp())`,
            },
            [acc, unit, span, max],
          )
      const leasing = (): Reservation => {
        const { idempotency, ...call } = reservation(acc, 10n)
        return { ...call, tokens: 10 }
      }
      const calls: string[] = []
      for (let i = 0; i < 6; i++) {
        const call = leasing()
        if ((await ledger.reserve(call)).outcome === 'held') calls.push(call.id)
      }
      const leased = await database.query({ text: 'select 1 from lease where account_id = $1' }, [acc])
      const counted = () =>
        database.query<{ name: string; used: bigint }>(
          {
            text: 'select n.name, n.used from counter c cross join lateral counter_now(c, floor(extract(epoch from clock_timestamp()))::bigint) n where c.account_id = $1 order by 1',
          },
          [acc],
        )
      await at('2027-02-01T00:00:05Z')
      for (const id of calls) await ledger.resolve(settlement(acc, id, 1n))
      await ledger.posted(acc)
      await ledger.returned(acc)
      await ledger.idle(2_000)
      // In the last second nothing is leased.
      assert.equal(leased.length > 0, !before.includes(':59:59'))
      for (const { name, used } of await counted()) assert.equal(used, 0n, name)
    })
