// A monthly statement as CSV.
import { formatCredits, parseCredits } from '../../../kernel/credits.ts'
import { formatMoney } from '../../../reports/billing.ts'
import { type Cell, csvLine } from '../../../reports/csv.ts'
import { KIND_WORDS, usageLines } from './statement-lines.ts'
import type { MonthlyStatement } from './views.ts'

const STATEMENT = [
  'customer',
  'account',
  'month',
  'line',
  'at',
  'description',
  'key',
  'calls',
  'credits',
  'money',
  'currency',
] as const

/** Each line has its change of the balance, so the lines add up to closing minus opening balance. */
export function statementCsv(statement: MonthlyStatement): string {
  const { account, month, worth, movements } = statement
  const row = (name: string, credits: string, more: Partial<Record<(typeof STATEMENT)[number], Cell>> = {}) => {
    const money = worth && formatMoney(parseCredits(credits) ?? 0n, worth)
    const cells = { customer: account.name, account: account.id, month, line: name, credits, money, ...more }
    return csvLine(STATEMENT.map((column) => ({ currency: worth?.currency ?? null, ...cells })[column] ?? null))
  }
  const minus = (amount: string) => formatCredits(-(parseCredits(amount) ?? 0n))
  return [
    csvLine(STATEMENT),
    row('Opening balance', statement.opening),
    ...movements.map(({ at, kind, moved, note }) => row(KIND_WORDS[kind], moved, { at, description: note })),
    ...usageLines(statement).map(({ what, key, calls, charged }) =>
      row('Usage', minus(charged), { description: what, key: key || null, calls }),
    ),
    row('Closing balance', statement.closing),
  ].join('')
}
