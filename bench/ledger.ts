// Paid calls through the ledger alone: hold, settlement and usage row, durable, from one process. Prints the curve.
import { mkdtemp, rm } from 'node:fs/promises'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { openDatabase } from '../src/database/database.ts'
import { migrate } from '../src/database/migrate.ts'
import { startEmbedded } from '../src/extensions/postgres/embedded.ts'
import { newId, realWorld as world } from '../src/kernel/world.ts'
import { createLedger } from '../src/ledger/ledger.ts'
import type { Resolution } from '../src/ledger/operation.ts'
import { maintainUsage } from '../src/ledger/retention.ts'

export interface LedgerPoint {
  readonly callers: number
  readonly accounts: number
  readonly callsPerSecond: number
  readonly cpuMicrosPerCall: number
  readonly batchMean: number
}

export async function measureLedger(options: {
  seconds: number
  callers: readonly number[]
  accounts: readonly number[]
}): Promise<LedgerPoint[]> {
  const directory = await mkdtemp(join(tmpdir(), 'tollgate-bench-'))
  const embedded = await startEmbedded({ dataDirectory: directory, log: () => undefined })
  const database = openDatabase({ connection: { ...embedded.connection } })
  await migrate(database)
  await maintainUsage(database, world, { usageMonths: 24, tries: 1 })
  let flushes = 0
  let operations = 0
  const ledger = createLedger({
    database,
    world,
    processId: 'bench',
    meters: {
      batch(size) {
        flushes += 1
        operations += size
      },
      moved: () => undefined,
    },
  })
  await ledger.sweep()
  const points: LedgerPoint[] = []
  try {
    for (const accounts of options.accounts) {
      const ids = Array.from({ length: accounts }, (_, i) => `acc_${accounts}_${i}`)
      await database.query({ text: 'insert into account (id, name) select x, x from unnest($1::text[]) x' }, [ids])
      for (const id of ids)
        await ledger.grant({ account: id, amount: 1_000_000_000_000n, note: 'bench', actor: 'bench' })
      for (const callers of options.callers) {
        const endMs = world.elapsedMs() + options.seconds * 1000
        let done = 0
        flushes = 0
        operations = 0
        const cpu = process.cpuUsage()
        const startedMs = world.elapsedMs()
        const caller = async (n: number) => {
          for (let i = n; world.elapsedMs() < endMs; i += callers) {
            await paidCall(ledger, ids[i % ids.length]!)
            done += 1
          }
        }
        await Promise.all(Array.from({ length: callers }, (_, n) => caller(n)))
        const seconds = (world.elapsedMs() - startedMs) / 1000
        const used = process.cpuUsage(cpu)
        points.push({
          callers,
          accounts,
          callsPerSecond: Math.round(done / seconds),
          cpuMicrosPerCall: Math.round((used.user + used.system) / done),
          batchMean: Math.round((operations / flushes) * 10) / 10,
        })
      }
    }
  } finally {
    await ledger.idle()
    await database.close()
    await embedded.stop()
    await rm(directory, { recursive: true, force: true })
  }
  return points
}

export async function paidCall(ledger: ReturnType<typeof createLedger>, account: string): Promise<void> {
  const id = newId(world)
  const reserved = await ledger.reserve({
    id,
    account,
    key: 'key_1',
    product: 'alpha-5.4',
    catalogVersion: 1,
    want: 5_000n,
    floor: 5_000n,
    tokens: 4_100,
  })
  if (reserved.outcome !== 'held') throw new Error(`The bench ran out of credits: ${reserved.outcome}`)
  await ledger.resolve({ ...SETTLEMENT, id, account })
}

const SETTLEMENT: Omit<Resolution, 'id' | 'account'> = {
  key: 'key_1',
  product: 'alpha-5.4',
  catalogVersion: 1,
  kind: 'settled',
  charge: 1_000n,
  lines: [
    ['input', 20, '250000000'],
    ['output', 100, '1500000000'],
  ],
  endpoint: 'chat',
  status: 200,
  estimated: false,
  stream: false,
  route: 1,
  durationMs: 100,
  firstByteMs: 50,
  inputTokens: 20,
  outputTokens: 100,
}

if (import.meta.main) {
  const [form, seconds = '3'] = process.argv.slice(2)
  const callers = [1, 8, 64, 256, 1000]
  const points = await measureLedger({ seconds: Number(seconds), callers, accounts: [1, 1000] })
  if (form === '--json') process.stdout.write(JSON.stringify(points))
  else console.table(points)
}
