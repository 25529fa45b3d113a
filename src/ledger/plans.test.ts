// A table that was empty when it was last vacuumed is believed to have one row, and a join may begin with that row.
// Then every statement of the ledger would read all holds and leases there are.
import { assert, atOnce, test } from '../../test/kit.ts'
import { account, database, processOf, reserve, rows, settle } from '../../test/ledger-part.ts'
import type { Database, Queryable } from '../database/database.ts'
import { storeLimits } from './limits.ts'

const OTHERS = 3_000
const ACCOUNTS = 5
const CALLS = 6
/** How often it is tried to lease, and to have settlements written together. */
const TURNS_MAX = 500
/** Of one statement, in one table: each row of its few calls is looked at a few times. */
const READ_MAX = 300
/** Others look at everything now and then: that is their work. */
const OF_CALLS = [
  'ledger_reserve ',
  'ledger_resolve ',
  'ledger_lease ',
  'ledger_post ',
  'journal_write ',
  'journal_write_one ',
]
const CROWDED = ['hold', 'lease', 'counter', 'journal']

async function crowd(): Promise<void> {
  const some = `select 'other' as account_id, 'x' || n as id from generate_series(1, ${OTHERS}) n`
  await rows(`insert into hold (account_id, id, key_id, process_id, amount, product, catalog_version)
    select account_id, id, 'k', 'nobody', 0, 'p', 1 from (${some}) x`)
  await rows(`insert into lease (account_id, id, key_id, process_id, amount)
    select account_id, id, 'k', 'nobody', 0 from (${some}) x`)
  await rows(`insert into counter (account_id, scope, name, unit, span, max)
    select account_id, id, 'requestsPerMinute', 'requests', 'minute', 1 from (${some}) x`)
  await rows(`insert into journal (account_id, id, lease_id, key_id, product, endpoint, outcome, status, charged, held, catalog_version, lines,
      tokens, second, input_tokens, output_tokens, estimated, stream, route, duration_ms, first_byte_ms, at)
    select account_id, id, id, 'k', 'p', 'chat', 'settled', 200, 0, 0, 1, '[]', 0, 0, 0, 0, false, false, 1, 1, 1, now() + interval '1 day' from (${some}) x`)
}

/** Rows that the connection has read of each table. */
async function readBy(tx: Queryable): Promise<Map<string, number>> {
  const text =
    'select relname as name, seq_tup_read + coalesce(idx_tup_fetch, 0) as read from pg_stat_xact_user_tables where relname = any($1)'
  const found = await tx.query<{ name: string; read: bigint }>({ text }, [`{${CROWDED.join()}}`])
  return new Map(found.map(({ name, read }) => [name, Number(read)]))
}

test('a statement of the ledger reads the rows of its calls, however many others there are and whatever is believed of a table', async () => {
  await crowd()
  for (const table of CROWDED) {
    // The server's own vacuum would find out how many there are, whenever it comes by.
    await rows(`alter table ${table} set (autovacuum_enabled = off)`)
    await rows(`delete from ${table}`)
    await rows(`vacuum ${table}`)
  }
  await crowd()
  const believed = await rows<{ tuples: number; pages: number }>(
    'select reltuples as tuples, relpages as pages from pg_class where relname = any($1)',
    [`{${CROWDED.join()}}`],
  )
  assert.ok(believed.every(({ tuples, pages }) => tuples === 0 && pages > 0))

  const most = new Map<string, number>()
  const counting: Database = {
    ...database,
    query: (asked, values) =>
      database.transaction(async (tx) => {
        const before = await readBy(tx)
        const answer = await tx.query(asked, values)
        for (const [name, count] of await readBy(tx)) {
          const of = `${asked.name} ${name}`
          most.set(of, Math.max(most.get(of) ?? 0, count - (before.get(name) ?? 0)))
        }
        return answer as never // of the type that was asked for
      }),
  }
  // The others' holds and settlements are nobody's: a sweep that took them for a dead process's would try each of them.
  const ledger = await processOf({ database: counting, graceMs: 86_400_000 })
  const accounts = await atOnce(ACCOUNTS, () => account(1_000_000n))
  for (const one of accounts)
    await database.transaction((tx) =>
      storeLimits(tx, { kind: 'account', account: one }, { tokensPerMinute: 1_000_000, spendPerDay: '1000' }),
    )
  // One of them has as many keys with limits.
  await rows(
    `insert into counter (account_id, scope, name, unit, span, max) select $1, 'key' || n, 'requestsPerMinute', 'requests', 'minute', 1 from generate_series(1, ${OTHERS}) n`,
    [accounts[0]!],
  )
  most.clear()
  const callTo = async (one: string) => {
    const { id } = await reserve(ledger, one, 10n)
    await settle(ledger, one, id, 3n)
  }
  const unused = () => OF_CALLS.filter((name) => ![...most.keys()].some((seen) => seen.startsWith(name)))
  for (let turn = 0; turn < CALLS || (unused().length > 0 && turn < TURNS_MAX); turn++) {
    // On a slow machine it would be silent for too long to lease anything.
    await ledger.sweep()
    await Promise.all([...accounts, ...accounts, ...accounts].map(callTo))
    await callTo(accounts[0]!)
    await ledger.posted()
  }
  await ledger.idle()
  assert.deepEqual(unused(), [])
  const tooMany = [...most].filter(
    ([name, count]) => count > READ_MAX && OF_CALLS.some((expected) => name.startsWith(expected)),
  )
  assert.deepEqual(tooMany, [])
})
