// Backup, restore and migration of an installation with several ledgers.
import assert from 'node:assert/strict'
import { join } from 'node:path'
import { after, before, test } from 'node:test'
import {
  type Customer,
  type Installation,
  openOn,
  type Servers,
  startInstallation,
  startServers,
} from '../../../test/installation.ts'
import { joined, PASSWORD } from '../../../test/operator-server.ts'
import { until } from '../../../test/until.ts'
import { readConfig } from '../../config.ts'
import { installationOf } from '../postgres/ledgers.ts'
import { prepareLedger } from '../postgres/mount.ts'
import { upgradeStore } from '../postgres/upgrade.ts'
import { backup, restore } from './commands.ts'

let from: Installation
let to: Servers
const customers = new Map<string, Customer>()
const stop = new AbortController().signal

before(async () => {
  ;[from, to] = await Promise.all([startInstallation(['east', 'west']), startServers(['east', 'west'])])
  while (customers.size < 2) {
    const made = await from.customer()
    customers.set(made.home, made)
  }
})
after(async () => {
  await from?.close()
  await to?.close()
})

type Environment = Readonly<Record<string, string>>

async function said(
  run: (config: ReturnType<typeof readConfig>, say: (line: string) => void) => Promise<void>,
  environment: Environment,
): Promise<string> {
  const lines: string[] = []
  await run(readConfig(environment), (line) => void lines.push(line))
  return lines.join('\n')
}
const file = () => join(from.folder, 'all.backup')
const backedUp = () => said((config, say) => backup(config, file(), say, stop), from.environment)
const restored = (environment: Environment) => said((config, say) => restore(config, file(), say, stop), environment)
const migrated = (plan: boolean) => said((config, say) => upgradeStore(config, { plan }, say, stop), to.environment)

test('a backup has control and every ledger, and restores into empty ones, which add up and serve', async () => {
  const { list } = await from.ask<{ list: string[] }>('/code-batches', { name: 'spring', credits: '5', codes: 1 })
  const [east, west] = [customers.get('east')!, customers.get('west')!]
  await from.ask(`/accounts/${east.id}/codes`, { code: list[0] })
  await joined(from, `/accounts/${west.id}/invites`, { email: 'owner@restored.example', role: 'owner' }, PASSWORD)
  for (const { key } of customers.values()) assert.equal((await from.chat(key)).status, 200)
  const balances = () => from.ask<{ items: Array<{ balance: string; held: string }> }>('/accounts')
  const before = await until(async () => {
    const { items } = await balances()
    return items.every(({ held }) => held === '0') ? items : undefined
  })

  from.cut('west')
  await assert.rejects(backedUp(), /The database of west does not answer .*Nothing was done in any of them/)
  from.heal('west')
  assert.match(await until(() => backedUp().catch(() => undefined)), /tables of control, east, west, as of/)

  const onlyEast = to.environment.TOLLGATE_LEDGERS.replace(/ west=.*/, '')
  await assert.rejects(
    restored({ ...to.environment, TOLLGATE_LEDGERS: onlyEast }),
    /has these ledgers: east, west; and TOLLGATE_LEDGERS names: east\. Name an empty database for each/,
  )
  assert.match(await restored(to.environment), /into control, east, west,.*\nAll ledgers add up\./)
  await assert.rejects(restored(to.environment), /is in use/)

  await using again = await openOn(to)
  const { items } = await again.ask<{ items: unknown[] }>('/accounts')
  assert.deepEqual(items, before)
  for (const { key } of customers.values()) assert.equal((await again.chat(key)).status, 200)
  const { items: members } = await again.ask<{ items: unknown[] }>(`/accounts/${west.id}/members`)
  assert.equal(members.length, 1)
  assert.deepEqual(await to.homesOf(east.id), ['east'])
})

test('what was restored opens no ledger of the original', async () => {
  const installation = await installationOf(to.databaseOf('control'))
  const control = { connection: { connectionString: to.addressOf('control') }, ledger: 'east', installation }
  await assert.rejects(prepareLedger({ connectionString: from.addressOf('east') }, control), /another installation/)
  assert.equal((await from.chat(customers.get('east')!.key)).status, 200)
})

test('a migration goes through every ledger, and none is touched while one does not answer', async () => {
  assert.equal((await migrated(true)).split('\n').length, 3)
  assert.match(
    await migrated(false),
    /^control: .*\ncontrol: .*\neast: .*\neast: .*\nwest: .*\nwest: The database is at/,
  )
  to.cut('east')
  await assert.rejects(migrated(false), /The database of east does not answer/)
  to.heal('east')
})

test('nothing is backed up while an account moves', async () => {
  const control = from.databaseOf('control')
  await control.query({ text: `update account set is_moving = true where id = $1` }, [customers.get('east')!.id])
  await assert.rejects(backedUp(), /is being moved to another ledger\. Try again/)
  await control.query({ text: 'update account set is_moving = false' })
})
