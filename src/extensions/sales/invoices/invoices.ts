// Invoices of the gateway's own sales: the issuer's details, and whom each account's are made out to.
import { accountUnknown } from '../../../admission/accounts.ts'
import type { Audit, By } from '../../../database/audit.ts'
import { type Database, type Queryable, sql } from '../../../database/database.ts'
import { defineSetting } from '../../../database/setting.ts'
import type { Branding } from '../../../identity/branding/branding.ts'
import { type BrandingView, DEFAULT_NAME } from '../../../identity/branding/views.ts'
import { dayOfMs, formatDay, monthStart } from '../../../kernel/calendar.ts'
import { invalid } from '../../../kernel/fault.ts'
import type { World } from '../../../kernel/world.ts'
import { checkedDetails, checkIssuer, missingOf, NO_DETAILS } from '../../billing/invoices/details.ts'
import { createIssuing } from '../../billing/invoices/issuing.ts'
import {
  type BillingDetails,
  type BillingDetailsView,
  type InvoiceDocument,
  type InvoiceSettings,
  type Issuer,
  invoiceSettings,
} from '../../billing/invoices/views.ts'

interface SettingsPatch {
  readonly issuer?: Issuer | null | undefined
  readonly monthly?: boolean | undefined
}

const DETAILS = sql('billing_details')`select details from billing_details where account_id = $1`
const PUT_DETAILS = sql('billing_details_put')`
  insert into billing_details (account_id, details) select id, $2 from account where id = $1
   on conflict (account_id) do update set details = excluded.details returning 1`
const ACCOUNT = sql('invoice_account')`select name from account where id = $1`
const SETTINGS = defineSetting({
  name: 'invoices',
  schema: invoiceSettings,
  defaults: { issuer: null, monthly: false, monthlySince: null },
  action: 'system.invoices',
  object: 'system',
})

export type Invoices = ReturnType<typeof createInvoices>

export function createInvoices(options: {
  database: Database
  world: World
  audit: Audit
  /** Absent: invoices have no look of their own. */
  branding?: Pick<Branding, 'get' | 'logo'>
}) {
  const { database, world, audit, branding } = options

  async function readDetails(on: Queryable, account: string): Promise<BillingDetails> {
    const [row] = await on.query<{ details: BillingDetails }>(DETAILS, [account])
    return { ...NO_DETAILS, ...row?.details }
  }

  const issuing = createIssuing({
    database,
    world,
    audit,
    isOfPurses: false,
    async seller(on) {
      const { issuer } = await SETTINGS.read(on)
      return { issuer, brand: brandOf(branding?.get()), logo: branding?.logo()?.bytes }
    },
    async customer(on, { account }) {
      const details = await readDetails(on, account)
      const [row] = await on.query<{ name: string }>(ACCOUNT, [account])
      return { name: row?.name ?? account, details }
    },
  })

  return {
    ...issuing,

    settings: (): Promise<InvoiceSettings> => SETTINGS.read(database),

    /** What is absent stays. Without an issuer no invoices are issued; numbers go on where they were. */
    async changeSettings({ issuer, monthly }: SettingsPatch, by: By): Promise<InvoiceSettings> {
      if (issuer) checkIssuer(issuer)
      return SETTINGS.change({ database, audit }, by, (before) => {
        const after = {
          issuer: issuer === undefined ? before.issuer : issuer,
          monthly: monthly ?? before.monthly,
          // Months before it are not invoiced.
          monthlySince: (monthly ?? before.monthly) ? (before.monthlySince ?? monthOf(world)) : null,
        }
        if (after.monthly && after.issuer === null)
          throw invalid('monthly: there is no issuer whose invoices these would be.', 'monthly')
        return after
      })
    },

    async details(account: string): Promise<BillingDetailsView> {
      const { issuer } = await SETTINGS.read(database)
      const details = await readDetails(database, account)
      return { ...details, missing: issuer ? missingOf(details) : null }
    },

    async changeDetails(account: string, given: BillingDetails, by: By): Promise<BillingDetailsView> {
      const details = checkedDetails(given)
      return database.transaction(async (tx) => {
        const { issuer } = await SETTINGS.read(tx)
        const missing = issuer ? missingOf(details) : null
        // What is there may be replaced, and not be taken away: the next payment's invoice needs it.
        if (missing !== null) throw invalid(`${missing}: must not be empty; invoices need it.`, missing)
        const [put] = await tx.query(PUT_DETAILS, [account, JSON.stringify(details)])
        if (!put) throw accountUnknown()
        const fields = Object.entries(details).flatMap(([name, value]) => (value === null ? [] : [name]))
        await audit.write(tx, by, { action: 'account.billing_details', object: account, detail: { fields } })
        return { ...details, missing }
      })
    },

    /**
     * The first field of the account's billing details without which nothing may be sold to it; null: none, or no
     * invoices are issued.
     */
    async missing(account: string): Promise<keyof BillingDetails | null> {
      const { issuer } = await SETTINGS.read(database)
      return issuer ? missingOf(await readDetails(database, account)) : null
    },
  }
}

/** Undefined where nobody has chosen a name or colour. */
function brandOf(view: BrandingView | undefined): InvoiceDocument['brand'] | undefined {
  if (!view || (view.name === DEFAULT_NAME && view.color === null)) return undefined
  return { name: view.name, color: view.color }
}

const monthOf = (world: World) => formatDay(monthStart(dayOfMs(world.nowMs())))
