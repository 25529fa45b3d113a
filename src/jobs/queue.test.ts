import assert from 'node:assert/strict'
import { test } from 'node:test'
import { freshDatabase } from '../../test/database.ts'
import { openDatabase } from '../database/database.ts'
import { silentLog } from '../kernel/log.ts'
import { realWorld as world } from '../kernel/world.ts'
import { openQueue } from './queue.ts'

test('a start brings queues of an earlier version up to date, and leaves those alone that are as they should be', async () => {
  const { connection, drop } = await freshDatabase()
  const database = openDatabase({ connection, connectionsMax: 1 })
  const start = async () => {
    const queue = await openQueue({ connection, world, log: silentLog })
    await queue.close()
    const rows = await database.query<{ name: string; retry_limit: number; version: string }>({
      text: 'select name, retry_limit, updated_on::text as version from pgboss.queue order by name',
    })
    return new Map(rows.map(({ name, ...row }) => [name, row]))
  }
  try {
    const first = await start()
    assert.deepEqual([...first.keys()], ['background', 'batch', 'delivery', 'job-step'])
    assert.deepEqual(await start(), first)
    await database.query({ text: `update pgboss.queue set retry_limit = 7 where name = 'delivery'` })
    await database.query({ text: `select pgboss.create_queue('webhook', '{"policy":"short"}')` })
    const later = await start()
    assert.deepEqual([...later.keys()], [...first.keys()], 'a queue that is no longer in use is gone')
    assert.equal(later.get('delivery')?.retry_limit, 0)
    assert.deepEqual(later.get('batch'), first.get('batch'))
  } finally {
    await database.close()
    await drop()
  }
})
