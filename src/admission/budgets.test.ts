// Budgets in the ledger: exact over all processes, whichever way a call is covered, from the first call of a value on.
import { assert, atOnce, runs, test } from '../../test/kit.ts'
import {
  account,
  behind,
  count,
  database,
  eventually,
  fresh,
  processOf,
  reserve,
  rows,
  settle,
} from '../../test/ledger-part.ts'
import { runKilled } from '../../test/ledger-swarm.ts'
import { createAudit } from '../database/audit.ts'
import { Fault } from '../kernel/fault.ts'
import { realWorld } from '../kernel/world.ts'
import { pruneBudgets } from '../ledger/budgets.ts'
import { createLedger, type Ledger } from '../ledger/ledger.ts'
import { type Budgets, createBudgets } from './budgets.ts'

/** By a process that nobody calls. */
const budgets = () =>
  createBudgets({
    database,
    world: realWorld,
    audit: createAudit({ database, world: realWorld }),
    ledger: createLedger({ database, world: realWorld, processId: 'p_operator' }),
  })
const BY = { actor: 'test', ip: null, requestId: null }
const make = (acc: string, more: Partial<Parameters<Budgets['create']>[1]>) =>
  budgets().create(
    acc,
    {
      name: 'Trial',
      scope: 'user',
      value: null,
      unit: 'credits',
      span: 'month',
      windowSeconds: null,
      max: '0.000005',
      hard: true,
      alertPercent: null,
      ...more,
    },
    BY,
  )
const by = (user: string) => ({ labels: { user } })

const USERS = runs(4, 10_000)
const CALLS = 8
/** Users whose first calls come at once. */
const AT_ONCE = 250

test(`each of ${USERS} new users gets the default budget by their first calls, which come at once, and no process admits one call beyond it`, async () => {
  const acc = await account(1_000_000n)
  const processes = await atOnce(runs(2, 4), () => processOf())
  await make(acc, {})
  /** On a slow machine a call may be told to come again: it is not admitted, and its budget has room for another. */
  const once = (user: string, n: number) => {
    const ledger = processes[n % processes.length]!
    return reserve(ledger, acc, 1n, by(user)).then(
      async (reserved) => {
        if (reserved.outcome === 'held') await settle(ledger, acc, reserved.id, 1n)
        else
          assert.ok(
            reserved.outcome === 'limited' && reserved.budget?.name === 'Trial' && reserved.budget.value === user,
          )
        return reserved.outcome
      },
      (error: unknown) => {
        assert.ok(error instanceof Fault && error.kind === 'unavailable', String(error))
        return 'later'
      },
    )
  }
  let spent = 0
  for (let first = 0; first < USERS; first += AT_ONCE) {
    const users = Array.from({ length: Math.min(AT_ONCE, USERS - first) }, (_, n) => `u${first + n}`)
    const done = await Promise.all(
      users.map(async (user) => {
        const outcomes = await atOnce(CALLS, (n) => once(user, n))
        return { user, held: outcomes.filter((one) => one === 'held').length, isSure: !outcomes.includes('later') }
      }),
    )
    for (const { user, held, isSure } of done) assert.ok(isSure ? held === 5 : held <= 5, `${user}: ${held}`)
    spent += done.reduce((sum, { held }) => sum + held, 0)
  }
  await Promise.all(processes.map((one) => one.posted()))
  const [used] = await rows<{ used: bigint; most: bigint; n: bigint }>(
    `select sum(used)::bigint as used, max(used) as most, count(*) as n from counter where account_id = $1`,
    [acc],
  )
  assert.deepEqual(used, { used: BigInt(spent), most: 5n, n: BigInt(USERS) })
  assert.equal((await reserve(processes[0]!, acc, 1n)).outcome, 'held')
})

test('however many users call at once, their calls share statements, and only some of them have leases', async () => {
  const acc = await account(1_000_000n)
  const statements = new Map<string, number>()
  const ledger = await processOf({
    database: behind((run, name) => {
      statements.set(name, (statements.get(name) ?? 0) + 1)
      return run()
    }),
  })
  await make(acc, { unit: 'requests', span: 'total', max: 100 })
  const users = Array.from({ length: 400 }, (_, n) => `u${n}`)
  let calls = 0
  let leases = 0
  for (let wave = 0; wave < 4; wave++) {
    await ledger.sweep()
    await Promise.all(
      users.map(async (user) => {
        const reserved = await reserve(ledger, acc, 1n, by(user))
        assert.equal(reserved.outcome, 'held')
        await settle(ledger, acc, reserved.id, 1n, by(user))
        calls += 1
      }),
    )
    leases = Math.max(leases, await count('lease where account_id = $1', acc))
  }
  assert.ok(leases > 0 && leases <= 256, `${leases} leases`)
  const sum = statements.values().reduce((all, n) => all + n, 0)
  assert.ok(sum < calls / 4, `${sum} statements for ${calls} calls: ${JSON.stringify([...statements])}`)
  await ledger.idle()
  assert.deepEqual(new Set(await used(acc)), new Set([4]))
})

/** How calls of these users end, one after the other. */
const outcomes = async (ledger: Ledger, acc: string, users: readonly string[], want = 1n) => {
  const all: string[] = []
  for (const user of users) all.push((await reserve(ledger, acc, want, by(user))).outcome)
  return all
}
const used = async (acc: string, scope = '') => {
  const found = await rows<{ used: bigint }>(
    'select used from counter where account_id = $1 and scope like $2 order by scope',
    [acc, `${scope}%`],
  )
  return found.map((row) => Number(row.used))
}

test('calls that a lease covers count for their budgets, and the lease holds what they may spend', async () => {
  const acc = await account(1_000_000n)
  const ledgers = [await processOf(), await processOf()] as const
  const budget = await make(acc, { scope: 'user', max: '0.0004' })
  for (const ledger of ledgers) {
    for (let i = 0; i < 6; i++) {
      const { id, outcome } = await reserve(ledger, acc, 1n, by('alice'))
      if (outcome === 'held') await settle(ledger, acc, id, 1n)
    }
  }
  const leased = await rows<{ scopes: string[] }>('select scopes from lease where account_id = $1', [acc])
  assert.ok(leased.length > 0, 'nothing was leased')
  for (const { scopes } of leased) assert.deepEqual(scopes, [`${budget.id}=alice`])
  let held = 12
  for (let i = 0; i < 220; i++)
    for (const ledger of ledgers) {
      const { id, outcome } = await reserve(ledger, acc, 2n, by('alice'))
      if (outcome !== 'held') continue
      await settle(ledger, acc, id, 2n)
      held += 2
    }
  for (const ledger of ledgers) await ledger.posted(acc)
  assert.ok(held <= 400 && held > 390, `${held} of 400`)
  assert.deepEqual(await used(acc), [held])
})

test('what a killed process leased of a budget comes back, and what it spent stays counted', async () => {
  const acc = await account(1_000_000n)
  await make(acc, { max: '0.001' })
  const dead = await processOf()
  for (let i = 0; i < 6; i++) {
    const { id, outcome } = await reserve(dead, acc, 10n, by('alice'))
    if (outcome === 'held') await settle(dead, acc, id, 10n)
  }
  await dead.posted(acc)
  const open = await reserve(dead, acc, 10n, by('alice'))
  assert.equal(open.outcome, 'held')
  await rows(`update gateway_instance set heartbeat_at = now() - interval '1 hour' where id = $1`, [dead.id])
  const living = await processOf()
  await living.sweep()
  assert.deepEqual(await rows('select 1 from lease where account_id = $1', [acc]), [])
  assert.deepEqual(await used(acc), [60])
  // It was only asleep: what it spent after all is taken anew, and counts.
  assert.equal((await settle(dead, acc, open.id, 10n)).outcome, 'late')
  assert.deepEqual(await used(acc), [70])
  assert.equal((await reserve(living, acc, 930n, by('alice'))).outcome, 'held')
})

/** Of each budget: what it is for, what it counted, and what the ledger says that was used. */
const compared = async (acc: string) => {
  const [usage] = await rows<{ requests: bigint; credits: bigint; tokens: bigint }>(
    `select (select count(*) from usage where account_id = $1 and outcome <> 'expired') as requests, (select coalesce(sum(charged), 0) from usage where account_id = $1)::bigint as credits,
       (select coalesce(sum(input_tokens + output_tokens), 0) from usage_hour where account_id = $1)::bigint as tokens`,
    [acc],
  )
  const counters = await rows<{ unit: 'requests' | 'credits' | 'tokens'; span: string; used: bigint }>(
    'select unit, span, used from counter where account_id = $1 order by scope',
    [acc],
  )
  return counters.map(({ unit, span, used }) => [unit, span, used, usage![unit]])
}
const assertExact = async (acc: string) => {
  const all = await compared(acc)
  for (const [unit, span, used, usage] of all) assert.equal(used, usage, `${unit} ${span}`)
  return all
}
const isDead = (id: string) =>
  rows(`update gateway_instance set heartbeat_at = now() - interval '1 hour' where id = $1`, [id])
/** One for each unit and span that outlives a process. */
const makeAll = async (acc: string) => {
  const windows = { span: 'rolling', windowSeconds: 86_400 } as const
  for (const unit of ['requests', 'tokens', 'credits'] as const)
    for (const span of [{ span: 'month' } as const, { span: 'total' } as const, windows])
      await make(acc, { unit, ...span, max: unit === 'credits' ? '0.9' : 900_000 })
}

test('a process that is killed in the middle of its calls leaves all budgets exactly at what was used', async () => {
  const acc = await account(1_000_000n)
  await makeAll(acc)
  const of = [{ url: fresh.url, account: acc }]
  const isEnough = ([counts]: ReadonlyArray<{ held: number }>) => counts !== undefined && counts.held > 100
  await runKilled({ of, want: '2', labels: { user: 'alice' }, calls: 12, waves: 6, isEnough })
  const before = await compared(acc)
  assert.ok(
    before.some(([unit, , used, usage]) => unit !== 'credits' && used! > usage!),
    'nothing was leased or open',
  )
  await isDead('killed-0')
  const living = await processOf()
  await living.sweep()
  assert.equal((await assertExact(acc)).length, 9)
  assert.deepEqual(await rows('select 1 from lease where account_id = $1', [acc]), [])
})

test('what was taken for dead and settles late counts its requests and tokens once, also where nothing is charged', async () => {
  const acc = await account(1_000_000n)
  await makeAll(acc)
  const asleep = await processOf()
  const open: string[] = []
  // The first have holds of their own, the others are covered by a lease.
  for (let i = 0; i < 12; i++) open.push((await reserve(asleep, acc, 10n, by('alice'))).id)
  const holds = await rows('select 1 from hold where account_id = $1', [acc])
  assert.ok(holds.length >= 2 && holds.length <= 10, `${holds.length} have holds`)
  await isDead(asleep.id)
  const living = await processOf()
  await living.sweep()
  await assertExact(acc)
  for (const [at, id] of open.entries()) {
    const charge = at % 2 === 0 ? 0n : 7n
    const resolved = await settle(asleep, acc, id, charge, { labels: { user: 'alice' } })
    assert.deepEqual([resolved.outcome, resolved.paid], ['late', charge], `${at}`)
    assert.equal((await settle(living, acc, id, charge, { labels: { user: 'alice' } })).outcome, 'already')
  }
  const after = new Map((await assertExact(acc)).map(([unit, , used]) => [unit, used]))
  assert.deepEqual(Object.fromEntries(after), { requests: 12n, tokens: 120n, credits: 42n })
})

test('a lease of which its process knows nothing gives back what it was given of budgets', async () => {
  const acc = await account(1_000_000n)
  await makeAll(acc)
  const ledger = await processOf()
  const { id } = await reserve(ledger, acc, 10n, by('alice'))
  await settle(ledger, acc, id, 10n, by('alice'))
  const [{ scopes } = { scopes: [] }] = await rows<{ scopes: string[] }>(
    'select array_agg(scope) as scopes from counter where account_id = $1',
    [acc],
  )
  const change = { id: 'forgotten', key: 'k1', scopes, budgets: 9, fresh: true, give: '0', add: '100', least: '1' }
  const asked = JSON.stringify([{ ...change, requests: 5, tokens: 50, close: false }])
  await rows('select ledger_lease($1, $2, $3, null)', [acc, ledger.id, asked])
  assert.equal(await count('lease where account_id = $1', acc), 1)
  await rows(`update lease set created_at = created_at - interval '61 seconds' where account_id = $1`, [acc])
  await rows(`update counter set since = since - interval '61 seconds' where account_id = $1`, [acc])
  await ledger.sweep()
  await eventually('it goes back', async () => (await count('lease where account_id = $1', acc)) === 0)
  await assertExact(acc)
})

test('a budget that is made or changed while others have leases holds from its answer on, in all processes', async () => {
  const acc = await account(1_000_000n)
  const ledgers = await atOnce(3, () => processOf())
  const outcomes = () => Promise.all(ledgers.map(async (one) => (await reserve(one, acc, 10n, by('alice'))).outcome))
  const leased = async (scoped: boolean) => {
    // Of each, one call goes on: its lease stays where it is.
    for (const one of ledgers) await reserve(one, acc, 10n, by('alice'))
    await eventually('all have leases', async () => {
      for (const one of ledgers) {
        await one.sweep()
        const { id } = await reserve(one, acc, 10n, by('alice'))
        await settle(one, acc, id, 10n)
      }
      const rest = 'lease where account_id = $1 and not retired and (scopes is not null) = $2::boolean'
      return (await count(rest, acc, String(scoped))) === ledgers.length
    })
  }
  await leased(false)
  const { id } = await make(acc, { unit: 'requests', span: 'total', max: 1 })
  assert.deepEqual((await outcomes()).toSorted(), ['held', 'limited', 'limited'])
  assert.deepEqual(await used(acc), [1])
  await budgets().change(acc, id, { max: 100_000 }, BY)
  await leased(true)
  await budgets().change(acc, id, { max: 1 }, BY)
  assert.deepEqual(await outcomes(), ['limited', 'limited', 'limited'])
  await budgets().setValue(acc, id, { value: 'alice', max: 100_000 }, BY)
  await leased(true)
  await budgets().setValue(acc, id, { value: 'alice', max: null }, BY)
  assert.deepEqual(await outcomes(), ['limited', 'limited', 'limited'])
  assert.equal((await reserve(ledgers[0]!, acc, 10n, by('bob'))).outcome, 'held')
  await budgets().end(acc, id, BY)
  assert.deepEqual(await outcomes(), ['held', 'held', 'held'])
  assert.deepEqual(await used(acc), [])
})

test('a day, a week and a month end by UTC, and a call that began before counts for the span in which it is paid', async () => {
  const today = () => Math.floor(Date.now() / 86_400_000)
  for (;;) {
    const day = today()
    try {
      return await playSpans()
    } catch (error) {
      // A day that ends meanwhile begins anew: once more, in the next one.
      if (today() === day) throw error
    }
  }
})

async function playSpans(): Promise<void> {
  const acc = await account(1_000_000n)
  const ledger = await processOf({ leases: false })
  for (const span of ['day', 'week', 'month'] as const) await make(acc, { name: span, span, max: '0.00001' })
  const running = await reserve(ledger, acc, 4n, by('alice'))
  const done = await reserve(ledger, acc, 6n, by('alice'))
  await settle(ledger, acc, done.id, 6n)
  const refused = await reserve(ledger, acc, 1n, by('alice'))
  assert.ok(refused.outcome === 'limited' && refused.left === '0')
  // As if what was counted had been counted in the span before.
  await rows(
    `update counter set second = extract(epoch from date_trunc(span, now(), 'UTC') - ('1 ' || span)::interval)::bigint where account_id = $1`,
    [acc],
  )
  const next = await reserve(ledger, acc, 7n, by('alice'))
  assert.ok(next.outcome === 'limited' && next.left === '6', 'what runs still holds its part')
  await settle(ledger, acc, running.id, 3n)
  assert.deepEqual(await used(acc), [3, 3, 3])
  const starts = await rows<{ day: number }>(
    `select extract(isodow from to_timestamp(second) at time zone 'UTC')::int as day from counter where account_id = $1 and span = 'week'`,
    [acc],
  )
  assert.deepEqual(starts, [{ day: 1 }])
}

test('a rolling window forgets slot by slot, and never early', async () => {
  const acc = await account(1_000_000n)
  const ledger = await processOf({ leases: false })
  await make(acc, { unit: 'requests', span: 'rolling', windowSeconds: 3_600, max: 2 })
  const slots = (back: number) =>
    rows(
      `update counter set second = second - $2::int, seconds = array(select seconds[((i - 1 + $2::int) % 83) + 1] from generate_series(1, 83) i) where account_id = $1`,
      [acc, String(back)],
    )
  assert.deepEqual(await outcomes(ledger, acc, ['a', 'a']), ['held', 'held'])
  const refused = await reserve(ledger, acc, 1n, by('a'))
  assert.ok(refused.outcome === 'limited' && refused.waitSeconds > 3_540 && refused.waitSeconds <= 3_660)
  await slots(59)
  assert.deepEqual(await outcomes(ledger, acc, ['a']), ['limited'])
  await slots(2)
  assert.deepEqual(await outcomes(ledger, acc, ['a']), ['held'])
})

test('tokens are counted at the worst case and then as they were; a soft budget counts and refuses nobody', async () => {
  const acc = await account(1_000_000n)
  const ledger = await processOf({ leases: false })
  const { id } = await make(acc, { unit: 'tokens', span: 'total', max: 15 })
  const first = await reserve(ledger, acc, 1n, by('a'))
  assert.equal((await reserve(ledger, acc, 1n, by('a'))).outcome, 'limited')
  await settle(ledger, acc, first.id, 1n, { inputTokens: 2, outputTokens: 1 })
  assert.deepEqual(await used(acc), [3])
  await budgets().change(acc, id, { hard: false }, BY)
  assert.deepEqual(await outcomes(ledger, acc, ['a', 'a', 'a', 'a']), ['held', 'held', 'held', 'held'])
  assert.deepEqual(await used(acc), [43])
})

test('a value of one user never names the budget or the lease of another', async () => {
  const acc = await account(1_000_000n)
  const ledger = await processOf()
  const first = await make(acc, { unit: 'requests', max: 1 })
  const second = await make(acc, { unit: 'requests', max: 1, scope: 'tag:a' })
  const both = { labels: { user: 'x', a: 'y' } }
  assert.equal((await reserve(ledger, acc, 1n, both)).outcome, 'held')
  const forged = { labels: { user: `x ${second.id}=y` } }
  assert.equal((await reserve(ledger, acc, 1n, forged)).outcome, 'held')
  for (const user of [`=`, `'; drop`, '💥'.repeat(32), '%', `${first.id}=x`, '"]', '\\'])
    for (const outcome of ['held', 'limited'])
      assert.equal((await reserve(ledger, acc, 1n, { labels: { user } })).outcome, outcome, user)
  assert.equal((await reserve(ledger, acc, 1n, both)).outcome, 'limited')
})

test('values are bounded: a new one is refused at the bound where the budget is hard, and those whose span is over are removed', async () => {
  const acc = await account(1_000_000n)
  const ledger = await processOf({ leases: false })
  await make(acc, { span: 'day' })
  assert.equal((await reserve(ledger, acc, 1n, by('old'))).outcome, 'held')
  const done = await reserve(ledger, acc, 1n, by('over'))
  await settle(ledger, acc, done.id, 1n)
  await rows('update account set budget_values = 100000 where id = $1', [acc])
  const refused = await reserve(ledger, acc, 1n, by('new'))
  assert.ok(refused.outcome === 'limited' && refused.isFull && refused.budget?.value === 'new')
  assert.equal((await reserve(ledger, acc, 1n, by('old'))).outcome, 'held')
  assert.deepEqual((await used(acc)).length, 2)
  await rows('update counter set second = second - 86400 where account_id = $1', [acc])
  await pruneBudgets(database)
  // What runs keeps its counter.
  assert.deepEqual(
    (await rows<{ scope: string }>('select scope from counter where account_id = $1', [acc])).map(
      ({ scope }) => scope.split('=')[1],
    ),
    ['old'],
  )
  assert.equal((await reserve(ledger, acc, 1n, by('new'))).outcome, 'held')
})
