// Finance: what a credit is worth, monthly statements of customers, margins.
import * as z from 'zod'
import { accountUnknown } from '../../admission/accounts.ts'
import type { Database } from '../../database/database.ts'
import { dayOfMs, formatDay, monthStart, parseDay } from '../../kernel/calendar.ts'
import { invalid } from '../../kernel/fault.ts'
import { page } from '../../kernel/view.ts'
import type { World } from '../../kernel/world.ts'
import { formatMonth, parseMonth } from '../../ledger/usage-sums.ts'
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
import { id, paging, type Resource, resource, text } from '../resource.ts'

export interface FinanceDeps {
  readonly database: Database
  readonly world: World
  readonly billing: Billing
}

const MONTHS_MAX = 36
/** For reports that read single calls. */
const LABEL_MONTHS_MAX = 3
/** A statement's usage by the values of a label, instead of by model and key in its files. */
const statementQuery = z.strictObject({
  label: labelName.optional().describe('The usage by the values of this label, such as user or feature'),
})
const ACCOUNTS_PAGE = 100

const cursor = z
  .string()
  .regex(/^\d{1,9}$/, 'is not a cursor that a page gave as next')
  .optional()
const ofAccount = id.optional().meta({ description: 'Of one account', value: 'account', refersTo: 'account' })
const served = {
  product: text(100).optional().meta({ description: 'Only this model, by its name in the catalog', option: 'model' }),
  vendor: text(100).optional().describe('Only this vendor'),
}
const marginQuery = z.strictObject({
  by: marginGrouping.default('product').describe('product (default), account, vendor, month or label:<name>'),
  from: text(7)
    .optional()
    .meta({ description: 'The first month, such as 2026-10; last month by default', value: 'month' }),
  to: text(7).optional().meta({ description: 'The last month; the same by default', value: 'month' }),
  account: ofAccount,
  ...served,
  limit: paging.limit,
  cursor,
})
const unbilledQuery = z.strictObject({
  from: text(10).optional().meta({ description: 'The first day; the first of this month by default', value: 'day' }),
  to: text(10).optional().meta({ description: 'The last day; today by default', value: 'day' }),
  ...served,
  limit: paging.limit,
  cursor,
})

function billingResources(billing: FinanceDeps['billing']): Resource[] {
  return [
    resource('GET /billing', 'billing:read', {
      title: 'Show what a credit is worth',
      answer: billingView,
      run: () => billing.get(),
    }),
    resource('PATCH /billing', 'billing:write', {
      title: 'Set what a credit is worth',
      body: z.strictObject({
        worth: z
          .strictObject({
            currency: text(3).meta({ description: 'ISO code such as EUR', value: 'code' }),
            rate: text(20).meta({ description: 'What one credit is worth, such as 0.01', value: 'amount' }),
          })
          .nullable()
          .optional(),
        contact: text(100)
          .nullable()
          .optional()
          .describe('On statements and in the answer to calls of suspended accounts'),
      }),
      answer: billingView,
      run: ({ body, by }) => billing.change(body, by),
    }),
  ]
}

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
    ...billingResources(billing),
    resource('GET /accounts/{id}/statements/{month}', 'statements:read', {
      title: 'Show the statement of an account for a month',
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
      title: 'Show all statements of a month',
      query: z.strictObject({
        ...paging,
        format: z.enum(['pdf', 'csv']).default('pdf').describe('Of the files; pdf by default'),
      }),
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
      title: 'Show margins',
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
      title: 'Show costs not billed to customers',
      query: unbilledQuery,
      answer: page(unbilledRow),
      run: ({ query }) => unbilled(query),
      csv: ({ query }) => unbilledCsv((paging) => unbilled({ ...query, ...paging })),
    }),
  ]
}
