// Ledgers on a real Postgres, and what the tests of the ledger ask of them.
import type { Database, Queryable } from '../src/database/database.ts'
import { newId, realWorld } from '../src/kernel/world.ts'
import { createLedger, type Ledger } from '../src/ledger/ledger.ts'
import type { Reservation, Reserved, Resolution, Resolved } from '../src/ledger/operation.ts'
import { type FreshDatabase, freshDatabase, WAIT_FACTOR } from './database.ts'
import { after, assert, before, until } from './kit.ts'
import { settlement } from './settlement.ts'

export let fresh: FreshDatabase
export let database: Database
const ledgers: Ledger[] = []
before(async () => {
  fresh = await freshDatabase()
  database = fresh.open()
})
after(async () => {
  for (const ledger of ledgers) await ledger.idle(2_000)
  await database.close()
  await fresh.drop()
})

export async function processOf(
  more: Partial<Parameters<typeof createLedger>[0]> = {},
): Promise<Ledger & { id: string }> {
  const processId = `p_${newId(realWorld)}`
  const ledger = createLedger({ database, world: realWorld, processId, graceMs: 0, waitFactor: WAIT_FACTOR, ...more })
  ledgers.push(ledger)
  await ledger.sweep()
  return Object.assign(ledger, { id: processId })
}

export async function account(credits: bigint): Promise<string> {
  const id = `acc_${newId(realWorld)}`
  await database.query({ text: 'insert into account (id, name) values ($1, $1)' }, [id])
  await database.query({ text: `select ledger_grant($1, $2, $3, 'test', 'test')` }, [newId(realWorld), id, credits])
  return id
}

const of = (acc: string, id: string) => ({ id, account: acc, key: 'k1', product: 'alpha-5.4', catalogVersion: 1 })

export function reserve(
  ledger: Ledger,
  acc: string,
  want: bigint,
  more: Partial<Reservation> = {},
  signal?: AbortSignal,
): Promise<Reserved & { id: string }> {
  const id = newId(realWorld)
  return ledger
    .reserve({ ...of(acc, id), want, floor: want, tokens: 10, ...more }, signal)
    .then((reserved) => ({ ...reserved, id: more.id ?? id }))
}

export function settle(
  ledger: Ledger,
  acc: string,
  id: string,
  charge: bigint,
  more: Partial<Resolution> = {},
): Promise<Resolved> {
  return ledger.resolve(settlement(acc, id, charge, more))
}

export async function call(ledger: Ledger, acc: string, want: bigint): Promise<Reserved> {
  const reserved = await reserve(ledger, acc, want)
  if (reserved.outcome === 'held') await settle(ledger, acc, reserved.id, want)
  return reserved
}

/** Enough calls for a lease. */
export async function lease(ledger: Ledger & { id: string }, acc: string, want = 10n): Promise<bigint> {
  for (let i = 0; i < 100; i++) {
    await call(ledger, acc, want)
    await ledger.posted()
    const [row] = await rows<{ amount: bigint }>('select amount from lease where account_id = $1 and process_id = $2', [
      acc,
      ledger.id,
    ])
    if (row && row.amount >= want * 2n) return row.amount
  }
  throw new Error('there is no lease')
}

export const rows = <R>(text: string, values: readonly string[] = []) => database.query<R>({ text }, values)
export async function count(text: string, ...values: string[]): Promise<number> {
  const [row] = await rows<{ n: bigint }>(`select count(*) as n from ${text}`, values)
  return Number(row!.n)
}
export const hasHold = async (id: string) => (await count('hold where id = $1', id)) === 1

export function eventually(what: string, is: () => Promise<boolean>): Promise<true> {
  return until(is).catch((error: unknown) => assert.fail(`${what}: ${String(error)}`))
}

/** A database that a test can put between a ledger and the real one. */
export function behind(around: (run: () => Promise<never[]>, name: string) => Promise<never[]>): Database {
  return {
    ...database,
    query: ((statement, values) =>
      around(() => database.query(statement, values) as Promise<never[]>, statement.name ?? '')) as Queryable['query'],
  }
}
