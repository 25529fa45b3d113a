// What accounts bring themselves is known to every process, and read by account: a change costs what it changed.
import { createAudit } from '../src/database/audit.ts'
import { createChanges } from '../src/database/changes.ts'
import { type Database, openDatabase } from '../src/database/database.ts'
import { createSecrets } from '../src/kernel/secret.ts'
import { realWorld as world } from '../src/kernel/world.ts'
import { openByokKeys } from '../src/upstream/credentials/byok-keys.ts'
import { freshDatabase } from './database.ts'
import { after, assert, test } from './kit.ts'

const ACCOUNTS = 1_000
const BY = { actor: 'test', ip: null, requestId: null }
const { connection, drop } = await freshDatabase()
const database = openDatabase({ connection, connectionsMax: 4 })
after(() => database.close().then(drop))
const secrets = createSecrets('s'.repeat(64))
const key = (value: string) => ({ vendor: 'v', value, fallback: false, origin: 'https://v.example' })

/** A process, with how many rows each of its statements read. */
async function process() {
  const read: number[] = []
  const counted: Database = {
    ...database,
    async query(statement, values) {
      const rows = await database.query<never>(statement, values)
      read.push(rows.length)
      return rows
    },
  }
  const changes = createChanges(counted, world)
  const audit = createAudit({ database, world })
  const keys = await openByokKeys({ database: counted, changes, world, audit, secrets })
  return { read, changes, keys }
}

test('of a thousand accounts with keys the one that changed is read, on use and once; accounts without ask nothing', async () => {
  await database.query(
    {
      text: `insert into byok_key (account_id, vendor, sealed) select 'acc_' || n, 'v', '' from generate_series(1, $1::int) n`,
    },
    [ACCOUNTS],
  )
  const [here, there] = [await process(), await process()]
  there.read.length = 0
  await here.keys.store('acc_7', key('sk-1'), BY)
  await there.changes.notice('byok-keys')
  assert.deepEqual(there.read, [1], 'which one it is')
  await there.keys.of('acc_7')
  await there.keys.of('acc_7')
  assert.deepEqual(there.read, [1, 1], 'its key')
  for (let n = 0; n < 100; n++) assert.equal(there.keys.of(`acc_none_${n}`), undefined)
  assert.equal(there.read.length, 2)

  // Gone, and back again: each is heard of, also by a process that has read it before.
  await here.keys.remove('acc_7', 'v', BY)
  await there.changes.notice('byok-keys')
  assert.deepEqual([there.keys.has('acc_7'), there.keys.has('acc_8')], [false, true])
  await here.keys.store('acc_7', key('sk-2'), BY)
  await there.changes.notice('byok-keys')
  assert.equal(there.keys.has('acc_7'), true)
  assert.deepEqual(there.read, [1, 1, 1, 1])
})

test('a process that starts knows who has keys, also where no change of them was noted', async () => {
  await database.query({ text: 'delete from account_change' })
  const { keys, read } = await process()
  assert.deepEqual(read, [ACCOUNTS])
  assert.equal(keys.has('acc_1'), true)
})
