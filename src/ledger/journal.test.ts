// Settlements on their way into the ledger: durable before their caller has the last byte, posted once, by whoever
// comes first.
import { assert, pluck, test } from '../../test/kit.ts'
import {
  account,
  behind,
  count,
  database,
  eventually,
  hasHold,
  lease,
  processOf,
  reserve,
  rows,
  settle,
} from '../../test/ledger-part.ts'
import { settlement } from '../../test/settlement.ts'
import { Fault } from '../kernel/fault.ts'
import { realWorld, type World } from '../kernel/world.ts'
import type { Ledger } from './ledger.ts'
import type { Cover } from './operation.ts'
import { journalRow } from './statements.ts'

/** Posts nothing by itself: as a process that dies, or is stopped, right after an answer. */
const stopped: World = { ...realWorld, after: (ms, run) => (ms === 250 ? () => undefined : realWorld.after(ms, run)) }

/** A call that a lease covers. */
async function covered(ledger: Ledger, acc: string): Promise<string> {
  for (let i = 0; i < 20; i++) {
    const reserved = await reserve(ledger, acc, 10n)
    assert.equal(reserved.outcome, 'held')
    if (!(await hasHold(reserved.id))) return reserved.id
    await settle(ledger, acc, reserved.id, 0n)
  }
  throw new Error('nothing was leased')
}

const chargesOf = (id: string) => rows<{ amount: bigint }>('select amount from transfer where id = $1', [id])
/** As if its process were not about to post it any more. */
const age = (id: string) => rows(`update journal set at = now() - interval '6 seconds' where id = $1`, [id])
const postedOf = async (acc: string) =>
  (await rows<{ posted: bigint }>('select posted from account where id = $1', [acc]))[0]!.posted

test('what was answered is durable before it is posted, posted by whoever comes first, and by nobody else', async () => {
  const [dying, other] = [await processOf({ world: stopped }), await processOf()]
  const acc = await account(100_000n)
  await lease(dying, acc)
  await dying.posted()
  const before = await postedOf(acc)
  const id = await covered(dying, acc)
  const settled = await settle(dying, acc, id, 3n)
  assert.deepEqual([settled.outcome, settled.paid], ['settled', 3n])
  assert.deepEqual([await count('journal where id = $1', id), await postedOf(acc)], [1, before])
  // Nobody posts what a living process is about to post, however slow this machine is.
  await rows('update journal set at = now() where id = $1', [id])
  await other.sweep()
  assert.equal(await count('journal where id = $1', id), 1)
  await age(id)
  await other.sweep()
  assert.deepEqual([await count('journal where id = $1', id), await postedOf(acc)], [0, before - 3n])
  // It wakes up, and posts what it believes to be its own.
  await dying.posted()
  assert.deepEqual([await chargesOf(id), await postedOf(acc)], [[{ amount: 3n }], before - 3n])
  const [row] = await rows('select charged, outcome from usage where id = $1', [id])
  assert.deepEqual(row, { charged: 3n, outcome: 'settled' })
})

test('whoever reads finds what another process has answered', async () => {
  const [busy, reader] = [await processOf({ world: stopped }), await processOf()]
  const acc = await account(100_000n)
  await lease(busy, acc)
  await busy.posted()
  const before = await postedOf(acc)
  await settle(busy, acc, await covered(busy, acc), 6n)
  assert.equal(await postedOf(acc), before)
  await Promise.all([reader.posted(), reader.posted()])
  assert.equal(await postedOf(acc), before - 6n)
})

test('whoever reads an account finds what every process has answered, also one that has answered itself', async () => {
  const [busy, reader] = [await processOf({ world: stopped }), await processOf({ world: stopped })]
  const acc = await account(100_000n)
  for (const ledger of [busy, reader]) await lease(ledger, acc)
  for (const ledger of [busy, reader]) await ledger.posted()
  const before = await postedOf(acc)
  for (const ledger of [busy, reader]) await settle(ledger, acc, await covered(ledger, acc), 6n)
  assert.equal(await postedOf(acc), before)
  await reader.posted(acc)
  assert.equal(await postedOf(acc), before - 12n)
})

test('a lease does not expire before what was spent of it is posted, and the dead have paid what they were told', async () => {
  const [dying, other] = [await processOf({ world: stopped }), await processOf()]
  const acc = await account(100_000n)
  await lease(dying, acc)
  await dying.posted()
  const before = await postedOf(acc)
  await settle(dying, acc, await covered(dying, acc), 4n)
  await rows(`update gateway_instance set heartbeat_at = now() - interval '25 seconds' where id = $1`, [dying.id])
  await rows(`select ledger_expire($1, '20 seconds')`, [acc])
  assert.equal(await count('lease where account_id = $1', acc), 1, 'it expired first')
  await other.sweep()
  assert.deepEqual([await count('lease where account_id = $1', acc), await postedOf(acc)], [0, before - 4n])
})

for (const [how, whenWritten] of [
  ['was written', 'before'],
  ['is written after all', 'after'],
] as const)
  test(`a settlement whose answer is lost, and which ${how}, is charged once`, async () => {
    let late: (() => Promise<unknown>) | undefined
    let lose = false
    const ledger = await processOf({
      database: behind(async (run, name) => {
        if (!lose || !name.startsWith('journal_write')) return run()
        lose = false
        if (whenWritten === 'before') await run()
        else late = run
        throw new Fault('unavailable')
      }),
    })
    const acc = await account(100_000n)
    await lease(ledger, acc)
    const id = await covered(ledger, acc)
    await ledger.posted()
    const before = await postedOf(acc)
    lose = true
    assert.deepEqual([(await settle(ledger, acc, id, 5n)).paid, await postedOf(acc)], [5n, before - 5n])
    await late?.()
    assert.equal(await count('journal where id = $1', id), whenWritten === 'before' ? 0 : 1)
    await age(id)
    await ledger.sweep()
    assert.deepEqual(
      [await count('journal where id = $1', id), await chargesOf(id), await postedOf(acc)],
      [0, [{ amount: 5n }], before - 5n],
    )
  })

test('a lease is not closed before what the journal has under it is posted, also what its process knows nothing of', async () => {
  const ledger = await processOf()
  const acc = await account(100_000n)
  await lease(ledger, acc)
  const reserved = await reserve(ledger, acc, 10n)
  await settle(ledger, acc, reserved.id, 3n)
  // After a failover to a standby that lagged, what was posted stands in the journal again.
  const again = `${reserved.id}-again`
  await rows(
    `insert into journal select (jsonb_populate_record(null::journal, to_jsonb(j) || jsonb_build_object('id', $2::text))).* from journal j where account_id = $1 and id = $3`,
    [acc, again, reserved.id],
  )
  assert.equal(await count('journal where account_id = $1 and id = $2', acc, again), 1)
  await rows('update lease set recalled_at = now() where account_id = $1', [acc])
  await ledger.sweep()
  await eventually('the lease stays', async () => (await count('lease where account_id = $1', acc)) === 0)
  assert.equal(await count('journal where account_id = $1', acc), 0, 'a settlement is covered by nothing')
  assert.equal(await count('transfer where account_id = $1 and id = $2 and amount = 3', acc, again), 1)
})

test('what cannot be posted because its account is locked waits, and nobody else waits for it', async () => {
  const ledger = await processOf()
  const [stuck, free] = [await account(100_000n), await account(100_000n)]
  await lease(ledger, stuck)
  await lease(ledger, free)
  const ids = [await covered(ledger, stuck), await covered(ledger, free)] as const
  await ledger.posted()
  let unlock: () => void = () => undefined
  const locked = new Promise<void>((resolve) => {
    unlock = resolve
  })
  const holding = database.transaction(async (tx) => {
    await tx.query({ text: 'select 1 from account where id = $1 for update' }, [stuck])
    await settle(ledger, stuck, ids[0], 1n)
    await settle(ledger, free, ids[1], 1n)
    await ledger.posted()
    await eventually('another waits too', async () => (await chargesOf(ids[1])).length === 1)
    assert.equal((await chargesOf(ids[0])).length, 0)
    unlock()
  })
  await Promise.all([holding, locked])
  // Who stops waits for it.
  await ledger.idle()
  assert.equal((await chargesOf(ids[0])).length, 1)
})

test('a charge above what was held for the call, and one of a process that was not heard, go into the ledger directly', async () => {
  let skewMs = 0
  const ledger = await processOf({ world: { ...stopped, elapsedMs: () => realWorld.elapsedMs() + skewMs } })
  const acc = await account(100_000n)
  await lease(ledger, acc)
  const [above, unheard] = [await covered(ledger, acc), await covered(ledger, acc)]
  await settle(ledger, acc, above, 11n)
  assert.deepEqual(await chargesOf(above), [{ amount: 11n }])
  skewMs = 16_000
  await settle(ledger, acc, unheard, 2n)
  assert.deepEqual(await chargesOf(unheard), [{ amount: 2n }])
})

test('a call whose lease expired while its process slept is told what was paid, and not what should have been', async () => {
  let skewMs = 0
  const ledger = await processOf({ world: { ...realWorld, elapsedMs: () => realWorld.elapsedMs() + skewMs } })
  const other = await processOf()
  const acc = await account(100_000n)
  await lease(ledger, acc)
  const id = await covered(ledger, acc)
  skewMs = 25_000
  await rows(`update gateway_instance set heartbeat_at = now() - interval '25 seconds' where id = $1`, [ledger.id])
  await other.sweep()
  await other.grant({ account: acc, amount: 2n - (await postedOf(acc)), note: '', actor: 'test' })
  // It is heard again, by itself and by all others.
  await ledger.sweep()
  const { outcome, paid, loss } = await settle(ledger, acc, id, 5n)
  assert.deepEqual({ outcome, paid, loss }, { outcome: 'late', paid: 2n, loss: 3n })
})

/** So many calls that are settled together and written when their lease has expired and only this is left. */
async function arriveLate(calls: number, left: bigint) {
  const other = await processOf()
  const written: string[] = []
  let isLate = false
  const ledger: Ledger & { id: string } = await processOf({
    database: behind(async (run, name) => {
      if (isLate && name.startsWith('journal_write')) {
        isLate = false
        written.push(name)
        await rows(`update gateway_instance set heartbeat_at = now() - interval '25 seconds' where id = $1`, [
          ledger.id,
        ])
        await other.sweep()
        await other.grant({ account: acc, amount: left - (await postedOf(acc)), note: '', actor: 'test' })
      }
      return run()
    }),
  })
  const acc = await account(100_000n)
  await lease(ledger, acc)
  const ids: string[] = []
  while (ids.length < calls) ids.push(await covered(ledger, acc))
  await ledger.posted()
  isLate = true
  const settled = await Promise.all(ids.map((id) => settle(ledger, acc, id, 5n)))
  assert.deepEqual(written, [calls === 1 ? 'journal_write_one' : 'journal_write'])
  return pluck(settled, 'outcome', 'paid', 'loss').sort()
}

test('a settlement that was sent in time and arrives after its lease has expired is told what was paid', async () => {
  assert.deepEqual(await arriveLate(1, 2n), [['late', 2n, 3n]])
})

test('of settlements that are sent together and arrive after their lease has expired, each is told what was paid', async () => {
  assert.deepEqual(await arriveLate(3, 6n), [
    ['late', 0n, 5n],
    ['late', 1n, 4n],
    ['late', 5n, 0n],
  ])
})

test('what the dead wrote of an account that is locked holds up no sweep', async () => {
  let posts = 0
  const counting = behind((run, name) => {
    if (name.startsWith('ledger_post')) posts += 1
    return run()
  })
  const [dying, other] = [await processOf({ world: stopped }), await processOf({ database: counting })]
  const acc = await account(100_000n)
  await lease(dying, acc)
  await dying.posted()
  const id = await covered(dying, acc)
  await settle(dying, acc, id, 3n)
  await age(id)
  // Enough for ten groups, each of which would be waited for.
  await rows(
    `insert into journal select (jsonb_populate_record(j, jsonb_build_object('id', 'more' || n, 'charged', 0))).* from journal j, generate_series(1, 2560) n where j.id = $1`,
    [id],
  )
  await database.transaction(async (tx) => {
    await tx.query({ text: 'select 1 from account where id = $1 for update' }, [acc])
    await other.sweep()
    assert.equal(posts, 1, 'it waited for each group of one account')
    assert.equal(await count('journal where id = $1', id), 1)
  })
  await other.sweep()
  assert.deepEqual(await chargesOf(id), [{ amount: 3n }])
})

/**
 * An account with all that a settlement can meet: a lease, one that has ended, holds, a hold that expired, and a call
 * that was settled before.
 */
async function mixedAccount(): Promise<{ acc: string; calls: object[] }> {
  const ledger = await processOf({ leases: false })
  const acc = await account(1_000n)
  await rows(
    `insert into counter (account_id, scope, name, unit, span, max, used, second, since)
     select $1, 'account', unit, unit, 'total', 1000000, 0, 0, '-infinity' from unnest('{requests,tokens,credits}'::text[]) unit`,
    [acc],
  )
  await rows(
    `insert into lease (account_id, id, key_id, process_id, amount, slices) values ($1, 'lease', 'k1', $2, 200, '{"7": [9, 90]}')`,
    [acc, ledger.id],
  )
  await rows('update account set held = 200 where id = $1', [acc])
  const held = (process: Ledger, id: string) => reserve(process, acc, 100n, { id })
  const dead = await processOf({ leases: false })
  for (const id of ['c5', 'c8']) await held(dead, id)
  await rows('delete from gateway_instance where id = $1', [dead.id])
  await rows(`select ledger_expire($1, '20 seconds')`, [acc])
  for (const id of ['c2', 'c3', 'c7']) await held(ledger, id)
  await settle(ledger, acc, 'c3', 9n)
  const cover = { lease: 'lease', amount: 30n, staysLeased: true, tokens: 10, second: 7, scopes: undefined }
  const of = (id: string, charge: bigint, over?: Cover, kind: 'settled' | 'released' = 'settled') => ({
    ...journalRow(settlement(acc, id, charge, { kind }), over),
    idempotent: false,
  })
  return {
    acc,
    calls: [
      of('c1', 11n, cover),
      of('c2', 0n, undefined, 'released'),
      of('c3', 9n),
      of('c4', 13n, { ...cover, lease: 'ended' }),
      of('c5', 17n),
      of('c6', 19n, { ...cover, staysLeased: false }),
      // More than there is.
      of('c7', 5_000n),
      of('c8', 23n),
      of('c9', 29n, cover),
    ],
  }
}

/** All that is written of an account by settlements, but for when. */
async function booksOf(acc: string): Promise<Readonly<Record<string, unknown>>> {
  const [books] = await rows<{ books: Readonly<Record<string, unknown>> }>(
    `select jsonb_build_object(
       'account', (select jsonb_build_array(posted, held, chain = (select hash from transfer t where t.account_id = $1 order by moved_at desc limit 1)) from account where id = $1),
       'transfers', (select jsonb_agg(jsonb_build_array(id, kind, amount, loss, held, balance, lots) order by moved_at) from transfer where account_id = $1 and kind <> 'grant'),
       'chained', (select bool_and(t.hash = transfer_hash(t.before, t.account_id, t.id, t.kind, t.amount, t.loss, t.held, t.balance, t.note, t.actor, t.lots))
         from (select t.*, lag(hash) over (order by moved_at) as before from transfer t where account_id = $1) t),
       'usage', (select jsonb_agg(jsonb_build_array(id, outcome, charged, loss, held, status) order by id) from usage where account_id = $1),
       'hours', (select jsonb_build_array(sum(requests), sum(errors), sum(charged), sum(input_tokens)) from usage_hour where account_id = $1),
       'counters', (select jsonb_object_agg(unit, used) from counter where account_id = $1),
       'leases', (select jsonb_agg(jsonb_build_array(id, amount, slices)) from lease where account_id = $1),
       'left', (select count(*) from held where account_id = $1 and id <> 'lease') + (select count(*) from journal where account_id = $1)) as books`,
    [acc],
  )
  return books!.books
}

test('calls that are settled together are settled as one by one, whatever each finds of its hold, lease or transfer', async () => {
  const [together, apart] = [await mixedAccount(), await mixedAccount()]
  const resolve = async (acc: string, calls: object[]) => {
    const [row] = await rows<{ answer: string[][] }>('select ledger_resolve($1, $2) as answer', [
      acc,
      JSON.stringify(calls),
    ])
    return row!.answer
  }
  const answers = await resolve(together.acc, together.calls)
  const single: string[][] = []
  for (const call of apart.calls) single.push(...(await resolve(apart.acc, [call])))
  assert.deepEqual(answers.sort(), single.sort())
  const outcomes = single.map(([id, outcome]) => `${id} ${outcome}`)
  assert.deepEqual(outcomes, [
    'c1 settled',
    'c2 released',
    'c3 already',
    'c4 late',
    'c5 late',
    'c6 settled',
    'c7 settled',
    'c8 late',
    'c9 settled',
  ])
  const books = await booksOf(together.acc)
  assert.deepEqual(books, await booksOf(apart.acc))
  assert.deepEqual([books.chained, books.left, books.account], [true, 0, [130, 130, true]])
  assert.deepEqual([books.leases, books.hours], [[['lease', 130, { 7: [6, 60] }]], [11, 2, 870, 36]])
  assert.deepEqual(books.counters, { requests: 6, tokens: 60, credits: 870 })
})
