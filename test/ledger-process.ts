// One of several processes that reserve from the same account at once: started by ledger-model.test.ts.
import { openDatabase } from '../src/database/database.ts'
import { newId, realWorld } from '../src/kernel/world.ts'
import { createLedger } from '../src/ledger/ledger.ts'

const [url = '', account = '', name = '', calls = '0', want = '0'] = process.argv.slice(2)
const database = openDatabase({ connection: { connectionString: url }, connectionsMax: 4 })
// The wait is the point here: nobody is refused for being slow.
const PATIENT = { reserveForMs: 300_000, reserveWaitMs: 300_000 }
const ledger = createLedger({ database, world: realWorld, processId: `child-${name}`, ...PATIENT })
await ledger.sweep()

process.on('message', async () => {
  const counts = { held: 0, short: 0, failed: 0 }
  await Promise.all(
    Array.from({ length: Number(calls) }, async () => {
      const id = newId(realWorld)
      const amount = BigInt(want)
      try {
        const { outcome } = await ledger.reserve({
          id,
          account,
          key: 'k',
          product: 'p',
          catalogVersion: 1,
          want: amount,
          floor: amount,
          tokens: 1,
        })
        if (outcome === 'held' || outcome === 'short') counts[outcome] += 1
        else counts.failed += 1
      } catch {
        counts.failed += 1
      }
    }),
  )
  process.send?.({ say: 'done', ...counts })
  await ledger.idle()
  await database.close()
  process.disconnect?.()
})
process.send?.({ say: 'ready' })
