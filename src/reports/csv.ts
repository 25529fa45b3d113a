// Tables as CSV, page by page, so that a download of any length needs the memory of one page.
import type { Page, Paging } from '../kernel/view.ts'
import { ledgerView, usageView } from '../ledger/views.ts'
import type { LedgerFilter } from './movements.ts'
import type { Statements, UsageFilter } from './statement.ts'
import { sumRow, type UsageSums } from './views.ts'

const PAGE_ROWS = 2_000

const SUMS = sumRow.keyof().options
const USAGE = usageView.keyof().options
/** What a member of the account gets. */
const USAGE_WITHOUT_COST = USAGE.filter((name) => name !== 'cost' && name !== 'credential')
const LEDGER = ledgerView.keyof().options

/** Whole lines, a page at a time. */
export async function* usageCsv(
  statements: Statements,
  filter: Omit<UsageFilter, 'limit'>,
  { costs }: { costs: boolean },
): AsyncGenerator<string> {
  const columns = costs ? USAGE : USAGE_WITHOUT_COST
  yield line(columns)
  for await (const items of pages((paging) => statements.usage({ ...filter, ...paging }), filter.cursor))
    yield items.map((row) => line(columns.map((name) => row[name] ?? null))).join('')
}

export async function* ledgerCsv(statements: Statements, filter: Omit<LedgerFilter, 'limit'>): AsyncGenerator<string> {
  yield line(LEDGER)
  const read = (paging: Paging) => statements.ledger({ ...filter, ...paging })
  for await (const items of pages(read, filter.cursor))
    yield items.map((row) => line(LEDGER.map((name) => row[name]))).join('')
}

export async function* sumsCsv(read: () => Promise<UsageSums>): AsyncGenerator<string> {
  const { series } = await read()
  yield line(SUMS)
  yield series.map((row) => line(SUMS.map((name) => row[name]))).join('')
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

type Cell = string | number | boolean | null | Readonly<Record<string, number>>

function line(cells: readonly Cell[]): string {
  return `${cells.map(cellOf).join(',')}\r\n`
}

/** A text that a spreadsheet would run as a formula is marked as text; amounts are numbers and stay as they are. */
function cellOf(cell: Cell): string {
  if (cell === null) return ''
  if (typeof cell === 'object')
    return Object.entries(cell)
      .map(([name, quantity]) => `${name}=${quantity}`)
      .join(' ')
  const text =
    typeof cell === 'string' && /^[=+\-@\t\r]/.test(cell) && !/^-?\d+(\.\d+)?$/.test(cell) ? `'${cell}` : String(cell)
  return /[",\r\n]/.test(text) ? `"${text.replaceAll('"', '""')}"` : text
}
