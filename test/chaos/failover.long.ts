// A primary that vanishes silently under load, and a synchronous standby that is promoted: nothing that was
// acknowledged is lost, and calls go on soon after the promotion.
import { join } from 'node:path'
import { storedCatalogs } from '../../src/catalog/store.ts'
import { openDatabase } from '../../src/database/database.ts'
import { verifyLedger } from '../../src/extensions/verify/verify.ts'
import { above, assert, atOnce, closing, FULL, runs, SECRET, test, until } from '../gateway.ts'
import { checkBooks, noHolds } from './books.ts'
import { type GatewayProcess, keyOf, makeDataDirectory, startProcess } from './gateway-process.ts'
import { startPair } from './pair.ts'
import { openScene, type Scene } from './scene.ts'
import { countBy, startTraffic } from './traffic.ts'

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
  const key = await keyOf(first)
  gateways.push(await start())
  // Who asks a server whether it takes writes leaves it again, on a busy machine a moment later: nobody stays.
  await until(() => pair.standby.door.connections, 0)

  const traffic = startTraffic({
    urls: () => gateways.map(({ url }) => url),
    key,
    kinds: ['chat', 'stream', 'data', 'messages'],
    perSecond: runs(30, 100),
  })
  await until(() => traffic.acknowledged().length, above(60))
  await pair.losePrimary()
  const lostMs = performance.now()
  // What a failover manager takes to notice.
  await until(() => performance.now() - lostMs, above(runs(2_000, 20_000)))
  await pair.promote()
  const promotedMs = performance.now()
  const goneOn = () =>
    gateways.every(({ url }) => traffic.acknowledged().some((told) => told.url === url && told.sentMs > lostMs))
  await until(goneOn)
  const outageMs = performance.now() - promotedMs
  // Calls of a second after it, undisturbed.
  const steadyMs = performance.now()
  await until(() => traffic.acknowledged().filter(({ sentMs }) => sentMs > steadyMs).length, above(30))
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

const MICRO = 1_000_000n
const IDLE = 16
/** At 1,500 credits for a million, 8.7 of the 10 credits of an idle account. */
const MOST_TOKENS = 5_800
/** What a process that died may keep, and what a failover may. */
const HELD_MS_MAX = 20_000

test('after a failover to a standby that lagged, credits that are there are never denied, and nothing stays held', async (t) => {
  for (let round = 0; round < runs(1, 7); round++) {
    await using scene = closing(await openScene({ processes: 2, standby: 'lagging' }))
    t.diagnostic(await failOverLagging(scene))
  }
})

async function failOverLagging(scene: Scene): Promise<string> {
  const { gateways, pair } = scene
  const idle = await atOnce(IDLE, () => scene.account(10n * MICRO))
  const busy = await scene.account()
  // Both processes have had calls of every account, and lease credits of them.
  for (const { key } of idle) for (const gateway of gateways) await served(gateway.url, key, 50)
  const traffic = startTraffic({
    urls: () => gateways.map(({ url }) => url),
    key: busy.key,
    kinds: ['chat', 'stream', 'data'],
    perSecond: 30,
  })
  await until(() => traffic.acknowledged().length, above(30))
  pair!.lag()
  // What the standby never hears of: charges, leases and their ends.
  const lagged = traffic.acknowledged().length
  for (const { key } of idle.slice(0, IDLE / 2)) for (const gateway of gateways) await served(gateway.url, key, 50)
  await until(() => traffic.acknowledged().length, above(lagged + 30))
  await pair!.losePrimary()
  await pair!.promote()
  const promotedMs = performance.now()
  await scene.moved()
  // Whoever had credits has them: each account's call is served or asked to wait, and served before the time is up.
  const tries = await Promise.all(idle.map((account, index) => served(gateways[index % 2]!.url, account.key)))
  const servedMs = performance.now() - promotedMs
  const open = { text: 'select 1 from account where held > 0 and id = any($1)' }
  const ids = idle.map(({ id }) => id)
  await until(async () => (await scene.direct.query(open, [ids])).length, 0)
  const heldMs = performance.now() - promotedMs
  assert.ok(heldMs < HELD_MS_MAX, `credits of idle accounts were held for ${heldMs} ms`)
  await traffic.stop()
  for (const { status, text } of traffic.told) assert.ok(status === 200 || status === 503, `${status} ${text}`)
  await noHolds(scene.direct, HELD_MS_MAX)
  const { ok, problems } = await verifyLedger(scene.direct, storedCatalogs(scene.direct))
  assert.ok(ok, problems.join('\n'))
  const waited = tries.filter((count) => count > 1).length
  return `served every account ${Math.round(servedMs)} ms after the promotion (${waited} of ${IDLE} were asked to wait), nothing of them was held after ${Math.round(heldMs)} ms`
}

/** A call that needs most of what an idle account has; answers how often it was made. */
async function served(url: string, key: string, maxTokens = MOST_TOKENS): Promise<number> {
  let tries = 0
  await until(async () => {
    const { status, text } = await chat(url, key, maxTokens).catch(() => ({ status: 503, text: '' }))
    tries++
    assert.ok(status === 200 || status === 503, `${status} ${text}`)
    return status === 200
  })
  return tries
}

async function chat(url: string, key: string, maxTokens: number): Promise<{ status: number; text: string }> {
  const answer = await fetch(`${url}/v1/chat/completions`, {
    method: 'POST',
    headers: { authorization: `Bearer ${key}`, 'content-type': 'application/json' },
    body: JSON.stringify({ model: 'alpha-5.4', max_tokens: maxTokens, messages: [{ role: 'user', content: 'Hi' }] }),
  })
  return { status: answer.status, text: await answer.text() }
}
