// Invoices: issuer, billing details of accounts, and the list.
import * as z from 'zod'
import { ownAccountOf } from '../../../kernel/test-account.ts'
import { email, id, paging, type Resource, range, resource, text } from '../../../operator/resource.ts'
import { zip } from '../../../reports/zip.ts'
import type { InvoiceFilter, Invoices } from './invoices.ts'
import { billingDetailsView, invoiceKind, invoicePage, invoiceSettings, invoiceView } from './views.ts'

interface InvoiceDeps {
  readonly invoices: Invoices
}

interface InvoiceDeps {
  readonly invoices: Invoices
}

const ofAccount = id.optional().meta({ description: 'Of one account', value: 'account', refersTo: 'account' })

const line = (charsMax: number) =>
  text(charsMax, 0)
    .nullish()
    .transform((value) => value || null)
const country = z
  .string()
  .transform((value) => value.trim().toUpperCase())
  .refine((value) => /^[A-Z]{2}$/.test(value), 'must be a country code such as DE or US')
const rate = z.string().regex(/^\d{1,2}(\.\d{1,4})?$/, 'must be percent such as "19" or "8.1"')
/** Without the spaces between its groups. */
const compact = (charsMax: number) =>
  line(charsMax).transform((value) => value?.replaceAll(/\s/g, '').toUpperCase() ?? null)

const issuerInput = z.strictObject({
  ...{ name: text(200), street: text(200), postcode: line(20), city: text(100), country },
  ...{
    vatId: compact(30),
    taxNumber: line(50),
    registration: line(100),
    email: email.nullish().transform((value) => value ?? null),
  },
  series: z
    .string()
    .transform((value) => value.trim().toUpperCase())
    .refine((value) => /^[A-Z0-9]{1,10}$/.test(value), 'must be 1 to 10 letters and digits')
    .default('INV'),
  taxRate: rate,
  ratesAbroad: z.record(country, rate).default({}),
  ...{ exemption: line(200), iban: compact(50), bic: compact(20) },
  paymentDays: z.number().int().min(0).max(365).default(14),
  footer: line(500),
})

const detailsInput = z.strictObject({
  company: line(200).describe('The company that is billed'),
  name: line(200).describe('The person who gets the invoices'),
  street: line(200).describe('Street and number'),
  ...{ postcode: line(20).describe('The postal code'), city: line(100).describe('The city') },
  country: country
    .nullish()
    .transform((value) => value ?? null)
    .describe('A code such as DE'),
  vatId: line(30).describe('The VAT number, for reverse charge inside the EU'),
  email: email
    .nullish()
    .transform((value) => value ?? null)
    .describe('An email address for invoices'),
})

const filter = {
  ...paging,
  ...range,
  kind: invoiceKind.optional().describe('payment, month or credit_note'),
  q: text(100, 0).optional().describe('The beginning of a number, or a part of the customer’s name'),
}
const asked = ({ from, to, ...rest }: { from?: number | undefined; to?: number | undefined } & InvoiceFilter) => ({
  ...rest,
  ...{ fromMs: from, toMs: to },
})

export function invoiceResources({ invoices }: InvoiceDeps): Resource[] {
  /** The newest first, as they are listed. */
  async function* files(asking: InvoiceFilter) {
    for (let cursor: string | undefined; ; ) {
      const { items, next } = await invoices.list({ ...asking, cursor, limit: 100 })
      for (const { id: invoice, account } of items) yield await invoices.file(invoice, account)
      if (next === null) return
      cursor = next
    }
  }

  return [
    resource('GET /invoice-settings', 'invoice-settings:read', {
      title: 'Show the invoice settings',
      answer: invoiceSettings,
      run: () => invoices.settings(),
    }),
    resource('PATCH /invoice-settings', 'invoice-settings:write', {
      title: 'Change the invoice settings',
      body: z.strictObject({
        issuer: issuerInput.nullable().optional().meta({ option: 'file', read: 'json' }),
        monthly: z.boolean().optional(),
      }),
      answer: invoiceSettings,
      run: ({ body, by }) => invoices.changeSettings(body, by),
    }),
    resource('GET /invoices', 'invoices:read', {
      title: 'List all invoices',
      query: z.strictObject({ ...filter, account: ofAccount }),
      answer: invoicePage,
      run: ({ query }) => invoices.list(asked(query)),
      files: { 'application/zip': async ({ query }) => ({ name: 'invoices.zip', body: zip(files(asked(query))) }) },
    }),
    resource('GET /accounts/{id}/invoices/{invoice}', 'invoices:read', {
      title: 'Show an invoice',
      answer: invoiceView,
      run: ({ params }) => invoices.find(params.invoice, ownAccountOf(params.id)),
      files: { 'application/pdf': ({ params }) => invoices.file(params.invoice, ownAccountOf(params.id)) },
    }),
    resource('GET /accounts/{id}/invoices', 'invoices:read', {
      title: 'List the invoices of an account',
      query: z.strictObject(filter),
      answer: invoicePage,
      run: ({ params, query }) => invoices.list({ ...asked(query), account: ownAccountOf(params.id) }),
    }),
    resource('GET /accounts/{id}/billing-details', 'billing-details:read', {
      title: 'Show the billing details of an account',
      answer: billingDetailsView,
      run: ({ params }) => invoices.details(ownAccountOf(params.id)),
    }),
    resource('PUT /accounts/{id}/billing-details', 'billing-details:write', {
      title: 'Set the billing details of an account',
      body: detailsInput,
      answer: billingDetailsView,
      run: ({ params, body, by }) => invoices.changeDetails(ownAccountOf(params.id), body, by),
    }),
  ]
}
