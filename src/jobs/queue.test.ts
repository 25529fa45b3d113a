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
  const start = async (webhookRetrySeconds: number) => {
    const queue = await openQueue({ connection, world, log: silentLog, webhookRetrySeconds })
    await queue.close()
    const rows = await database.query<{ name: string; retry_delay: number; version: string }>({
      text: 'select name, retry_delay, updated_on::text as version from pgboss.queue order by name',
    })
    return new Map(rows.map(({ name, ...row }) => [name, row]))
  }
  try {
    const first = await start(5)
    assert.deepEqual([...first.keys()], ['alert', 'background', 'batch', 'job-step', 'webhook'])
    assert.deepEqual(await start(5), first)
    const later = await start(7)
    assert.equal(later.get('webhook')?.retry_delay, 7)
    assert.deepEqual(later.get('batch'), first.get('batch'))
  } finally {
    await database.close()
    await drop()
  }
})
