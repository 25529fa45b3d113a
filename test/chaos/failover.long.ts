// A primary that vanishes silently under load, and a synchronous standby that is promoted: nothing that was acknowledged is
// lost, and calls go on soon after the promotion.
import assert from 'node:assert/strict'
import { join } from 'node:path'
import { test } from 'node:test'
import { openDatabase } from '../../src/database/database.ts'
import { SECRET } from '../gateway.ts'
import { FULL, runs } from '../runs.ts'
import { until } from '../until.ts'
import { checkBooks, noHolds } from './books.ts'
import { type GatewayProcess, makeDataDirectory, startProcess } from './gateway-process.ts'
import { startPair } from './pair.ts'
import { countBy, startTraffic } from './traffic.ts'

const KEY = /tg_live_\w{38}/
/** 5 s on a machine of its own; the test suite runs two files at once. */
const OUTAGE_MS_MAX = FULL ? 5_000 : 20_000

test('a primary that vanishes and a standby that is promoted lose no acknowledged charge, and calls go on', async (t) => {
  const pair = await startPair()
  const data = await makeDataDirectory()
  const gateways: GatewayProcess[] = []
  const after = openDatabase({ connection: { ...pair.standby.server.connection }, connectionsMax: 2 })
  t.after(async () => {
    for (const gateway of gateways) gateway.kill('SIGKILL')
    await Promise.all(gateways.map(({ exited }) => exited))
    await after.close()
    await pair.close()
    await data.remove()
  })
  const start = () =>
    startProcess({
      env: {
        DATABASE_URL: pair.url,
        TOLLGATE_SECRET: SECRET,
        TOLLGATE_DATA: join(data.path, String(gateways.length)),
        TOLLGATE_SANDBOX_SPEED: '100',
      },
    })
  const first = await start()
  gateways.push(first)
  await until(() => KEY.test(first.output), 5)
  const key = KEY.exec(first.output)![0]
  gateways.push(await start())
  // Who asks a server whether it takes writes leaves it again, on a busy machine a moment later: nobody stays.
  await until(() => pair.standby.door.connections === 0, 50)

  const traffic = startTraffic({
    urls: () => gateways.map(({ url }) => url),
    key,
    kinds: ['chat', 'stream', 'data', 'messages'],
    perSecond: runs(30, 100),
  })
  await until(() => traffic.acknowledged().length > 60)
  await pair.losePrimary()
  const lostMs = performance.now()
  // What a failover manager takes to notice.
  await until(() => performance.now() - lostMs > runs(2_000, 20_000), 50)
  await pair.promote()
  const promotedMs = performance.now()
  const goneOn = () =>
    gateways.every(({ url }) => traffic.acknowledged().some((told) => told.url === url && told.sentMs > lostMs))
  await until(goneOn, 20)
  const outageMs = performance.now() - promotedMs
  // Calls of a second after it, undisturbed.
  const steadyMs = performance.now()
  await until(() => traffic.acknowledged().filter(({ sentMs }) => sentMs > steadyMs).length > 30, 20)
  await traffic.stop()

  for (const { status, kind, text } of traffic.told)
    assert.ok(status === 200 || status === 503, `${kind}: ${status} ${text}`)
  await noHolds(after, 60_000)
  const books = await checkBooks(after, traffic.acknowledged())
  assert.ok(outageMs < OUTAGE_MS_MAX, `${outageMs} ms after the promotion`)
  for (const gateway of gateways.splice(0)) assert.equal(await gateway.stop(), 0, gateway.output)
  t.diagnostic(
    `promoted ${Math.round(promotedMs - lostMs)} ms after the loss, all processes served ${Math.round(outageMs)} ms later; ${JSON.stringify(countBy(traffic.told))}; ${JSON.stringify(books)}`,
  )
})
