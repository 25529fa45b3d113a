// The short form of `npm run chaos -- troubles`: two gateways on one Postgres, and what befalls a database in a few
// seconds.
import { type Database, openDatabase } from '../../src/database/database.ts'
import { type FreshDatabase, freshDatabase } from '../database.ts'
import { after, assert, before, runs, startGateway, type TestGateway, test, until } from '../gateway.ts'
import { checkBooks, noHolds } from './books.ts'
import { type ChaosProxy, startProxy } from './proxy.ts'
import { DIRECT } from './scene.ts'
import { countBy, startTraffic } from './traffic.ts'
import { lost, reset, terminated } from './troubles.ts'

let fresh: FreshDatabase
let direct: Database
let door: ChaosProxy
const gateways: TestGateway[] = []
before(async () => {
  fresh = await freshDatabase()
  direct = openDatabase({ connection: { ...fresh.connection, application_name: DIRECT }, connectionsMax: 4 })
  const { host, port } = fresh.connection
  door = await startProxy({ path: `${host}/.s.PGSQL.${port}` })
  const through = (connection: FreshDatabase['connection']) => ({ ...connection, host: '127.0.0.1', port: door.port })
  for (let i = 0; i < 2; i++) gateways.push(await startGateway({ database: fresh, through }))
})
after(async () => {
  door.heal()
  for (const gateway of gateways) await gateway.close()
  await door.close()
  await direct.close()
  await fresh.drop()
})

for (const trouble of [lost, terminated, reset])
  test(`nothing is lost, doubled or left held: ${trouble.fault}`, async (t) => {
    const [busy, beside] = [await gateways[0]!.account(), await gateways[0]!.account()]
    const urls = () => gateways.map(({ url }) => url)
    const all = [busy, beside].map(({ key }, at) =>
      startTraffic({ urls, key, kinds: ['chat', 'stream', 'data', 'leave'], perSecond: at === 0 ? 30 : 6 }),
    )
    await until(() => all.every((traffic) => traffic.acknowledged().length > 10))
    const done = await trouble.run({ door, direct }, busy, runs(2_000, 30_000))
    await Promise.all(all.map((traffic) => traffic.stop()))
    const told = all.flatMap((traffic) => traffic.told)
    for (const { status, kind, text } of told) assert.ok(status === 200 || status === 503, `${kind}: ${status} ${text}`)
    await noHolds(direct, 100_000)
    const books = await checkBooks(
      direct,
      all.flatMap((traffic) => traffic.acknowledged()),
    )
    t.diagnostic(`${done}; ${JSON.stringify(countBy(told))}; ${JSON.stringify(books)}`)
  })
