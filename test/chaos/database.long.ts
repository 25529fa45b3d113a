// F24, F25, F26, F27: a database that is away, slow, cut off in the middle of a commit.

import { type Database, openDatabase } from '../../src/database/database.ts'
import { newId, realWorld } from '../../src/kernel/world.ts'
import { createLedger } from '../../src/ledger/ledger.ts'
import { type FreshDatabase, freshDatabase } from '../database.ts'
import { count, each, post } from '../faults/raw-client.ts'
import { SECRET, startGateway, type TestGateway } from '../gateway.ts'
import { above, after, afterEach, assert, before, FULL, freePort, runs, test, until } from '../kit.ts'
import { release, settlement } from '../settlement.ts'
import { checkBooks, noHolds } from './books.ts'
import { makeDataDirectory, startProcess } from './gateway-process.ts'
import { type ChaosProxy, startProxy } from './proxy.ts'
import { countBy, startTraffic, type Told } from './traffic.ts'

/** 5 s on a machine of its own; the test suite runs two files at once. */
const RECOVERY_MS_MAX = FULL ? 5_000 : 30_000

let fresh: FreshDatabase
let direct: Database
let proxy: ChaosProxy
let g: TestGateway
let key: string
before(async () => {
  fresh = await freshDatabase()
  direct = fresh.open({ connectionsMax: 2 })
  const { host, port } = fresh.connection
  proxy = await startProxy({ path: `${host}/.s.PGSQL.${port}` })
  g = await startGateway({
    database: fresh,
    through: (connection) => ({ ...connection, host: '127.0.0.1', port: proxy.port }),
  })
  key = (await g.account({ credits: 100_000_000_000n })).key
})
after(async () => {
  proxy.heal()
  await g.close()
  await proxy.close()
  await direct.close()
  await fresh.drop()
})
afterEach(async () => {
  proxy.heal()
  await noHolds(direct, 60_000)
})

/** From now until a call is answered as if nothing had been. */
async function recovery(): Promise<number> {
  const startedMs = performance.now()
  await until(
    async () => (await post(g.url, { key, body: BODY, path: '/v1/chat-completions' }).response).statusCode,
    200,
  )
  return performance.now() - startedMs
}
const BODY = JSON.stringify({ model: 'alpha-5.4', max_tokens: 100, messages: [{ role: 'user', content: 'hi' }] })

function assertHonest(told: readonly Told[]): void {
  for (const { status, kind, text } of told) {
    assert.ok([0, 200, 503].includes(status), `${kind}: ${status} ${text}`)
    if (status === 503) assert.match(text, /50001/)
  }
}

test('a slow database makes calls slow or refused, never wrong, and is forgotten within 5 s', async (t) => {
  const traffic = startTraffic({ urls: () => [g.url], key, kinds: ['chat', 'stream', 'data'], perSecond: 30 })
  await until(() => traffic.acknowledged().length, above(20))
  proxy.delay(1_000)
  const slowMs = performance.now()
  await until(() => performance.now() - slowMs, above(runs(4_000, 30_000)))
  const pending = g.gateway.ledger.pending
  proxy.heal()
  const recoveredMs = await recovery()
  await traffic.stop()
  assertHonest(traffic.told)
  assert.ok(pending < 4_000)
  assert.ok(recoveredMs < RECOVERY_MS_MAX, `${recoveredMs} ms`)
  await noHolds(direct, 60_000)
  const books = await checkBooks(direct, traffic.acknowledged())
  t.diagnostic(
    `round trips of 2 s: ${JSON.stringify(countBy(traffic.told))}; well again after ${Math.round(recoveredMs)} ms; ${JSON.stringify(books)}`,
  )
})

test('while the database is away nobody is told that a key is wrong, nothing is free, and streams under way are settled', async (t) => {
  const awayMs = runs(4_000, 30_000)
  const traffic = startTraffic({
    urls: () => [g.url],
    key,
    kinds: ['chat', 'stream', 'data'],
    perSecond: runs(30, 100),
  })
  await until(() => traffic.acknowledged().length, above(20))
  const body = JSON.stringify({
    model: 'alpha-5.4',
    max_tokens: 500,
    stream: true,
    messages: [{ role: 'user', content: 'go on [[slow=30]]' }],
  })
  const streams = [...count(10)].map(() => post(g.url, { key, body }))
  await Promise.all(streams.map((stream) => stream.until((text) => text.includes('data:'))))
  proxy.refuse()
  proxy.reset()
  const cutMs = performance.now()
  const reads: number[] = []
  while (performance.now() - cutMs < awayMs) {
    reads.push((await g.call('/v1/models', key)).status)
    await new Promise((resolve) => setTimeout(resolve, 100))
  }
  assert.equal((await g.call('/healthz', undefined)).status, 200)
  assert.equal((await g.call('/readyz', undefined)).status, 503)
  proxy.heal()
  const recoveredMs = await recovery()
  const texts = await Promise.all(streams.map((stream) => stream.text()))
  await traffic.stop()
  for (const status of reads) assert.equal(status, 200, 'a free read with a known key failed')
  assertHonest(traffic.told)
  assert.ok(recoveredMs < RECOVERY_MS_MAX, `${recoveredMs} ms`)
  for (const text of texts) assert.match(text, /: tollgate charge=[\d.]+\n+data: \[DONE\]\n\n$/)
  await noHolds(direct, 60_000)
  const books = await checkBooks(direct, traffic.acknowledged())
  const during = traffic.told.filter(
    ({ sentMs, ms, status }) => status === 200 && sentMs > cutMs && sentMs + ms < cutMs + awayMs,
  )
  assert.equal(during.length, 0, 'a paid call succeeded without a database')
  t.diagnostic(
    `away for ${awayMs} ms: ${reads.length} free reads served, ${JSON.stringify(countBy(traffic.told))}; well again after ${Math.round(recoveredMs)} ms; ${JSON.stringify(books)}`,
  )
})

test('a commit whose answer is lost is repeated without a second effect', async (t) => {
  const { host, port } = { host: '127.0.0.1', port: proxy.port }
  const database = openDatabase({ connection: { ...fresh.connection, host, port }, connectionsMax: 4 })
  const ledger = createLedger({
    database,
    world: realWorld,
    processId: 'commit-unknown',
    reserveForMs: 60_000,
    reserveWaitMs: 60_000,
  })
  await ledger.sweep()
  // A process that says nothing for 20 s is taken for dead, and its reservations are given up.
  const alive = setInterval(() => void ledger.sweep().catch(() => undefined), 5_000)
  t.after(() => clearInterval(alive))
  const rounds = runs(60, 1_000)
  const { id: account } = await g.account({ credits: BigInt(rounds) * 10n })
  let cuts = 0
  // The statement goes through and commits; its answer does not come back. Every other time only.
  let turn = 0
  proxy.cutAfter = (piece) => {
    if (!/ledger_(reserve|resolve|lease|post)|journal_write/.test(piece.toString('latin1')) || turn++ % 2 === 1)
      return false
    cuts += 1
    return true
  }
  const base = { account, key: 'k', product: 'p', catalogVersion: 1 }
  await each(count(rounds), 4, async (i) => {
    const id = newId(realWorld)
    const reserved = await ledger.reserve({ ...base, id, want: 10n, floor: 10n, tokens: 1 })
    assert.equal(reserved.outcome, 'held')
    const settled = await ledger.resolve(
      i % 3 === 0
        ? release(account, id, base)
        : settlement(account, id, 7n, { ...base, lines: [['call', 1, '7000000']] }),
    )
    assert.ok(['settled', 'released', 'already'].includes(settled.outcome), settled.outcome)
  })
  proxy.cutAfter = undefined
  clearInterval(alive)
  await ledger.idle()
  await database.close()
  assert.ok(cuts >= rounds / 2, `${cuts} cuts`)
  const [row] = await direct.query<{ transfers: bigint; paid: bigint; held: bigint; posted: bigint }>(
    {
      text: `select count(*) as transfers, sum(t.amount)::bigint as paid, a.held, a.posted from transfer t join account a on a.id = t.account_id
        where a.id = $1 and t.kind <> 'grant' group by a.held, a.posted`,
    },
    [account],
  )
  const paid = BigInt(rounds - Math.ceil(rounds / 3)) * 7n
  assert.deepEqual(row, { transfers: BigInt(rounds), paid, held: 0n, posted: BigInt(rounds) * 10n - paid })
  t.diagnostic(
    `${rounds} reservations and resolutions, ${cuts} answers lost after the commit, no duplicate, none missing`,
  )
})

test('a gateway whose database is away at the start is alive, not ready, and begins to serve when it comes', async (t) => {
  const own = await freshDatabase()
  const data = await makeDataDirectory()
  const port = await freePort()
  const door = await startProxy({ path: `${own.connection.host}/.s.PGSQL.${own.connection.port}` })
  door.refuse()
  const url = new URL(own.url)
  const starting = startProcess({
    env: {
      TOLLGATE_DATA: data.path,
      TOLLGATE_SECRET: SECRET,
      PORT: String(port),
      DATABASE_URL: `postgres://${url.username}@127.0.0.1:${door.port}${url.pathname}`,
    },
  })
  try {
    const ask = (path: string) =>
      fetch(`http://127.0.0.1:${port}${path}`).then(
        (answer) => answer.status,
        () => 0,
      )
    const startedMs = performance.now()
    await Promise.race([starting, until(() => ask('/healthz'), 200)])
    const aliveMs = performance.now() - startedMs
    assert.equal(await ask('/readyz'), 503)
    assert.equal(await ask('/v1/models'), 503)
    door.heal()
    const healedMs = performance.now()
    const gateway = await starting
    const readyMs = performance.now() - healedMs
    assert.equal(await ask('/readyz'), 200)
    assert.ok(readyMs < RECOVERY_MS_MAX, `${readyMs} ms`)
    assert.equal(await gateway.stop(), 0)
    const stopMs = performance.now() - healedMs - readyMs
    t.diagnostic(
      `alive after ${Math.round(aliveMs)} ms, served ${Math.round(readyMs)} ms after the database came, stopped within ${Math.round(stopMs)} ms`,
    )
  } finally {
    // Whatever failed above, a gateway that waits for its database would be waited for without end.
    door.heal()
    await starting.then(
      (gateway) => gateway.kill('SIGKILL'),
      () => undefined,
    )
    await door.close()
    await data.remove()
    await own.drop()
  }
})

test('a gateway that is given a database which does not exist says so and ends, instead of waiting for it', async () => {
  const data = await makeDataDirectory()
  const url = new URL(fresh.url)
  const door = await startProxy({ path: `${fresh.connection.host}/.s.PGSQL.${fresh.connection.port}` })
  const starting = startProcess({
    env: {
      TOLLGATE_DATA: data.path,
      TOLLGATE_SECRET: SECRET,
      DATABASE_URL: `postgres://${url.username}@127.0.0.1:${door.port}/no_such_database`,
    },
  })
  await assert.rejects(starting, /ended with 1:[\s\S]*database "no_such_database" does not exist/)
  await door.close()
  await data.remove()
})
