// The recipe for high availability, run: Patroni loses its leader under load.
import { join } from 'node:path'
import { openDatabase } from '../../src/database/database.ts'
import { above, assert, FULL, runs, SECRET, type TestContext, test, until } from '../gateway.ts'
import { checkBooks, noHolds } from './books.ts'
import { type GatewayProcess, keyOf, makeDataDirectory, startProcess } from './gateway-process.ts'
import { findPrograms, type Programs, startCluster } from './patroni.ts'
import { countBy, startTraffic } from './traffic.ts'

const LOSSES: ReadonlyArray<readonly [how: string, lose: 'loseLeader' | 'freezeLeader']> = [
  ['loses its power', 'loseLeader'],
  // With the whole run only: it takes another minute.
  ...(FULL ? [['hangs, and goes on when another has taken over,', 'freezeLeader'] as const] : []),
]

for (const [how, lose] of LOSSES)
  test(`the recipe for high availability: a leader that ${how} is replaced by itself, and no acknowledged charge is lost`, async (t) => {
    const programs = findPrograms()
    if (typeof programs === 'string') return t.diagnostic(`not done: ${programs}`)
    await losing(t, programs, lose)
  })

async function losing(t: TestContext, programs: Programs, lose: 'loseLeader' | 'freezeLeader'): Promise<void> {
  const cluster = await startCluster(programs)
  const data = await makeDataDirectory()
  const gateways: GatewayProcess[] = []
  t.after(async () => {
    for (const gateway of gateways) gateway.kill('SIGKILL')
    await Promise.all(gateways.map(({ exited }) => exited))
    await cluster.close()
    await data.remove()
  })
  const start = () =>
    startProcess({
      env: {
        DATABASE_URL: cluster.url,
        TOLLGATE_SECRET: SECRET,
        TOLLGATE_DATA: join(data.path, String(gateways.length)),
        TOLLGATE_SANDBOX_SPEED: '100',
      },
    })
  const first = await start()
  gateways.push(first)
  const key = await keyOf(first)
  gateways.push(await start())
  const traffic = startTraffic({
    urls: () => gateways.map(({ url }) => url),
    key,
    kinds: ['chat', 'stream', 'data', 'messages'],
    perSecond: runs(20, 50),
  })
  await until(() => traffic.acknowledged().length, above(100))

  const lostMs = performance.now()
  const lost = await cluster[lose]()
  let promotedMs = 0
  await until(async () => {
    const leader = await cluster.leader()
    if (leader) promotedMs ||= performance.now()
    return leader !== undefined
  })
  const goneOn = () =>
    gateways.every(({ url }) => traffic.acknowledged().some((told) => told.url === url && told.sentMs > promotedMs))
  await until(goneOn)
  const servedMs = Math.min(
    ...traffic
      .acknowledged()
      .filter(({ sentMs, ms }) => sentMs + ms > promotedMs)
      .map(({ sentMs, ms }) => sentMs + ms),
  )
  const allMs = performance.now()
  await until(() => traffic.acknowledged().filter(({ sentMs }) => sentMs > allMs).length, above(40))
  if (lose === 'freezeLeader') await lost.comeBack()
  await traffic.stop()

  const leader = (await cluster.leader())!
  assert.notEqual(leader.name, lost.name)
  const database = openDatabase({ connection: cluster.connectionOf(leader), connectionsMax: 2 })
  await noHolds(database, 60_000)
  const books = await checkBooks(database, traffic.acknowledged())
  await database.close()
  for (const { status, kind, text } of traffic.told)
    assert.ok(status === 200 || status === 503, `${kind}: ${status} ${text}`)
  const seconds = (fromMs: number, toMs: number) => `${((toMs - fromMs) / 1000).toFixed(1)} s`
  t.diagnostic(
    `patroni ${programs.version}: a new leader ${seconds(lostMs, promotedMs)} after the loss, the first call ${seconds(promotedMs, servedMs)} and all processes ${seconds(promotedMs, allMs)} after that; ${JSON.stringify(countBy(traffic.told))}; ${JSON.stringify(books)}`,
  )
}
