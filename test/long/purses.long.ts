// A hundred thousand purses of one account, called for by four gateways at the ledger, 50 calls a second on 5,000 of
// them, while one after the other is killed: no purse and no account is below zero, what purses paid is what their
// statements say, and verifying is clean and finds what somebody changes. SECONDS=600 calls for ten minutes.
import { type ChildProcess, fork } from 'node:child_process'
import { once } from 'node:events'
import { join } from 'node:path'
import { setTimeout as sleep } from 'node:timers/promises'
import { purses as extension } from '../../src/extensions/purses/extension.ts'
import { verifyPurses } from '../../src/extensions/purses/verify.ts'
import { freshDatabase } from '../database.ts'
import { assert, startGateway, test } from '../gateway.ts'

const SECONDS = Number(process.env.SECONDS ?? 150)
const PROCESSES = 4
const PURSES = 100_000
const MADE_AT_ONCE = 2_000
const CALLED = 5_000
const CALLS_PER_SECOND = 50
const KILLED_EVERY_SECONDS = 15
/** Enough for two or three calls, so that many run dry. */
const GIVEN = 2_500n
/** Of the 100,000, those whose statements are read through the API's own code. */
const STATEMENTS = 500
const CHILD = join(import.meta.dirname, '../purse-process.ts')

const seconds = (fromMs: number) => ((performance.now() - fromMs) / 1000).toFixed(1)

test('100,000 purses: all add up to the millionth while processes that call for them are killed', async (t) => {
  await using fresh = await freshDatabase()
  await using g = await startGateway({ database: fresh })
  const { id: account } = await g.account({ credits: 1_000_000_000_000n })
  await g.operator('PUT', `/accounts/${account}/purse-prices`, { markupPercent: '50' })
  let began = performance.now()
  for (let first = 0; first < PURSES; first += MADE_AT_ONCE) {
    const range = [account, first, first + MADE_AT_ONCE - 1]
    await g.sql(
      `insert into purse (account_id, id, name) select $1, 'p' || n, '' from generate_series($2::int, $3::int) n`,
      range,
    )
    await g.sql(
      `select count(purse_move(jsonb_populate_record(null::purse_movement, jsonb_build_object('account_id', $1::text, 'id', 'g' || n, 'purse_id', 'p' || n, 'kind', 'grant')), $4::bigint, 0))
       from generate_series($2::int, $3::int) n`,
      [...range, GIVEN],
    )
  }
  await g.sql('analyze purse, purse_movement')
  t.diagnostic(`${PURSES} purses with a grant each were made in ${seconds(began)} s`)

  const pace = String(CALLS_PER_SECOND / PROCESSES)
  const begin = (n: number) =>
    fork(CHILD, [fresh.url, account, String(CALLED), `swarm-${n}`, pace], { stdio: 'inherit' })
  const all: ChildProcess[] = Array.from({ length: PROCESSES }, (_, n) => begin(n))
  began = performance.now()
  let killed = 0
  for (let left = SECONDS; left > KILLED_EVERY_SECONDS; left -= KILLED_EVERY_SECONDS) {
    await sleep(KILLED_EVERY_SECONDS * 1000)
    const victim = killed % PROCESSES
    const gone = once(all[victim]!, 'exit') // There are as many.
    all[victim]!.kill('SIGKILL')
    await gone
    killed += 1
    all[victim] = begin(PROCESSES + killed)
  }
  await sleep(KILLED_EVERY_SECONDS * 1000)
  const took = seconds(began)
  await Promise.all(
    all.map((child) => {
      const gone = once(child, 'exit')
      child.send('stop')
      return gone
    }),
  )
  // What the dead held goes back to both.
  await g.sql(`select ledger_expire($1, interval '0 seconds')`, [account])
  await g.settled()
  const [sums] = await g.sql<
    Record<'calls' | 'expired' | 'refused' | 'purses' | 'sold' | 'paid' | 'charged' | 'missing', bigint>
  >(
    `select count(*) filter (where kind = 'settled') as calls, count(*) filter (where kind = 'expired') as expired, count(*) filter (where kind = 'empty') as refused,
       count(distinct purse_id) filter (where kind = 'settled') as purses,
       sum(amount) filter (where kind = 'settled')::bigint as sold, sum(charged)::bigint as paid,
       (select sum(amount)::bigint from transfer where account_id = $1 and kind = 'settled') as charged,
       (select sum($2::bigint - posted)::bigint from purse where account_id = $1) as missing
     from purse_movement where account_id = $1`,
    [account, GIVEN],
  )
  assert.ok(sums && sums.calls > 0n)
  t.diagnostic(
    `${sums.calls} calls of ${sums.purses} purses in ${took} s (${(Number(sums.calls) / Number(took)).toFixed(1)} a second), ${killed} processes killed with ${sums.expired} holds, ${sums.refused} purses ran dry`,
  )
  assert.deepEqual([sums.sold, sums.paid], [sums.missing, sums.charged])
  const [wrong] = await g.sql(
    `select (select count(*)::int from purse where account_id = $1 and (posted < 0 or held <> 0)) as purses,
       (select count(*)::int from account where id = $1 and (posted < 0 or held <> 0)) as accounts`,
    [account],
  )
  assert.deepEqual(wrong, { purses: 0, accounts: 0 })

  const { purses } = g.gateway.opened(extension)
  let stated = 0n
  for (let n = 0; n < STATEMENTS; n++) {
    const { spent, closing } = await purses.statement(account, `p${n}`, undefined)
    assert.equal(closing, (await purses.find(account, `p${n}`)).balance)
    stated += BigInt(Math.round(Number(spent) * 1e6))
  }
  const [some] = await g.sql<{ spent: bigint }>(
    `select sum($2::bigint - posted)::bigint as spent from purse where account_id = $1 and substr(id, 2)::int < $3`,
    [account, GIVEN, STATEMENTS],
  )
  assert.equal(stated, some?.spent)

  began = performance.now()
  const verify = () => g.gateway.database.transaction((tx) => verifyPurses(tx, account))
  assert.deepEqual(await verify(), [])
  t.diagnostic(`verified in ${seconds(began)} s`)
  for (const change of PLANTED) {
    await g.sql(change)
    const found = await verify()
    assert.ok(found.length > 0, change)
    t.diagnostic(`${change.slice(0, 70)}: ${found[0]}`)
  }
})

/** One after the other, as somebody might do by hand; each is found beside those before it. */
const PLANTED = [
  `update purse set posted = posted + 1 where id = 'p77777'`,
  `update purse_movement set amount = amount + 1 where (account_id, id) = (select account_id, id from purse_movement where kind = 'settled' order by moved_at limit 1)`,
  `delete from purse_movement where (account_id, id) = (select account_id, id from purse_movement where kind = 'settled' order by moved_at desc limit 1)`,
]
