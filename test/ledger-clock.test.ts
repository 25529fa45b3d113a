// The database's clock is what silence and budgets are measured by, and somebody may set it. `now()` and `clock_timestamp()` are
// found in `public` before Postgres's own, as much ahead as the test says.
import assert from 'node:assert/strict'
import { after, before, test } from 'node:test'
import pg from 'pg'
import { type Database, openDatabase } from '../src/database/database.ts'
import { migrate } from '../src/database/migrate.ts'
import { newId, realWorld, type World } from '../src/kernel/world.ts'
import { createLedger } from '../src/ledger/ledger.ts'
import { storeLimits } from '../src/ledger/limits.ts'
import type { Reservation } from '../src/ledger/operation.ts'
import { emptyDatabase, type FreshDatabase } from './database.ts'

const CLOCK = `
  create table clock (ahead interval not null);
  insert into clock values ('0');
  create function public.now() returns timestamptz language sql stable
    as 'select pg_catalog.now() + (select ahead from public.clock)';
  create function public.clock_timestamp() returns timestamptz language sql volatile
    as 'select pg_catalog.clock_timestamp() + (select ahead from public.clock)';`

let fresh: FreshDatabase
let database: Database
before(async () => {
  fresh = await emptyDatabase()
  const client = new pg.Client({ ...fresh.connection })
  await client.connect()
  await client.query(`alter database ${fresh.connection.database} set search_path = public, pg_catalog`)
  await client.query(CLOCK)
  await client.end()
  database = openDatabase({ connection: fresh.connection, connectionsMax: 4 })
  await migrate(database)
})
after(async () => {
  await database.close()
  await fresh.drop()
})

const setClock = (ahead: string) => database.query({ text: 'update clock set ahead = $1::interval' }, [ahead])

async function account(credits: bigint): Promise<string> {
  const id = `acc_${newId(realWorld)}`
  await database.query({ text: 'insert into account (id, name, posted) values ($1, $1, $2)' }, [id, credits])
  return id
}

const reservation = (of: string, want: bigint): Reservation => ({
  ...{ id: newId(realWorld), account: of, key: 'k', product: 'p', catalogVersion: 1, want, floor: want, tokens: 1 },
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
    const { id, account: of, key, product, catalogVersion } = wanted
    await ledger.resolve({
      ...{
        id,
        account: of,
        key,
        product,
        catalogVersion,
        kind: 'settled',
        charge: amount,
        lines: [],
        endpoint: 'chat',
      },
      ...{ status: 200, estimated: false, stream: false, route: 1, durationMs: 1, firstByteMs: 1 },
      ...{ inputTokens: 1, outputTokens: 1, idempotent: true },
    })
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
