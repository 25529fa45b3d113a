// What limits cost: paid calls a second through the ledger alone, without limits and with them, for one account and for
// many, from one process and from four. And what the one settlement of a lone caller costs beside a bare durable
// update, in time and in the database's CPU.
import { fork } from 'node:child_process'
import { mkdtemp, readFile, rm } from 'node:fs/promises'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { type Database, openDatabase } from '../src/database/database.ts'
import { migrate } from '../src/database/migrate.ts'
import { type EmbeddedConnection, startEmbedded } from '../src/extensions/postgres/embedded.ts'
import { realWorld as world } from '../src/kernel/world.ts'
import { createLedger } from '../src/ledger/ledger.ts'
import { storeLimits } from '../src/ledger/limits.ts'
import { maintainUsage } from '../src/ledger/retention.ts'
import { paidCall } from './ledger.ts'
import { median } from './measure.ts'

const CALLERS = 64
const MUCH = 1_000_000_000
const ROUNDS = 3
/** Until each process has met each of a thousand callers often enough to know them. */
const WARM_UP_MS = 12_000
const LIMITS = ['none', 'system spendPerDay', 'requestsPerMinute of each account'] as const
/** Each process goes through the accounts in an order of its own, as callers do who know nothing of each other. */
const STRIDES = [7, 11, 13, 17]
const idsOf = (accounts: number) => Array.from({ length: accounts }, (_, i) => `acc_${accounts}_${i}`)

interface Orders {
  readonly connection: EmbeddedConnection
  readonly place: number
  readonly accounts: number
  readonly seconds: number
}

/** One of the processes: says how many calls were paid. */
async function child({ connection, place, accounts, seconds }: Orders): Promise<void> {
  const database = openDatabase({ connection: { ...connection } })
  const ledger = createLedger({ database, world, processId: `bench-${process.pid}` })
  await ledger.sweep()
  const ids = idsOf(accounts)
  const stride = STRIDES[place] ?? 1
  // Whoever is left alone has nobody to tell.
  process.on('disconnect', () => process.exit())
  process.send?.('ready')
  await new Promise((resolve) => process.once('message', resolve))
  const beginMs = world.elapsedMs() + WARM_UP_MS
  const endMs = beginMs + seconds * 1000
  let done = 0
  const caller = async (n: number) => {
    for (let i = n; world.elapsedMs() < endMs; i += CALLERS) {
      await paidCall(ledger, ids[(i * stride) % ids.length] ?? '')
      if (world.elapsedMs() >= beginMs) done += 1
    }
  }
  await Promise.all(Array.from({ length: CALLERS }, (_, n) => caller(n)))
  process.send?.(done)
  await ledger.idle()
  await database.close()
  process.disconnect?.()
}

async function callsPerSecond(processes: number, orders: Omit<Orders, 'place'>): Promise<number> {
  const children = Array.from({ length: processes }, (_, i) =>
    fork(import.meta.filename, ['child', JSON.stringify({ ...orders, place: i })]),
  )
  const heard = () =>
    Promise.all(
      children.map(
        (one) =>
          new Promise<unknown>((resolve, reject) => {
            one.once('message', resolve)
            one.once('exit', () => reject(new Error('One of the processes has ended before its time.')))
          }),
      ),
    )
  const ended = Promise.all(children.map((one) => new Promise((resolve) => one.once('exit', resolve))))
  await heard()
  const answers = heard()
  for (const one of children) one.send('go')
  const sum = (await answers).reduce<number>((total, done) => total + Number(done), 0)
  await ended
  return Math.round(sum / orders.seconds)
}

async function setLimits(database: Database, limits: (typeof LIMITS)[number], ids: readonly string[]): Promise<void> {
  await database.transaction((tx) => storeLimits(tx, { kind: 'system' }, {}))
  await database.query({ text: 'delete from counter' })
  if (limits === 'system spendPerDay')
    await database.transaction((tx) => storeLimits(tx, { kind: 'system' }, { spendPerDay: `${MUCH}000000` }))
  if (limits === 'requestsPerMinute of each account')
    for (const account of ids)
      await database.transaction((tx) => storeLimits(tx, { kind: 'account', account }, { requestsPerMinute: MUCH }))
}

/** Microseconds of wall time and of the backend's CPU for one of these. */
async function costOf(database: Database, seconds: number, one: () => Promise<unknown>) {
  const [row] = await database.query<{ pid: number }>({ text: 'select pg_backend_pid() as pid' })
  const cpu = async () => Number((await readFile(`/proc/${row?.pid}/schedstat`, 'utf8')).split(' ')[0]) / 1000
  for (let i = 0; i < 200; i++) await one()
  const [startedMs, cpuBefore] = [world.elapsedMs(), await cpu()]
  let done = 0
  for (; world.elapsedMs() < startedMs + seconds * 1000; done++) await one()
  return { wall: ((world.elapsedMs() - startedMs) * 1000) / done, cpu: ((await cpu()) - cpuBefore) / done }
}

async function lone(connection: EmbeddedConnection, seconds: number): Promise<void> {
  const database = openDatabase({ connection: { ...connection }, connectionsMax: 1 })
  const ledger = createLedger({ database, world, processId: 'lone' })
  await setLimits(database, 'none', [])
  const bare = { name: 'bare', text: `update account set name = name where id = 'acc_1_0'` }
  // In turns, so that the machine is the same for both.
  for (let turn = 0; turn < 3; turn++) {
    // As a process does all the time: one that is not heard from holds nothing in advance.
    await ledger.sweep()
    const update = await costOf(database, seconds, () => database.query(bare))
    const call = await costOf(database, seconds, () => paidCall(ledger, 'acc_1_0'))
    const ratio = (name: 'wall' | 'cpu') =>
      `${call[name].toFixed(0)} µs beside ${update[name].toFixed(0)} (${(call[name] / update[name]).toFixed(2)})`
    console.log(`a lone call beside a bare durable update: ${ratio('wall')}; of the database's CPU ${ratio('cpu')}`)
  }
  await ledger.idle()
  await database.close()
}

async function main(seconds: number): Promise<void> {
  const directory = await mkdtemp(join(tmpdir(), 'tollgate-bench-'))
  const { connection, stop } = await startEmbedded({ dataDirectory: directory, log: () => undefined })
  const database = openDatabase({ connection: { ...connection }, connectionsMax: 2 })
  try {
    await migrate(database)
    await maintainUsage(database, world, { usageMonths: 24, tries: 1 })
    for (const accounts of [1, 1000]) {
      const ids = idsOf(accounts)
      await database.query(
        { text: 'insert into account (id, name, posted) select x, x, $2 from unnest($1::text[]) x' },
        [ids, 1_000_000_000_000n],
      )
      for (const processes of [1, 4]) {
        const found = LIMITS.map(() => [] as number[])
        // In turns, so that the machine and its disk are the same for all.
        for (let round = 0; round < ROUNDS; round++)
          for (const [i, limits] of LIMITS.entries()) {
            await setLimits(database, limits, ids)
            found[i]?.push(await callsPerSecond(processes, { connection, accounts, seconds }))
          }
        for (const [i, limits] of LIMITS.entries()) {
          const shares = found[i]?.map((calls, round) => calls / (found[0]?.[round] ?? 1)) ?? []
          const range = shares.map((share) => `${(100 * share).toFixed(0)} %`).join(', ')
          console.log(
            `accounts ${accounts}, processes ${processes}, limits ${limits}: ${median(found[i] ?? [])} calls/s (${(100 * median(shares)).toFixed(0)} %: ${range})`,
          )
        }
      }
    }
    await lone(connection, seconds)
  } finally {
    await database.close()
    await stop()
    await rm(directory, { recursive: true, force: true })
  }
}

const [first = '3', orders = ''] = process.argv.slice(2)
if (first === 'child') await child(JSON.parse(orders) as Orders)
else await main(Number(first))
