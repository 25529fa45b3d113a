import assert from 'node:assert/strict'
import { createHash } from 'node:crypto'
import { readFile } from 'node:fs/promises'
import { join } from 'node:path'
import { test } from 'node:test'
import { freshDatabase } from '../../test/database.ts'
import { openDatabase } from './database.ts'
import { listMigrations, migrate } from './migrate.ts'

/** What databases out there have run. A change to one of these would reach new databases only: write another migration. */
const RELEASED = [
  '1189ac32c25494c7',
  'b26edd8e2e27940b',
  'a088c3aaa227157e',
  '765124b0dcd05de1',
  '30f36ad99bb243f0',
  'e6d2ade34eed1a7a',
]

test('a migration that has been released is never changed', async () => {
  const names = (await listMigrations()).map(({ name }) => name)
  const digests = await Promise.all(
    names.slice(0, RELEASED.length).map(async (name) => {
      const text = await readFile(join(import.meta.dirname, 'migrations', name))
      return createHash('sha256').update(text).digest('hex').slice(0, 16)
    }),
  )
  assert.deepEqual(digests, RELEASED)
})

test('a database of migration 6 gets the flush of migration 7, whether it had it already or not', async (t) => {
  const fresh = await freshDatabase()
  const database = openDatabase({ connection: fresh.connection })
  t.after(async () => {
    await database.close()
    await fresh.drop()
  })
  const withGivenUp = async () => {
    const [row] = await database.query<{ signature: string | null }>({
      text: `select p.oid::regprocedure::text as signature from pg_proc p
        where p.proname = 'ledger_flush' and 's_given_up' = any(p.proargnames)`,
    })
    return row?.signature
  }
  const back = () => database.query({ text: 'delete from migration where number >= 7' })
  const signature = await withGivenUp()
  assert.ok(signature)
  await back()
  await migrate(database)
  assert.equal(await withGivenUp(), signature)
  await back()
  await database.query({ text: `drop function ${signature}` })
  await migrate(database)
  assert.equal(await withGivenUp(), signature)
})
