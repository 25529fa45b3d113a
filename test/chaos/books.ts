// What must be true of the store after every fault: everything that was acknowledged is there, and the ledger adds up.
import { storedCatalogs } from '../../src/catalog/store.ts'
import type { Database } from '../../src/database/database.ts'
import { verifyLedger } from '../../src/extensions/verify/verify.ts'
import { assert, runs, until } from '../kit.ts'
import type { Told } from './traffic.ts'

/** A sweep, and another, on a machine of its own. */
const BOOKED_MS_MAX = runs(90_000, 15_000)

export interface Books {
  readonly acknowledged: number
  readonly settled: number
  readonly released: number
  readonly expired: number
  readonly holds: number
}

/** What was acknowledged is durable at once, and posted by whoever lives. */
const allBooked = (database: Database) =>
  until(() => database.query({ text: 'select id from journal limit 1' }), [], BOOKED_MS_MAX)

export async function checkBooks(database: Database, acknowledged: readonly Told[]): Promise<Books> {
  await allBooked(database)
  const rows = await database.query<{ id: string; outcome: string; charged: bigint }>({
    text: 'select id, outcome, charged from usage',
  })
  const byId = new Map(rows.map((row) => [row.id, row]))
  for (const { requestId, charge, kind } of acknowledged) {
    const id = requestId!.slice('req_'.length)
    const row = byId.get(id)
    assert.ok(row, `an acknowledged ${kind} call (${requestId}) is not in the store`)
    const charged = row.charged + (byId.get(`${id}+late`)?.charged ?? 0n)
    assert.equal(charged, charge, `${requestId} was told ${charge} and charged ${charged}`)
  }
  const { ok, problems } = await verifyLedger(database, storedCatalogs(database))
  assert.ok(ok, problems.join('\n'))
  const { holds } = await openOf(database)
  const count = (outcome: string) => rows.filter((row) => row.outcome === outcome).length
  return {
    acknowledged: acknowledged.length,
    settled: count('settled'),
    released: count('released'),
    expired: count('expired'),
    holds,
  }
}

/** What is held now, by calls and by processes for calls to come. */
async function openOf(database: Database): Promise<{ holds: number; leases: number }> {
  const [row] = await database.query<{ holds: number; leases: number }>({
    text: 'select (select count(*)::int from hold where not job) as holds, (select count(*)::int from lease) as leases',
  })
  return row!
}

/** Waits until no hold is open and no credits are leased; answers after how long. */
export async function noHolds(database: Database, withinMs: number): Promise<number> {
  const startedMs = performance.now()
  await until(() => openOf(database), { holds: 0, leases: 0 }, withinMs)
  return performance.now() - startedMs
}
