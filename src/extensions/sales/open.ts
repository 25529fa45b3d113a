// Everything that sells, put together: what an account can buy, payments, plans, automatic top-up, reconciliation.
import { type Database, sql } from '../../database/database.ts'
import { formatCredits } from '../../kernel/credits.ts'
import { formatMoney } from '../billing/money.ts'
import { createReconciliations, type ReconciledPayments } from '../billing/payments/reconcile.ts'
import { createPayments, type Payments, type PaymentsOptions } from './payments.ts'
import { createPlans, type Plans, type PlansOptions } from './plans.ts'
import { createTopUps } from './top-up.ts'
import type { SalesView } from './views.ts'

export type SellingOptions = Omit<PaymentsOptions, 'plans'> & Omit<PlansOptions, 'payments'>

export type Selling = ReturnType<typeof openSales>

export function openSales(options: SellingOptions) {
  const { catalog, invoices } = options
  // Plans ask for payments, and a payment begins the month of a plan.
  const payments = createPayments({
    ...options,
    plans: { paid: (...given) => plans.paid(...given), takenBack: (...given) => plans.takenBack(...given) },
  })
  const plans: Plans = createPlans({ ...options, payments })
  const topUps = createTopUps({ ...options, payments })
  return {
    payments,
    plans,
    topUps,
    reconciliations: createReconciliations({ ...options, payments: reconciled(options.database, payments) }),
    /** What an account can buy, and how it pays. */
    async offers(account: string): Promise<SalesView> {
      const provider = await payments.provider()
      const { sales } = catalog.current.document
      const { card, topUp } = await topUps.view(account)
      if (!provider || !sales) return { ...NOTHING, card, topUp }
      const money = (minor: bigint) => formatMoney(minor, sales.currency)
      const { amounts } = sales
      return {
        currency: sales.currency,
        provider: provider.name,
        card,
        topUp,
        supportsSavedCards: provider.remote !== undefined,
        amounts: amounts && {
          pricePerCredit: formatCredits(amounts.pricePerCredit),
          minimum: money(amounts.minimumMinor),
          maximum: money(amounts.maximumMinor),
        },
        packs: sales.packs.map(({ id, name, priceMinor, credits, endsAfterDays, products }) => ({
          id,
          name,
          price: money(priceMinor),
          credits: formatCredits(credits),
          endsAfterDays: endsAfterDays ?? null,
          products: products ?? null,
        })),
        missing: await invoices.missing(account),
      }
    },
  }
}

/** The gateway's own: whoever pays is an account. */
const reconciled = (database: Database, { settings, remote, apply }: Payments): ReconciledPayments => ({
  owners: async () => ((await settings.isOn('stripe')) ? [''] : []),
  remote: async () => remote('stripe'),
  async apply(_, facts) {
    const [where] = await database.query<{ elsewhere: boolean }>(ELSEWHERE, [facts.providerId, facts.account ?? ''])
    if (where?.elsewhere) return undefined
    const { row, changes } = await apply(facts)
    return { payment: row?.id ?? null, account: row?.account_id || null, changes }
  },
  unlisted: (_, { from, until, listed }) => database.query(UNLISTED, ['stripe', from, until, listed]),
})

/** Of an account that another ledger has. What is nobody's is control's. */
const ELSEWHERE = sql('payment_elsewhere')`
  select not exists (select 1 from payment where provider_id = $1) and case when to_regnamespace('control') is null
     then exists (select 1 from account where id = $2 and ledger is not null)
     else not exists (select 1 from account where id = $2) end as elsewhere`
const UNLISTED = sql('payments_unlisted')`
  select id, account_id, provider_id from payment where provider = $1 and created_at >= $2 and paid_at < $3 and provider_id <> all($4) order by id`

const NOTHING = { currency: null, provider: null, amounts: null, packs: [], supportsSavedCards: false, missing: null }
