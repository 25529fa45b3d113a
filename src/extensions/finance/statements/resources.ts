// Monthly statements of customers.
import * as z from 'zod'
import { accountUnknown } from '../../../admission/accounts.ts'
import type { CoreParts } from '../../../extension.ts'
import { page } from '../../../kernel/view.ts'
import { formatMonth } from '../../../ledger/usage-sums.ts'
import { paging, type Resource, resource } from '../../../operator/resource.ts'
import { labelName } from '../../../reports/views.ts'
import { zipped } from '../../billing/zip.ts'
import { monthOf } from '../month.ts'
import { statementCsv } from './csv.ts'
import { createMonthlyStatements } from './monthly.ts'
import { fileName, isEmpty } from './statement-lines.ts'
import { statementPdf } from './statement-pdf.ts'
import { type MonthlyStatement, monthlyStatement, statementSummary } from './views.ts'

export type StatementDeps = Pick<CoreParts, 'database' | 'world' | 'billing'>

/** A statement's usage by the values of a label, instead of by model and key in its files. */
const statementQuery = z.strictObject({
  label: labelName.optional().describe('The usage by the values of this label, such as user or feature'),
})
const ACCOUNTS_PAGE = 100

export function statementResources(deps: StatementDeps): Resource[] {
  const monthly = createMonthlyStatements(deps)

  async function read(account: string, month: number, label?: string): Promise<MonthlyStatement> {
    const found = await monthly.read(account, month, label)
    if (!found) throw accountUnknown()
    return found
  }

  interface One {
    readonly params: { readonly id: string; readonly month: string }
    readonly query: z.output<typeof statementQuery>
  }
  const one = ({ params, query }: One) => read(params.id, monthOf(deps, params.month, 'month'), query.label)

  const asFile = {
    pdf: async (of: MonthlyStatement) => ({ name: fileName(of, 'pdf'), body: await statementPdf(of) }),
    csv: async (of: MonthlyStatement) => ({ name: fileName(of, 'csv'), body: Buffer.from(statementCsv(of)) }),
  }

  /**
   * The statements of all accounts that have movements. If two accounts have the same name, ignoring case, the second
   * file name gets the account's id: on Windows case does not distinguish files.
   */
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

  return [
    resource('GET /accounts/{id}/statements/{month}', 'statements:read', {
      title: 'Show the statement of an account for a month',
      query: statementQuery,
      answer: monthlyStatement,
      run: one,
      files: {
        'application/pdf': async (call) => asFile.pdf(await one(call)),
        'text/csv': async (call) => asFile.csv(await one(call)),
      },
    }),
    resource('GET /statements/{month}', 'statements:read', {
      title: 'Show all statements of a month',
      query: z.strictObject({
        ...paging,
        format: z.enum(['pdf', 'csv']).default('pdf').describe('Of the files; pdf by default'),
      }),
      answer: page(statementSummary),
      run: ({ params, query }) => monthly.list(monthOf(deps, params.month, 'month'), query),
      files: {
        'application/zip': async ({ params, query }) => {
          const month = monthOf(deps, params.month, 'month')
          return zipped(`statements-${formatMonth(month)}.zip`, files(month, query.format))
        },
      },
    }),
  ]
}
