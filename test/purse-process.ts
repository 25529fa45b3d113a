// One of several processes that call for many purses of one account until it is killed or told to stop: started by the
// tests of purses.
import { setTimeout as sleep } from 'node:timers/promises'
import { openDatabase } from '../src/database/database.ts'
import { newId, realWorld } from '../src/kernel/world.ts'
import { createLedger } from '../src/ledger/ledger.ts'
import { settlement } from './settlement.ts'

const CALLERS = 8
const WANT = 1_000n
/** pace: calls a second; without it as many as there can be. */
const [url = '', account = '', purses = '1', name = '', pace] = process.argv.slice(2)
const database = openDatabase({ connection: { connectionString: url }, connectionsMax: 4 })
const patient = { reserveForMs: 300_000, reserveWaitMs: 300_000, graceMs: 600_000 }
const ledger = createLedger({ database, world: realWorld, processId: name, ...patient })
await ledger.sweep()
const heard = setInterval(() => void ledger.sweep().catch(() => undefined), 2_500)
let stops = false
let settled = 0

async function call(): Promise<void> {
  const id = newId(realWorld)
  const purse = { id: `p${Math.floor(Math.random() * Number(purses))}`, list: 1, factor: '1500000', least: '0' }
  const about = { id, account, key: 'k1', product: 'alpha-5.4', catalogVersion: 1, tokens: 10, isApart: true, purse }
  const { outcome } = await ledger.reserve({ ...about, want: WANT, floor: WANT })
  // A purse that has too little says so as a limit does.
  if (outcome !== 'held') return sleep(5)
  await sleep(Math.random() * 20)
  const charge = BigInt(Math.floor(Math.random() * Number(WANT + 1n)))
  await ledger.resolve(settlement(account, id, charge, { labels: { ':purse': purse.id } }))
  settled += 1
  if (settled % 10 === 0) process.send?.({ settled })
  return undefined
}

async function caller(): Promise<void> {
  while (!stops) {
    const began = performance.now()
    await call()
    if (pace !== undefined) await sleep(Math.max(0, (1_000 * CALLERS) / Number(pace) - (performance.now() - began)))
  }
}

process.once('message', async () => {
  stops = true
  await Promise.all(callers)
  clearInterval(heard)
  await ledger.idle()
  await database.close()
  process.exit(0)
})
const callers = Array.from({ length: CALLERS }, caller)
