// Invoices of an account for what customers pay into their purses, in its own name and with numbers of its own: none
// before it says who issues them.
import * as z from 'zod'
import type { By } from '../../database/audit.ts'
import { type Queryable, sql } from '../../database/database.ts'
import type { CoreParts } from '../../extension.ts'
import { type Resource, resource } from '../../operator/resource.ts'
import { asked, checkedDetails, detailsInput, invoiceFilter, NO_DETAILS } from '../billing/invoices/details.ts'
import { createIssuing } from '../billing/invoices/issuing.ts'
import { type BillingDetails, billingDetails, invoicePage, invoiceView } from '../billing/invoices/views.ts'
import { zip } from '../billing/zip.ts'
import { PURSE_ID } from './calls.ts'
import type { PursePayments } from './payments.ts'
import { requireAccount, unknownPurse } from './purses.ts'

interface PurseInvoicesDeps extends Pick<CoreParts, 'database' | 'world' | 'audit'> {
  readonly payments: Pick<PursePayments, 'seller'>
}

export type PurseInvoices = ReturnType<typeof createPurseInvoices>

export function createPurseInvoices({ database, world, audit, payments }: PurseInvoicesDeps) {
  async function read(on: Queryable, account: string, purse: string) {
    const [row] = await on.query<{ name: string; billing: BillingDetails | null }>(READ, [account, purse])
    if (!row) throw unknownPurse(purse)
    return { name: row.name || purse, details: row.billing ?? NO_DETAILS }
  }
  const customer = (on: Queryable, { account, purse = '' }: { account: string; purse?: string | undefined }) =>
    read(on, account, purse)

  return {
    ...createIssuing({ database, world, audit, customer, isOfPurses: true, seller: payments.seller }),
    /** Whom the invoices of a purse are made out to, as far as it is known. */
    details: async (account: string, purse: string): Promise<BillingDetails> =>
      (await read(database, account, purse)).details,
    async changeDetails(account: string, purse: string, given: BillingDetails, by: By): Promise<BillingDetails> {
      const details = checkedDetails(given)
      await database.transaction(async (tx) => {
        await requireAccount(tx, account)
        const [put] = await tx.query(PUT, [account, purse, JSON.stringify(details)])
        if (!put) throw unknownPurse(purse)
        const fields = Object.entries(details).flatMap(([name, value]) => (value === null ? [] : [name]))
        const object = `${account}/${purse}`
        await audit.write(tx, by, { action: 'account.billing_details', object, detail: { fields } })
      })
      return details
    },
  }
}

export function purseInvoiceResources({ invoices }: { readonly invoices: PurseInvoices }): Resource[] {
  return [
    resource('GET /accounts/{id}/purse-invoices', 'invoices:read', {
      title: 'List the invoices that an account issued to its customers',
      query: z.strictObject({
        ...invoiceFilter,
        purse: z.string().regex(PURSE_ID).optional().describe('Of one purse'),
      }),
      answer: invoicePage,
      run: ({ params, query }) => invoices.list({ ...asked(query), account: params.id }),
      files: {
        'application/zip': async ({ params, query }) => ({
          name: 'invoices.zip',
          body: zip(invoices.files({ ...asked(query), account: params.id })),
        }),
      },
    }),
    resource('GET /accounts/{id}/purses/{purse}/invoices', 'invoices:read', {
      title: 'List the invoices of a purse',
      query: z.strictObject(invoiceFilter),
      answer: invoicePage,
      async run({ params, query }) {
        await invoices.details(params.id, params.purse) // Of an unknown purse there is no list, not an empty one.
        return invoices.list({ ...asked(query), account: params.id, purse: params.purse })
      },
    }),
    resource('GET /accounts/{id}/purses/{purse}/invoices/{invoice}', 'invoices:read', {
      title: 'Show an invoice of a purse',
      answer: invoiceView,
      run: ({ params }) => invoices.find(params.invoice, params.id, params.purse),
      files: { 'application/pdf': ({ params }) => invoices.file(params.invoice, params.id, params.purse) },
    }),
    resource('GET /accounts/{id}/purses/{purse}/billing-details', 'budgets:read', {
      title: 'Show the billing details of a purse',
      answer: billingDetails,
      run: ({ params }) => invoices.details(params.id, params.purse),
    }),
    resource('PUT /accounts/{id}/purses/{purse}/billing-details', 'budgets:write', {
      title: 'Set the billing details of a purse',
      body: detailsInput,
      answer: billingDetails,
      run: ({ params, body, by }) => invoices.changeDetails(params.id, params.purse, body, by),
    }),
  ]
}

const READ = sql('purse_billing')`select name, billing from purse where account_id = $1 and id = $2`
const PUT = sql('purse_billing_put')`update purse set billing = $3 where account_id = $1 and id = $2 returning id`
