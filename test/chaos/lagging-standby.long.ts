// A standby that lagged when it was promoted has holds and leases of calls that have ended.
import { openDatabase } from '../../src/database/database.ts'
import { migrate } from '../../src/database/migrate.ts'
import { newId, realWorld } from '../../src/kernel/world.ts'
import { createLedger } from '../../src/ledger/ledger.ts'
import { WAIT_FACTOR } from '../database.ts'
import { assert, test, until } from '../kit.ts'
import { settlement } from '../settlement.ts'
import { startPair } from './pair.ts'

test('what a promoted standby that lagged still holds of ended calls is free at the next look, and what runs stays held', async (t) => {
  const pair = await startPair({ synchronous: false })
  const database = openDatabase({ connection: { connectionString: pair.url }, waitFactor: WAIT_FACTOR })
  t.after(async () => {
    await database.close()
    await pair.close()
  })
  await migrate(database)
  const rows = (text: string) => database.query<{ id?: string; held?: bigint; is_there?: boolean }>({ text })
  await rows(`insert into account (id, name) values ('acc', 'acc')`)
  await rows(`select ledger_grant('g', 'acc', 1000, 'test', 'test')`)
  const ledger = createLedger({ database, world: realWorld, processId: 'p', waitFactor: WAIT_FACTOR, leases: false })
  t.after(() => ledger.idle(5_000))
  await ledger.sweep()
  const shared = { account: 'acc', key: 'k', product: 'p', catalogVersion: 1, tokens: 1 }
  const hold = async (want: bigint) => {
    const id = newId(realWorld)
    assert.equal((await ledger.reserve({ ...shared, id, want, floor: want })).outcome, 'held')
    return id
  }
  const [running, ended, lost] = [await hold(10n), await hold(20n), await hold(40n)]
  // It takes no writes yet, so it is asked through the primary how far it has come.
  await until(async () => {
    const [row] = await rows('select bool_and(replay_lsn >= pg_current_wal_lsn()) as is_there from pg_stat_replication')
    return row?.is_there === true
  })
  pair.lag()
  for (const id of [ended, lost]) await ledger.resolve(settlement('acc', id, 5n))
  assert.deepEqual(await rows('select id from hold'), [{ id: running }])
  await pair.losePrimary()
  await pair.promote()
  await until(async () => (await rows('select id from hold').catch(() => [])).length, 3)
  // However long the failover took, they are not given back for their age.
  await rows('update hold set created_at = now()')
  await ledger.sweep()
  await until(async () => await rows('select id from hold'), [{ id: running }])
  assert.deepEqual(await rows('select held from account'), [{ held: 10n }])
  await ledger.resolve(settlement('acc', running, 5n))
  assert.deepEqual(await rows('select held from account'), [{ held: 0n }])
})
