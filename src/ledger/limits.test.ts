// Limits are exact, whatever is leased, and whoever shares them.
import assert from 'node:assert/strict'
import { test } from 'node:test'
import { setTimeout as sleep } from 'node:timers/promises'
import { type FreshDatabase, freshDatabase } from '../../test/database.ts'
import {
  account,
  behind,
  call,
  count,
  database,
  fresh,
  hasHold,
  lease,
  processOf,
  reserve,
  rows,
  settle,
} from '../../test/ledger-part.ts'
import { type Counts, runSwarm } from '../../test/ledger-swarm.ts'
import { openDatabase } from '../database/database.ts'
import { MINUTE_BUCKETS } from '../database/functions.ts'
import { forgetStrayShares, keepLimits, type Limits } from './limits.ts'
import type { Resolved } from './operation.ts'

test('no call is admitted uncounted while a lease is being changed', async () => {
  let slow = false
  const ledger = await processOf({
    database: behind(async (run, name) => {
      const result = run()
      if (slow && /^ledger_flush_[4-7]/.test(name)) await sleep(300)
      return result
    }),
  })
  const acc = await account(1_000_000n)
  await database.transaction((tx) => keepLimits(tx, { kind: 'account', account: acc }, { requestsPerMinute: 400 }))
  await lease(ledger, acc)
  slow = true
  const endMs = Date.now() + 2_500
  let held = await count('transfer where account_id = $1 and kind = $2', acc, 'settled')
  const lane = async () => {
    while (Date.now() < endMs) {
      const { outcome } = await call(ledger, acc, 10n)
      if (outcome === 'held') held += 1
      else await sleep(20)
    }
  }
  await Promise.all([lane(), lane(), lane(), lane(), lane(), lane()])
  const [row] = await rows<{ used: bigint }>('select requests_used as used from limited where account_id = $1', [acc])
  assert.ok(held <= 400, `${held} were admitted of 400 in a minute`)
  assert.ok(held <= Number(row!.used), `${held} were admitted, and ${row!.used} counted`)
})

test('free calls are counted among those at the same time, and leave', async () => {
  const ledger = await processOf()
  const acc = await account(1_000n)
  await database.transaction((tx) => keepLimits(tx, { kind: 'account', account: acc }, { concurrency: 2 }))
  for (let i = 0; i < 3; i++) {
    const reserved = await reserve(ledger, acc, 0n)
    assert.equal(reserved.outcome, 'held')
    await settle(ledger, acc, reserved.id, 0n)
  }
  const [row] = await rows<{ open: number }>('select open_calls as open from limited where account_id = $1', [acc])
  assert.equal(row!.open, 0)
})

test('a flush that waited for new limits counts by them', async () => {
  const ledger = await processOf()
  const acc = await account(1_000n)
  // There must be no other limit, or every flush looks for them.
  await rows(`delete from limited`)
  const reserved = await reserve(ledger, acc, 100n)
  let settled: Promise<Resolved> | undefined
  await database.transaction(async (tx) => {
    await keepLimits(tx, { kind: 'account', account: acc }, { spendPerDay: '500', concurrency: 5 })
    settled = settle(ledger, acc, reserved.id, 30n)
    await sleep(150)
  })
  await settled
  const [row] = await rows(`select held, open_calls, day_spent from limited where account_id = $1`, [acc])
  assert.deepEqual(row, { held: 0n, open_calls: 0, day_spent: 30n })
})

test('a late settlement counts against limits on spending', async () => {
  const [slept, other] = [await processOf(), await processOf()]
  const acc = await account(1_000n)
  await database.transaction((tx) => keepLimits(tx, { kind: 'account', account: acc }, { spendPerDay: '200' }))
  const first = await reserve(slept, acc, 150n)
  await rows(`update process set heartbeat_at = now() - interval '25 seconds' where id = $1`, [slept.id])
  await other.sweep()
  assert.equal((await settle(slept, acc, first.id, 150n)).outcome, 'late')
  assert.deepEqual((await reserve(other, acc, 100n)).outcome, 'limited')
  assert.deepEqual((await reserve(other, acc, 50n)).outcome, 'held')
})

test('the shares of a process that died before it had one count nothing that it did not have', async () => {
  const [dead, other] = [await processOf(), await processOf()]
  const acc = await account(10_000n)
  await reserve(dead, acc, 500n)
  await database.transaction((tx) => keepLimits(tx, { kind: 'system' }, { spendPerDay: '1000000000' }))
  try {
    // It asks for its share, and is gone before it has any.
    await rows(`insert into limited (account_id, scope, limits) values ('', 'system@' || $1, '{}')`, [dead.id])
    await rows(`update process set heartbeat_at = now() - interval '25 seconds' where id = $1`, [dead.id])
    await other.sweep()
    assert.equal(await count('hold where account_id = $1', acc), 0)
    assert.equal(await count(`limited where held < 0`), 0)
  } finally {
    await database.transaction((tx) => keepLimits(tx, { kind: 'system' }, {}))
  }
})

test('what is left of the system’s limits is had by one call, whoever else has a share', async () => {
  const [first, second] = [await processOf({ leases: false }), await processOf({ leases: false })]
  const acc = await account(100_000n)
  await rows('delete from limited')
  await database.transaction((tx) => keepLimits(tx, { kind: 'system' }, { spendTotal: '1000000000' }))
  const [spent] = await rows<{ spent: bigint }>(`select total_spent as spent from limited where account_id = ''`)
  const most = String(spent!.spent + 1_000n)
  await database.transaction((tx) => keepLimits(tx, { kind: 'system' }, { spendTotal: most }))
  try {
    for (const ledger of [first, second]) assert.equal((await call(ledger, acc, 10n)).outcome, 'held')
    assert.equal((await call(second, acc, 980n)).outcome, 'held')
    assert.equal((await call(first, acc, 1n)).outcome, 'limited')
  } finally {
    await database.transaction((tx) => keepLimits(tx, { kind: 'system' }, {}))
  }
})

test('a share that a flush makes while the limits of the system are removed counts for no later ones', async () => {
  const acc = await account(100_000n)
  const ledger = await processOf({ leases: false })
  const set = (limits: Limits) => database.transaction((tx) => keepLimits(tx, { kind: 'system' }, limits))
  const strays = () => count(`limited where account_id = ''`)
  const removed = async () => {
    await set({ spendTotal: '50000' })
    // A flush has made its process' share, and is not over.
    await database.transaction(async (tx) => {
      await tx.query({
        text: `insert into limited (account_id, scope, limits, total_spent) values ('', 'system@late', '{}', 40000)`,
      })
      await set({})
    })
    assert.equal(await strays(), 1)
  }
  await removed()
  await forgetStrayShares(database)
  assert.equal(await strays(), 0)
  await removed()
  const [spent] = await rows<{ sum: bigint }>('select coalesce(sum(charged), 0)::bigint as sum from usage_hour')
  await set({ spendTotal: String(spent!.sum + 20_000n) })
  try {
    assert.equal((await call(ledger, acc, 15_000n)).outcome, 'held')
    await forgetStrayShares(database)
    assert.equal((await call(ledger, acc, 15_000n)).outcome, 'limited')
  } finally {
    await set({})
  }
})

test('four processes admit as much as each limit allows, and not one call more', async () => {
  const LIMITS = [{ requestsPerMinute: 100 }, { tokensPerMinute: 1_000 }, { spendPerDay: '1000' }]
  const of: Array<{ url: string; account: string }> = []
  for (const limits of LIMITS)
    for (const kind of ['account', 'key'] as const) {
      const acc = await account(1_000_000n)
      await database.transaction((tx) => keepLimits(tx, { kind, account: acc, key: 'k1', earlier: [] }, limits))
      of.push({ url: fresh.url, account: acc })
    }
  const systemsFrom = of.length
  const systems: FreshDatabase[] = []
  try {
    for (const limits of LIMITS) {
      const system = await freshDatabase()
      systems.push(system)
      const its = openDatabase({ connection: system.connection, connectionsMax: 1 })
      await its.query({ text: `insert into account (id, name, posted) values ('acc_1', '', 1000000)` })
      await its.transaction((tx) => keepLimits(tx, { kind: 'system' }, limits)).finally(() => its.close())
      of.push({ url: system.url, account: 'acc_1' })
    }
    const isEnough = (counts: readonly Counts[]) => counts.every(({ held }) => held >= 100)
    const startMs = Date.now()
    const counts = await runSwarm(4, { of, want: '10', isEnough })
    // A machine on which this takes longer than a minute admits more in the next one.
    const minutes = Math.ceil((Date.now() - startMs) / 60_000)
    for (const [at, { held, failed }] of counts.entries()) {
      const limits = LIMITS[at < systemsFrom ? at >> 1 : at - systemsFrom] ?? {}
      const most = 'spendPerDay' in limits ? 100 : 100 * minutes
      assert.equal(failed, 0)
      assert.ok(held >= 100 && held <= most, `${JSON.stringify(limits)}: ${held} held of ${most}`)
    }
  } finally {
    for (const system of systems) await system.drop()
  }
})

test('what was given of a minute ahead is counted for as long as it could have been used, and not longer', async () => {
  const counted = async (secondsLater: number, more = 0) => {
    const [row] = await rows<{ used: bigint; sum: bigint; minute: bigint }>(
      `with l as (
         select limited_counted(array[row('a', 's', '{}', 0, 0, 1000, '{}', 0, '{}', 0, now()::date, 0, now()::date, 0, 0, now())::limited],
           1000, '{0}', '{0}', '{0}', '{2}', '{0}', '{1,1}', '{1004,996}', '{7,3}', '{0,0}') as l
       ), later as (
         select limited_now(l.l[1], 1000 + $1::int, now()::date) as l from l
       ), more as (
         select coalesce((limited_counted(array[later.l], 1000 + $1::int, '{0}', '{0}', '{0}', array[$2::int], '{0}', null, null, null, null))[1], later.l) as n from later
       )
       select (n).requests_used as used, (select sum(x) from unnest((n).requests) x)::bigint as sum,
         limited_minute((n).requests, (n).requests_used, (n).second, 1000 + $1::int) as minute from more`,
      [String(secondsLater), String(more)],
    )
    assert.equal(row!.used, row!.sum ?? 0n, 'the seconds sum up to what is used')
    return Number(row!.minute)
  }
  const found: Record<number, number> = {}
  for (const later of [0, 56, 57, 60, 61, 64, 65, 66, 500]) found[later] = await counted(later)
  assert.deepEqual(found, { 0: 12, 56: 12, 57: 9, 60: 9, 61: 7, 64: 7, 65: 0, 66: 0, 500: 0 })
  assert.equal(await counted(63, 5), 12)
  // A flush that waited for the row has the time at which it began; what the row's minute no longer has is not put into a second to come.
  const [late] = await rows<{ used: bigint }>(
    `select requests_used as used from unnest(limited_counted(
       array[row('a', 's', '{}', 0, 0, 1000, '{}', 0, '{}', 0, now()::date, 0, now()::date, 0, 0, now())::limited],
       990, '{0}', '{0}', '{0}', '{2}', '{0}', '{1,1}', '{933,941}', '{100,30}', '{0,0}'))`,
  )
  assert.equal(late!.used, 32n)
})

/** As if its calls of a minute had all come in one second, so many seconds ago. */
const cameBefore = (acc: string, seconds: number, calls: number) =>
  rows(
    `update limited set second = x.now - $2::int, requests_used = $3,
       requests = array(select case when i = (x.now - $2::int) % ${MINUTE_BUCKETS} then $3::bigint else 0 end from generate_series(0, ${MINUTE_BUCKETS - 1}) i order by i)
     from (select floor(extract(epoch from clock_timestamp()))::bigint as now) x where account_id = $1`,
    [acc, String(seconds), String(calls)],
  )

/** Far enough from the next second, and from the one before, that what follows counts to the same one. */
async function earlyInASecond(): Promise<void> {
  while (Date.now() % 1_000 < 300 || Date.now() % 1_000 > 600) await sleep(20)
}

test('no 60 seconds admit one call more than the limit: a call is judged by when it came, to the second and however long it waited', async () => {
  const ledger = await processOf({ leases: false, reserveForMs: 4_500 })
  const acc = await account(1_000n)
  await database.transaction((tx) => keepLimits(tx, { kind: 'account', account: acc }, { requestsPerMinute: 60 }))
  await earlyInASecond()
  await cameBefore(acc, 62, 60)
  assert.equal((await reserve(ledger, acc, 1n)).outcome, 'held', 'all came more than a minute ago')
  // A second that began 60 seconds ago ended 59 seconds ago.
  await cameBefore(acc, 60, 60)
  assert.equal((await reserve(ledger, acc, 1n)).outcome, 'limited')
  await cameBefore(acc, 60, 59)
  assert.equal((await reserve(ledger, acc, 1n)).outcome, 'held', 'the 60th')

  // It comes in time to be refused, and waits until all others were more than a minute ago.
  await earlyInASecond()
  await cameBefore(acc, 60, 60)
  let waiting: Promise<{ outcome: string }> | undefined
  await database.transaction(async (tx) => {
    await tx.query({ text: 'select 1 from account where id = $1 for update' }, [acc])
    waiting = reserve(ledger, acc, 1n)
    const startMs = Date.now()
    while (Date.now() < startMs + 2_000) await sleep(50)
  })
  assert.equal((await waiting)?.outcome, 'limited')
})

test('a settlement leaves alone what limits only requests, and one that a lease covers is one small statement', async () => {
  const names: string[] = []
  const ledger = await processOf({
    database: behind((run, name) => {
      names.push(name)
      return run()
    }),
  })
  const [acc, other] = [await account(1_000_000n), await account(1_000n)]
  // What limits somebody else's spending is no matter either.
  for (const [one, limits] of [
    [acc, { requestsPerMinute: 1_000_000 }],
    [other, { spendPerDay: '500' }],
  ] as const)
    await database.transaction((tx) => keepLimits(tx, { kind: 'account', account: one }, limits))
  await lease(ledger, acc)
  const row = () => rows('select xmin::text as version from limited where account_id = $1', [acc])
  // Now and then a lease is renewed just then, and shares its statement.
  const seen: string[] = []
  for (let turn = 0; turn < 10 && !seen.includes('alone'); turn++) {
    const reserved = await reserve(ledger, acc, 10n)
    const isCovered = !(await hasHold(reserved.id))
    const before = await row()
    names.length = 0
    await settle(ledger, acc, reserved.id, 3n)
    const isAlone = names.join() === 'journal_write_one'
    seen.push(isCovered && isAlone ? 'alone' : `${isCovered} ${names}`)
    await ledger.booked()
    if (isCovered && isAlone) assert.deepEqual(await row(), before)
  }
  assert.ok(seen.includes('alone'), seen.join('; '))
})

test('a limit on a minute takes off nothing that it has not counted: calls and leases from before it was set', async () => {
  const ledger = await processOf()
  const set = (acc: string, scope: 'account' | 'key', limits: Limits) =>
    database.transaction((tx) => keepLimits(tx, { kind: scope, account: acc, key: 'k1', earlier: [] }, limits))
  const used = (acc: string) =>
    rows<{ scope: string; requests: bigint; tokens: bigint }>(
      'select scope, requests_used as requests, tokens_used as tokens from limited where account_id = $1 order by scope',
      [acc],
    )
  const called = await account(1_000n)
  const before = await reserve(ledger, called, 10n, { tokens: 5_000 })
  await set(called, 'account', { tokensPerMinute: 1_000 })
  const later = await reserve(ledger, called, 10n, { tokens: 400 })
  await settle(ledger, called, before.id, 1n, { inputTokens: 20, outputTokens: 10 })
  assert.deepEqual(await used(called), [{ scope: 'account', requests: 0n, tokens: 400n }])
  // Its own worst case it does take off.
  await settle(ledger, called, later.id, 1n, { inputTokens: 20, outputTokens: 10 })
  assert.deepEqual(await used(called), [{ scope: 'account', requests: 0n, tokens: 30n }])

  const leased = await account(1_000_000n)
  await set(leased, 'account', { requestsPerMinute: 100_000, tokensPerMinute: 1_000_000 })
  await lease(ledger, leased)
  await set(leased, 'key', { requestsPerMinute: 10, tokensPerMinute: 100 })
  await set(leased, 'account', {})
  await set(leased, 'account', { requestsPerMinute: 20, tokensPerMinute: 200 })
  await ledger.idle()
  assert.deepEqual(await used(leased), [
    { scope: 'account', requests: 0n, tokens: 0n },
    { scope: 'k1', requests: 0n, tokens: 0n },
  ])
})

test('a lease is given of the minute only what it asks for, and nothing is counted where it asks for none', async () => {
  const acc = await account(1_000_000n)
  await database.transaction((tx) => keepLimits(tx, { kind: 'account', account: acc }, { requestsPerMinute: 1_000 }))
  const ask = async (id: string, requests: string) => {
    const [row] = await rows<{ leased: string }>(
      `select leased from ledger_flush(process => 'p', accounts => array[$1], keys => '{k1}', key_accounts => '{1}', leases => array[$2],
         l_lease => '{1}', l_account => '{1}', l_key => '{1}', l_new => '{t}', l_give => '{0}', l_add => '{100}', l_least => '{1}',
         l_requests => $3, l_tokens => $3, l_close => '{f}')`,
      [acc, id, requests],
    )
    const [used] = await rows<{ used: bigint }>('select requests_used as used from limited where account_id = $1', [
      acc,
    ])
    return [...(row?.leased.split(';').slice(0, 2) ?? []), used?.used]
  }
  assert.deepEqual(await ask('l1', '{NULL}'), ['100', '-1', 0n])
  assert.deepEqual(await ask('l2', '{5}'), ['100', '80', 80n])
})
