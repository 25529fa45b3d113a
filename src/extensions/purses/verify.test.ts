import { corruptionsOf } from '../../../test/corruptions.ts'
import { assert, before, test, testGateway } from '../../../test/gateway.ts'
import type { Queryable } from '../../database/database.ts'
import { verifyPurses } from './verify.ts'

const g = testGateway()
let account = ''
/** `$call` and the like. */
const ids: Record<string, string> = {}

const reserve = (calls: object[]) =>
  g.sql<{ answer: Array<{ as: string; amount?: string }> }>(
    `select ledger_reserve($1, 'ghost', $2::jsonb, 0, (select value from setting where name = 'system-limits')) as answer`,
    [account, JSON.stringify(calls)],
  )
const held = (id: string, purse: string) => ({
  id,
  key: 'key_x',
  want: 1_000_000,
  floor: 1_000_000,
  most: 1_000_000,
  open: 0,
  product: 'alpha-5.4',
  version: 1,
  tokens: 10,
  budgets: 0,
  purse: { id: purse, list: 1, factor: '1500000', least: '0' },
})

before(async () => {
  const { id, key } = await g.account({ credits: 50_000_000n })
  account = id
  const send = (path: string, body: unknown, method = 'POST') => g.call(path, key, body, { method })
  const volume = [{ from: '1000', discountPercent: '10' }]
  await g.operator('PUT', `/accounts/${id}/purse-prices`, { markupPercent: 50, volume })
  await send('/v1/purses', { id: 'ann', credits: '10' })
  await send('/v1/purses', { id: 'bob', credits: '20' })
  await send('/v1/purses/bob', { status: 'frozen' }, 'PATCH')
  await send('/v1/purses/bob', { status: 'open' }, 'PATCH')
  const body = { model: 'alpha-5.4', messages: [{ role: 'user', content: 'Say hello.' }], max_tokens: 50 }
  const answer = await g.call('/v1/chat/completions', key, body, { headers: { 'x-tollgate-purse': 'ann' } })
  assert.equal(answer.status, 200, await answer.text())
  await g.settled()
  await g.gateway.ledger.posted(account)
  const [call] = await g.sql<{ id: string }>(
    `select id from purse_movement where kind = 'settled' and account_id = $1`,
    [account],
  )
  const [grant] = await g.sql<{ id: string }>(`select id from purse_movement where kind = 'grant' and purse_id = 'bob'`)
  Object.assign(ids, { call: call?.id, grant: grant?.id })
})

class Undone extends Error {}

async function problemsAfter(change: string | undefined): Promise<readonly string[]> {
  let found: readonly string[] = []
  await g.gateway.database
    .transaction(async (tx: Queryable) => {
      for (const text of change?.split(';') ?? [])
        await tx.query({ text: text.replaceAll(/\$(call|grant)/g, (_, name: string) => `'${ids[name]}'`) })
      found = await verifyPurses(tx, account)
      throw new Undone()
    })
    .catch((error: unknown) => {
      if (!(error instanceof Undone)) throw error
    })
  return found
}

/** By column, what is done to it and what is said of it. */
const CORRUPTIONS = corruptionsOf('purse-corruptions.sql')

/** Columns that decide no money. */
const NO_REASON: Readonly<Record<string, string>> = {
  purse: 'account_id id name low is_empty billing created_at',
  purse_movement: 'account_id untold',
  purse_prices: 'account_id given actor created_at',
}

test('what somebody does to a purse by hand is found in each of its columns', async () => {
  assert.deepEqual(await problemsAfter(undefined), [])
  for (const [change, said] of CORRUPTIONS) {
    const problems = await problemsAfter(change)
    assert.ok(
      problems.some((one) => said.test(one)),
      `${change}: ${problems.join(' ')}`,
    )
  }
})

test('each column of a purse that decides money is among them', async () => {
  for (const [table, excused] of Object.entries(NO_REASON)) {
    const changed = CORRUPTIONS.flatMap(([change]) =>
      [...change.matchAll(new RegExp(String.raw`update ${table} set (\w+)`, 'g'))].map(([, column]) => column),
    )
    const columns = await g.sql<{ name: string }>(
      `select attname::text as name from pg_attribute where attrelid = $1::regclass and attnum > 0 and not attisdropped`,
      [table],
    )
    const missing = columns.filter(({ name }) => !changed.includes(name) && !excused.split(' ').includes(name))
    assert.deepEqual(missing, [], table)
  }
})

test('a hold of a process that died goes back to the purse and the account, and a late settlement is paid by both', async () => {
  const before = await g.sql('select posted, held from purse where id = $1', ['bob'])
  const [made] = await reserve([held('01ghost', 'bob')])
  assert.deepEqual(made?.answer[0]?.as, 'held')
  assert.deepEqual(await g.sql('select held from purse where id = $1', ['bob']), [{ held: 1_500_000n }])
  await g.sql(`select ledger_expire($1, interval '20 seconds')`, [account])
  assert.deepEqual(await g.sql('select posted, held from purse where id = $1', ['bob']), before)
  const late = {
    account_id: account,
    id: '01ghost',
    key_id: 'key_x',
    outcome: 'settled',
    charged: 600_000,
    held: 0,
    stays_leased: true,
    tokens: 0,
    second: 0,
    input_tokens: 1,
    output_tokens: 1,
    product: 'alpha-5.4',
    endpoint: 'chat/completions',
    status: 200,
    catalog_version: 1,
    lines: [['input', 2400, '250000000']],
    estimated: false,
    stream: false,
    route: 1,
    duration_ms: 1,
    first_byte_ms: 1,
    client: '',
    labels: { ':purse': 'bob' },
  }
  await g.sql('select ledger_resolve($1, $2::jsonb)', [account, JSON.stringify([late])])
  assert.deepEqual(await g.sql('select posted, held from purse where id = $1', ['bob']), [
    { posted: 19_100_000n, held: 0n },
  ])
  const kinds = await g.sql(`select kind, amount from purse_movement where id like '01ghost%' order by id`)
  assert.deepEqual(kinds, [
    { kind: 'expired', amount: 0n },
    { kind: 'settled', amount: 900_000n },
  ])
  assert.deepEqual(await problemsAfter(undefined), [])
})

test('movements that are no longer kept leave their sum and their hash', async () => {
  // Of a month that is not over nothing goes: discounts go by it.
  await g.sql(`select purse_prune(now() + interval '1 second', 100)`)
  assert.notEqual((await g.sql('select 1 from purse_movement where account_id = $1', [account])).length, 0)
  await g.sql(`select purse_prune(now() + interval '1 month', 100)`)
  assert.deepEqual(await g.sql('select 1 from purse_movement where account_id = $1', [account]), [])
  assert.deepEqual(await problemsAfter(undefined), [])
  await g.operator('POST', `/accounts/${account}/purses/ann/grants`, { credits: '1' })
  assert.deepEqual(await problemsAfter(undefined), [])
  assert.match((await problemsAfter(`update purse set base = base + 1 where id = 'ann'`)).join(' '), /ann says/)
})
