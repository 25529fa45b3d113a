// The worth of a credit and the contact for customers: set by the operator, shown beside credits and on statements. The
// history is stored, so that a statement shows what was set at the end of its month.
import * as z from 'zod'
import type { Audit, By } from '../database/audit.ts'
import type { Database } from '../database/database.ts'
import { defineSetting } from '../database/setting.ts'
import { formatCredits, parseCredits } from '../kernel/credits.ts'
import { invalid } from '../kernel/fault.ts'
import type { World } from '../kernel/world.ts'
import { type BillingView, type CreditWorth, creditWorth } from './views.ts'

export type Billing = ReturnType<typeof createBilling>

interface BillingPatch {
  readonly worth?: CreditWorth | null | undefined
  readonly contact?: string | null | undefined
}

/** The newest last. */
const history = z.array(z.object({ at: z.string(), worth: creditWorth.nullable() }))
const stored = z.object({ history, contact: z.string().nullable() })
const viewOf = (of: z.output<typeof stored>): BillingView => ({
  worth: of.history.at(-1)?.worth ?? null,
  contact: of.contact,
})

const BILLING = defineSetting({
  name: 'billing',
  schema: stored,
  defaults: { history: [], contact: null },
  action: 'system.billing',
  object: 'system',
  noted: viewOf,
})
/** Stored changes; older ones are dropped. */
const CHANGES_MAX = 1_000

export function createBilling({ database, audit, world }: { database: Database; audit: Audit; world: World }) {
  return {
    get: async (): Promise<BillingView> => viewOf(await BILLING.read(database)),
    /** Absent: unchanged; null: removed. */
    async change({ worth, contact }: BillingPatch, by: By): Promise<BillingView> {
      if (worth) check(worth)
      const at = new Date(world.nowMs()).toISOString()
      const after = await BILLING.change({ database, audit }, by, (was) => ({
        history: worth === undefined ? was.history : [...was.history, { at, worth }].slice(-CHANGES_MAX),
        contact: contact === undefined ? was.contact : contact,
      }))
      return viewOf(after)
    },
    /** The worth of a credit at a moment; null: never set. */
    async worthAt(ms: number): Promise<CreditWorth | null> {
      const { history: all } = await BILLING.read(database)
      const then = all.findLast(({ at }) => Date.parse(at) <= ms)
      // For the time before the first setting, the first one is used.
      return (then ?? all[0])?.worth ?? null
    },
  }
}

function check({ currency, rate }: CreditWorth): void {
  if (!Intl.supportedValuesOf('currency').includes(currency))
    throw invalid('worth.currency: must be an ISO code such as EUR or USD.', 'worth')
  const amount = parseCredits(rate)
  if (amount === undefined || amount <= 0n)
    throw invalid('worth.rate: must be what one credit is worth, such as "0.01", with at most six decimals.', 'worth')
}

/** "12.34": credits as money with the decimals of the currency, rounded once, half away from zero. */
export function formatMoney(amount: bigint, { currency, rate }: CreditWorth): string {
  const digits = new Intl.NumberFormat('en', { style: 'currency', currency }).resolvedOptions()
  const decimals = Math.min(6, digits.maximumFractionDigits ?? 2)
  // Millionths of credits times millionths of the currency have twelve decimals.
  const product = amount * (parseCredits(rate) ?? 0n)
  const step = 10n ** BigInt(12 - decimals)
  const rounded = (product < 0n ? product - step / 2n : product + step / 2n) / step
  const [whole = '0', fraction = ''] = formatCredits(rounded * 10n ** BigInt(6 - decimals)).split('.')
  return decimals === 0 ? whole : `${whole}.${fraction.padEnd(decimals, '0')}`
}
