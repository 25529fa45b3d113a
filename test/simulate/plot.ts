// What a story is about: who calls when, what they may spend, and what an operator does meanwhile. Drawn from its seed.
import type { Queryable } from '../../src/database/database.ts'
import { type Limits, storeLimits } from '../../src/ledger/limits.ts'
import { MODEL } from '../faults/chat-vendor.ts'
import { VIDEO_MODEL } from './catalog.ts'
import { keysOf } from './text-calls.ts'
import type { Chance } from './virtual-world.ts'

export const STORY_MS = 60_000

type Scope = Parameters<typeof storeLimits>[1]

export interface Plot {
  readonly account: string
  readonly texts: number
  readonly videos: number
  /** Many calls at one process, so that it leases what they need. */
  readonly bursts: ReadonlyArray<{ readonly atMs: number; readonly count: number; readonly forMs: number }>
  readonly granted: bigint
  readonly limits: ReadonlyArray<{ readonly scope: Scope; readonly limits: Limits }>
  /** What each key may use in all, in credits or calls: budgets. */
  readonly budgets: ReadonlyArray<{
    readonly unit: 'credits' | 'requests'
    readonly max: number
    readonly hard: boolean
  }>
  /** When an operator sets the same limits again, and takes credits back. */
  readonly limitsAgainMs: number | undefined
  readonly takeback: { readonly atMs: number; readonly amount: bigint } | undefined
  /** Credits that are given meanwhile, and end, or are for one product. */
  readonly lots: ReadonlyArray<{
    readonly atMs: number
    readonly amount: bigint
    readonly forMs: number | undefined
    readonly product: string | undefined
  }>
  /**
   * Calls at one process, one after the other for so long that whatever it has leased by then must have gone back when
   * it was asked for.
   */
  readonly steady: { readonly atMs: number; readonly everyMs: number; readonly askedMs: number } | undefined
}

export const STEADY_CALLS = 30

/** `fair`: nothing goes wrong, so that it is certain by when something must have happened. */
export function drawPlot(
  chance: Chance,
  account: string,
  { fair, limited }: { readonly fair: boolean; readonly limited: true | undefined },
): Plot {
  const busy = chance.is(0.6)
  const bursts = Array.from({ length: busy ? 1 + chance.below(3) : 0 }, () => ({
    atMs: chance.below(STORY_MS - 10_000),
    count: 6 + chance.below(14),
    forMs: 500 + chance.below(chance.is(0.3) ? 20_000 : 4_000),
  }))
  const steady = chance.is(fair ? 0.7 : 0.05)
    ? { atMs: chance.below(STORY_MS - 15_000), everyMs: 200 + chance.below(100), askedMs: 1_500 + chance.below(1_500) }
    : undefined
  const key = keysOf(account)[0]!
  const scopes: Scope[] = [{ kind: 'account', account }, { kind: 'key', account, key, earlier: [] }, { kind: 'system' }]
  return {
    account,
    texts: busy ? 2 : 8,
    videos: busy ? chance.below(2) : 4,
    bursts,
    // Who calls again and again has enough for it.
    granted: BigInt(chance.below(30_000) * chance.pick(busy ? [1, 1, 10] : [1]) + (steady ? 1_000_000 : 0)),
    limits: scopes
      .filter(({ kind }) => chance.is(0.2) || (kind === 'system' && limited))
      .map((scope) => ({ scope, limits: drawLimits(chance) }))
      .filter(({ limits }) => Object.keys(limits).length > 0),
    budgets: chance.is(0.4)
      ? [
          { unit: 'credits', max: 500 + chance.below(10_000), hard: chance.is(0.8) },
          { unit: 'requests', max: 3 + chance.below(40), hard: chance.is(0.8) },
        ]
      : [],
    limitsAgainMs: chance.is(0.3) ? chance.below(STORY_MS) : undefined,
    takeback: chance.is(0.2) ? { atMs: chance.below(STORY_MS), amount: BigInt(1 + chance.below(5_000)) } : undefined,
    steady,
    lots: chance.is(0.4) ? Array.from({ length: 1 + chance.below(3) }, () => drawLot(chance)) : [],
  }
}

/** Credits that are bought at the beginning, and when their money goes back. */
export function drawRefund(chance: Chance): { readonly atMs: number; readonly amount: bigint } | undefined {
  return chance.is(0.3) ? { atMs: chance.below(STORY_MS), amount: BigInt(1 + chance.below(20_000)) } : undefined
}

const PURCHASE = { text: `select ledger_grant($3, $1, $2, 'simulated', 'simulated', 'purchase')` }
const PAYMENT = {
  text: `insert into payment (account_id, id, provider, kind, currency, amount_minor, credits, state, transfer_id) values ($1, 'pay_' || $1, 'stripe', 'amount', 'EUR', 100, $2, 'paid', $3)`,
}
const REFUND = {
  text: `with back as (select moved from ledger_grant($2, $1, -(select credits from payment where account_id = $1), 'simulated', 'simulated', 'refund', 0,
      (select jsonb_build_object('id', transfer_id, 'payment', id) from payment where account_id = $1)))
    update payment set state = 'refunded', refunded_minor = 100, taken = -moved, lost = credits + moved from back where account_id = $1`,
}

export async function buy(tx: Queryable, account: string, amount: bigint, id: string): Promise<void> {
  await tx.query(PURCHASE, [account, amount, id])
  await tx.query(PAYMENT, [account, amount, id])
}

export async function chargeBack(tx: Queryable, account: string, id: string): Promise<void> {
  await tx.query(REFUND, [account, id])
}

function drawLot(chance: Chance): Plot['lots'][number] {
  return {
    atMs: chance.below(STORY_MS),
    amount: BigInt(1 + chance.below(5_000)),
    forMs: chance.is(0.8) ? 500 + chance.below(30_000) : undefined,
    product: chance.is(0.4) ? chance.pick([MODEL, VIDEO_MODEL]) : undefined,
  }
}

function drawLimits(chance: Chance): Limits {
  return {
    ...(chance.is(0.2) ? { concurrency: 3 + chance.below(8) } : {}),
    ...(chance.is(0.5) ? { requestsPerMinute: 6 + chance.below(40) } : {}),
    ...(chance.is(0.4) ? { tokensPerMinute: 500 + chance.below(20_000) } : {}),
    ...(chance.is(0.3) ? { spendPerDay: String(500 + chance.below(10_000)) } : {}),
    ...(chance.is(0.3) ? { spendTotal: String(500 + chance.below(10_000)) } : {}),
  }
}

/** Credits that are given by an id of their own, and where the account is to go meanwhile. */
export function drawGifts(chance: Chance, ledgers: readonly string[]) {
  return {
    gifts: Array.from({ length: 1 + chance.below(4) }, () => ({
      atMs: chance.below(STORY_MS),
      amount: BigInt(1 + chance.below(5_000)),
    })),
    moves: Array.from({ length: chance.pick([0, 0, 1, 1, 2]) }, () => ({
      atMs: chance.below(STORY_MS),
      to: chance.pick(ledgers),
      mayDie: chance.is(0.5),
    })),
  }
}

type Arrange = (name: string, work: (tx: Queryable) => Promise<unknown>) => Promise<void>

export async function setLimits(arrange: Arrange, plot: Plot): Promise<void> {
  for (const { scope, limits } of plot.limits)
    await arrange('limits', async (tx) => {
      if (scope.kind === 'key') await tx.query(KEY, [scope.account, scope.key])
      await storeLimits(tx, scope, limits)
    })
  if (plot.budgets.length > 0)
    await arrange('limits', async (tx) => {
      await tx.query(LOCK, [plot.account])
      for (const [n, { unit, max, hard }] of plot.budgets.entries())
        await tx.query(BUDGET, [plot.account, `bgt_${n}`, unit, max, hard])
      // The same again, under another version: every process must learn it.
      await tx.query(CHANGED, [plot.account])
      await tx.query(RECALL, [plot.account])
    })
}

const LOCK = { text: 'select 1 from account where id = $1 for update' }
const BUDGET = {
  text: `insert into budget (account_id, id, name, scope, unit, span, max, hard) select a.id, $2, $2, 'key', $3, 'total', $4, $5 from account a where a.id = $1 on conflict do nothing`,
}
const CHANGED = { text: 'update account set budgets = budgets + 1 where id = $1' }
const RECALL = { text: 'update lease set recalled_at = least(recalled_at, now()) where account_id = $1' }

const KEY = {
  text: `insert into api_key (account_id, id, name, digest, prefix, last4) values ($1, $2, '', '', '', '') on conflict do nothing`,
}
