// One of several processes that record payments at once: started by the test of the numbers of invoices, and killed by
// it. It says of each payment when it is durable.
import { createAudit } from '../src/database/audit.ts'
import { openDatabase } from '../src/database/database.ts'
import { createInvoices } from '../src/extensions/sales/invoices/invoices.ts'
import { newId, realWorld as world } from '../src/kernel/world.ts'

const [url = '', account = '', atOnce = '', count = ''] = process.argv.slice(2)
const database = openDatabase({ connection: { connectionString: url }, connectionsMax: Number(atOnce) })
const invoices = createInvoices({ database, world, audit: createAudit({ database, world }) })

let begun = 0

async function pay(): Promise<void> {
  for (let at = begun++; at < Number(count); at = begun++) {
    const payment = `pay_${newId(world)}`
    // Each third is not recorded in the end: its transaction fails after the number was taken.
    const isRecorded = at % 3 !== 0
    await database
      .transaction(
        async (tx) => {
          const paid = { id: payment, currency: 'EUR', amountMinor: BigInt(100 + at), description: 'Credits' }
          await invoices.issue(tx, { account, payment: { ...paid, paidAt: new Date(world.nowMs()) } })
          if (!isRecorded) throw new Error('not recorded')
        },
        { locksMs: 60_000, idleMs: 60_000 },
      )
      .catch((error: Error) => {
        if (isRecorded) throw error
      })
    if (isRecorded) process.send?.(payment)
  }
}

await Promise.all(Array.from({ length: Number(atOnce) }, pay))
await database.close()
process.disconnect?.()
