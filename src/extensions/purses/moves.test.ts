// Purses where their account goes to another database, and where a database is restored: every movement and its hash
// comes along, and calls go on there.

import { PassThrough, Readable } from 'node:stream'
import { emptyDatabase, freshDatabase } from '../../../test/database.ts'
import { assert, closing, jsonOf, startGateway, type TestGateway, test, until } from '../../../test/gateway.ts'
import { openDatabase, type Queryable } from '../../database/database.ts'
import { realWorld } from '../../kernel/world.ts'
import { readBackup, writeBackup } from '../backup/backup.ts'
import { moveAccount } from '../moving/move.ts'
import { verifyPurses } from './verify.ts'
import type { PurseView } from './views.ts'

const BODY = { model: 'alpha-5.4', max_tokens: 20, messages: [{ role: 'user', content: 'Hello.' }] }
const ANN = { headers: { 'x-tollgate-purse': 'ann' } }

/** Of an account: every row of its purses. */
async function rowsOf(on: Queryable, account: string) {
  const tables = ['purse', 'purse_movement', 'purse_prices', 'purse_events', 'purse_session']
  const all = tables.map(async (TABLE) =>
    on.query(
      { text: `select (to_jsonb(t) - 'untold')::text as row from ${TABLE} t where account_id = $1 order by 1` },
      [account],
    ),
  )
  return Object.fromEntries((await Promise.all(all)).map((rows, at) => [tables[at], rows]))
}

/** With calls, a frozen purse, a price list, an address for events and a session token. */
async function lived(g: TestGateway) {
  const { id: account, key } = await g.account()
  await g.operator('PUT', `/accounts/${account}/purse-prices`, { markupPercent: '25' })
  await g.operator('PUT', `/accounts/${account}/purse-events`, { url: 'https://127.0.0.1:1/hook', settled: true })
  for (const id of ['ann', 'bob']) await jsonOf(g.call('/v1/purses', key, { id, credits: '5' }))
  await jsonOf(g.call('/v1/purses/bob', key, { status: 'frozen' }, { method: 'PATCH' }))
  for (let n = 0; n < 3; n++) await jsonOf(g.call('/v1/chat/completions', key, BODY, ANN))
  const made = await jsonOf<{ data: { token: string } }>(g.call('/v1/purses/ann/sessions', key, {}))
  await g.settled()
  return { account, key, token: made.data.token }
}

const verified = (on: TestGateway, account: string) =>
  on.gateway.database.transaction((tx) => verifyPurses(tx, account))
const balance = async (g: TestGateway, key: string) =>
  Number((await jsonOf<{ data: PurseView }>(g.call('/v1/purses/ann', key))).data.balance)

const MANY = 2_500

test('the purses of an account that moves go with it, and are charged at the target only', async () => {
  await using from = await freshDatabase()
  await using to = await freshDatabase()
  await using here = await startGateway({ database: from })
  await using there = await startGateway({ database: to })
  await using source = closing(openDatabase({ connection: from.connection, connectionsMax: 4 }))
  await using target = closing(openDatabase({ connection: to.connection, connectionsMax: 4 }))
  const { account, key, token } = await lived(here)
  await here.sql(
    `select purse_move(jsonb_populate_record(null::purse_movement, jsonb_build_object('account_id', $1::text, 'id', id_at(now(), n::text), 'purse_id', 'bob', 'kind', 'grant')), 1, 0)
     from generate_series(1, ${MANY}) n`,
    [account],
  )
  const before = await rowsOf(source, account)
  const said: string[] = []
  const say = (line: string) => void said.push(line)
  const moved = await moveAccount({
    account,
    source,
    target,
    from: 'here',
    to: 'there',
    world: realWorld,
    waitMs: 120_000,
    say,
  })
  assert.deepEqual([moved.rows.purse, moved.rows.purse_movement, moved.rows.purse_session], [2, MANY + 6, 1])
  assert.deepEqual(await rowsOf(target, account), before)
  // Movements are copied in pages while the account is in use, and not as one value while it is closed.
  assert.ok(Number(/Copied and compared (\d+) rows/.exec(said.join(' '))?.[1]) > MANY, said.join(' '))
  // Each event is told once, from where it happened.
  const told = (end: TestGateway) =>
    end.sql<{ id: string }>(`select id from delivery where account_id = $1 and event like 'purse.%' and open`, [
      account,
    ])
  await until(async () => (await here.sql('select 1 from purse_movement where untold is not null')).length === 0)
  assert.deepEqual([(await told(here)).length > MANY, await told(there)], [true, []])
  assert.deepEqual(await verified(there, account), [])
  const had = await balance(there, key)
  assert.equal((await here.call('/v1/chat/completions', key, BODY, ANN)).status, 503)
  for (const by of [key, token]) await jsonOf(there.call('/v1/chat/completions', by, BODY, by === key ? ANN : {}))
  await there.settled()
  assert.ok((await balance(there, key)) < had)
  const bob = await there.call('/v1/chat/completions', key, BODY, { headers: { 'x-tollgate-purse': 'bob' } })
  assert.equal(bob.status, 403)
  for (const end of [here, there]) {
    assert.deepEqual(await verified(end, account), [])
    assert.deepEqual(await end.problems(), [])
  }
})

test('a restored database has the purses as they were, and they are charged on', async () => {
  await using from = await freshDatabase()
  await using to = await emptyDatabase()
  const file: Buffer[] = []
  let before: unknown
  let account = ''
  let key = ''
  {
    await using g = await startGateway({ database: from })
    ;({ account, key } = await lived(g))
    before = await rowsOf(g.gateway.database, account)
    const out = new PassThrough()
    out.on('data', (piece: Buffer) => file.push(piece))
    await writeBackup([{ name: 'control', database: g.gateway.database }], out)
  }
  {
    await using target = closing(openDatabase({ connection: to.connection }))
    await readBackup([{ name: 'control', database: target }], Readable.from([Buffer.concat(file)]))
  }
  await using g = await startGateway({ database: to })
  assert.deepEqual(await rowsOf(g.gateway.database, account), before)
  assert.deepEqual(await verified(g, account), [])
  const had = await balance(g, key)
  await jsonOf(g.call('/v1/chat/completions', key, BODY, ANN))
  await g.settled()
  assert.ok((await balance(g, key)) < had)
  assert.deepEqual(await verified(g, account), [])
  assert.deepEqual(await g.problems(), [])
})
