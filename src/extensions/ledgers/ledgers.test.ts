// Three Postgres servers: control and two ledgers, behind one gateway. A ledger that ends is felt by its accounts only.
import assert from 'node:assert/strict'
import { after, before, test } from 'node:test'
import { OPERATOR_TOKEN } from '../../../test/gateway.ts'
import { type Customer, type Installation, startInstallation } from '../../../test/installation.ts'
import { until } from '../../../test/until.ts'
import { installationOf } from '../postgres/ledgers.ts'
import { prepareLedger } from '../postgres/mount.ts'

let all: Installation
let customers: Map<string, Customer>

before(async () => {
  all = await startInstallation(['east@eu', 'west'])
})
after(() => all.close())

test('accounts lie in both ledgers, their calls are charged there, and nobody sees where', async () => {
  customers = await all.customers(['east', 'west'])
  for (const { id, key } of customers.values()) {
    const response = await all.chat(key)
    assert.equal(response.status, 200, await response.text())
    const { balance } = await all.ask<{ balance: string }>(`/accounts/${id}`)
    assert.ok(Number(balance) < 10, balance)
  }
})

test('a ledger that is away is felt by its accounts only, and serves them when it is back', async () => {
  const [east, west] = [customers.get('east')!, customers.get('west')!]
  all.cut('east')
  const refused = await all.chat(east.key)
  assert.equal(refused.status, 503)
  assert.ok(Number(refused.headers.get('retry-after')) > 0)
  for (let calls = 0; calls < 20; calls++) assert.equal((await all.chat(west.key)).status, 200)
  assert.ok(await all.ask(`/accounts/${west.id}`))
  all.heal('east')
  await until(async () => ((await all.chat(east.key)).status === 200 ? true : undefined))
})

test('calls with known keys go on while control is away', async () => {
  const west = customers.get('west')!
  all.cut('control')
  for (let calls = 0; calls < 20; calls++) assert.equal((await all.chat(west.key)).status, 200)
  all.heal('control')
  await until(async () => ((await all.call('/admin/v1/limits', OPERATOR_TOKEN)).status === 200 ? true : undefined))
})

test('control may be several servers, of which one takes writes', async () => {
  const connectionString = all.addressOf('control').replace('@', '@127.0.0.1:1,')
  const connection = { connectionString: all.addressOf('east') }
  const installation = await installationOf(all.databaseOf('control'))
  await prepareLedger(connection, { connection: { connectionString }, ledger: 'east', installation })
  assert.equal((await all.chat(customers.get('east')!.key)).status, 200)
})

test('an ordinary role that owns its database is enough, where a superuser made the extension', async () => {
  const role = `select nspowner::regrole::text as owner, rolsuper as super
    from pg_namespace join pg_roles on pg_roles.oid = nspowner where nspname = 'control'`
  for (const name of ['east', 'west'])
    assert.deepEqual(await all.databaseOf(name).query({ text: role }), [{ owner: 'gateway', super: false }])
})

test('an account whose creation is repeated is made once, in one ledger', async () => {
  const headers = {
    authorization: `Bearer ${OPERATOR_TOKEN}`,
    'content-type': 'application/json',
    'idempotency-key': 'once',
  }
  const body = JSON.stringify({ name: 'Once', credits: '1' })
  const ids = new Set<string>()
  for (let tries = 0; tries < 4; tries++) {
    const response = await fetch(`${all.url}/admin/v1/accounts`, { method: 'POST', headers, body })
    const text = await response.text()
    assert.equal(response.status, 200, text)
    ids.add(JSON.parse(text).data.id)
  }
  assert.equal(ids.size, 1)
})

test('an account that demands a region is made there, however much room others have', async () => {
  for (let made = 0; made < 3; made++) assert.equal((await all.customer({ region: 'eu' })).home, 'east')
  const refused = await all.call('/admin/v1/accounts', OPERATOR_TOKEN, { name: 'Customer', region: 'moon' })
  assert.equal(refused.status, 400)
  assert.match(await refused.text(), /no ledger lies in \\"moon\\". There are: eu\./)
})
