import { bookedBefore, freshDatabase } from '../../test/database.ts'
import { after, assert, before, started, test } from '../../test/kit.ts'
import { idAtTime, newId, realWorld } from '../kernel/world.ts'
import { createLedger, type Ledger } from '../ledger/ledger.ts'
import { type Reservation, releaseOf } from '../ledger/operation.ts'
import { ledgerCsv } from './csv.ts'
import { type LedgerFilter, readMovements } from './movements.ts'
import { createStatements } from './statement.ts'

let ledger: Ledger

const fresh = started(freshDatabase)
const database = started(() => fresh.open())
before(async () => {
  ledger = createLedger({ database, world: realWorld, processId: 'p1', graceMs: 0 })
  await ledger.sweep()
})
after(() => ledger.idle())

const CREDIT = 1_000_000n

async function account(): Promise<string> {
  const id = `acc_${newId(realWorld)}`
  await database.query({ text: 'insert into account (id, name) values ($1, $1)' }, [id])
  await grant(id, 100n)
  return id
}

const grant = (account: string, credits: bigint) =>
  ledger.grant({ account, amount: credits * CREDIT, note: 'test', actor: 'test' })

async function begin(account: string): Promise<Reservation> {
  const id = newId(realWorld)
  const call = {
    id,
    account,
    key: 'k1',
    product: 'alpha-5.4',
    catalogVersion: 1,
    want: CREDIT,
    floor: CREDIT,
    tokens: 1,
  }
  assert.equal((await ledger.reserve(call)).outcome, 'held')
  return call
}

const end = (call: Reservation, charge: bigint) =>
  ledger.resolve({
    ...releaseOf(call),
    kind: 'settled',
    charge: charge * CREDIT,
    lines: [['call', 1, String(charge * CREDIT * CREDIT)]],
    status: 200,
  })

const rows = async (account: string, more: Partial<LedgerFilter> = {}) =>
  (await readMovements(bookedBefore({ database, ledger }), { account, limit: 200, ...more })).items

const told = async (account: string, more: Partial<LedgerFilter> = {}) =>
  (await rows(account, more)).map(({ kind, moved, balanceAfter }) => `${kind} ${moved} ${balanceAfter}`)

test('a statement lists what moved in the order in which it moved, each with the balance of that moment', async () => {
  const id = await account()
  const [slow, quick, failed, free] = [await begin(id), await begin(id), await begin(id), await begin(id)]
  await end(quick, 3n)
  await ledger.resolve(releaseOf(failed))
  await ledger.posted()
  await end(free, 0n)
  await grant(id, 50n)
  await grant(id, -20n)
  const earlier = await told(id)
  await end(slow, 5n)
  const statement = ['takeback -20 127', 'grant 50 147', 'settled -3 97', 'grant 100 100']
  assert.deepEqual(earlier, statement)
  assert.deepEqual(await told(id), ['settled -5 122', ...statement])
  assert.deepEqual(await told(id, { zero: true }), ['settled 0 null', 'released 0 null'])
  assert.deepEqual(await told(id, { kind: 'released' }), ['released 0 null'])
})

test('a part of a statement, by kind, dates or page, says the same balances', async () => {
  const id = await account()
  for (const charge of [1n, 2n, 3n]) await end(await begin(id), charge)
  await grant(id, 10n)
  assert.deepEqual(await told(id, { kind: 'settled' }), ['settled -3 94', 'settled -2 97', 'settled -1 99'])
  assert.deepEqual(await told(id, { kind: 'grant' }), ['grant 10 104', 'grant 100 100'])
  const [first] = await database.query<{ at: Date }>(
    {
      text: `select date_trunc('milliseconds', moved_at) as at from transfer where account_id = $1 and balance = 97000000`,
    },
    [id],
  )
  const moment = first!.at.getTime()
  const since = await told(id, { fromMs: moment })
  const until = await told(id, { toMs: moment })
  assert.deepEqual([...since, ...until], await told(id))
  assert.ok(since.includes('settled -2 97') && !until.includes('settled -2 97'))

  const paged: string[] = []
  let cursor: string | undefined
  do {
    const page = await readMovements(database, { account: id, limit: 2, cursor })
    paged.push(...page.items.map(({ id }) => id))
    cursor = page.next ?? undefined
  } while (cursor)
  assert.deepEqual(
    paged,
    (await rows(id)).map((row) => row.id),
  )
  let csv = ''
  for await (const part of ledgerCsv(createStatements(bookedBefore({ database, ledger })), { account: id })) csv += part
  const [head, newest, charge] = csv.split('\r\n')
  assert.equal(head, 'id,at,kind,amount,moved,loss,balanceAfter,requestId,product,note,actor')
  assert.match(newest ?? '', /Z,grant,10,10,0,104,/)
  assert.match(charge ?? '', /Z,settled,3,-3,0,94,req_/)
})

test('every balance is the one before it and what moved, whoever settles and grants at the same time', async () => {
  const ids = await Promise.all([account(), account(), account()])
  const other = createLedger({ database, world: realWorld, processId: 'p2', graceMs: 0 })
  await other.sweep()
  const calls = await Promise.all(ids.flatMap((id) => Array.from({ length: 30 }, () => begin(id))))
  await Promise.all([
    ...calls.map((call, i) => end(call, BigInt(i % 2))),
    ...ids.flatMap((id) =>
      [1n, 2n, 3n].map((n) => other.grant({ account: id, amount: n * CREDIT, note: '', actor: 'x' })),
    ),
  ])
  await other.idle()
  for (const id of ids) {
    const statement = (await rows(id)).toReversed()
    assert.equal(statement.length, 1 + 15 + 3)
    let balance = 0n
    for (const row of statement) {
      balance += BigInt(row.moved)
      assert.equal(row.balanceAfter, String(balance))
    }
    assert.ok(statement.every(({ at }, i) => i === 0 || at >= (statement[i - 1]?.at ?? '')))
  }
})

test('a clock that is set back changes no order', async () => {
  const id = await account()
  await database.query(
    {
      text: `with ahead as (update account set moved_at = moved_at + interval '1 hour' where id = $1 returning moved_at)
        update transfer set moved_at = ahead.moved_at from ahead where account_id = $1`,
    },
    [id],
  )
  const call = await begin(id)
  await end(call, 7n)
  await grant(id, 1n)
  assert.deepEqual(await told(id), ['grant 1 94', 'settled -7 93', 'grant 100 100'])
  assert.ok(call.id < idAtTime(Date.parse((await rows(id))[1]?.at ?? '')), 'it moved after the hour')
})
