// F90: of three ledgers one is killed under load, alone and together with a gateway. The accounts of the others are all
// served, its own are told to come back; then nothing is lost or doubled, and no hold stays.

import { startSandbox } from '../../../sandbox/server.ts'
import { checkBooks, noHolds } from '../../../test/chaos/books.ts'
import { countBy, startTraffic, type Told, type Traffic } from '../../../test/chaos/traffic.ts'
import { type Customer, startServers, visitorOf } from '../../../test/installation.ts'
import { type Killable, killable } from '../../../test/killable.ts'
import { assert, atLeast, before, pause, runs, started, test, until } from '../../../test/kit.ts'
import { realWorld } from '../../kernel/world.ts'

const LEDGERS = ['east', 'north', 'west']
const CALLS = runs(20, 200)
const VIDEO = { model: 'videogen-2.0', duration: 4, resolution: '480p' }
const PROMPTS = ['a rope [[queued-ms=500]] [[running-ms=500]]', 'a knot', '[[fail]]']

interface Order {
  readonly home: string
  readonly url: string
  readonly sentMs: number
  /** 0: no answer. */
  readonly status: number
  readonly job: string | undefined
}

const servers = started(() => startServers(LEDGERS))
const vendor = started(() => startSandbox({ world: realWorld, speed: 1000 }))
const start = killable()
const gateways: Killable[] = []
let customers: Map<string, Customer>
const told = new Map<string, Told[]>(LEDGERS.map((name) => [name, []]))
const orders: Order[] = []

const startGateway = async () => void gateways.push(await start(servers.processOf(vendor.url)))

before(async () => {
  await startGateway()
  await startGateway()
  customers = await visitorOf(servers, () => gateways[0]!.url).customers(LEDGERS, { credits: '1000000' })
})

/** Calls that run when their ledger goes wait for it to settle them, and their callers not for as long. */
const PATIENCE_MS = 3_000

/** Calls and videos of all accounts at all gateways, until it is stopped. */
function startLoad(hasty: string) {
  let stopped = false
  const urls = () => gateways.map(({ url }) => url)
  const traffic = new Map<string, Traffic>()
  const ordering = [...customers].map(async ([home, { key }]) => {
    const { call } = visitorOf(servers, () => urls()[0]!)
    const patience = home === hasty ? { patienceMs: PATIENCE_MS } : {}
    traffic.set(home, startTraffic({ urls, key, kinds: ['chat', 'stream', 'data', 'leave'], atOnce: 4, ...patience }))
    for (let n = 0; !stopped; n++) {
      const [sentMs, url] = [performance.now(), urls()[0]!]
      const body = { ...VIDEO, prompt: PROMPTS[n % PROMPTS.length] }
      const [status, job] = await call('/v1/video/seedance', key, body).then(
        async (answer) => [answer.status, ((await answer.json()) as { data?: { jobId: string } }).data?.jobId] as const,
        () => [0, undefined] as const,
      )
      orders.push({ home, url, sentMs, status, job })
      await pause(100, 'a video every now and then')
    }
  })
  return {
    of: (home: string) => traffic.get(home)!, // They have been started.
    async stop() {
      stopped = true
      await Promise.all([...ordering, ...[...traffic.values()].map((one) => one.stop())])
      for (const [home, one] of traffic) told.get(home)!.push(...one.told) // As above.
    },
  }
}

/** Kills a ledger's Postgres, and a gateway where it says so; heals it when all others were served meanwhile. */
async function killUnderLoad(ledger: string, withGateway: boolean, say: (line: string) => void): Promise<void> {
  const load = startLoad(ledger)
  const served = (home: string, sinceMs: number) =>
    load
      .of(home)
      .acknowledged()
      .filter(({ sentMs }) => sentMs > sinceMs).length
  const ordered = (home: string, sinceMs: number) =>
    orders.filter((one) => one.home === home && one.sentMs > sinceMs && one.job !== undefined).length
  const others = LEDGERS.filter((name) => name !== ledger)
  const startedMs = performance.now()
  for (const name of LEDGERS) {
    await until(() => served(name, startedMs), atLeast(CALLS))
    await until(() => ordered(name, startedMs), atLeast(5))
  }
  const killedMs = performance.now()
  // Its keeper starts it again at once, and nobody reaches it: the machine is away.
  servers.cut(ledger)
  process.kill(servers.pidOf(ledger), 'SIGKILL')
  let killed = ''
  if (withGateway) {
    const [first] = gateways.splice(0, 1)
    killed = first!.url // There are two.
    await first!.kill()
    await startGateway()
  }
  const awayMs = performance.now()
  const refused = () => load.of(ledger).told.filter(({ sentMs, status }) => sentMs > awayMs && status === 503)
  await until(() => refused().length, atLeast(CALLS))
  for (const name of others) {
    await until(() => served(name, awayMs), atLeast(CALLS))
    await until(() => ordered(name, awayMs), atLeast(5))
  }
  servers.heal(ledger)
  const healedMs = performance.now()
  await until(() => served(ledger, healedMs), atLeast(CALLS))
  const backMs = performance.now() - healedMs
  await load.stop()
  let busy = 0
  for (const name of LEDGERS) {
    const all = load.of(name).told
    say(`${name}: ${JSON.stringify(countBy(all))}`)
    for (const { url, sentMs, ms, status, text, kind, charge, retryAfterSeconds } of all) {
      const about = `${name}, ${kind}, sent ${Math.round(sentMs - killedMs)} ms after the kill: ${status} ${text}`
      if (url === killed && status === 0) continue
      const isWhole = status === 200 && (charge !== undefined || kind === 'leave')
      // On a busy machine a gateway may refuse any call, as it promises; but not because of a ledger that is away.
      const isBusy = status === 503 && retryAfterSeconds > 0 && !text.includes('ledger of this account')
      if (name !== ledger && isBusy) busy++
      else if (name !== ledger) assert.ok(isWhole, about)
      else if (status === 503) assert.ok(retryAfterSeconds > 0, about)
      else assert.ok(isWhole || ms >= PATIENCE_MS, about)
    }
  }
  const ordering = orders.filter(({ sentMs, url }) => sentMs > startedMs && url !== killed)
  for (const { home, status } of ordering) {
    assert.ok(status === 200 || status === 503, `${home}: ${status}`)
    if (home !== ledger && status === 503) busy++
  }
  const isOther = ({ home }: { readonly home: string }) => home !== ledger
  const all = others.reduce((sum, name) => sum + load.of(name).told.length, ordering.filter(isOther).length)
  assert.ok(busy * 10 <= all, `${busy} of ${all} calls of the other ledgers were refused`)
  say(`${busy} of ${all} calls of the other ledgers were refused because the machine is busy`)
  say(`${refused().length} refusals; served again ${Math.round(backMs)} ms after it was back`)
}

/** Everything has come to its end, and is right. */
async function nothingLost(say: (line: string) => void): Promise<void> {
  for (const name of LEDGERS) {
    await using database = servers.open(name)
    const mine = orders.flatMap(({ home, job }) => (home === name && job !== undefined ? [job] : []))
    const text = `select id from job where status not in ('COMPLETED', 'FAILED', 'CANCELLED')`
    await until(() => database.query({ text }), [])
    await until(() => database.query({ text: 'select * from hold' }), [])
    const waitedMs = await noHolds(database, 90_000)
    const jobs = await database.query<{ id: string; status: string; outcomes: string[] }>({
      text: 'select id, status, array(select outcome from usage u where u.id = job.hold_id) as outcomes from job',
    })
    for (const id of mine)
      assert.ok(
        jobs.some((job) => job.id === id),
        `${id} was acknowledged and is gone`,
      )
    for (const { id, status, outcomes } of jobs)
      assert.deepEqual(outcomes, [status === 'COMPLETED' ? 'settled' : 'released'], `${id} is ${status}`)
    const acknowledged = told.get(name)!.filter(({ charge }) => charge !== undefined) // It has been there from the start.
    const books = await checkBooks(database, acknowledged)
    say(`${name}: ${jobs.length} jobs, no hold after ${Math.round(waitedMs)} ms, ${JSON.stringify(books)}`)
  }
  for (const [job, times] of Object.entries(vendor.seen.submissions)) assert.equal(times, 1, `job ${job}`)
  await using control = servers.open('control')
  await checkBooks(control, [])
}

test('a ledger whose Postgres is killed under load is felt by its accounts only, and loses nothing', async (t) => {
  const say = (line: string) => t.diagnostic(line)
  await killUnderLoad('east', false, say)
  await nothingLost(say)
})

test('killed together with a gateway, too', async (t) => {
  const say = (line: string) => t.diagnostic(line)
  await killUnderLoad('north', true, say)
  await nothingLost(say)
})
