import { type ChildProcess, fork } from 'node:child_process'
import { once } from 'node:events'
import { join } from 'node:path'
import { type FreshDatabase, freshDatabase } from '../../../test/database.ts'
import { assert, runs, startGateway, test, until } from '../../../test/gateway.ts'
import { verifyPurses } from './verify.ts'

const PROCESSES = 4
const PURSES = runs(50, 100_000)
/** By each process on average, before some are killed. */
const SETTLED = runs(50, 3_000)
const CHILD = join(import.meta.dirname, '../../../test/purse-process.ts')

function start(fresh: FreshDatabase, account: string, name: string) {
  const child = fork(CHILD, [fresh.url, account, String(PURSES), name], { stdio: 'inherit' })
  let settled = 0
  child.on('message', (said: { readonly settled: number }) => {
    settled = said.settled
  })
  return { child, settled: () => settled }
}

async function ended(child: ChildProcess, end: () => void): Promise<void> {
  const exit = once(child, 'exit')
  end()
  await exit
}

test('many purses are called for by several processes of which some are killed: none is below zero, and all add up', async () => {
  await using fresh = await freshDatabase()
  await using g = await startGateway({ database: fresh })
  const { id: account } = await g.account({ credits: 1_000_000_000_000n })
  await g.operator('PUT', `/accounts/${account}/purse-prices`, { markupPercent: '50' })
  // Each has enough for a few calls, so that many of them run dry.
  await g.sql(
    `insert into purse (account_id, id, name) select $1, 'p' || n, '' from generate_series(0, $2::int - 1) n`,
    [account, PURSES],
  )
  await g.sql(
    `select purse_move(jsonb_populate_record(null::purse_movement, jsonb_build_object('account_id', $1::text, 'id', 'g' || n, 'purse_id', 'p' || n, 'kind', 'grant')), 8000, 0)
     from generate_series(0, $2::int - 1) n`,
    [account, PURSES],
  )
  const all = Array.from({ length: PROCESSES }, (_, n) => start(fresh, account, `swarm-${n}`))
  // Of all together: one that starts late finds purses that the others have emptied.
  await until(() => all.reduce((sum, { settled }) => sum + settled(), 0) >= PROCESSES * SETTLED)
  const [first, second, ...others] = all
  for (const one of [first, second]) if (one) await ended(one.child, () => one.child.kill('SIGKILL'))
  for (const { child } of others) await ended(child, () => child.send('stop'))
  // What the dead held goes back to both.
  await g.sql(`select ledger_expire($1, interval '0 seconds')`, [account])
  const [left] = await g.sql<{ held: bigint; purses: bigint; wrong: bigint }>(
    `select a.held, (select sum(held) from purse where account_id = $1)::bigint as purses,
       (select count(*) from purse where account_id = $1 and (posted < 0 or held <> 0)) as wrong from account a where a.id = $1`,
    [account],
  )
  assert.deepEqual(left, { held: 0n, purses: 0n, wrong: 0n })
  const [sums] = await g.sql<{ calls: bigint; sold: bigint; statement: bigint; paid: bigint; charged: bigint }>(
    `select count(*) as calls, sum(m.amount)::bigint as sold, (select sum(8000 - posted) from purse where account_id = $1)::bigint as statement,
       sum(m.charged)::bigint as paid, (select sum(amount) from transfer where account_id = $1 and kind = 'settled')::bigint as charged
     from purse_movement m where m.account_id = $1 and m.kind = 'settled'`,
    [account],
  )
  assert.ok(sums && sums.calls > 0n)
  assert.deepEqual([sums.sold, sums.paid], [sums.statement, sums.charged])
  assert.deepEqual(await g.gateway.database.transaction((tx) => verifyPurses(tx, account)), [])
})
