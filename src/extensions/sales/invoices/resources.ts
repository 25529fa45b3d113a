// Invoices: issuer, billing details of accounts, and the list.
import * as z from 'zod'
import { ownAccountOf } from '../../../kernel/test-account.ts'
import { id, type Resource, resource } from '../../../operator/resource.ts'
import { asked, detailsInput, invoiceFilter, issuerInput } from '../../billing/invoices/details.ts'
import { billingDetailsView, invoicePage, invoiceSettings, invoiceView } from '../../billing/invoices/views.ts'
import { zipped } from '../../billing/zip.ts'
import type { Invoices } from './invoices.ts'

const ofAccount = id.optional().meta({ description: 'Of one account', value: 'account', refersTo: 'account' })

export function invoiceResources({ invoices }: { invoices: Invoices }): Resource[] {
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
      query: z.strictObject({ ...invoiceFilter, account: ofAccount }),
      answer: invoicePage,
      run: ({ query }) => invoices.list(asked(query)),
      files: { 'application/zip': async ({ query }) => zipped('invoices.zip', invoices.files(asked(query))) },
    }),
    resource('GET /accounts/{id}/invoices/{invoice}', 'invoices:read', {
      title: 'Show an invoice',
      answer: invoiceView,
      run: ({ params }) => invoices.find(params.invoice, ownAccountOf(params.id)),
      files: { 'application/pdf': ({ params }) => invoices.file(params.invoice, ownAccountOf(params.id)) },
    }),
    resource('GET /accounts/{id}/invoices', 'invoices:read', {
      title: 'List the invoices of an account',
      query: z.strictObject(invoiceFilter),
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
