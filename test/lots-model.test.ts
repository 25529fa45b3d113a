// Lots against a plain reference, over random histories on a real Postgres: every credit of the reference is a thing by
// itself, which is free, held by a call, or gone.
import fc from 'fast-check'
import { checkLots } from '../src/extensions/verify/account.ts'
import type { Ledger } from '../src/ledger/ledger.ts'
import { endLots, type Lot } from '../src/ledger/lots.ts'
import { readBalance } from '../src/reports/statement.ts'
import { assert, atOnce, runs, test } from './kit.ts'
import { database, account as makeAccount, processOf, reserve, rows, settle } from './ledger-part.ts'

const PRODUCTS = ['data/a', 'data/b', 'text'] as const
/** What a lot may be for, in the words of the ledger; the reference lists the products. */
const FOR = {
  all: { products: undefined, serves: [...PRODUCTS] as readonly string[] },
  data: { products: ['data/*'], serves: ['data/a', 'data/b'] },
  a: { products: ['data/a'], serves: ['data/a'] },
  some: { products: ['text', 'data/b'], serves: ['text', 'data/b'] },
} as const
const DAY = 86_400_000

interface Given {
  readonly do: 'give'
  readonly amount: number
  /** In so many days; null: it does not end. */
  readonly days: number | null
  readonly only: keyof typeof FOR
  readonly priority: number
}
type Step =
  | Given
  | {
      readonly do: 'reserve'
      /** What it may be charged as: the first, or one of its fallbacks. */
      readonly products: readonly string[]
      readonly want: number
      readonly floor: number
    }
  | { readonly do: 'settle'; readonly call: number; readonly charge: number }
  | { readonly do: 'release'; readonly call: number }
  | { readonly do: 'take'; readonly amount: number; readonly lot: number }
  /** Money went back; only: of a plan's month. What calls hold is claimed from what they release. */
  | { readonly do: 'refund'; readonly amount: number; readonly lot: number; readonly only: boolean }
  | { readonly do: 'pass'; readonly days: number }
  /** The process of all open calls is taken for dead. */
  | { readonly do: 'lose' }
  | { readonly do: 'sweep' }

const small = fc.nat({ max: 30 })
const products = fc.uniqueArray(fc.constantFrom(...PRODUCTS), { minLength: 1, maxLength: 2 })
const call = fc.nat({ max: 5 })
const history = fc.array(
  fc.oneof(
    {
      weight: 4,
      arbitrary: fc.record({
        do: fc.constant('give' as const),
        amount: fc.integer({ min: 1, max: 40 }),
        days: fc.option(fc.integer({ min: 1, max: 4 })),
        only: fc.constantFrom(...(Object.keys(FOR) as Array<keyof typeof FOR>)),
        priority: fc.constantFrom(50, 50, 50, 10, 90),
      }),
    },
    { weight: 6, arbitrary: fc.record({ do: fc.constant('reserve' as const), products, want: small, floor: small }) },
    { weight: 4, arbitrary: fc.record({ do: fc.constant('settle' as const), call, charge: fc.nat({ max: 45 }) }) },
    { weight: 2, arbitrary: fc.record({ do: fc.constant('release' as const), call }) },
    { weight: 1, arbitrary: fc.record({ do: fc.constant('take' as const), amount: small, lot: fc.nat({ max: 3 }) }) },
    {
      weight: 2,
      arbitrary: fc.record({
        do: fc.constant('refund' as const),
        amount: fc.nat({ max: 60 }),
        lot: fc.nat({ max: 3 }),
        only: fc.boolean(),
      }),
    },
    { weight: 3, arbitrary: fc.record({ do: fc.constant('pass' as const), days: fc.integer({ min: 1, max: 3 }) }) },
    { weight: 1, arbitrary: fc.record({ do: fc.constant('lose' as const) }) },
    { weight: 1, arbitrary: fc.record({ do: fc.constant('sweep' as const) }) },
  ),
  { minLength: 4, maxLength: 24 },
)

interface Credit {
  readonly lot: string
  readonly endsOn: number
  readonly serves: readonly string[]
  /** Its place in the order in which all are spent. */
  readonly order: readonly number[]
  by: string | null
}
interface Claim {
  left: number
  readonly calls: ReadonlySet<string | null>
  readonly lot: string | undefined
  readonly only: boolean
}
type Call = { readonly id: string; readonly products: readonly string[]; state: 'open' | 'lost' | 'over' }

class Reference {
  credits: Credit[] = []
  today = 0
  lots: string[] = []
  #age = 0
  #claims: Claim[] = []

  give(id: string, { amount, days, only, priority }: Given): void {
    const isPlain = days === null && only === 'all' && priority === 50
    const endsOn = days === null ? Number.POSITIVE_INFINITY : this.today + days
    this.#age += 1
    const order = [priority, endsOn, isPlain ? 1 : 0, isPlain ? 0 : this.#age]
    const lot = isPlain ? '' : id
    for (let i = 0; i < amount; i++) this.credits.push({ lot, endsOn, serves: FOR[only].serves, order, by: null })
    this.credits.sort(inOrder)
    if (!isPlain) this.lots.push(id)
  }
  #free(products: readonly string[] = []): Credit[] {
    return this.credits.filter((one) => one.by === null && products.every((product) => one.serves.includes(product)))
  }
  reserve(id: string, products: readonly string[], want: number, floor: number): number | undefined {
    const there = this.#free(products)
    if (there.length < floor) return undefined
    for (const one of there.slice(0, want)) one.by = id
    return Math.min(want, there.length)
  }
  /** Answers what was paid. */
  resolve({ id }: Call, product: string, charge: number): number {
    const own = this.credits.filter(({ by }) => by === id)
    const paid = new Set(own.slice(0, charge))
    for (const one of own) one.by = null
    const claimed = this.#claim(
      id,
      own.filter((one) => !paid.has(one)),
    )
    for (const one of this.#free([product]).filter((one) => this.#lasts(one))) if (paid.size < charge) paid.add(one)
    this.credits = this.credits.filter((one) => !paid.has(one) && !claimed.has(one))
    this.end()
    return paid.size
  }
  #claim(id: string, released: readonly Credit[]): ReadonlySet<Credit> {
    const claimed = new Set<Credit>()
    for (const claim of this.#claims.filter(({ calls }) => calls.has(id)))
      for (const one of lastFirst(released, claim.lot))
        if (claim.left > 0 && !claimed.has(one) && (!claim.only || one.lot === claim.lot)) {
          claimed.add(one)
          claim.left -= 1
        }
    return claimed
  }
  take(amount: number, first: string | undefined, only = false): number {
    const there = lastFirst(this.#free(), first).filter(({ lot }) => !only || lot === first)
    const taken = new Set(there.slice(0, amount))
    this.credits = this.credits.filter((one) => !taken.has(one))
    return taken.size
  }
  refund(amount: number, lot: string | undefined, only: boolean): number {
    const taken = this.take(amount, lot, only)
    const held = this.credits.filter((one) => one.by !== null && (!only || one.lot === lot))
    const left = Math.min(amount - taken, held.length)
    if (left > 0) this.#claims.push({ left, calls: new Set(held.map(({ by }) => by)), lot, only })
    return taken
  }
  #lasts({ endsOn }: Credit): boolean {
    return endsOn > this.today
  }
  end(): void {
    this.credits = this.credits.filter((one) => one.by !== null || this.#lasts(one))
  }
  countOf(of: (one: Credit) => boolean): number {
    return this.credits.filter(of).length
  }
}

/** Those of one lot, and then those that would be spent last. */
function lastFirst(credits: readonly Credit[], lot: string | undefined): Credit[] {
  const there = credits.toReversed()
  return [...there.filter((one) => one.lot === lot), ...there.filter((one) => one.lot !== lot)]
}

function inOrder(a: Credit, b: Credit): number {
  for (const [i, place] of a.order.entries()) if (place !== b.order[i]) return place < (b.order[i] ?? 0) ? -1 : 1
  return 0
}

async function play(ledger: Ledger, steps: readonly Step[]): Promise<void> {
  const account = await makeAccount(0n)
  const reference = new Reference()
  const calls: Call[] = []
  for (const step of steps) {
    await STEPS[step.do]({ ledger, account, reference, calls }, step as never) // each by its own name
    await compare(account, reference)
  }
  // Whatever is open ends, and then nothing is held; and what the rows say of lots adds up.
  for (const call of calls.filter(({ state }) => state === 'open'))
    await STEPS.release({ ledger, account, reference, calls }, { do: 'release', call: calls.indexOf(call) })
  await STEPS.sweep({ ledger, account, reference, calls }, { do: 'sweep' })
  await compare(account, reference)
  assert.deepEqual(await database.transaction((tx) => checkLots(tx, account)), [])
}

interface Played {
  readonly ledger: Ledger
  readonly account: string
  readonly reference: Reference
  readonly calls: Call[]
}
const STEPS: { [S in Step as S['do']]: (played: Played, step: S) => Promise<void> } = {
  async give({ ledger, account, reference }, step) {
    const lot: Lot = {
      source: 'given',
      ...(step.days === null ? {} : { endsAt: new Date(Date.now() + step.days * DAY) }),
      products: FOR[step.only].products,
      priority: step.priority,
    }
    const given = await ledger.grant({ account, amount: BigInt(step.amount), note: '', actor: 'test', lot })
    reference.give(given!.id, step)
  },
  async reserve({ ledger, account, reference, calls }, { products, want, floor }) {
    const least = Math.min(want, floor)
    const [product = ''] = products
    const asked = { product, products: products.length > 1 ? products : undefined, floor: BigInt(least) }
    const reserved = await reserve(ledger, account, BigInt(want), asked)
    const held = reference.reserve(reserved.id, products, want, least)
    if (held !== undefined) calls.push({ id: reserved.id, products, state: 'open' })
    assert.deepEqual(
      reserved.outcome === 'held' ? Number(reserved.amount) : undefined,
      held,
      `${want} of ${products}: ${reserved.outcome}`,
    )
  },
  async settle({ ledger, account, reference, calls }, { call: index, charge }) {
    const call = calls[index % Math.max(calls.length, 1)]
    if (!call) return
    const product = call.products[charge % call.products.length]!
    const settled = await settle(ledger, account, call.id, BigInt(charge), { product })
    if (call.state === 'over') return assert.equal(settled.outcome, 'already')
    const paid = reference.resolve(call, product, charge)
    assert.deepEqual(
      [settled.outcome, Number(settled.paid), Number(settled.loss)],
      [call.state === 'lost' ? 'late' : 'settled', paid, charge - paid],
    )
    call.state = 'over'
  },
  async release({ ledger, account, reference, calls }, { call: index }) {
    const call = calls[index % Math.max(calls.length, 1)]
    if (!call) return
    const [product = ''] = call.products
    await settle(ledger, account, call.id, 0n, { product, kind: 'released' })
    if (call.state === 'open') reference.resolve(call, product, 0)
    if (call.state === 'open') call.state = 'over'
  },
  async take({ ledger, account, reference }, { amount, lot }) {
    const from = reference.lots[lot]
    const taken = await ledger.grant({ account, amount: -BigInt(amount), note: '', actor: 'test', from })
    reference.end()
    assert.equal(Number(-taken!.moved), reference.take(amount, from))
  },
  async refund({ ledger, account, reference }, { amount, lot, only }) {
    const from = reference.lots[lot]
    const onlyFrom = only && from !== undefined
    const back = { account, amount: -BigInt(amount), note: '', actor: 'test', kind: 'refund' as const, payment: 'pay' }
    const taken = await ledger.grant({ ...back, from, onlyFrom })
    reference.end()
    assert.equal(Number(-taken!.moved), reference.refund(amount, from, onlyFrom))
  },
  async pass({ account, reference }, { days }) {
    // The clock of the database stays as it is: every end comes nearer instead.
    await rows('update lot set ends_at = ends_at - make_interval(days => $2::int) where account_id = $1', [
      account,
      String(days),
    ])
    reference.today += days
    reference.end()
  },
  async lose({ account, reference, calls }) {
    await rows(`select ledger_expire($1, interval '-1 second')`, [account])
    for (const call of calls.filter(({ state }) => state === 'open')) {
      reference.resolve(call, '', 0)
      call.state = 'lost'
    }
  },
  async sweep({ account, reference }) {
    await endLots(database)
    const [row] = await rows<{ posted: bigint; has_lots: boolean }>(
      'select posted, has_lots from account where id = $1',
      [account],
    )
    assert.deepEqual(row, {
      posted: BigInt(reference.credits.length),
      has_lots: reference.countOf(({ lot }) => lot !== '') > 0,
    })
  },
}

/** What people see is what the reference has; and what the books say adds up. */
async function compare(account: string, reference: Reference): Promise<void> {
  const seen = await readBalance(database, account)
  const micro = (amount: string) => Math.round(Number(amount) * 1e6)
  const lots = Object.fromEntries(seen!.lots.map(({ id, remaining, held }) => [id, [micro(remaining), micro(held)]]))
  const names = new Set(reference.credits.map(({ lot }) => lot).filter(Boolean))
  const expected = [...names].map((id) => [
    id,
    [reference.countOf(({ lot }) => lot === id), reference.countOf(({ lot, by }) => lot === id && by !== null)],
  ])
  assert.deepEqual(
    { balance: micro(seen!.balance), held: micro(seen!.held), plain: micro(seen!.plain), lots },
    {
      balance: reference.credits.length,
      held: reference.countOf(({ by }) => by !== null),
      plain: reference.countOf(({ lot }) => lot === ''),
      lots: Object.fromEntries(expected),
    },
  )
  const [books] = await rows<{ posted: bigint; entries: bigint }>(
    `select a.posted, (select coalesce(sum(e.amount), 0)::bigint from entry e where e.account_id = a.id and e.account like 'account:%') as entries from account a where a.id = $1`,
    [account],
  )
  assert.equal(books!.posted, books!.entries)
}

test('lots are held, spent, given back and expired as a plain reference says, with calls open across their end', async () => {
  const ledger = await processOf({ leases: false })
  const ways = 4
  const numRuns = Math.ceil(runs(80, 10_000) / ways)
  await atOnce(ways, () =>
    fc.assert(
      fc.asyncProperty(history, (steps) => play(ledger, steps)),
      { numRuns },
    ),
  )
})
