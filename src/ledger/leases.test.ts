// Credits held in advance: whatever happens to a process that has leased them, no call goes without a hold, and no
// credit stays away.
import { assert, atOnce, pluck, test, until } from '../../test/kit.ts'
import {
  account,
  behind,
  call,
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
import { isLockWait } from '../database/database.ts'
import { Fault } from '../kernel/fault.ts'
import { newId, realWorld } from '../kernel/world.ts'
import { createLeases } from './leases.ts'
import { storeLimits } from './limits.ts'
import type { LeaseChange, Leased, Reserved } from './operation.ts'

test('calls on a lease make no hold of their own, and what they do not use goes back when the key falls silent', async () => {
  const ledger = await processOf()
  const acc = await account(100_000n)
  await lease(ledger, acc)
  const reserved = await reserve(ledger, acc, 10n)
  assert.deepEqual([reserved.outcome, await hasHold(reserved.id)], ['held', false])
  await settle(ledger, acc, reserved.id, 3n)
  await eventually('a lease outlives its use', async () => (await count('held where account_id = $1', acc)) === 0)
  const [row] = await rows(
    'select posted, held, (select sum(amount) from transfer where account_id = $1 and kind = $2)::bigint as paid from account where id = $1',
    [acc, 'settled'],
  )
  assert.deepEqual(row, {
    posted: 100_000n - (row as { paid: bigint }).paid,
    held: 0n,
    paid: (row as { paid: bigint }).paid,
  })
})

test('a process that was silent for too long does not believe in what it had leased', async () => {
  let skewMs = 0
  const ledger = await processOf({ world: { ...realWorld, elapsedMs: () => realWorld.elapsedMs() + skewMs } })
  const other = await processOf()
  const acc = await account(100_000n)
  await lease(ledger, acc)
  // It was stopped: nobody heard of it, and what it held was given back.
  skewMs = 25_000
  await rows(`update gateway_instance set heartbeat_at = now() - interval '25 seconds' where id = $1`, [ledger.id])
  await other.sweep()
  assert.equal(await count('lease where account_id = $1', acc), 0)
  await ledger.sweep()
  const reserved = await reserve(ledger, acc, 10n)
  assert.equal(await hasHold(reserved.id), true, 'it was admitted on a lease that has expired')
  await settle(ledger, acc, reserved.id, 10n)
})

test('while the ledger cannot write, nobody is admitted on a lease: such calls could not be settled', async () => {
  let [skewMs, isAway] = [0, false]
  const ledger = await processOf({
    world: { ...realWorld, elapsedMs: () => realWorld.elapsedMs() + skewMs },
    reserveForMs: 100,
    database: behind((run) => (isAway ? Promise.reject(new Fault('unavailable')) : run())),
  })
  const acc = await account(100_000n)
  await lease(ledger, acc)
  isAway = true
  await assert.rejects(ledger.sweep())
  skewMs = 3_000
  await assert.rejects(reserve(ledger, acc, 10n), { status: 503 })
  isAway = false
  const reserved = await reserve(ledger, acc, 10n)
  assert.equal(reserved.outcome, 'held')
  await settle(ledger, acc, reserved.id, 10n)
})

test('a settlement is tried until it is written, whatever the database says, and its caller hears 503', async () => {
  let state: string | undefined
  const refused: string[] = []
  const ledger = await processOf({
    resolveForMs: 300,
    database: behind((run, name) => {
      if (!state || !name.startsWith('ledger_')) return run()
      refused.push(state)
      const cause = Object.assign(new Error('refused'), { code: state, severity: 'ERROR' })
      const away = new Fault('unavailable', { internal: { why: 'database', code: state }, cause })
      return Promise.reject(/^XX/.test(state) ? away : cause)
    }),
  })
  const acc = await account(1_000n)
  for (const code of ['XX000', '42883']) {
    const reserved = await reserve(ledger, acc, 10n)
    state = code
    const failure = await settle(ledger, acc, reserved.id, 7n).then(
      () => undefined,
      (error: unknown) => error,
    )
    assert.ok(failure instanceof Fault && failure.status === 503, `${code}: ${failure}`)
    assert.ok(refused.includes(code), code)
    state = undefined
    await eventually(
      `${code}: the settlement was dropped`,
      async () => (await count('transfer where id = $1 and amount = 7', reserved.id)) === 1,
    )
  }
  await eventually('something stays held', async () => (await count('held where account_id = $1', acc)) === 0)
})

test('a hold or a lease of which its process knows nothing is given back after a minute', async () => {
  const ledger = await processOf()
  const acc = await account(1_000n)
  const known = await reserve(ledger, acc, 10n)
  await rows(
    `insert into hold (account_id, id, key_id, process_id, amount, product, catalog_version) values ($1, $2, 'k1', $3, 20, 'p', 1)`,
    [acc, `lost-${acc}`, ledger.id],
  )
  await rows(`insert into lease (account_id, id, key_id, process_id, amount) values ($1, $2, 'k1', $3, 30)`, [
    acc,
    `leased-${acc}`,
    ledger.id,
  ])
  await rows('update account set held = held + 50 where id = $1', [acc])
  await ledger.sweep()
  await ledger.sweep()
  assert.equal(await count('held where account_id = $1', acc), 3, 'they are young')
  await rows(`update hold set created_at = now() - interval '61 seconds' where account_id = $1`, [acc])
  await rows(`update lease set created_at = now() - interval '61 seconds' where account_id = $1`, [acc])
  await ledger.sweep()
  await eventually('what nobody knows stays', async () => (await count('held where account_id = $1', acc)) === 1)
  assert.equal(await hasHold(known.id), true)
  await settle(ledger, acc, known.id, 10n)
  assert.deepEqual(await rows('select posted, held from account where id = $1', [acc]), [{ posted: 990n, held: 0n }])
})

test('an account that somebody has locked delays no other', async () => {
  const ledger = await processOf({ leases: false })
  // More than all who ask meanwhile could hold, on whatever machine.
  const [stuck, free] = [await account(1_000_000n), await account(1_000_000n)]
  let waiting: Promise<Reserved> | undefined
  const medians: number[] = []
  // A statement waits 300 ms for a lock. Whatever a busy machine does to single calls, at some time most are not as
  // slow as that.
  while (medians.length < 20 && !medians.some((ms) => ms < 200))
    await database.transaction(async (tx) => {
      await tx.query({ text: 'select 1 from account where id = $1 for update' }, [stuck])
      waiting = reserve(ledger, stuck, 10n)
      waiting.catch(() => undefined)
      const tookMs: number[] = []
      for (const endMs = Date.now() + 2_000; Date.now() < endMs; ) {
        const startedMs = Date.now()
        await call(ledger, free, 1n)
        tookMs.push(Date.now() - startedMs)
        void reserve(ledger, stuck, 1n).catch(() => undefined)
      }
      medians.push(tookMs.sort((a, b) => a - b)[Math.floor(tookMs.length / 2)] ?? 0)
    })
  assert.ok(
    medians.some((ms) => ms < 200),
    `half of the calls took ${medians} ms while another's account was waited for`,
  )
  // Whoever calls the locked one waits for it, or is told to come again.
  const outcome = await waiting!.then(
    (reserved) => reserved.outcome,
    (error: Fault) => error.kind,
  )
  assert.ok(outcome === 'held' || outcome === 'unavailable', outcome)
  await eventually('it stays locked', () =>
    call(ledger, stuck, 1n).then(
      ({ outcome }) => outcome === 'held',
      () => false,
    ),
  )
})

const FULL = 256
const CROWD = 50

test('calls of a locked account do not count as load of the gateway, and its crowd is rejected one by one', async () => {
  const ledger = await processOf({ leases: false, reserveForMs: 10_000, reserveWaitMs: 10_000 })
  const stuck = await account(1_000_000n)
  const waiting: Array<Promise<unknown>> = []
  let tookMs = 0
  await database.transaction(async (tx) => {
    await tx.query({ text: 'select 1 from account where id = $1 for update' }, [stuck])
    for (let made = 0; made < FULL; made += 1) waiting.push(reserve(ledger, stuck, 1n).catch(() => undefined))
    // Between two tries nothing of it is in the queue; whatever is there is isolated once the first wait for the lock
    // is over.
    await eventually('it is not known as locked', async () => ledger.isolated > 0)
    assert.equal(ledger.pending, 0)
    const startedMs = performance.now()
    await atOnce(CROWD, () => assert.rejects(reserve(ledger, stuck, 1n), { kind: 'unavailable' }))
    tookMs = performance.now() - startedMs
  })
  // Two milliseconds for each: timers may be late, and each is early by less than the one by which it rounds.
  assert.ok(tookMs >= CROWD - 1, `all were rejected within ${tookMs} ms`)
  await Promise.all(waiting)
})

test('who is in one flush with an account that is locked does not wait until that is given up', async () => {
  const ledger = await processOf({ leases: false })
  const waitsMs: number[] = []
  // Once would do, but for whatever else this machine does.
  for (let turn = 0; turn < 50 && !waitsMs.some((ms) => ms < 250); turn++) {
    const [locked, free] = [await account(1_000n), await account(1_000n)]
    await database.transaction(async (tx) => {
      await tx.query({ text: 'select 1 from account where id = $1 for update' }, [locked])
      const startedMs = performance.now()
      const waiting = reserve(ledger, locked, 10n)
      waiting.catch(() => undefined)
      assert.equal((await reserve(ledger, free, 10n)).outcome, 'held')
      waitsMs.push(performance.now() - startedMs)
    })
  }
  assert.ok(Math.min(...waitsMs) < 250, `${waitsMs.map(Math.round)} ms, where a flush waits for 300 ms at most`)
})

test('a lease that goes back while somebody has its account locked goes back whole, afterwards', async () => {
  const ledger = await processOf()
  const [leased, other] = [await account(10_000n), await account(10_000n)]
  await lease(ledger, leased)
  await ledger.posted()
  await database.transaction(async (tx) => {
    await tx.query({ text: 'select 1 from account where id = $1 for update' }, [leased])
    // Both go in one flush, which takes the one that it can have.
    ledger.recall(leased)
    const { id, outcome } = await reserve(ledger, other, 10n)
    assert.equal(outcome, 'held')
    assert.equal(await count('lease where account_id = $1', leased), 1, 'what it holds is still held')
    await settle(ledger, other, id, 10n)
  })
  await ledger.idle()
  assert.equal(await count('lease where account_id = $1', leased), 0)
  assert.deepEqual(await rows('select held from account where id = any($1)', [`{${leased},${other}}`]), [
    { held: 0n },
    { held: 0n },
  ])
})

test('a key that was freed and used again is paid once: the late settlement is a loss', async () => {
  const [slept, other] = [await processOf(), await processOf()]
  const acc = await account(1_000n)
  await database.transaction((tx) => storeLimits(tx, { kind: 'account', account: acc }, { spendPerDay: '900' }))
  const idempotency = { key: 'order-1', requestHash: 'same' }
  const first = await reserve(slept, acc, 100n, { idempotency })
  await rows(`update gateway_instance set heartbeat_at = now() - interval '25 seconds' where id = $1`, [slept.id])
  await other.sweep()
  const again = await reserve(other, acc, 100n, { idempotency })
  assert.equal(again.outcome, 'held')
  const replay = { status: 200, contentType: 'text/plain', sealed: Buffer.from('an answer') }
  await settle(other, acc, again.id, 40n, { idempotent: true, replay })
  const late = await settle(slept, acc, first.id, 40n, { idempotent: true, replay })
  assert.deepEqual([late.outcome, late.paid, late.loss], ['late', 0n, 40n])
  assert.deepEqual(await rows('select posted, held from account where id = $1', [acc]), [{ posted: 960n, held: 0n }])
})

test('credits are taken back although they are leased, and nobody is refused for what another has leased', async () => {
  const [busy, other] = [await processOf(), await processOf()]
  const acc = await account(4_000n)
  await lease(busy, acc, 10n)
  const [before] = await rows<{ posted: bigint }>('select posted from account where id = $1', [acc])
  // Everything but the lease is taken; then what the lease kept is enough for one more.
  const half = before!.posted / 2n
  assert.equal((await reserve(other, acc, half + 1n)).outcome, 'held')
  await lease(busy, acc, 1n)
  const [now] = await rows<{ posted: bigint; held: bigint }>('select posted, held from account where id = $1', [acc])
  assert.ok(now!.held > half + 1n)
  assert.equal((await reserve(other, acc, now!.posted - half - 1n)).outcome, 'held')
  await other.grant({ account: acc, amount: -5_000n, note: '', actor: 'test' })
  const [end] = await rows<{ posted: bigint; held: bigint }>('select posted, held from account where id = $1', [acc])
  assert.equal(end!.posted, end!.held)
})

test('a call that is refused after it waited in vain for a lock leaves nothing behind', async () => {
  const waits: boolean[] = []
  const ledger = await processOf({
    leases: false,
    database: behind((run, name) =>
      run().catch((error: unknown) => {
        if (name === 'ledger_reserve') waits.push(isLockWait(error))
        throw error
      }),
    ),
  })
  const acc = await account(5n)
  let refused: ReturnType<typeof reserve> | undefined
  await database.transaction(async (tx) => {
    await tx.query({ text: 'select 1 from account where id = $1 for update' }, [acc])
    refused = reserve(ledger, acc, 10n)
    await eventually('it does not wait', async () => waits.length > 0)
  })
  const { id, outcome } = await refused!
  assert.deepEqual([outcome, waits[0]], ['short', true])
  await ledger.idle()
  assert.equal(await count('transfer where id = $1', id), 0)
})

test('one that takes no for an answer keeps nobody beside it from asking for what is leased', async () => {
  const [busy, other] = [await processOf(), await processOf()]
  const acc = await account(1_000n)
  await lease(busy, acc, 10n)
  const call = (id: string, last: boolean) => ({
    id: `${acc}-${id}`,
    key: 'k1',
    want: 1_000,
    floor: 1_000,
    most: 1_000,
    open: 0,
    product: 'p',
    version: 1,
    tokens: 0,
    last,
  })
  const [row] = await rows<{ answer: Array<{ as: string }> }>('select ledger_reserve($1, $2, $3, 0, null) as answer', [
    acc,
    other.id,
    JSON.stringify([call('first', true), call('second', false)]),
  ])
  assert.deepEqual(pluck(row?.answer, 'as'), ['short', 'tight'])
})

test('who needs nearly all of an account gets it, although another process leases of it again and again', async () => {
  const [busy, other] = [await processOf(), await processOf()]
  const acc = await account(20_000n)
  await lease(busy, acc, 10n)
  let isOver = false
  const others = Array.from({ length: 4 }, async () => {
    while (!isOver) {
      const reserved = await reserve(busy, acc, 10n)
      if (reserved.outcome === 'held') await settle(busy, acc, reserved.id, 0n)
    }
  })
  const [before] = await rows<{ posted: bigint }>('select posted from account where id = $1', [acc])
  // All but what the others need at the same time.
  const want = before!.posted - 4n * 10n
  // On a machine that is busy, the others may not have given back in time: it is told to come again.
  const insist = () =>
    reserve(other, acc, want).catch((error: Fault) =>
      error.kind === 'unavailable' ? undefined : Promise.reject(error),
    )
  const reserved = await until(insist).finally(() => {
    isOver = true
  })
  await Promise.all(others)
  assert.equal(reserved.outcome, 'held')
})

test('a lease that needs credits keeps what it has of a minute, and asks for more of that before its time is over', async () => {
  let nowMs = 0
  const asked: LeaseChange[] = []
  let answer: (leased: Leased) => void = () => undefined
  const leases = createLeases({
    world: { ...realWorld, elapsedMs: () => nowMs, after: () => () => undefined },
    report: async (inUse) => new Set(inUse.map(({ id }) => id)),
    change(change) {
      asked.push(change)
      return new Promise((resolve) => {
        answer = resolve
      })
    },
    mayAdmit: () => true,
  })
  const admit = () => {
    const of = { account: 'a', key: 'k', product: 'p', catalogVersion: 1, want: 10n, floor: 10n, tokens: 10 }
    return leases.admit({ id: newId(realWorld), ...of }) !== undefined
  }
  const given = async (change: { requests: number | undefined }) => {
    const rate = { max: 1_000_000, left: 1_000_000 }
    answer({
      added: 100n,
      requests: change.requests,
      tokens: undefined,
      rate,
      seconds: 4,
      second: 4,
      available: 0n,
      rests: false,
    })
    await new Promise(setImmediate)
  }
  assert.deepEqual([admit(), admit(), asked.length], [false, false, 1])
  await given({ requests: 100 })
  // It grows in time, and whoever calls meanwhile is admitted.
  while (asked.length === 1) assert.ok(admit())
  assert.deepEqual([asked[1]?.requests, asked[1]?.back, admit()], [null, undefined, true])
  await given({ requests: undefined })
  nowMs = 3_100
  assert.ok(admit())
  assert.ok((asked[2]?.requests ?? 0) > 0)
  assert.deepEqual(asked[2]?.back?.second, 4)
  // What goes back is not used any more.
  assert.equal(admit(), false)
})
