// `npm run bench -- capacity [--rounds 5] [--seconds 10]`: what a call costs the database (processor time, write-ahead
// log, transactions, storage), for one account, for 1,000 and for many that call rarely, from one gateway process and
// from four; and what follows from that: the rate of calls at which each step of growing pays. With `--ledgers 2` only
// this: the cost with 1,000 accounts in two ledgers and in one, each on a Postgres of its own and with 64 callers for
// each database.
import { freemem } from 'node:os'
import { join } from 'node:path'
import { parseArgs } from 'node:util'
import { type Embedded, startEmbedded } from '../src/extensions/postgres/embedded.ts'
import { realWorld as world } from '../src/kernel/world.ts'
import { readSums } from '../src/reports/sums.ts'
import { openBed } from './bed.ts'
import { listCases } from './cases.ts'
import { loadAverage, machine, watchStolen } from './cores.ts'
import { type Measured, measure, median } from './measure.ts'
import { cpuMicros, family } from './process.ts'
import { table } from './report.ts'
import { aimAt } from './target.ts'
import { startTollgate, type Tollgate } from './tollgate.ts'

const { values: args } = parseArgs({
  args: process.argv.slice(3),
  options: {
    rounds: { type: 'string', default: '5' },
    seconds: { type: 'string', default: '10' },
    ledgers: { type: 'string', default: '1' },
  },
})
const ROUNDS = Number(args.rounds)
const SECONDS = Number(args.seconds)
const LEDGERS = Number(args.ledgers)
const WARM_UP_SECONDS = 5
const WARM_UPS_MAX = 8
/** None calls twice within a round, so that no process has a lease for it: each call has a hold of its own. */
const RARE_ACCOUNTS = 20_000
const LOADS = [
  { what: 'one account', accounts: 1, processes: 1 },
  { what: '1,000 accounts', accounts: 1_000, processes: 1 },
  { what: '20,000 accounts that call rarely', accounts: RARE_ACCOUNTS, processes: 1 },
  { what: 'one account, 4 processes', accounts: 1, processes: 4 },
  { what: '1,000 accounts, 4 processes', accounts: 1_000, processes: 4 },
]
const MANY = 1_000
const PROCESS_BYTES = 400e6
const DAY_SECONDS = 86_400
/** A longer restore is an outage that standbys are cheaper than. */
const HA_SECONDS = 3_600
/** A longer copy leaves a ledger that has lost a server without a second one for more than a working day. */
const REBUILD_SECONDS = 8 * 3_600

/** What the steps are worked out with. The page that shows them says so. */
const ASSUMED = {
  /** Of a processor's time; the rest is for peaks and for a machine that is lost. */
  utilization: 0.6,
  machineCores: 8,
  serverCores: 32,
  walBytesPerSecond: 200e6,
  copyBytesPerSecond: 200e6,
  /** 24 months, and what is left of usage with analytics: 35 days, and the rest of the oldest one's month. */
  retentionDays: 730,
  callDays: 66,
  reportSeconds: 3,
  reportDays: 31,
} as const

/** What the store has used so far. */
interface Spent {
  readonly cpu: number
  readonly wal: number
  readonly commits: number
  /** At this moment. */
  readonly leases: number
  readonly bytes: ReadonlyMap<string, number>
}

type Started = Partial<Parameters<typeof startTollgate>[0]> & { readonly store: Embedded }

interface Round {
  readonly measured: Measured
  readonly before: Spent
  readonly after: Spent
}

type Load = (typeof LOADS)[number] & {
  readonly tollgate: Tollgate
  readonly store: Embedded
  readonly keys: readonly string[]
  readonly rounds: Round[]
}

const SPENT = {
  text: `select (pg_current_wal_insert_lsn() - '0/0')::bigint as wal,
    (select sum(xact_commit)::bigint from pg_stat_database) as commits`,
}
/** With indexes; partitions as the table that they are parts of. */
const BYTES = {
  text: `select coalesce(p.relname, c.relname) as name, sum(pg_total_relation_size(c.oid))::bigint as bytes from pg_class c
    left join pg_inherits i on i.inhrelid = c.oid left join pg_class p on p.oid = i.inhparent
    where c.relkind = 'r' and c.relnamespace = 'public'::regnamespace group by 1`,
}

async function spent({ tollgate, store }: Load): Promise<Spent> {
  const [row] = await tollgate.database.query<{ wal: bigint; commits: bigint }>(SPENT)
  const tables = await Promise.all(tollgate.ledgers.map((one) => one.query<{ name: string; bytes: bigint }>(BYTES)))
  const bytes = new Map<string, number>()
  for (const table of tables.flat()) bytes.set(table.name, (bytes.get(table.name) ?? 0) + Number(table.bytes))
  return {
    cpu: cpuMicros(family(store.pid)),
    wal: Number(row?.wal),
    commits: Number(row?.commits),
    leases: await leasesOf(tollgate),
    bytes,
  }
}

async function leasesOf({ ledgers }: Tollgate): Promise<number> {
  const text = 'select count(*)::int as leases from lease'
  const counts = await Promise.all(ledgers.map((one) => one.query<{ leases: number }>({ text })))
  return counts.flat().reduce((all, { leases }) => all + leases, 0)
}

/** Settlements that are durable are posted a moment later, which belongs to the price of their calls. */
async function untilPosted({ ledgers }: Tollgate): Promise<void> {
  const text = 'select 1 from journal limit 1'
  for (;;) {
    const rows = await Promise.all(ledgers.map((one) => one.query({ text })))
    if (rows.flat().length === 0) return
    await new Promise((resolve) => setTimeout(resolve, 50))
  }
}

/** New connections have no plans yet, and calls cost several times as much until each process has leases for all. */
async function warmUp({ tollgate, accounts, processes }: Load, run: () => Promise<unknown>): Promise<void> {
  for (let times = 1; accounts < RARE_ACCOUNTS && times <= WARM_UPS_MAX; times++) {
    await run()
    if ((await leasesOf(tollgate)) >= accounts * processes) return
  }
}

const sum = (load: Load, read: (round: Round) => number) => load.rounds.reduce((total, round) => total + read(round), 0)
const callsOf = (load: Load) => sum(load, ({ measured }) => measured.started)
const perCall = (load: Load, name: 'cpu' | 'wal' | 'commits') =>
  sum(load, ({ before, after }) => after[name] - before[name]) / callsOf(load)
const gatewayMicros = (load: Load) => median(load.rounds.map(({ measured }) => measured.cpu))
const bytesPerCall = (load: Load, name: string) =>
  sum(load, ({ before, after }) => (after.bytes.get(name) ?? 0) - (before.bytes.get(name) ?? 0)) / callsOf(load)

const microsOf = ({ rounds }: Load) =>
  rounds.map(({ measured, before, after }) => (after.cpu - before.cpu) / measured.started)

/** Postgres' time for a call, round by round. */
function ratioOf([one, several]: readonly Load[]): string {
  if (!one || !several) throw new Error('There is nothing to compare with.')
  const before = microsOf(one)
  const ratios = microsOf(several).map((micros, round) => micros / before[round]!) // As many rounds.
  const each = ratios.map((ratio) => ratio.toFixed(3)).join(', ')
  return `Postgres time of a call in ${LEDGERS} ledgers ÷ in one: ${median(ratios).toFixed(3)} (${each})`
}

function costTable(loads: readonly Load[]): string {
  const rows = loads.map((load) => {
    const each = microsOf(load)
    return [
      load.what,
      `${perCall(load, 'cpu').toFixed(0)} (${Math.min(...each).toFixed(0)} to ${Math.max(...each).toFixed(0)})`,
      gatewayMicros(load).toFixed(0),
      perCall(load, 'wal').toFixed(0),
      perCall(load, 'commits').toFixed(3),
      `${((100 * median(load.rounds.map(({ after }) => after.leases))) / (load.accounts * load.processes)).toFixed(0)} %`,
      median(load.rounds.map(({ measured }) => measured.rps)).toFixed(0),
    ]
  })
  const head = ['load', 'Postgres µs (rounds)', 'gateway µs', 'WAL bytes', 'transactions', 'leased', 'calls/s']
  return table(head, rows)
}

function storageTable(loads: readonly Load[]): string {
  const names = [...(loads[0]?.rounds[0]?.after.bytes.keys() ?? [])]
  const rows = names
    .map((name) => [name, ...loads.map((load) => bytesPerCall(load, name).toFixed(0))])
    .filter(([, ...bytes]) => bytes.some((value) => Number(value) > 0))
  return table(['bytes a call, with indexes', ...loads.map(({ what }) => what)], rows)
}

/** The rates at which each step pays, for 1,000 accounts and one process; for rare callers where that is much less. */
function stepsTable([, many, rare]: readonly Load[], reportMicros: number): string {
  if (!many || !rare) throw new Error('The loads of one process are missing.')
  const gateway = gatewayMicros(many)
  const postgres = perCall(many, 'cpu')
  const wal = perCall(many, 'wal')
  const [usage, transfer] = [bytesPerCall(many, 'usage'), bytesPerCall(many, 'transfer')]
  const { retentionDays, callDays, reportDays, reportSeconds } = ASSUMED
  const core = ASSUMED.utilization * 1e6
  const stored = (usage + transfer) * retentionDays * DAY_SECONDS
  const storedBesideAnalytics = (usage * callDays + transfer * retentionDays) * DAY_SECONDS
  const restored = HA_SECONDS * ASSUMED.copyBytesPerSecond
  const rebuilt = REBUILD_SECONDS * ASSUMED.copyBytesPerSecond
  const read = (reportSeconds * 1e6) / (reportMicros * reportDays * DAY_SECONDS)
  const rate = (value: number) => (value < 10 ? value.toFixed(1) : value.toFixed(0))
  const [peak, average] = ['calls/s at the peak', 'calls/s on average']
  const rows = [
    ['several processes', 'a core, for a process', rate(core / gateway), peak],
    ['several machines', '8 cores, for all', rate((core * ASSUMED.machineCores) / (gateway + postgres)), peak],
    ['HA', `restoring ${retentionDays} days in an hour`, rate(restored / stored), average],
    ['analytics', `a report on the calls of ${reportDays} days in ${reportSeconds} s`, rate(read), average],
    ['ledgers', `copying ${retentionDays} days to a standby in 8 hours`, rate(rebuilt / stored), average],
    ['… with analytics', `the same, usage of ${callDays} days`, rate(rebuilt / storedBesideAnalytics), average],
    ['ledgers', '32 cores, for Postgres', rate((core * ASSUMED.serverCores) / postgres), peak],
    ['… rare callers', 'the same', rate((core * ASSUMED.serverCores) / perCall(rare, 'cpu')), peak],
    ['ledgers', 'a log device of 200 MB/s', rate(ASSUMED.walBytesPerSecond / wal), peak],
  ]
  return table(['step', 'what ends before it', 'pays from', ''], rows)
}

/** What a report on single calls takes for each call that it reads, in microseconds. */
async function reportMicros({ database }: Tollgate): Promise<number> {
  const toMs = world.nowMs()
  const filter = { fromMs: toMs - DAY_SECONDS * 1000, toMs }
  const found: number[] = []
  for (let round = 0; round < ROUNDS; round++) {
    const beganMs = world.elapsedMs()
    const { totals } = await readSums({ database }, filter, { by: 'vendor', per: 'hour', zone: 'UTC' })
    found.push(((world.elapsedMs() - beganMs) * 1000) / totals.requests)
  }
  return median(found)
}

async function main(): Promise<void> {
  const loadBefore = loadAverage()
  const stolen = watchStolen()
  const { tools, cores, store, options, close } = await openBed('capacity')
  const { body } = listCases(true).find(({ id }) => id === 'chat-64')!
  const loads: Load[] = []
  const gateways: Tollgate[] = []
  const run = ({ tollgate, store, keys, processes }: Load, seconds: number) => {
    const aim = { ...aimAt(tollgate, body), headers: {}, keys }
    // Each database has as many callers.
    const shape = { connections: 64 * processes * tollgate.ledgers.length, seconds, warmSeconds: 0 }
    return measure(tools, { gateway: tollgate.pid, store: store.pid }, aim, shape)
  }
  const own: Embedded[] = []
  const start = async (one: Started, most: number) => {
    const tollgate = await startTollgate({ ...options, cores: cores.all, ...one })
    gateways.push(tollgate)
    const keys = (await tollgate.accounts(most)).map(({ key }) => key)
    for (const ledger of tollgate.ledgers) await ledger.query({ text: 'vacuum analyze' })
    return { tollgate, keys, store: one.store }
  }
  try {
    for (const ledgers of LEDGERS > 1 ? [0, LEDGERS] : []) {
      const dataDirectory = join(options.directory, `of-${ledgers}`)
      const store = await startEmbedded({ dataDirectory, log: () => undefined, loopback: true })
      own.push(store)
      const started = await start({ store, name: `ledgers-${ledgers}`, ledgers }, MANY)
      const what = `1,000 accounts, ${ledgers || 'one'} ledger${ledgers ? 's' : ''}`
      loads.push({ what, accounts: MANY, processes: 1, ...started, rounds: [] })
    }
    for (const processes of LEDGERS > 1 ? [] : [1, 4]) {
      if (freemem() < processes * PROCESS_BYTES) continue
      const started = await start({ store, workers: processes, name: `${processes}` }, RARE_ACCOUNTS)
      for (const load of LOADS.filter((one) => one.processes === processes))
        loads.push({ ...load, ...started, keys: started.keys.slice(0, load.accounts), rounds: [] })
    }
    for (let round = 0; round < ROUNDS; round++)
      for (const load of loads) {
        await warmUp(load, () => run(load, WARM_UP_SECONDS))
        await untilPosted(load.tollgate)
        const before = await spent(load)
        const measured = await run(load, SECONDS)
        await untilPosted(load.tollgate)
        load.rounds.push({ measured, before, after: await spent(load) })
        console.error(`  ${round + 1}: ${load.what}`)
      }
    const micros = await reportMicros(gateways[0]!)
    const failed = loads.reduce((all, load) => all + sum(load, ({ measured }) => measured.non200 + measured.err), 0)
    if (LEDGERS > 1 && failed > 0) throw new Error(`${failed} calls failed: nothing can be compared.`)
    const last = LEDGERS > 1 ? ratioOf(loads) : stepsTable(loads, micros)
    const calls = loads.reduce((all, load) => all + callsOf(load), 0)
    console.log([costTable(loads), storageTable(loads), last].join('\n\n'))
    console.log(
      `\n${calls} calls, ${failed} of them failed; ${ROUNDS} rounds of ${SECONDS} s, in turns. A report on single calls takes ${micros.toFixed(1)} µs for each. ${machine()}, Postgres ${store.version}; load average ${loadBefore.toFixed(1)} before the run, ${((stolen() ?? 0) * 100).toFixed(1)} % of the processors' time given to other machines.`,
    )
  } finally {
    for (const gateway of gateways) await gateway.stop()
    for (const store of own) await store.stop()
    await close()
  }
}

await main()
