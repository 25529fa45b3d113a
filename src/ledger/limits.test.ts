// Limits are exact, whatever is leased, and whoever shares them.

import { type FreshDatabase, freshDatabase } from '../../test/database.ts'
import { above, afterEach, assert, atLeast, atOnce, test, until } from '../../test/kit.ts'
import {
  account,
  behind,
  call,
  count,
  database,
  eventually,
  fresh,
  hasHold,
  lease,
  processOf,
  reserve,
  rows,
  settle,
} from '../../test/ledger-part.ts'
import { type Counts, runSwarm } from '../../test/ledger-swarm.ts'
import { Fault } from '../kernel/fault.ts'
import { type Limits, storeLimits } from './limits.ts'
import type { Resolved } from './operation.ts'

const system = (limits: Limits) => database.transaction((tx) => storeLimits(tx, { kind: 'system' }, limits))
const limited = (acc: string, limits: Limits) =>
  database.transaction((tx) => storeLimits(tx, { kind: 'account', account: acc }, limits))
afterEach(() => system({}))

test('no call is admitted uncounted while a lease is being changed', async () => {
  let slow = false
  const ledger = await processOf({
    database: behind(async (run, name) => {
      const result = run()
      if (slow && name === 'ledger_lease') await rows('select pg_sleep(0.3)')
      return result
    }),
  })
  const acc = await account(1_000_000n)
  await limited(acc, { requestsPerMinute: 400 })
  await lease(ledger, acc)
  slow = true
  let held = await count('transfer where account_id = $1 and kind = $2', acc, 'settled')
  const lane = async () => {
    for (let made = 0; made < 100; made += 1) if ((await call(ledger, acc, 10n)).outcome === 'held') held += 1
  }
  await Promise.all([lane(), lane(), lane(), lane(), lane(), lane()])
  const [row] = await rows<{ used: bigint }>('select used from counter where account_id = $1', [acc])
  assert.ok(held <= 400, `${held} were admitted of 400 in a minute`)
  assert.ok(held <= Number(row!.used), `${held} were admitted, and ${row!.used} counted`)
})

test('a burst gets all that a minute allows, also what its own process was given a moment ago and cannot use yet', async () => {
  for (const scope of [{ kind: 'account' }, { kind: 'key', key: 'k1', earlier: [] }] as const) {
    const ledger = await processOf({
      database: behind(async (run, name) => {
        const result = await run()
        if (name === 'ledger_lease') await rows('select pg_sleep(0.3)')
        return result
      }),
    })
    const acc = await account(100_000n)
    await database.transaction((tx) => storeLimits(tx, { ...scope, account: acc }, { requestsPerMinute: 15 }))
    for (let i = 0; i < 3; i++) assert.equal((await call(ledger, acc, 10n)).outcome, 'held')
    await eventually(
      'the lease has its slice',
      async () => (await count(`lease where account_id = $1 and slices <> '{}'`, acc)) === 1,
    )
    const all = await atOnce(60, () => reserve(ledger, acc, 10n))
    const admitted = all.filter(({ outcome }) => outcome === 'held').length
    assert.equal(admitted, 12, scope.kind)
    for (const { outcome } of all) assert.ok(outcome === 'held' || outcome === 'limited')
  }
})

test('free calls are counted among those at the same time, and leave', async () => {
  const ledger = await processOf()
  const acc = await account(1_000n)
  await limited(acc, { concurrency: 2 })
  for (let i = 0; i < 3; i++) {
    const reserved = await reserve(ledger, acc, 0n)
    assert.equal(reserved.outcome, 'held')
    await settle(ledger, acc, reserved.id, 0n)
  }
  assert.equal(await count('hold where account_id = $1', acc), 0)
})

test('a settlement that waited for new limits counts by them', async () => {
  const ledger = await processOf()
  const acc = await account(1_000n)
  const reserved = await reserve(ledger, acc, 100n)
  let settled: Promise<Resolved> | undefined
  await database.transaction(async (tx) => {
    await storeLimits(tx, { kind: 'account', account: acc }, { spendPerDay: '500', concurrency: 5 })
    settled = settle(ledger, acc, reserved.id, 30n)
    await until(
      () => count(`pg_stat_activity where datname = current_database() and wait_event_type = 'Lock'`),
      above(0),
    )
  })
  await settled
  const counted = await rows(`select name, used from counter where account_id = $1 order by name`, [acc])
  assert.deepEqual(counted, [
    { name: 'concurrency', used: 0n },
    { name: 'spendPerDay', used: 30n },
  ])
})

test('a late settlement counts against limits on spending', async () => {
  const [slept, other] = [await processOf(), await processOf()]
  const acc = await account(1_000n)
  await limited(acc, { spendPerDay: '200' })
  const first = await reserve(slept, acc, 150n)
  await rows(`update gateway_instance set heartbeat_at = now() - interval '25 seconds' where id = $1`, [slept.id])
  await other.sweep()
  assert.equal((await settle(slept, acc, first.id, 150n)).outcome, 'late')
  assert.deepEqual((await reserve(other, acc, 100n)).outcome, 'limited')
  assert.deepEqual((await reserve(other, acc, 50n)).outcome, 'held')
})

/** Also what earlier tests have left in the journal. */
async function spentSoFar(): Promise<bigint> {
  const [row] = await rows<{ sum: bigint }>(
    'select coalesce(sum(charged), 0)::bigint as sum from (select charged from usage_hour union all select charged from journal) x',
  )
  return row!.sum
}

test('what is left of the system’s limits is had by one call, whoever else has a share', async () => {
  const [first, second] = [await processOf({ leases: false }), await processOf({ leases: false })]
  const acc = await account(100_000n)
  const spent = await spentSoFar()
  await system({ spendTotal: '1000000000' })
  await system({ spendTotal: String(spent + 1_000n) })
  for (const ledger of [first, second]) assert.equal((await call(ledger, acc, 10n)).outcome, 'held')
  assert.equal((await call(second, acc, 980n)).outcome, 'held')
  assert.equal((await call(first, acc, 1n)).outcome, 'limited')
  await system({})
  assert.equal((await call(first, acc, 1n)).outcome, 'held', 'without limits')
})

test('what a dead process had of the system’s limits is free again, but for what it has spent', async () => {
  const [dead, other] = [await processOf({ leases: false }), await processOf({ leases: false })]
  const acc = await account(100_000n)
  const spent = await spentSoFar()
  await system({ spendTotal: String(spent + 1_000n), concurrency: 3 })
  assert.equal((await call(dead, acc, 400n)).outcome, 'held')
  for (let i = 0; i < 2; i++) assert.equal((await reserve(dead, acc, 100n)).outcome, 'held')
  assert.equal((await reserve(other, acc, 500n)).outcome, 'limited')
  await rows(`update gateway_instance set heartbeat_at = now() - interval '25 seconds' where id = $1`, [dead.id])
  await other.sweep()
  assert.equal((await reserve(other, acc, 601n)).outcome, 'limited')
  assert.equal((await reserve(other, acc, 600n)).outcome, 'held')
})

test('tokens of the gateway’s minute that one process was given and does not use are another’s', async () => {
  const [first, second] = [await processOf({ leases: false }), await processOf({ leases: false })]
  const [acc, poor] = [await account(100_000n), await account(1n)]
  await system({ tokensPerMinute: 100 })
  assert.equal((await call(first, acc, 10n)).outcome, 'held')
  assert.equal((await reserve(first, poor, 10n)).outcome, 'short')
  for (let i = 0; i < 9; i++) assert.equal((await call(second, acc, 10n)).outcome, 'held', `after ${i}`)
  assert.equal((await call(second, acc, 10n)).outcome, 'limited')
})

test('four processes admit as much as each limit allows, and not one call more', async () => {
  const LIMITS = [{ requestsPerMinute: 100 }, { tokensPerMinute: 1_000 }, { spendPerDay: '1000' }]
  const of: Array<{ url: string; account: string }> = []
  for (const limits of LIMITS)
    for (const kind of ['account', 'key'] as const) {
      const acc = await account(1_000_000n)
      await database.transaction((tx) => storeLimits(tx, { kind, account: acc, key: 'k1', earlier: [] }, limits))
      of.push({ url: fresh.url, account: acc })
    }
  const systemsFrom = of.length
  const systems: FreshDatabase[] = []
  try {
    for (const limits of LIMITS) {
      const system = await freshDatabase()
      systems.push(system)
      const its = system.open({ connectionsMax: 1 })
      await its.query({ text: `insert into account (id, name, posted) values ('acc_1', '', 1000000)` })
      await its.transaction((tx) => storeLimits(tx, { kind: 'system' }, limits)).finally(() => its.close())
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
  const MINUTE = `row('a', 's', 'n', 'requests', 'minute', 0, 0, $1::bigint, array_fill(0::bigint, array[83]), now(), 1, false, false)::counter`
  const counted = async (secondsLater: number, more = 0) => {
    const [row] = await rows<{ used: bigint; sum: bigint; minute: bigint }>(
      `with c as (
         select counter_add(${MINUTE}, '{1000,1004,996}', '{2,7,3}') as c
       ), later as (
         select counter_add(counter_now(c, $1 + $2::int), array[$1 + $2::int], array[$3::int]) as c from c
       )
       select (c).used, (select sum(x) from unnest((c).seconds) x)::bigint as sum, counter_used(c, $1 + $2::int) as minute from later`,
      ['1000', String(secondsLater), String(more)],
    )
    assert.equal(row!.used, row!.sum, 'the seconds sum up to what is used')
    return Number(row!.minute)
  }
  const found: Record<number, number> = {}
  for (const later of [0, 56, 57, 60, 61, 64, 65, 66, 500]) found[later] = await counted(later)
  assert.deepEqual(found, { 0: 12, 56: 12, 57: 9, 60: 9, 61: 7, 64: 7, 65: 0, 66: 0, 500: 0 })
  assert.equal(await counted(63, 5), 12)
  // What the minute no longer has is not put into a second to come.
  const [late] = await rows<{ used: bigint }>(
    `select (counter_add(${MINUTE}, '{933,941,990}', '{100,30,2}')).used as used`,
    ['1000'],
  )
  assert.equal(late!.used, 32n)
})

/** As if its calls of a minute had all come in one second, so many seconds ago. */
const cameBefore = (acc: string, seconds: number, calls: number) =>
  rows(
    `update counter set second = x.now - $2::int, used = $3,
       seconds = array(select case when i = (x.now - $2::int) % 83 then $3::bigint else 0 end from generate_series(0, 82) i order by i)
     from (select floor(extract(epoch from clock_timestamp()))::bigint as now) x where account_id = $1`,
    [acc, String(seconds), String(calls)],
  )

const second = () => Math.floor(Date.now() / 1_000)

/** Once more, if the machine was so slow that another second had begun. */
const inASecond = <T>(run: (isOver: () => boolean) => Promise<T | undefined>) =>
  until(() => {
    const began = second()
    return run(() => second() !== began)
  })

test('no 60 seconds admit one call more than the limit: a call is judged by when it came, to the second and however long it waited', async () => {
  const ledger = await processOf({ leases: false, reserveForMs: 60_000 })
  const acc = await account(1_000n)
  await limited(acc, { requestsPerMinute: 60 })
  const judged = (seconds: number, calls: number) =>
    inASecond(async (isOver) => {
      await cameBefore(acc, seconds, calls)
      const { outcome } = await reserve(ledger, acc, 1n)
      return isOver() ? undefined : outcome
    })
  assert.equal(await judged(62, 60), 'held', 'all came more than a minute ago')
  // A second that began 60 seconds ago ended 59 seconds ago.
  assert.equal(await judged(60, 60), 'limited')
  assert.equal(await judged(60, 59), 'held', 'the 60th')

  // It comes in time to be refused, and waits until all others were more than a minute ago.
  const late = await inASecond(async (isOver) => {
    await cameBefore(acc, 60, 60)
    const { waiting, isLate } = await database.transaction(async (tx) => {
      await tx.query({ text: 'select 1 from account where id = $1 for update' }, [acc])
      const waiting = reserve(ledger, acc, 1n)
      const isLate = isOver()
      await until(second, atLeast(second() + 2))
      return { waiting: [waiting], isLate }
    })
    const [reserved] = await Promise.all(waiting)
    return isLate ? undefined : reserved?.outcome
  })
  assert.equal(late, 'limited')
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
    await limited(one, limits)
  await lease(ledger, acc)
  const row = () => rows('select xmin::text as version from counter where account_id = $1', [acc])
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
    await ledger.posted()
    if (isCovered && isAlone) assert.deepEqual(await row(), before)
  }
  assert.ok(seen.includes('alone'), seen.join('; '))
})

test('a limit on a minute takes off nothing that it has not counted: calls and leases from before it was set', async () => {
  const ledger = await processOf()
  const set = (acc: string, scope: 'account' | 'key', limits: Limits) =>
    database.transaction((tx) => storeLimits(tx, { kind: scope, account: acc, key: 'k1', earlier: [] }, limits))
  const used = (acc: string) =>
    rows<{ scope: string; requests: bigint; tokens: bigint }>(
      `select scope, coalesce(sum(used) filter (where unit = 'requests'), 0)::bigint as requests, sum(used) filter (where unit = 'tokens')::bigint as tokens
       from counter where account_id = $1 group by scope order by scope`,
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
  await limited(acc, { requestsPerMinute: 1_000 })
  const ask = async (id: string, requests: number | null) => {
    const change = {
      id,
      key: 'k1',
      fresh: true,
      give: '0',
      add: '100',
      least: '1',
      requests,
      tokens: requests,
      close: false,
    }
    const [row] = await rows<{ answer: Array<{ added: string; requests?: number }> }>(
      `select ledger_lease($1, 'p', $2, null) as answer`,
      [acc, JSON.stringify([change])],
    )
    const [used] = await rows<{ used: bigint }>('select used from counter where account_id = $1', [acc])
    return [row?.answer[0]?.added, row?.answer[0]?.requests, used?.used]
  }
  assert.deepEqual(await ask('l1', null), ['100', undefined, 0n])
  assert.deepEqual(await ask('l2', 5), ['100', 80, 80n])
})

test('a call of which an answer was lost is not tried again when the gateway turns out to be limited', async () => {
  let isLost = false
  const ledger = await processOf({
    database: behind(async (run, name) => {
      if (name !== 'ledger_reserve' || isLost) return run()
      isLost = true
      throw new Fault('unavailable', { internal: { why: 'lost' } })
    }),
  })
  const acc = await account(1_000n)
  await system({ requestsPerMinute: 1_000 })
  await assert.rejects(reserve(ledger, acc, 10n), (error) => error instanceof Fault && error.kind === 'unavailable')
  await ledger.idle()
  assert.equal((await reserve(ledger, acc, 10n)).outcome, 'held')
})

test('a call that was held and cannot become a job stays counted, and what it held is free', async () => {
  const ledger = await processOf({ leases: false })
  const [acc, other] = [await account(1_000n), await account(1_000n)]
  await system({ requestsPerMinute: 1 })
  const { id } = await reserve(ledger, acc, 100n, { isApart: true })
  await rows(`update account set frozen_until = now() + interval '1 hour' where id = $1`, [acc])
  const job = { id: `job-${id}`, input: '{}', request: '{}', answer: '{}' }
  const asked = { id, account: acc, key: 'k1', product: 'alpha-5.4', catalogVersion: 1, tokens: 10 }
  const made = await ledger.makeJob({ ...asked, want: 100n, floor: 100n, isApart: true, job })
  assert.equal(made.outcome, 'frozen')
  // It is not forgotten, however long the rest takes.
  await rows(`update hold set created_at = now() - interval '2 minutes' where id = $1`, [id])
  await ledger.sweep()
  await ledger.idle()
  assert.ok(await hasHold(id))
  const released = await settle(ledger, acc, id, 0n, { kind: 'released', givenUp: true })
  assert.deepEqual([released.outcome, await hasHold(id)], ['released', false])
  assert.equal((await reserve(ledger, other, 100n)).outcome, 'limited')
})

test('a change of limits that is stored is not answered as failed because leases cannot be looked at', async () => {
  const lost: string[] = []
  const none = () => undefined
  const log = { debug: none, info: none, warn: none, error: (_: object, words: string) => void lost.push(words) }
  const away = () => Promise.reject(new Fault('unavailable', { internal: { why: 'away' } }))
  const ledger = await processOf({
    log,
    database: behind((run, name) => (name === 'lease_admitting' ? away() : run())),
  })
  await ledger.recalled('acc_any')
  assert.equal(lost.length, 1, lost.join())
})

test('limits of the gateway hold for calls that leases cover, though whoever set them died when they were stored', async () => {
  const ledger = await processOf()
  const acc = await account(1_000_000n)
  // Of what this leases, free calls take nothing: it would last for ever.
  await lease(ledger, acc, 1_000n)
  await system({ requestsPerMinute: 1 })
  await until(async () => {
    await ledger.sweep()
    const reserved = await reserve(ledger, acc, 0n)
    if (reserved.outcome === 'held') await settle(ledger, acc, reserved.id, 0n)
    return reserved.outcome === 'limited'
  })
})

test('a call that ends after the gateway’s limits were removed does not count for those that are set next', async () => {
  const ledger = await processOf({ leases: false })
  const acc = await account(1_000n)
  const versions: unknown[] = []
  const limit = async (limits: Limits) => {
    await system(limits)
    versions.push(...(await rows<{ value: string }>(`select value from setting where name = 'system-limits'`)))
  }
  const begin = async () => {
    let id = ''
    // Processes of other tests may have taken the only place for a moment.
    await until(async () => {
      const reserved = await reserve(ledger, acc, 10n)
      if (reserved.outcome === 'held') id = reserved.id
      return reserved.outcome === 'held'
    })
    return () => settle(ledger, acc, id, 1n)
  }
  await limit({ concurrency: 1 })
  const end = await begin()
  await limit({})
  // It learns that there are none.
  await (await begin())()
  await end()
  await limit({ concurrency: 1 })
  await (await begin())()
  assert.equal(versions.length, 2)
  assert.notDeepEqual(
    versions[0],
    versions[1],
    'a process that has not looked meanwhile would take them for the old ones',
  )
})

test('a release that comes after the settlement counts nothing to the gateway’s spending', async () => {
  let asks = 0
  const ledger = await processOf({
    leases: false,
    database: behind((run, name) => {
      if (name === 'ledger_quota_slice') asks += 1
      return run()
    }),
  })
  const acc = await account(1_000n)
  await system({ spendTotal: String((await spentSoFar()) + 1_000n) })
  const { id } = await reserve(ledger, acc, 100n)
  await settle(ledger, acc, id, 100n)
  await ledger.idle()
  const before = asks
  assert.deepEqual(await settle(ledger, acc, id, 0n, { kind: 'released' }), {
    outcome: 'already',
    paid: 100n,
    loss: 0n,
    hold: 0n,
  })
  await ledger.idle()
  // One that has spent anything says so.
  assert.equal(asks, before)
})

test('a process that stops while the database is away does not fail at its slice of the gateway’s limits', async () => {
  let isAway = false
  const ledger = await processOf({
    leases: false,
    database: behind((run, name) => {
      if (name !== 'ledger_quota_slice' || !isAway) return run()
      throw new Fault('unavailable', { internal: { why: 'away' } })
    }),
  })
  const acc = await account(1_000n)
  await system({ requestsPerMinute: 1_000 })
  assert.equal((await call(ledger, acc, 10n)).outcome, 'held')
  isAway = true
  await ledger.idle()
})
