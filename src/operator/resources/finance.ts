// Finance: what a credit is worth, monthly statements of customers, margins.
import * as z from 'zod'
import { accountUnknown } from '../../admission/accounts.ts'
import type { Database } from '../../database/database.ts'
import type { InvoiceFilter, Invoices } from '../../invoices/invoices.ts'
import { billingDetailsView, invoiceKind, invoicePage, invoiceSettings, invoiceView } from '../../invoices/views.ts'
import { dayOfMs, formatDay, monthStart, parseDay } from '../../kernel/calendar.ts'
import { invalid } from '../../kernel/fault.ts'
import { ownAccountOf } from '../../kernel/test-account.ts'
import { page } from '../../kernel/view.ts'
import type { World } from '../../kernel/world.ts'
import { formatMonth, parseMonth } from '../../ledger/usage-months.ts'
import type { Billing } from '../../reports/billing.ts'
import { marginsCsv, statementCsv, unbilledCsv } from '../../reports/csv.ts'
import { labelOf, marginTotals, readMargins } from '../../reports/margins.ts'
import { createMonthlyStatements } from '../../reports/monthly.ts'
import { fileName, isEmpty } from '../../reports/statement-lines.ts'
import { statementPdf } from '../../reports/statement-pdf.ts'
import { readUnbilled } from '../../reports/unbilled.ts'
import {
  billingView,
  labelName,
  type MonthlyStatement,
  marginGrouping,
  marginPage,
  monthlyStatement,
  statementSummary,
  unbilledRow,
} from '../../reports/views.ts'
import { zip } from '../../reports/zip.ts'
import { email, id, paging, type Resource, range, resource, text } from '../resource.ts'

export interface FinanceDeps {
  readonly database: Database
  readonly world: World
  readonly billing: Billing
}

const MONTHS_MAX = 36
/** For reports that read single calls. */
const LABEL_MONTHS_MAX = 3
/** A statement's usage by the values of a label, instead of by model and key in its files. */
const statementQuery = z.strictObject({ label: labelName.optional() })
const ACCOUNTS_PAGE = 100

const cursor = z
  .string()
  .regex(/^\d{1,9}$/, 'is not a cursor that a page gave as next')
  .optional()
const marginQuery = z.strictObject({
  by: marginGrouping.default('product'),
  /** The first and the last month: `2026-10`. The last month that is over, where none is given. */
  from: text(7).optional(),
  to: text(7).optional(),
  account: id.optional(),
  product: text(100).optional(),
  vendor: text(100).optional(),
  limit: paging.limit,
  cursor,
})
const unbilledQuery = z.strictObject({
  /** The first and the last day: `2026-11-15`. This month, where none is given. */
  from: text(10).optional(),
  to: text(10).optional(),
  product: text(100).optional(),
  vendor: text(100).optional(),
  limit: paging.limit,
  cursor,
})

export function financeResources({ database, world, billing }: FinanceDeps): Resource[] {
  const monthly = createMonthlyStatements({ database, world, billing })

  /** Parses a month, which must have begun. */
  function monthOf(given: string, name: string): number {
    const month = parseMonth(given)
    if (month === undefined) throw invalid(`${name}: must be a month such as 2026-10.`, name)
    if (month > dayOfMs(world.nowMs())) throw invalid(`${name}: ${given} has not begun.`, name)
    return month
  }

  async function read(account: string, month: number, label?: string): Promise<MonthlyStatement> {
    const found = await monthly.read(account, month, label)
    if (!found) throw accountUnknown()
    return found
  }

  const asFile = {
    pdf: async (of: MonthlyStatement) => ({ name: fileName(of, 'pdf'), body: await statementPdf(of) }),
    csv: async (of: MonthlyStatement) => ({ name: fileName(of, 'csv'), body: Buffer.from(statementCsv(of)) }),
  }

  /** The statements of all accounts that have movements. If two accounts have the same name, ignoring case, the second file name gets the account's id: on Windows case does not distinguish files. */
  async function* files(month: number, format: 'pdf' | 'csv') {
    const names = new Set<string>()
    for (let cursor: string | undefined; ; ) {
      const { items, next } = await monthly.list(month, { cursor, limit: ACCOUNTS_PAGE })
      for (const summary of items) {
        if (isEmpty(summary)) continue
        const { name, body } = await asFile[format](await read(summary.account.id, month))
        const isTaken = names.has(name.toLowerCase())
        names.add(name.toLowerCase())
        yield { name: isTaken ? name.replace(/(-\d{4}-\d{2}\.)/, `-${summary.account.id}$1`) : name, body }
      }
      if (next === null) return
      cursor = next
    }
  }

  function marginsOf({ from, to, by, account, product, vendor }: z.output<typeof marginQuery>) {
    const last = to === undefined ? undefined : monthOf(to, 'to')
    const before = monthStart(dayOfMs(world.nowMs()), -1)
    const first = from === undefined ? (last ?? before) : monthOf(from, 'from')
    const until = last ?? first
    if (until < first) throw invalid('to: must not lie before from.', 'to')
    const most = labelOf(by) === undefined ? MONTHS_MAX : LABEL_MONTHS_MAX
    if (monthStart(first, most) <= until) throw invalid(`from: at most ${most} months are summed up.`, 'from')
    return readMargins(database, { by, from: first, to: until, account, product, vendor })
  }

  function dayOf(given: string, name: string): string {
    if (parseDay(given) === undefined) throw invalid(`${name}: must be a day such as 2026-11-15.`, name)
    return given
  }

  async function unbilled({ vendor, product, limit, ...query }: z.output<typeof unbilledQuery>) {
    const today = dayOfMs(world.nowMs())
    const from = query.from === undefined ? formatDay(monthStart(today)) : dayOf(query.from, 'from')
    const to = query.to === undefined ? formatDay(today) : dayOf(query.to, 'to')
    const offset = Number(query.cursor ?? 0)
    const items = await readUnbilled(database, { from, to, vendor, product }, { offset, limit: limit + 1 })
    return { items: items.slice(0, limit), next: items.length > limit ? String(offset + limit) : null }
  }

  return [
    resource('GET /billing', 'billing:read', { answer: billingView, run: () => billing.get() }),
    resource('PATCH /billing', 'billing:write', {
      body: z.strictObject({
        worth: z
          .strictObject({ currency: text(3), rate: text(20) })
          .nullable()
          .optional(),
        contact: text(100).nullable().optional(),
      }),
      answer: billingView,
      run: ({ body, by }) => billing.change(body, by),
    }),
    resource('GET /accounts/{id}/statements/{month}', 'statements:read', {
      query: statementQuery,
      answer: monthlyStatement,
      run: ({ params, query }) => read(params.id, monthOf(params.month, 'month'), query.label),
      files: {
        'application/pdf': async ({ params, query }) =>
          asFile.pdf(await read(params.id, monthOf(params.month, 'month'), query.label)),
        'text/csv': async ({ params, query }) =>
          asFile.csv(await read(params.id, monthOf(params.month, 'month'), query.label)),
      },
    }),
    resource('GET /statements/{month}', 'statements:read', {
      query: z.strictObject({ ...paging, format: z.enum(['pdf', 'csv']).default('pdf') }),
      answer: page(statementSummary),
      run: ({ params, query }) => monthly.list(monthOf(params.month, 'month'), query),
      files: {
        'application/zip': async ({ params, query }) => {
          const month = monthOf(params.month, 'month')
          return { name: `statements-${formatMonth(month)}.zip`, body: zip(files(month, query.format)) }
        },
      },
    }),
    resource('GET /margins', 'margins:read', {
      query: marginQuery,
      answer: marginPage,
      async run({ query }) {
        const rows = await marginsOf(query)
        const start = Number(query.cursor ?? 0)
        const end = start + query.limit
        return {
          items: rows.slice(start, end),
          next: rows.length > end ? String(end) : null,
          totals: marginTotals(rows),
        }
      },
      csv: ({ query }) => marginsCsv(() => marginsOf(query)),
    }),
    resource('GET /margins/unbilled', 'margins:read', {
      query: unbilledQuery,
      answer: page(unbilledRow),
      run: ({ query }) => unbilled(query),
      csv: ({ query }) => unbilledCsv((paging) => unbilled({ ...query, ...paging })),
    }),
  ]
}

// Invoices: issuer, billing details of accounts, and the list.

export interface InvoiceDeps {
  readonly invoices: Invoices
}

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
  ...{ company: line(200), name: line(200), street: line(200), postcode: line(20), city: line(100) },
  country: country.nullish().transform((value) => value ?? null),
  ...{ vatId: line(30), email: email.nullish().transform((value) => value ?? null) },
})

const filter = { ...paging, ...range, kind: invoiceKind.optional(), q: text(100, 0).optional() }
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
      answer: invoiceSettings,
      run: () => invoices.settings(),
    }),
    resource('PATCH /invoice-settings', 'invoice-settings:write', {
      body: z.strictObject({ issuer: issuerInput.nullable().optional(), monthly: z.boolean().optional() }),
      answer: invoiceSettings,
      run: ({ body, by }) => invoices.changeSettings(body, by),
    }),
    resource('GET /invoices', 'invoices:read', {
      query: z.strictObject({ ...filter, account: id.optional() }),
      answer: invoicePage,
      run: ({ query }) => invoices.list(asked(query)),
      files: { 'application/zip': async ({ query }) => ({ name: 'invoices.zip', body: zip(files(asked(query))) }) },
    }),
    resource('GET /accounts/{id}/invoices/{invoice}', 'invoices:read', {
      answer: invoiceView,
      run: ({ params }) => invoices.find(params.invoice, ownAccountOf(params.id)),
      files: { 'application/pdf': ({ params }) => invoices.file(params.invoice, ownAccountOf(params.id)) },
    }),
    resource('GET /accounts/{id}/invoices', 'invoices:read', {
      query: z.strictObject(filter),
      answer: invoicePage,
      run: ({ params, query }) => invoices.list({ ...asked(query), account: ownAccountOf(params.id) }),
    }),
    resource('GET /accounts/{id}/billing-details', 'billing-details:read', {
      answer: billingDetailsView,
      run: ({ params }) => invoices.details(ownAccountOf(params.id)),
    }),
    resource('PUT /accounts/{id}/billing-details', 'billing-details:write', {
      body: detailsInput,
      answer: billingDetailsView,
      run: ({ params, body, by }) => invoices.changeDetails(ownAccountOf(params.id), body, by),
    }),
  ]
}
