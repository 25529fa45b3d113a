// Several processes that serve the same accounts: their flushes and bookings meet, and take what they can have.
import { assert, atOnce, test } from '../../test/kit.ts'
import { account, call, count, database, fresh, processOf, rows } from '../../test/ledger-part.ts'
import { storeLimits } from './limits.ts'

const PROCESSES = 3
const ACCOUNTS = 60
const CALLERS = 16
const FOR_MS = 3_000
const CREDITS = 1_000_000n
const CHARGE = 3n

test('processes that call the same accounts, lease of them and give back at the same moments leave the ledger right', async () => {
  const accounts = await atOnce(ACCOUNTS, () => account(CREDITS))
  for (const one of accounts.slice(0, ACCOUNTS / 2))
    await database.transaction((tx) =>
      storeLimits(
        tx,
        { kind: 'account', account: one },
        { requestsPerMinute: 1_000_000, tokensPerMinute: 100_000_000, spendPerDay: '1000000' },
      ),
    )
  const any = () => accounts[Math.floor(Math.random() * ACCOUNTS)]!
  let calls = 0
  const stores = Array.from({ length: PROCESSES }, () => fresh.open())
  try {
    const ledgers = await Promise.all(stores.map((store) => processOf({ database: store })))
    const endMs = performance.now() + FOR_MS
    const caller = async (at: number) => {
      while (performance.now() < endMs) {
        assert.equal((await call(ledgers[at]!, any(), CHARGE)).outcome, 'held')
        calls += 1
      }
    }
    const recaller = async (at: number) => {
      for (; performance.now() < endMs; await new Promise(setImmediate)) ledgers[at]!.recall(any())
    }
    const all = stores.flatMap((_, at) => [recaller(at), ...Array.from({ length: CALLERS }, () => caller(at))])
    await Promise.all(all)
    await Promise.all(ledgers.map((ledger) => ledger.idle()))
  } finally {
    for (const store of stores) await store.close()
  }
  const [books] = await rows(
    `select sum(posted)::bigint as posted, sum(held)::bigint as held from account where id = any($1)`,
    [`{${accounts.join()}}`],
  )
  assert.deepEqual(books, { posted: BigInt(ACCOUNTS) * CREDITS - BigInt(calls) * CHARGE, held: 0n })
  assert.deepEqual(await Promise.all(['hold', 'lease', 'journal'].map((table) => count(table))), [0, 0, 0])
  assert.deepEqual(await Promise.all(['usage', `transfer where kind = 'settled'`].map((text) => count(text))), [
    calls,
    calls,
  ])
  const [limits] = await rows(
    `select sum(used)::bigint as spent from counter where account_id > $1 and unit = 'credits'`,
    [''],
  )
  const [limited] = await rows<{ spent: bigint }>(
    `select sum(charged)::bigint as spent from usage where account_id = any($1)`,
    [`{${accounts.slice(0, ACCOUNTS / 2).join()}}`],
  )
  assert.deepEqual(limits, { spent: limited!.spent })
})
