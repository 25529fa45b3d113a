// One of several processes that call at once: started by the tests of the ledger. Told `go`, it makes its calls and
// says what became of them.
import { setTimeout as sleep } from 'node:timers/promises'
import { openDatabase } from '../src/database/database.ts'
import { Fault } from '../src/kernel/fault.ts'
import { newId, realWorld } from '../src/kernel/world.ts'
import { createLedger } from '../src/ledger/ledger.ts'
import type { Task } from './ledger-swarm.ts'
import { settlement } from './settlement.ts'

const CALLERS = 2
/** Of each caller, when it is enough. */
const MORE = 5
const TRIES_MAX = 100
const PAUSE_MS_MAX = 1_000
const TELL_EVERY_MS = 50
const [name = '', text = ''] = process.argv.slice(2)
const orders = JSON.parse(text) as Task
const triesMax = orders.calls ? TRIES_MAX : 1
const want = BigInt(orders.want)
const charge = BigInt(orders.charge ?? orders.want)
/** Calls with labels use some fewer tokens than the worst case. */
const labelled = orders.labels ? { labels: orders.labels, inputTokens: 3 } : {}
// The wait is the point here: nobody is refused for being slow.
const PATIENT = { reserveForMs: 300_000, reserveWaitMs: 300_000 }
// Where nobody dies, nobody is given up: a busy machine may keep a process from saying that it lives, and others would
// get what it holds.
const HEARD = orders.calls ? { graceMs: 600_000 } : {}

let isEnough = false

const swarms = await Promise.all(
  orders.of.map(async ({ url, account }, at) => {
    const database = openDatabase({ connection: { connectionString: url }, connectionsMax: 4 })
    const ledger = createLedger({ database, world: realWorld, processId: `${name}-${at}`, ...PATIENT, ...HEARD })
    await ledger.sweep()
    // What is held by whoever is not heard of is on its way back, and nobody is refused for it.
    const heard = setInterval(() => void ledger.sweep().catch(() => undefined), 2_500)
    const counts = { held: 0, refused: 0, failed: 0 }
    async function call(settles: boolean, tries = 1): Promise<boolean> {
      const id = newId(realWorld)
      const about = { id, account, key: 'k1', product: 'alpha-5.4', catalogVersion: 1 }
      try {
        const { outcome } = await ledger.reserve({ ...about, want, floor: want, tokens: 10, labels: orders.labels })
        counts[outcome === 'held' ? 'held' : 'refused'] += 1
        if (outcome === 'held' && settles) await ledger.resolve(settlement(account, id, charge, labelled))
        return outcome === 'held'
      } catch (error) {
        // Thousands at once may be too many: whoever is told so comes again.
        if (tries < triesMax && error instanceof Fault && error.status === 503) {
          await sleep(Math.min(100 * tries, PAUSE_MS_MAX))
          return call(settles, tries + 1)
        }
        counts.failed += 1
        return false
      }
    }
    return {
      counts,
      async run(): Promise<void> {
        const steadily = async () => {
          for (let more = 0; more < MORE; more += isEnough ? 1 : 0) if (!(await call(true))) await sleep(300)
        }
        const going: Array<Promise<unknown>> = orders.steadily ? Array.from({ length: CALLERS }, steadily) : []
        for (let wave = 0, waves = orders.waves ?? 1; wave < waves; wave++) {
          for (let i = wave; i < (orders.calls ?? 0); i += waves) going.push(call(false))
          await sleep(50)
        }
        await Promise.all(going)
      },
      async end() {
        clearInterval(heard)
        await ledger.idle()
        await database.close()
      },
    }
  }),
)

process.on('message', async (word) => {
  if (word === 'enough') {
    isEnough = true
    return
  }
  if (word === 'end') {
    for (const swarm of swarms) await swarm.end()
    process.send?.({ say: 'ended' })
    process.disconnect?.()
    return
  }
  const tell = (say: string) => process.send?.({ say, counts: swarms.map(({ counts }) => counts) })
  const telling = setInterval(() => tell('so far'), TELL_EVERY_MS)
  await Promise.all(swarms.map((swarm) => swarm.run()))
  clearInterval(telling)
  // It stays until all others are done: what a process holds that is not heard of is on its way back.
  tell('done')
})
process.send?.({ say: 'ready' })
