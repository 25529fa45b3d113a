import { assert, test } from '../../../test/kit.ts'
import { silentLog } from '../../kernel/log.ts'
import { realWorld } from '../../kernel/world.ts'
import { createAlerts } from './alerts.ts'

test('of what probes find for all one process a minute tells; a breaker of its own each process looks at', async () => {
  for (const isRejected of [true, false]) {
    const asked: string[] = []
    const query = async ({ name }: { name: string }) => {
      asked.push(name)
      return []
    }
    const failing = { name: 'north', isRejected, reason: 'It does not accept the credential.' }
    const options = {
      world: realWorld,
      log: silentLog,
      failingVendors: () => [failing],
      overruns: () => [],
      setAside: () => [],
      incidents: () => [],
      database: { query, transaction: async () => 0 },
    }
    const alerts = createAlerts(options as unknown as Parameters<typeof createAlerts>[0]) // Of the rest it needs nothing here.
    await alerts.tick()
    assert.equal(asked[0], 'alert_claim')
    assert.equal(asked.length === 1, isRejected, asked.join())
  }
})

test('settings that cannot be opened are said in the log: nobody receives alerts by the defaults', async () => {
  const said: unknown[] = []
  const options = {
    world: realWorld,
    secrets: { key: () => Buffer.alloc(32) },
    log: { ...silentLog, error: (fields: unknown) => said.push(fields) },
    database: {
      query: async () => [{ scope: 'acc_1', sealed: Buffer.from('of another key, and long enough for one') }],
    },
  }
  const alerts = createAlerts(options as unknown as Parameters<typeof createAlerts>[0]) // Of the rest it needs nothing here.
  assert.deepEqual((await alerts.settings('acc_1')).receivers, [])
  assert.deepEqual(said, [{ scope: 'acc_1' }])
})
