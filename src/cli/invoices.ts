// Invoices on the command line: issuer, billing details, list and files.
import type { BillingDetailsView, InvoiceSettings, InvoiceView } from '../invoices/views.ts'
import { readDocument } from './catalog.ts'
import { at, CliError, type Command, type Option, takes, text, told } from './command.ts'
import { save } from './finance.ts'
import { type Columns, card, listPages, PAGE_OPTIONS, query } from './table.ts'

const KINDS = ['payment', 'month', 'credit_note']
const FILTER: Readonly<Record<string, Option>> = {
  account: takes('account', 'Of one account.'),
  kind: takes('word', 'payment, month or credit_note.', { allowed: KINDS }),
  from: takes('day', 'Issued on this day or later, such as 2026-11-01.'),
  to: takes('day', 'Issued on this day or before.'),
  q: takes('text', 'The beginning of a number, or a part of the customer’s name.'),
}
const OUT: Readonly<Record<string, Option>> = {
  out: takes('file', 'The name of the file; by default the number.'),
}
const COLUMNS: Columns<InvoiceView> = {
  ...{ NUMBER: 'number', ISSUED: 'issuedAt', KIND: 'kind', CUSTOMER: 'customer', TOTAL: 'gross', VAT: 'tax' },
  ...{ CURRENCY: 'currency', ACCOUNT: 'account', ID: 'id' },
}
const FIELDS = ['company', 'name', 'street', 'postcode', 'city', 'country', 'vatId', 'email'] as const
/** `--vat-id` for `vatId`. */
const optionOf = (field: string) => field.replaceAll(/[A-Z]/g, (letter) => `-${letter.toLowerCase()}`)

function showSettings({ issuer, monthly }: InvoiceSettings): string {
  if (!issuer) return 'No invoices are issued. Name the issuer with: tollgate invoices issuer issuer.json'
  return card({ ...issuer, monthly })
}

const showDetails = ({ missing, ...details }: BillingDetailsView) =>
  missing === null ? card(details) : `${card(details)}\n\nNothing can be bought without: ${missing}`

export const INVOICE_COMMANDS: readonly Command[] = [
  {
    name: 'invoices list',
    summary: 'Invoices and credit notes, newest first.',
    options: { ...FILTER, ...PAGE_OPTIONS },
    run: (call) =>
      listPages<InvoiceView>(call, '/invoices', {
        filter: Object.fromEntries(Object.keys(FILTER).map((name) => [name, text(call, name)])),
        columns: COLUMNS,
        empty: 'There are no such invoices.',
      }),
  },
  {
    name: 'invoices get',
    summary: 'The PDF of an invoice, by its account and id.',
    args: ['account', 'invoice'],
    options: OUT,
    run: (call) => save(call, at`/accounts/${call.args[0]}/invoices/${call.args[1]}`, 'application/pdf'),
  },
  {
    name: 'invoices all',
    summary: 'The PDFs of all invoices, or of some, in one ZIP.',
    options: { ...FILTER, out: { ...OUT.out, type: 'string', help: 'The name of the file.' } },
    run: (call) =>
      save(
        call,
        `/invoices${query(Object.fromEntries(Object.keys(FILTER).map((name) => [name, text(call, name)])))}`,
        'application/zip',
      ),
  },
  {
    name: 'invoices settings',
    summary: 'Shows the issuer of invoices, and whether there are monthly invoices.',
    run: (call) => told(call.api.call<InvoiceSettings>('GET', '/invoice-settings'), showSettings),
  },
  {
    name: 'invoices issuer',
    summary: 'Sets the issuer of invoices from a JSON file.',
    args: ['file'],
    about: 'The fields are in the guide on invoices. "-" reads standard input.',
    async run(call) {
      const issuer = await readDocument(call)
      return told(call.api.call<InvoiceSettings>('PATCH', '/invoice-settings', { issuer }), showSettings)
    },
  },
  {
    name: 'invoices monthly',
    summary: 'Turns monthly invoices on or off.',
    args: ['on|off'],
    async run(call) {
      const [word = ''] = call.args
      if (!['on', 'off'].includes(word)) throw new CliError('Say on or off.', 2)
      const body = { monthly: word === 'on' }
      return told(call.api.call<InvoiceSettings>('PATCH', '/invoice-settings', body), showSettings)
    },
  },
  {
    name: 'billing-details show',
    summary: 'Shows the billing details of an account, which its invoices show.',
    args: ['account'],
    run: (call) =>
      told(call.api.call<BillingDetailsView>('GET', at`/accounts/${call.args[0]}/billing-details`), showDetails),
  },
  {
    name: 'billing-details change',
    summary: 'Changes the billing details of an account, which its invoices show.',
    args: ['account'],
    options: Object.fromEntries(
      FIELDS.map((field) => [
        optionOf(field),
        takes('text', field === 'country' ? 'A code such as DE.' : '"none" removes it.'),
      ]),
    ),
    async run(call) {
      const path = at`/accounts/${call.args[0]}/billing-details`
      const { missing: _, ...before } = await call.api.call<BillingDetailsView>('GET', path)
      const given = FIELDS.flatMap((field) => {
        const value = text(call, optionOf(field))
        return value === undefined ? [] : [[field, value === 'none' ? null : value] as const]
      })
      const details = { ...before, ...Object.fromEntries(given) }
      return told(call.api.call<BillingDetailsView>('PUT', path, details), showDetails)
    },
  },
]
