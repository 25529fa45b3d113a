// Tables as CSV, page by page, so that a download of any length needs the memory of one page.
import { formatCredits, parseCredits } from '../kernel/credits.ts'
import type { Page, Paging } from '../kernel/view.ts'
import { type CallView, callView, ledgerView, usageView } from '../ledger/views.ts'
import { formatMoney } from './billing.ts'
import type { UsageFilter } from './calls.ts'
import type { LedgerFilter } from './movements.ts'
import type { Statements } from './statement.ts'
import { KIND_WORDS, usageLines } from './statement-lines.ts'
import {
  type LabelSum,
  labelSum,
  type MarginRow,
  type MonthlyStatement,
  marginRow,
  sumRow,
  type UnbilledRow,
  type UsageSums,
  unbilledRow,
} from './views.ts'

const PAGE_ROWS = 2_000

const SUMS = sumRow.keyof().options
const USAGE = usageView.keyof().options
const ALL = callView.keyof().options
/** The columns for members of an account, for operators, and for operators with all accounts. */
const CALLS = {
  member: USAGE.filter((name) => name !== 'cost' && name !== 'credential' && name !== 'vendor'),
  operator: USAGE,
  all: [...ALL.slice(USAGE.length), ...USAGE],
} satisfies Record<string, readonly (keyof CallView)[]>
const LEDGER = ledgerView.keyof().options
const MARGINS = marginRow.keyof().options
const UNBILLED = unbilledRow.keyof().options

/** Whole lines, a page at a time. */
export async function* callsCsv(
  read: (filter: UsageFilter) => Promise<Page<Partial<CallView>>>,
  filter: UsageFilter,
  columnsOf: keyof typeof CALLS,
): AsyncGenerator<string> {
  const columns: readonly (keyof CallView)[] = CALLS[columnsOf]
  yield csvLine(columns)
  for await (const items of pages((paging) => read({ ...filter, ...paging }), filter.cursor))
    yield items.map((row) => csvLine(columns.map((name) => row[name] ?? null))).join('')
}

export async function* ledgerCsv(statements: Statements, filter: Omit<LedgerFilter, 'limit'>): AsyncGenerator<string> {
  yield csvLine(LEDGER)
  const read = (paging: Paging) => statements.ledger({ ...filter, ...paging })
  for await (const items of pages(read, filter.cursor))
    yield items.map((row) => csvLine(LEDGER.map((name) => row[name]))).join('')
}

export async function* sumsCsv(read: () => Promise<UsageSums>): AsyncGenerator<string> {
  const { series } = await read()
  yield csvLine(SUMS)
  yield series.map((row) => csvLine(SUMS.map((name) => row[name]))).join('')
}

const LABEL_SUMS = labelSum.keyof().options

/** `hidden`: columns that the reader may not see. */
export async function* labelSumsCsv(
  read: () => Promise<readonly LabelSum[]>,
  hidden: ReadonlySet<keyof LabelSum>,
): AsyncGenerator<string> {
  const columns = LABEL_SUMS.filter((name) => !hidden.has(name))
  const rows = await read()
  yield csvLine(columns)
  yield rows
    .map((row) =>
      csvLine(
        columns.map((name) => {
          const cell = row[name] ?? null
          return Array.isArray(cell) ? cell.join(' ') : (cell as Exclude<typeof cell, string[]>) // lists are joined
        }),
      ),
    )
    .join('')
}

const STATEMENT = [
  ...([
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
  ] as const),
]

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

export async function* marginsCsv(read: () => Promise<readonly MarginRow[]>): AsyncGenerator<string> {
  yield csvLine(MARGINS)
  yield (await read()).map((row) => csvLine(MARGINS.map((name) => row[name]))).join('')
}

export async function* unbilledCsv(read: (paging: Paging) => Promise<Page<UnbilledRow>>): AsyncGenerator<string> {
  yield csvLine(UNBILLED)
  for await (const items of pages(read, undefined))
    yield items.map((row) => csvLine(UNBILLED.map((name) => row[name]))).join('')
}

async function* pages<T>(read: (paging: Paging) => Promise<Page<T>>, from: string | undefined): AsyncGenerator<T[]> {
  let cursor = from
  for (;;) {
    const page = await read({ cursor, limit: PAGE_ROWS })
    yield page.items
    if (page.next === null) return
    cursor = page.next
  }
}

type Cell = string | number | boolean | null | Readonly<Record<string, number | string>>

export function csvLine(cells: readonly Cell[]): string {
  return `${cells.map(cellOf).join(',')}\r\n`
}

/**
 * Protects against CSV injection: text that a spreadsheet would run as a formula is marked as text. Amounts are numbers and stay as they are. A spreadsheet that separates cells
 * by semicolons or tabs splits a quoted text, so the text after each of these is protected too.
 */
function cellOf(cell: Cell): string {
  if (cell === null) return ''
  const shown =
    typeof cell !== 'object'
      ? cell
      : Object.entries(cell)
          .map(([name, value]) => `${name}=${value}`)
          .join(' ')
  const text = typeof shown === 'string' && !/^-?\d+(\.\d+)?$/.test(shown) ? withoutFormulas(shown) : String(shown)
  return /[",\r\n]/.test(text) ? `"${text.replaceAll('"', '""')}"` : text
}

function withoutFormulas(text: string): string {
  const inner = text.replaceAll(/([;\t\r\n][^\S\t\r\n]*)(?=[=+\-@])/g, "$1'")
  return /^[=+\-@\t\r]/.test(text) ? `'${inner}` : inner
}
