// Tables as CSV, page by page, so that a download of any length needs the memory of one page.
import type { Page, Paging } from '../kernel/view.ts'
import { type CallView, callView, ledgerView, usageView } from '../ledger/views.ts'
import type { UsageFilter } from './calls.ts'
import type { LedgerFilter } from './movements.ts'
import type { Statements } from './statement.ts'
import { type LabelSum, labelSum, sumRow, type UsageSums } from './views.ts'

const PAGE_ROWS = 2_000

const USAGE = usageView.keyof().options
const ALL = callView.keyof().options
/** The columns for members of an account, for operators, and for operators with all accounts. */
const CALLS = {
  member: USAGE.filter((name) => name !== 'cost' && name !== 'credential' && name !== 'vendor'),
  operator: USAGE,
  all: [...ALL.slice(USAGE.length), ...USAGE],
} satisfies Record<string, readonly (keyof CallView)[]>

export function callsCsv(
  read: (filter: UsageFilter) => Promise<Page<Partial<CallView>>>,
  filter: UsageFilter,
  columnsOf: keyof typeof CALLS,
): AsyncGenerator<string> {
  return pagesCsv(CALLS[columnsOf], (paging) => read({ ...filter, ...paging }), filter.cursor)
}

export function ledgerCsv(statements: Statements, filter: Omit<LedgerFilter, 'limit'>): AsyncGenerator<string> {
  const read = (paging: Paging) => statements.ledger({ ...filter, ...paging })
  return pagesCsv(ledgerView.keyof().options, read, filter.cursor)
}

export const sumsCsv = (read: () => Promise<UsageSums>) =>
  rowsCsv(sumRow.keyof().options, async () => (await read()).series)

/** `hidden`: columns that the reader may not see. */
export function labelSumsCsv(
  read: () => Promise<readonly LabelSum[]>,
  hidden: ReadonlySet<keyof LabelSum>,
): AsyncGenerator<string> {
  return rowsCsv(
    labelSum.keyof().options.filter((name) => !hidden.has(name)),
    read,
  )
}

type CsvRow<Column extends string> = Partial<Readonly<Record<Column, Cell>>>

/** All rows at once. */
export async function* rowsCsv<Column extends string>(
  columns: readonly Column[],
  read: () => Promise<readonly CsvRow<Column>[]>,
): AsyncGenerator<string> {
  const rows = await read()
  yield csvLine(columns)
  yield linesOf(columns, rows)
}

/** Whole lines, a page at a time. */
export async function* pagesCsv<Column extends string>(
  columns: readonly Column[],
  read: (paging: Paging) => Promise<Page<CsvRow<Column>>>,
  from?: string,
): AsyncGenerator<string> {
  yield csvLine(columns)
  for (let cursor = from; ; ) {
    const { items, next } = await read({ cursor, limit: PAGE_ROWS })
    yield linesOf(columns, items)
    if (next === null) return
    cursor = next
  }
}

const linesOf = <Column extends string>(columns: readonly Column[], rows: readonly CsvRow<Column>[]) =>
  rows.map((row) => csvLine(columns.map((name) => row[name] ?? null))).join('')

export type Cell = string | number | boolean | null | readonly string[] | Readonly<Record<string, number | string>>

export function csvLine(cells: readonly Cell[]): string {
  return `${cells.map(cellOf).join(',')}\r\n`
}

/**
 * Protects against CSV injection: text that a spreadsheet would run as a formula is marked as text. Amounts are numbers
 * and stay as they are. A spreadsheet that separates cells by semicolons or tabs splits a quoted text, so the text
 * after each of these is protected too.
 */
function cellOf(cell: Cell): string {
  if (cell === null) return ''
  const shown = typeof cell === 'object' ? wordsOf(cell).join(' ') : cell
  const text = typeof shown === 'string' && !/^-?\d+(\.\d+)?$/.test(shown) ? withoutFormulas(shown) : String(shown)
  return /[",\r\n]/.test(text) ? `"${text.replaceAll('"', '""')}"` : text
}

const wordsOf = (cell: object) =>
  Array.isArray(cell) ? cell : Object.entries(cell).map(([name, value]) => `${name}=${value}`)

function withoutFormulas(text: string): string {
  const inner = text.replaceAll(/([;\t\r\n][^\S\t\r\n]*)(?=[=+\-@])/g, "$1'")
  return /^[=+\-@\t\r]/.test(text) ? `'${inner}` : inner
}
