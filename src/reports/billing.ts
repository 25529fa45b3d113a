// The worth of a credit and the contact for customers: set by the operator, shown beside credits and on statements. The history is stored, so that a statement shows what was
// set at the end of its month.
import type { Audit, By } from '../database/audit.ts'
import { type Database, type Queryable, statement } from '../database/database.ts'
import { putSetting, readSetting } from '../database/setting.ts'
import { formatCredits, parseCredits } from '../kernel/credits.ts'
import { invalid } from '../kernel/fault.ts'
import type { World } from '../kernel/world.ts'
import type { BillingView, CreditWorth } from './views.ts'

export interface Billing {
  get(): Promise<BillingView>
  /** Absent: unchanged; null: removed. */
  change(patch: BillingPatch, by: By): Promise<BillingView>
  /** The worth of a credit at a moment; null: never set. */
  worthAt(ms: number): Promise<CreditWorth | null>
}

interface BillingPatch {
  readonly worth?: CreditWorth | null | undefined
  readonly contact?: string | null | undefined
}

/** The newest last. */
type History = ReadonlyArray<{ readonly at: string; readonly worth: CreditWorth | null }>

const LOCK = statement('billing_lock', 'select pg_advisory_xact_lock(7046029262)')
/** Stored changes; older ones are dropped. */
const CHANGES_MAX = 1_000

export function createBilling({ database, audit, world }: { database: Database; audit: Audit; world: World }): Billing {
  async function read(on: Queryable): Promise<{ history: History; contact: string | null }> {
    const history = JSON.parse((await readSetting(on, 'credit-worth')) ?? '[]') as History // written below
    return { history, contact: (await readSetting(on, 'contact')) ?? null }
  }

  return {
    async get() {
      const { history, contact } = await read(database)
      return { worth: history.at(-1)?.worth ?? null, contact }
    },
    async change({ worth, contact }, by) {
      if (worth) check(worth)
      return database.transaction(async (tx) => {
        await tx.query(LOCK)
        const before = await read(tx)
        const history =
          worth === undefined
            ? before.history
            : [...before.history, { at: new Date(world.nowMs()).toISOString(), worth }].slice(-CHANGES_MAX)
        if (worth !== undefined) await putSetting(tx, 'credit-worth', JSON.stringify(history))
        if (contact !== undefined) await putSetting(tx, 'contact', contact)
        const after = {
          worth: history.at(-1)?.worth ?? null,
          contact: contact === undefined ? before.contact : contact,
        }
        const was = { worth: before.history.at(-1)?.worth ?? null, contact: before.contact }
        await audit.write(tx, by, { action: 'system.billing', object: 'system', detail: after, before: was, after })
        return after
      })
    },
    async worthAt(ms) {
      const { history } = await read(database)
      const then = history.findLast(({ at }) => Date.parse(at) <= ms)
      // For the time before the first setting, the first one is used.
      return (then ?? history[0])?.worth ?? null
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
