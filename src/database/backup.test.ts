import assert from 'node:assert/strict'
import { PassThrough, Readable } from 'node:stream'
import { test } from 'node:test'
import { emptyDatabase, freshDatabase } from '../../test/database.ts'
import { realWorld } from '../kernel/world.ts'
import { createLedger } from '../ledger/ledger.ts'
import { readBackup, writeBackup } from './backup.ts'
import { openDatabase } from './database.ts'

async function collect(run: (out: PassThrough) => Promise<unknown>): Promise<Buffer> {
  const out = new PassThrough()
  const pieces: Buffer[] = []
  out.on('data', (piece: Buffer) => pieces.push(piece))
  await run(out)
  return Buffer.concat(pieces)
}

test('a backup restores every row, and refuses what is damaged, incomplete or in the way', async () => {
  const from = await freshDatabase()
  const to = await emptyDatabase()
  const source = openDatabase({ connection: from.connection })
  const target = openDatabase({ connection: to.connection })
  try {
    await source.query({
      text: `insert into account (id, name) select 'acc_' || n, 'Größe "' || n || E'\\n' from generate_series(1, 1200) n`,
    })
    const ledger = createLedger({ database: source, world: realWorld, processId: 'p' })
    for (const n of [1, 2, 3])
      await ledger.grant({ account: `acc_${n}`, amount: 9_007_199_254_740_993n, note: 'big', actor: 'test' })
    await source.query({
      text: `insert into api_key (id, account_id, name, digest, prefix, last4, models) values ('k', 'acc_1', 'k', '\\x00ff10', 'p', 'l', '{a,b}')`,
    })
    const file = await collect((out) => writeBackup(source, out))

    await assert.rejects(readBackup(target, Readable.from([file.subarray(0, file.length - 40)])))
    const facts = await readBackup(target, Readable.from([file]))
    assert.equal(facts.rows.account, 1200)
    for (const table of ['account', 'transfer', 'api_key']) {
      const text = `select to_jsonb(t)::text as row from ${table} t order by 1`
      assert.deepEqual(await target.query({ text }), await source.query({ text }), table)
    }
    const [row] = await target.query<{ posted: bigint }>({ text: `select posted from account where id = 'acc_1'` })
    assert.equal(row?.posted, 9_007_199_254_740_993n)
    await assert.rejects(readBackup(target, Readable.from([file])), /is in use/)
  } finally {
    await source.close()
    await target.close()
    await from.drop()
    await to.drop()
  }
})
