// The statement of a month on the command line.
import { formatCredits } from '../kernel/credits.ts'
import { KIND_WORDS, monthName, summaryLines, type UsageLine, usageLines } from '../reports/statement-lines.ts'
import type { MonthlyStatement } from '../reports/views.ts'
import { at, type Command, takes, text, told } from './command.ts'
import { save } from './derived.ts'
import { type Columns, query, table } from './table.ts'

const FORMATS: Readonly<Record<string, string>> = { pdf: 'application/pdf', csv: 'text/csv' }

function showStatement(statement: MonthlyStatement): string {
  const { account, month, final, movements, label } = statement
  const sums = summaryLines(statement).map(([name, amount]) => ({ name, credits: formatCredits(amount) }))
  const used = usageLines(statement)
  const usedColumns: Columns<UsageLine> = {
    ...(label ? { LABEL: 'what' as const } : { PRODUCT: 'what' as const, KEY: 'key' as const }),
    ...({ CALLS: 'calls', CREDITS: 'charged' } as const),
  }
  const moved = movements.map((one) => ({ ...one, what: KIND_WORDS[one.kind] }))
  return [
    `${account.name}, ${monthName(month)}${final ? '' : ' (preliminary)'}`,
    table(sums, { '': 'name', CREDITS: 'credits' }),
    ...(used.length > 0 ? [table(used, usedColumns)] : []),
    ...(moved.length > 0 ? [table(moved, { AT: 'at', KIND: 'what', NOTE: 'note', CREDITS: 'moved' })] : []),
  ].join('\n\n')
}

export const FINANCE_COMMANDS: readonly Command[] = [
  {
    name: 'statements show',
    summary: 'The statement of an account for a month such as 2026-10, also as PDF or CSV.',
    args: ['account', 'month'],
    options: {
      format: takes('pdf|csv', 'Writes a file of this format.', { allowed: Object.keys(FORMATS) }),
      out: takes('file', 'Its name; by default the one with the customer and the month.'),
      label: takes('name', 'The usage by the values of this label, such as user or feature.'),
    },
    async run(call) {
      const path = at`/accounts/${call.args[0]}/statements/${call.args[1]}` + query({ label: text(call, 'label') })
      const accept = FORMATS[text(call, 'format') ?? '']
      if (accept) return save(call, path, accept)
      return told(call.api.call<MonthlyStatement>('GET', path), showStatement)
    },
  },
]
