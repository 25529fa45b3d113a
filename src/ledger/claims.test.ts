// Money that goes back while calls hold the credits: what they release is taken, and nothing that was bought later.
import { assert, test } from '../../test/kit.ts'
import { account, database, lease, processOf, reserve, rows, settle } from '../../test/ledger-part.ts'
import { NEVER } from '../kernel/timers.ts'
import { newId, realWorld } from '../kernel/world.ts'
import type { Ledger } from './ledger.ts'
import { endClaims, type Lot } from './lots.ts'

async function buy(ledger: Ledger, acc: string, amount: bigint, lot?: Lot) {
  const id = `pay_${newId(realWorld)}`
  const made = await ledger.grant({ account: acc, amount, note: id, actor: 'stripe', kind: 'purchase', lot })
  await rows(
    `insert into payment (account_id, id, provider, kind, currency, amount_minor, credits, state, transfer_id) values ($1, $2, 'stripe', 'amount', 'EUR', 100, $3, 'paid', $4)`,
    [acc, id, String(amount), made!.id],
  )
  return { id, lot: made!.id, amount }
}

/** As sales/apply.ts does it. */
async function goBack(
  ledger: Ledger,
  acc: string,
  { id, lot, amount }: Awaited<ReturnType<typeof buy>>,
  onlyFrom = false,
) {
  await ledger.returned(acc)
  const back = { account: acc, amount: -amount, note: id, actor: 'stripe', kind: 'refund' as const, payment: id }
  await database.transaction((tx) => ledger.grant({ ...back, from: lot, onlyFrom }, tx))
}

async function stateOf(acc: string) {
  const [row] = await rows<{ posted: bigint; held: bigint; claimed: bigint; sum: bigint; bad: bigint }>(
    `select posted, held, (select coalesce(sum(taken), 0)::bigint from claim where account_id = a.id) as claimed,
       (select sum(amount)::bigint from entry where account_id = a.id) as sum, (select count(*) from lot where account_id = a.id and held > remaining) as bad
     from account a where id = $1`,
    [acc],
  )
  const { sum, bad, ...state } = row!
  assert.deepEqual([sum, bad], [0n, 0n])
  return state
}

async function hold(ledger: Ledger, acc: string, want: bigint): Promise<string> {
  const reserved = await reserve(ledger, acc, want)
  assert.equal(reserved.outcome, 'held')
  return reserved.id
}

test('what running calls held at a chargeback is taken as they end, and credits bought meanwhile stay whole', async () => {
  const [one, other] = [await processOf({ leases: false }), await processOf({ leases: false })]
  const acc = await account(0n)
  const paid = await buy(one, acc, 2_200n)
  const calls = [await hold(one, acc, 1_000n), await hold(other, acc, 1_178n)]
  await goBack(one, acc, paid)
  assert.deepEqual(await stateOf(acc), { posted: 2_178n, held: 2_178n, claimed: 0n })
  await buy(other, acc, 500n)
  // A call from after the chargeback releases what was bought later, and keeps it.
  const later = await hold(other, acc, 400n)
  await settle(other, acc, later, 0n, { kind: 'released' })
  assert.deepEqual(await stateOf(acc), { posted: 2_678n, held: 2_178n, claimed: 0n })
  await settle(one, acc, calls[0]!, 30n)
  assert.deepEqual(await stateOf(acc), { posted: 1_678n, held: 1_178n, claimed: 970n })
  await settle(one, acc, calls[0]!, 30n)
  await settle(other, acc, calls[1]!, 0n, { kind: 'released' })
  assert.deepEqual(await stateOf(acc), { posted: 500n, held: 0n, claimed: 2_148n })
})

test('a claim takes no more than was owed, and what the calls spent stays a loss', async () => {
  const ledger = await processOf({ leases: false })
  const acc = await account(300n)
  const paid = await buy(ledger, acc, 200n)
  const calls = [await hold(ledger, acc, 250n), await hold(ledger, acc, 200n)]
  await goBack(ledger, acc, paid)
  assert.deepEqual(await stateOf(acc), { posted: 450n, held: 450n, claimed: 0n })
  await settle(ledger, acc, calls[0]!, 200n)
  assert.deepEqual(await stateOf(acc), { posted: 200n, held: 200n, claimed: 50n })
  await settle(ledger, acc, calls[1]!, 20n)
  assert.deepEqual(await stateOf(acc), { posted: 80n, held: 0n, claimed: 150n })
})

test('what is claimed does not come back: a call that would need it cannot pay, and does not wait', async () => {
  const ledger = await processOf({ leases: false, creditWaitMs: 600_000 })
  const acc = await account(100n)
  const paid = await buy(ledger, acc, 1_000n)
  const [first, second] = [await hold(ledger, acc, 600n), await hold(ledger, acc, 500n)]
  await goBack(ledger, acc, paid)
  const asks = async (want: bigint) => {
    const { outcome, ...short } = await reserve(ledger, acc, want, {}, NEVER)
    return [outcome, 'running' in short]
  }
  assert.deepEqual(await asks(101n), ['short', false])
  // What the claim leaves comes back.
  const waiting = asks(100n)
  await settle(ledger, acc, first, 0n, { kind: 'released' })
  await settle(ledger, acc, second, 0n, { kind: 'released' })
  assert.deepEqual(await waiting, ['held', false])
  // What calls have spent of a claim is not there to be taken, whatever comes back later.
  const more = await buy(ledger, acc, 1_000n)
  await settle(ledger, acc, await hold(ledger, acc, 900n), 900n)
  await hold(ledger, acc, 100n)
  await goBack(ledger, acc, more)
  await buy(ledger, acc, 300n)
  const later = await hold(ledger, acc, 300n)
  const behind = asks(200n)
  await settle(ledger, acc, later, 0n, { kind: 'released' })
  assert.deepEqual(await behind, ['held', false])
})

test('two payments that go back are claimed from what was held at each, the first one first', async () => {
  const ledger = await processOf({ leases: false })
  const acc = await account(0n)
  const [first, second] = [await buy(ledger, acc, 100n), await buy(ledger, acc, 100n)]
  const old = await hold(ledger, acc, 200n)
  await goBack(ledger, acc, first)
  await goBack(ledger, acc, second)
  await buy(ledger, acc, 70n)
  const young = await hold(ledger, acc, 70n)
  await settle(ledger, acc, old, 60n)
  const taken = await rows('select number, taken from claim where account_id = $1 order by number', [acc])
  assert.deepEqual(taken, [
    { number: 1, taken: 100n },
    { number: 2, taken: 40n },
  ])
  await settle(ledger, acc, young, 10n)
  assert.deepEqual(await stateOf(acc), { posted: 60n, held: 0n, claimed: 140n })
})

test('what a lease from before gives back is claimed, at a process that lives and one that was killed', async () => {
  const [living, killed] = [await processOf(), await processOf()]
  const acc = await account(0n)
  const paid = await buy(living, acc, 4_000_000n)
  await lease(living, acc, 100n)
  await lease(killed, acc, 100n)
  const calls = [await hold(living, acc, 100n), await hold(killed, acc, 100n)]
  const spent = 4_000_000n - (await stateOf(acc)).posted
  // Nobody waits for the leases: as if they had been made at the last moment.
  const back = { account: acc, amount: -4_000_000n, note: paid.id, actor: 'stripe', kind: 'refund' as const }
  await database.transaction((tx) => living.grant({ ...back, from: paid.lot, payment: paid.id }, tx))
  assert.equal((await stateOf(acc)).claimed, 0n)
  await buy(living, acc, 77n)
  await settle(living, acc, calls[0]!, 40n)
  await living.posted(acc)
  living.recall(acc)
  await living.idle()
  await rows('delete from gateway_instance where id = $1', [killed.id])
  await rows(`select ledger_expire($1, interval '20 seconds')`, [acc])
  const { posted, held, claimed } = await stateOf(acc)
  assert.deepEqual([posted, held], [77n, 0n])
  const [refund] = await rows<{ held: bigint }>(
    `select held from transfer where account_id = $1 and held > 0 and kind = 'refund'`,
    [acc],
  )
  assert.equal(claimed, refund!.held - 40n)
  // A call that was settled after all is late, and takes what is there.
  assert.equal((await settle(killed, acc, calls[1]!, 50n)).outcome, 'late')
  assert.deepEqual(await stateOf(acc), { posted: 27n, held: 0n, claimed })
  assert.ok(spent > 0n)
})

test('a lease from before a chargeback does not grow', async () => {
  const ledger = await processOf()
  const acc = await account(0n)
  const paid = await buy(ledger, acc, 1_000_000n)
  await lease(ledger, acc, 100n)
  const held = await hold(ledger, acc, 100n)
  const back = { account: acc, amount: -1_000_000n, note: paid.id, actor: 'stripe', kind: 'refund' as const }
  await database.transaction((tx) => ledger.grant({ ...back, payment: paid.id, from: paid.lot }, tx))
  await buy(ledger, acc, 1_000_000n)
  const [row] = await rows<{ id: string; amount: bigint }>('select id, amount from lease where account_id = $1', [acc])
  const change = {
    id: row!.id,
    key: 'k1',
    fresh: false,
    give: 0,
    add: 5_000,
    least: 1,
    requests: 0,
    tokens: 0,
    close: false,
  }
  const [answer] = await rows<{ answer: Array<{ added: string }> }>('select ledger_lease($1, $2, $3, null) as answer', [
    acc,
    ledger.id,
    JSON.stringify([change]),
  ])
  assert.equal(answer!.answer[0]!.added, '0')
  await settle(ledger, acc, held, 100n)
  await ledger.idle()
  assert.equal((await stateOf(acc)).posted, 1_000_000n)
})

test('the credits of a plan’s month are claimed from what returns to that lot, and from no other', async () => {
  const ledger = await processOf({ leases: false })
  const acc = await account(1_000n)
  const lot = { source: 'plan' as const, endsAt: new Date(Date.now() + 3_600_000) }
  const month = await buy(ledger, acc, 300n, lot)
  const call = await hold(ledger, acc, 500n)
  await goBack(ledger, acc, month, true)
  assert.deepEqual(await stateOf(acc), { posted: 1_300n, held: 500n, claimed: 0n })
  await settle(ledger, acc, call, 100n)
  assert.deepEqual(await stateOf(acc), { posted: 1_000n, held: 0n, claimed: 200n })
  const [left] = await rows('select remaining, held from lot where account_id = $1', [acc])
  assert.deepEqual(left, { remaining: 0n, held: 0n })
})

test('a dispute that is won ends the claim, and says what it took', async () => {
  const ledger = await processOf({ leases: false })
  const acc = await account(0n)
  const paid = await buy(ledger, acc, 100n)
  const calls = [await hold(ledger, acc, 50n), await hold(ledger, acc, 50n)]
  await goBack(ledger, acc, paid)
  await settle(ledger, acc, calls[0]!, 10n)
  assert.equal(await database.transaction((tx) => endClaims(tx, acc, paid.id)), 40n)
  await settle(ledger, acc, calls[1]!, 10n)
  assert.deepEqual(await stateOf(acc), { posted: 40n, held: 0n, claimed: 0n })
})
