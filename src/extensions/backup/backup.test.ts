import { cp, mkdtemp, rm, writeFile } from 'node:fs/promises'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { PassThrough, Readable } from 'node:stream'
import { emptyDatabase, freshDatabase } from '../../../test/database.ts'
import { assert, test } from '../../../test/kit.ts'
import type { Database } from '../../database/database.ts'
import { newId, realWorld } from '../../kernel/world.ts'
import { createLedger } from '../../ledger/ledger.ts'
import { maintainUsage } from '../../ledger/retention.ts'
import { readBackup, writeBackup } from './backup.ts'

const control = (database: Database) => ({ name: 'control', database })

async function collect(run: (out: PassThrough) => Promise<unknown>): Promise<Buffer> {
  const out = new PassThrough()
  const pieces: Buffer[] = []
  out.on('data', (piece: Buffer) => pieces.push(piece))
  await run(out)
  return Buffer.concat(pieces)
}

test('a backup restores every row, and refuses what is damaged, incomplete or in the way', async () => {
  await using from = await freshDatabase()
  await using to = await emptyDatabase()
  await using source = from.open()
  await using target = to.open()
  await source.query({
    text: `insert into account (id, name) select 'acc_' || n, 'Größe "' || n || E'\\n' from generate_series(1, 1200) n`,
  })
  const ledger = createLedger({ database: source, world: realWorld, processId: 'p' })
  for (const n of [1, 2, 3])
    await ledger.grant({ account: `acc_${n}`, amount: 9_007_199_254_740_993n, note: 'big', actor: 'test' })
  await source.query({
    text: `insert into api_key (id, account_id, name, digest, prefix, last4, models) values ('k', 'acc_1', 'k', '\\x00ff10', 'p', 'l', '{a,b}')`,
  })
  const file = await collect((out) => writeBackup([control(source)], out))

  await assert.rejects(readBackup([control(target)], Readable.from([file.subarray(0, file.length - 40)])))
  assert.equal((await readBackup([control(target)], Readable.from([file]))).rows.account, 1200)
  for (const table of ['account', 'transfer', 'api_key']) {
    const text = `select to_jsonb(t)::text as row from ${table} t order by 1`
    assert.deepEqual(await target.query({ text }), await source.query({ text }), table)
  }
  const [row] = await target.query<{ posted: bigint }>({ text: `select posted from account where id = 'acc_1'` })
  assert.equal(row?.posted, 9_007_199_254_740_993n)
  await assert.rejects(readBackup([control(target)], Readable.from([file])), /is in use/)
})

test('a restore keeps partitions and references, and brings an older backup to this version', async (t) => {
  const from = await freshDatabase()
  const to = await emptyDatabase()
  const source = from.open()
  const target = to.open()
  const folder = await mkdtemp(join(tmpdir(), 'tollgate-migrations-'))
  t.after(async () => {
    await source.close()
    await target.close()
    await from.drop()
    await to.drop()
    await rm(folder, { recursive: true })
  })
  const run = (on: typeof source, text: string) => on.query<Record<string, unknown>>({ text })
  await maintainUsage(source, realWorld, { usageMonths: 24, tries: 5 })
  await run(source, `insert into account (id, name) values ('acc', 'acc')`)
  await run(source, `insert into person (id, email) values ('usr', 'a@example.com')`)
  await run(source, `insert into membership (account_id, person_id, role) values ('acc', 'usr', 'owner')`)
  await run(
    source,
    `insert into access_token (id, digest, account_id, name, last4, scopes, made_by) values ('t', '\\x00', 'acc', 't', 'last', '{*}', 'usr')`,
  )
  await run(
    source,
    `insert into usage (account_id, id, key_id, product, endpoint, outcome, status, charged, held, catalog_version, lines)
     values ('acc', '${newId(realWorld)}', 'k', 'm', 'chat', 'settled', 200, 0, 0, 1, '[]')`,
  )
  const file = await collect((out) => writeBackup([control(source)], out))
  await cp(join(import.meta.dirname, '../../database/migrations'), folder, { recursive: true })
  await writeFile(join(folder, '0002_zone.sql'), `alter table usage add column zone text not null default 'here';`)
  await readBackup([control(target)], Readable.from([file]), folder)
  const places = 'select tableoid::regclass::text as place, count(*)::int as rows from usage group by 1'
  assert.deepEqual(await run(target, places), await run(source, places))
  assert.notEqual((await run(target, places))[0]?.place, 'usage_rest')
  assert.deepEqual(await run(target, 'select zone from usage'), [{ zone: 'here' }])
  const references = `select count(*)::int as some from pg_constraint where contype = 'f'`
  assert.deepEqual(await run(target, references), await run(source, references))
  await assert.rejects(run(target, `delete from account where id = 'acc'`), /foreign key/)
  // Of a version that this one does not know.
  const newer = await collect((out) => writeBackup([control(target)], out))
  await using other = await emptyDatabase()
  await using third = other.open()
  await assert.rejects(
    readBackup([control(third)], Readable.from([newer])),
    /of migration 2, and this version knows only 1/,
  )
})
