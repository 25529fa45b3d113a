// Statements, margins and what a credit is worth, on the command line.
import { type FileHandle, open } from 'node:fs/promises'
import { basename } from 'node:path'
import { formatCredits } from '../kernel/credits.ts'
import type { Page } from '../kernel/view.ts'
import { KIND_WORDS, monthName, summaryLines, type UsageLine, usageLines } from '../reports/statement-lines.ts'
import type { BillingView, MarginPage, MarginRow, MonthlyStatement, UnbilledRow } from '../reports/views.ts'
import {
  at,
  CliError,
  type Command,
  flag,
  type Invocation,
  type Option,
  type Told,
  takes,
  text,
  told,
} from './command.ts'
import { type Columns, card, list, query, table } from './table.ts'

const FORMATS: Readonly<Record<string, string>> = { pdf: 'application/pdf', csv: 'text/csv' }

const FILE: Readonly<Record<string, Option>> = {
  format: takes('pdf|csv', 'Writes a file of this format.', { allowed: Object.keys(FORMATS) }),
  out: takes('file', 'Its name; by default the one with the customer and the month.'),
}

/** An existing file is overwritten only if it was named. */
export async function save(call: Invocation, path: string, accept: string): Promise<Told> {
  const named = text(call, 'out')
  let name = named ?? ''
  let file: FileHandle | undefined
  try {
    await call.api.save(path, accept, async (chunk, given) => {
      name ||= basename(given)
      try {
        file ??= await open(name, named === undefined ? 'wx' : 'w')
        await file.appendFile(chunk)
      } catch (error) {
        throw unwritten(name, error as NodeJS.ErrnoException) // The file system throws nothing else.
      }
    })
  } finally {
    await file?.close()
  }
  return { answer: { file: name }, words: `Wrote ${name}.` }
}

function unwritten(name: string, { code, message }: NodeJS.ErrnoException): CliError {
  if (code === 'EEXIST') return new CliError(`${name} exists already; remove it or choose another with --out`)
  return new CliError(`${name} cannot be written: ${message}`)
}

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

function showBilling({ worth, contact }: BillingView): string {
  const one = worth ? `${worth.rate} ${worth.currency}` : undefined
  return card({ 'One credit is worth': one, Contact: contact })
}

export const FINANCE_COMMANDS: readonly Command[] = [
  {
    name: 'statements show',
    summary: 'The statement of an account for a month such as 2026-10, also as PDF or CSV.',
    args: ['account', 'month'],
    options: {
      ...FILE,
      label: takes('name', 'The usage by the values of this label, such as user or feature.'),
    },
    async run(call) {
      const path = at`/accounts/${call.args[0]}/statements/${call.args[1]}` + query({ label: text(call, 'label') })
      const accept = FORMATS[text(call, 'format') ?? '']
      if (accept) return save(call, path, accept)
      return told(call.api.call<MonthlyStatement>('GET', path), showStatement)
    },
  },
  {
    name: 'statements all',
    summary: 'The statements of all customers for a month, in one ZIP.',
    args: ['month'],
    options: FILE,
    run: (call) =>
      save(call, at`/statements/${call.args[0]}` + query({ format: text(call, 'format') }), 'application/zip'),
  },
  {
    name: 'margins show',
    summary: 'Shows charges, costs and margins by model, customer, vendor, month or label.',
    options: {
      by: takes('word', 'product (default), account, vendor, month or label:<name>.'),
      from: takes('month', 'The first month, such as 2026-10; last month by default.'),
      to: takes('month', 'The last month; the same by default.'),
      csv: flag('Exports all rows as CSV to standard output.'),
    },
    async run(call) {
      const filter = { by: text(call, 'by'), from: text(call, 'from'), to: text(call, 'to'), limit: '200' }
      const path = `/margins${query(filter)}`
      if (call.values.csv) {
        await call.api.download(path, 'text/csv', call.say)
        return undefined
      }
      const answer = await call.api.call<MarginPage>('GET', path)
      const total: MarginRow = { ...answer.totals, group: 'Total', name: null }
      const rows = answer.items.length > 0 ? [...answer.items, total] : []
      const columns: Columns<MarginRow> = {
        GROUP: (row) => row.name ?? (row.group || 'no vendor'),
        ...({
          CALLS: 'calls',
          CHARGED: 'charged',
          'WITH COST': 'chargedWithKnownCost',
          COST: 'cost',
          MARGIN: 'margin',
        } as const),
        'MARGIN %': 'marginPercent',
        UNBILLED: 'unbilled',
      }
      return { ...list(rows, columns, 'No calls were charged in this time.'), answer }
    },
  },
  {
    name: 'margins unbilled',
    summary:
      'Shows unbilled costs by day, vendor and model: what vendors billed for copies of calls, aborted calls and checks, which no caller pays.',
    options: {
      from: takes('day', 'The first day, such as 2026-11-15; the first of this month by default.'),
      to: takes('day', 'The last day; today by default.'),
      vendor: takes('name', 'Only this vendor.'),
      model: takes('name', 'Only this model, by its name in the catalog.'),
      csv: flag('Exports all rows as CSV to standard output.'),
    },
    async run(call) {
      const [from, to] = [text(call, 'from'), text(call, 'to')]
      const [vendor, product] = [text(call, 'vendor'), text(call, 'model')]
      const path = `/margins/unbilled${query({ from, to, vendor, product, limit: '200' })}`
      if (call.values.csv) {
        await call.api.download(path, 'text/csv', call.say)
        return undefined
      }
      const answer = await call.api.call<Page<UnbilledRow>>('GET', path)
      const columns: Columns<UnbilledRow> = {
        ...({ DAY: 'day', KIND: 'kind', VENDOR: 'vendor', MODEL: 'product', CALLS: 'calls' } as const),
        ...({ 'INPUT TOKENS': 'inputTokens', 'OUTPUT TOKENS': 'outputTokens', COST: 'cost' } as const),
      }
      return { ...list(answer.items, columns, 'Nothing was paid for in this time that no caller pays.'), answer }
    },
  },
  {
    name: 'billing show',
    summary: 'Shows what a credit is worth, and the contact for customers.',
    run: (call) => told(call.api.call<BillingView>('GET', '/billing'), showBilling),
  },
  {
    name: 'billing change',
    summary: 'Sets what a credit is worth, and the contact for customers.',
    options: {
      currency: takes('code', 'ISO code such as EUR; "none" removes the worth.'),
      rate: takes('amount', 'What one credit is worth, such as 0.01.'),
      contact: {
        ...{ type: 'string', value: 'text' },
        help: 'On statements and in the answer to calls of suspended accounts; "none" removes it.',
      },
    },
    async run(call) {
      const [currency, rate, contact] = [text(call, 'currency'), text(call, 'rate'), text(call, 'contact')]
      if (currency !== 'none' && (currency === undefined) !== (rate === undefined))
        throw new CliError('--currency and --rate are set together.', 2)
      const worth = currency === 'none' ? null : currency === undefined ? undefined : { currency, rate }
      const body = { worth, contact: contact === 'none' ? null : contact }
      if (body.worth === undefined && body.contact === undefined)
        throw new CliError('Nothing to change was named. See: tollgate billing change --help', 2)
      return told(call.api.call<BillingView>('PATCH', '/billing', body), showBilling)
    },
  },
]
