// The invariants of the money, over random interleavings of several processes on a real Postgres. F33, F34, F35.

import fc from 'fast-check'
import { newId, realWorld } from '../src/kernel/world.ts'
import { createLedger, type Ledger } from '../src/ledger/ledger.ts'
import type { Reservation, Reserved, Resolution, Resolved } from '../src/ledger/operation.ts'
import { chargeOf } from '../src/meter/charge.ts'
import { freshDatabase } from './database.ts'
import { after, assert, before, runs, started, test } from './kit.ts'
import { runSwarm } from './ledger-swarm.ts'
import { settlement } from './settlement.ts'

const PROCESSES = 3
const HOLDS = 6
const KEYS = 2

let ledgers: Ledger[]
const fresh = started(freshDatabase)
const database = started(() => fresh.open({ connectionsMax: 12 }))
before(async () => {
  ledgers = Array.from({ length: PROCESSES }, (_, i) =>
    createLedger({ database, world: realWorld, processId: `process-${i}`, graceMs: 0, reserveWaitMs: 60_000 }),
  )
  for (const ledger of ledgers) await ledger.sweep()
})
after(async () => {
  for (const ledger of ledgers) await ledger.idle()
})

async function makeAccount(credits: bigint): Promise<string> {
  const id = `acc_${newId(realWorld)}`
  await database.query({ text: 'insert into account (id, name) values ($1, $1)' }, [id])
  if (credits > 0n) await ledgers[0]!.grant({ account: id, amount: credits, note: '', actor: 'test' })
  return id
}

function reservation(id: string, account: string, want: bigint, more: Partial<Reservation> = {}): Reservation {
  return { id, account, key: 'k', product: 'p', catalogVersion: 1, want, floor: want, tokens: 1, ...more }
}

function resolution(
  id: string,
  account: string,
  kind: Resolution['kind'],
  charge: bigint,
  more: Partial<Resolution> = {},
): Resolution {
  const lines: Resolution['lines'] = charge > 0n ? [['call', 1, (charge * 1_000_000n).toString()]] : []
  return settlement(account, id, charge, { key: 'k', product: 'p', kind, lines, ...more })
}

type Step =
  | {
      readonly do: 'reserve'
      readonly by: number
      readonly hold: number
      readonly amount: number
      readonly open: boolean
      readonly key: number | null
    }
  | {
      readonly do: 'settle'
      readonly by: number
      readonly hold: number
      readonly amount: number
      readonly keep: boolean
    }
  | { readonly do: 'release'; readonly by: number; readonly hold: number }
  /** Calls of one key, one after the other at one process, which leases what they need. */
  | {
      readonly do: 'burst'
      readonly by: number
      readonly calls: number
      readonly want: number
      readonly charge: number
    }
  | { readonly do: 'grant'; readonly amount: number }
  | { readonly do: 'expire'; readonly of: number; readonly by: number }

const by = fc.nat({ max: PROCESSES - 1 })
const hold = fc.nat({ max: HOLDS - 1 })
const amount = fc.nat({ max: 60 })
const step: fc.Arbitrary<Step> = fc.oneof(
  {
    weight: 5,
    arbitrary: fc.record({
      do: fc.constant('reserve' as const),
      by,
      hold,
      amount,
      open: fc.boolean(),
      key: fc.option(fc.nat({ max: KEYS - 1 })),
    }),
  },
  {
    weight: 4,
    arbitrary: fc.record({
      do: fc.constant('settle' as const),
      by,
      hold,
      amount: fc.nat({ max: 90 }),
      keep: fc.boolean(),
    }),
  },
  { weight: 2, arbitrary: fc.record({ do: fc.constant('release' as const), by, hold }) },
  {
    weight: 2,
    arbitrary: fc.record({
      do: fc.constant('burst' as const),
      by,
      calls: fc.integer({ min: 4, max: 12 }),
      want: fc.integer({ min: 1, max: 4 }),
      charge: fc.nat({ max: 6 }),
    }),
  },
  { weight: 1, arbitrary: fc.record({ do: fc.constant('grant' as const), amount: fc.integer({ min: -80, max: 80 }) }) },
  { weight: 1, arbitrary: fc.record({ do: fc.constant('expire' as const), of: by, by }) },
)
/** Steps of a wave run at once, from different processes. */
const story = fc.record({
  credits: fc.nat({ max: 150 }),
  waves: fc.array(fc.array(step, { minLength: 1, maxLength: 8 }), { minLength: 1, maxLength: 5 }),
})

type Told = { readonly step: Step; readonly answer: Reserved | Resolved | undefined }

async function play(account: string, told: Told[], wave: readonly Step[]): Promise<void> {
  const idOf = (index: number) => `${account}-${index}`
  await Promise.all(
    wave.map(async (next) => {
      switch (next.do) {
        case 'reserve': {
          const want = BigInt(next.amount)
          const more = {
            ...(next.open ? { floor: want / 3n } : {}),
            ...(next.key === null ? {} : { idempotency: { key: `key-${next.key}`, requestHash: 'same' } }),
          }
          // A reservation that comes after its resolution is refused; the path never makes one.
          const answer = await ledgers[next.by]!.reserve(reservation(idOf(next.hold), account, want, more)).catch(
            () => undefined,
          )
          told.push({ step: next, answer })
          break
        }
        case 'settle':
        case 'release': {
          const settled = next.do === 'settle'
          const kept =
            settled && next.keep ? { keep: { status: 200, contentType: 'text/plain', body: Buffer.from('kept') } } : {}
          const asked = resolution(
            idOf(next.hold),
            account,
            settled ? 'settled' : 'released',
            settled ? BigInt(next.amount) : 0n,
            { idempotent: true, ...kept },
          )
          told.push({ step: next, answer: await ledgers[next.by]!.resolve(asked) })
          break
        }
        case 'burst':
          await burst(ledgers[next.by]!, account, next)
          break
        case 'grant':
          await ledgers[0]!.grant({ account, amount: BigInt(next.amount), note: '', actor: 'test' })
          break
        case 'expire':
          await database.query(
            { text: `update gateway_instance set heartbeat_at = now() - interval '1 hour' where id = $1` },
            [`process-${next.of}`],
          )
          if (next.by !== next.of) await ledgers[next.by]!.sweep()
          break
      }
    }),
  )
}

/** Some are under way while others come. */
async function burst(ledger: Ledger, account: string, { calls, want, charge }: Extract<Step, { do: 'burst' }>) {
  const ends: Array<Promise<unknown>> = []
  for (let i = 0; i < calls; i++) {
    const id = `${account}-${newId(realWorld)}`
    // What is missing may lie with one that is silent: then it is asked to come again.
    const reserved = await ledger.reserve(reservation(id, account, BigInt(want))).catch(() => undefined)
    if (reserved?.outcome !== 'held') break
    const settled = i % 4 < 3
    ends.push(ledger.resolve(resolution(id, account, settled ? 'settled' : 'released', settled ? BigInt(charge) : 0n)))
  }
  await Promise.all(ends)
}

type TransferRow = { id: string; kind: string; amount: bigint; loss: bigint; held: bigint }

async function check(
  account: string,
  told: readonly Told[],
  before: ReadonlyMap<string, TransferRow>,
): Promise<Map<string, TransferRow>> {
  const one = async <R>(text: string) => (await database.query<R>({ text }, [account]))[0]!
  const state = await one<{ posted: bigint; held: bigint }>('select posted, held from account where id = $1')
  const holds = await one<{ n: bigint; sum: bigint }>(
    'select count(*) as n, coalesce(sum(amount), 0)::bigint as sum from held where account_id = $1',
  )
  const entries = await one<{ own: bigint; uneven: bigint }>(
    `select coalesce(sum(e.amount) filter (where e.account like 'account:%'), 0)::bigint as own,
       (select count(*) from (select transfer_id from entry x where x.account_id = $1
          group by transfer_id having sum(x.amount) <> 0) z) as uneven
     from entry e where e.account_id = $1`,
  )
  // 1, 2: what the columns say is what the rows say, and never impossible.
  assert.equal(entries.uneven, 0n, 'a transfer does not sum to zero')
  assert.equal(state.posted, entries.own, 'posted is not the sum of the entries')
  assert.equal(state.held, holds.sum, 'held is not the sum of the holds')
  assert.ok(state.held >= 0n && state.held <= state.posted, `held ${state.held} of ${state.posted}`)

  // 3: rows that end something never change, and nothing that ended is still open.
  const rows = await database.query<TransferRow>(
    { text: 'select id, kind, amount, loss, held from transfer where account_id = $1' },
    [account],
  )
  const now = new Map(rows.map((row) => [row.id, row]))
  for (const [id, row] of before) assert.deepEqual(now.get(id), row, `${id} has changed`)
  const reopened = await one<{ n: bigint }>(
    'select count(*) as n from held h join transfer t on t.account_id = h.account_id and t.id = h.id where h.account_id = $1',
  )
  assert.equal(reopened.n, 0n, 'a resolved hold is open')
  const usage = await one<{ n: bigint }>(
    `select count(*) as n from transfer t full join usage u on u.account_id = t.account_id and u.id = t.id
     where coalesce(t.account_id, u.account_id) = $1 and t.kind not in ('grant', 'takeback') and (t.id is null or u.id is null or u.charged <> t.amount)`,
  )
  assert.equal(usage.n, 0n, 'usage rows and transfers differ')

  // 5: refusals leave nothing behind.
  for (const { step, answer } of told)
    if (step.do === 'reserve' && answer && answer.outcome !== 'held') {
      const id = `${account}-${step.hold}`
      const admitted = told.some(
        (other) =>
          other.step.do !== 'grant' &&
          other.step.do !== 'burst' &&
          other.step.do !== 'expire' &&
          other !== undefined &&
          other.step.hold === step.hold &&
          (other.step.do !== 'reserve' || other.answer?.outcome === 'held'),
      )
      if (!admitted) assert.ok(!now.has(id), `${id} was refused and has a transfer`)
    }

  // 6: one unanswered call at most for an idempotency key, and it is one that was admitted.
  const idem = await database.query<{ hold_id: string; status: number | null; open: boolean }>(
    {
      text: 'select i.hold_id, i.status, h.id is not null or i.freed as open from idempotency i left join hold h on h.account_id = i.account_id and h.id = i.hold_id where i.account_id = $1',
    },
    [account],
  )
  assert.ok(idem.length <= KEYS)
  for (const row of idem) if (row.status === null) assert.ok(row.open, `the key of ${row.hold_id} is taken by nobody`)

  // 7: never more was taken than granted.
  const granted = rows.reduce(
    (sum, row) => sum + (row.kind === 'grant' ? row.amount : row.kind === 'takeback' ? -row.amount : 0n),
    0n,
  )
  const taken = rows.reduce((sum, row) => sum + (row.kind === 'settled' ? row.amount : 0n), 0n)
  assert.ok(taken + state.held <= granted, `${taken} taken and ${state.held} held of ${granted}`)
  return now
}

test('the invariants hold at every commit, whatever several processes do at once', async () => {
  await fc.assert(
    fc.asyncProperty(story, async ({ credits, waves }) => {
      const account = await makeAccount(BigInt(credits))
      const told: Told[] = []
      let rows: Map<string, TransferRow> = new Map()
      for (const wave of waves) {
        await play(account, told, wave)
        for (const ledger of ledgers) await ledger.idle()
        rows = await check(account, told, rows)
      }
      const settled = new Map<number, number>()
      for (const { step, answer } of told)
        if (step.do === 'settle' && answer && (answer.outcome === 'settled' || answer.outcome === 'late'))
          settled.set(step.hold, (settled.get(step.hold) ?? 0) + 1)
      for (const [index, times] of settled) assert.equal(times, 1, `hold ${index} was settled ${times} times`)
      // 10: whoever is silent loses its holds at the next sweep.
      await database.query({ text: `update gateway_instance set heartbeat_at = now() - interval '1 hour'` })
      const last = createLedger({ database, world: realWorld, processId: 'last', graceMs: 0 })
      await last.sweep()
      const [left] = await database.query<{ n: bigint }>(
        { text: 'select count(*) as n from held where account_id = $1' },
        [account],
      )
      assert.equal(left!.n, 0n, 'a hold outlives its process')
      await check(account, told, rows)
      for (const ledger of ledgers) await ledger.sweep()
    }),
    { numRuns: runs(60, 1_000) },
  )
})

test('fifty ways to end each hold at once have one effect', async () => {
  const holds = runs(100, 1_000)
  const account = await makeAccount(BigInt(holds) * 10n)
  const ids = Array.from({ length: holds }, (_, i) => `${account}-${i}`)
  await Promise.all(ids.map((id) => ledgers[0]!.reserve(reservation(id, account, 10n))))
  const outcomes = await Promise.all(
    ids.flatMap((id) =>
      Array.from({ length: 50 }, (_, i) =>
        ledgers[i % PROCESSES]!.resolve(
          resolution(id, account, i % 3 === 0 ? 'released' : 'settled', i % 3 === 0 ? 0n : 3n),
        ),
      ),
    ),
  )
  const effects = outcomes.filter(({ outcome }) => outcome !== 'already')
  assert.equal(effects.length, holds)
  const paid = effects.reduce((sum, { paid }) => sum + paid, 0n)
  const [state] = await database.query<{ posted: bigint; held: bigint }>(
    { text: 'select posted, held from account where id = $1' },
    [account],
  )
  assert.deepEqual(state, { posted: BigInt(holds) * 10n - paid, held: 0n })
})

test('10,000 calls from three processes, with credit for 1,000, admit exactly 1,000', async () => {
  for (const waves of runs(1, 10) === 1 ? [1, 20] : Array.from({ length: 10 }, (_, i) => 1 + i * 4)) {
    const account = await makeAccount(1_000n * 7n)
    // All at once, or in waves, so that what comes later finds what was leased before.
    const orders = { of: [{ url: fresh.url, account }], want: '7', calls: 3_334, waves }
    assert.deepEqual(await runSwarm(PROCESSES, orders), [{ held: 1_000, refused: 9_002, failed: 0 }])
    const [state] = await database.query<{ posted: bigint; held: bigint }>(
      { text: 'select posted, held from account where id = $1' },
      [account],
    )
    assert.deepEqual(state, { posted: 7_000n, held: 7_000n })
  }
})

test('a charge is a whole number that never falls when usage grows', () => {
  const rate = fc.bigInt({ min: 0n, max: 10_000_000_000n })
  const tokens = fc.nat({ max: 2_000_000 })
  const used = fc.record({ input: tokens, cachedInput: tokens, cacheWrite: tokens, output: tokens })
  fc.assert(
    fc.property(
      fc.record({ input: rate, cachedInput: rate, cacheWrite: rate, output: rate }),
      used,
      used,
      (rates, usage, more) => {
        const pricing = { unit: 'credits' as const, tiers: [rates] }
        const larger = {
          input: usage.input + more.input,
          cachedInput: usage.cachedInput + more.cachedInput,
          cacheWrite: usage.cacheWrite + more.cacheWrite,
          output: usage.output + more.output,
        }
        const [low, high] = [chargeOf(pricing, usage).amount, chargeOf(pricing, larger).amount]
        assert.ok(low >= 0n && high >= low)
        const exact = (['input', 'cachedInput', 'cacheWrite', 'output'] as const).reduce(
          (sum, unit) => sum + BigInt(usage[unit]) * rates[unit],
          0n,
        )
        assert.ok(low * 1_000_000n >= exact && low * 1_000_000n < exact + 1_000_000n, 'rounded up once')
      },
    ),
  )
})
