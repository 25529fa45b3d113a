// Tables as CSV, page by page, so that a download of any length needs the memory of one page.
import type { LedgerFilter, LedgerView, Page, Paging, Statements, UsageFilter, UsageView } from './statement.ts'

const PAGE_ROWS = 2_000

const USAGE =
  'id,at,product,door,key,keyName,outcome,status,charged,held,loss,units,estimated,stream,durationMs,firstByteMs,route,job'
const LEDGER = 'id,at,kind,amount,loss,requestId,product,note,actor'

/** Whole lines, a page at a time. */
export async function* usageCsv(statements: Statements, filter: Omit<UsageFilter, 'limit'>): AsyncGenerator<string> {
  yield `${USAGE}\r\n`
  for await (const items of pages((paging) => statements.usage({ ...filter, ...paging }), filter.cursor))
    yield items.map(usageLine).join('')
}

export async function* ledgerCsv(
  statements: Statements,
  filter: Omit<LedgerFilter, 'limit' | 'balances'>,
): AsyncGenerator<string> {
  yield `${LEDGER}\r\n`
  const read = (paging: Paging) => statements.ledger({ ...filter, ...paging, balances: false })
  for await (const items of pages(read, filter.cursor)) yield items.map(ledgerLine).join('')
}

function usageLine(row: UsageView): string {
  const units = Object.entries(row.units).map(([unit, quantity]) => `${unit}=${quantity}`)
  return line([
    row.id,
    row.at,
    row.product,
    row.door,
    row.keyId,
    row.keyName,
    row.outcome,
    row.status,
    row.charged,
    row.held,
    row.loss,
    units.join(' '),
    row.estimated,
    row.stream,
    row.durationMs,
    row.firstByteMs,
    row.route,
    row.job,
  ])
}

function ledgerLine(row: LedgerView): string {
  return line([row.id, row.at, row.kind, row.amount, row.loss, row.requestId, row.product, row.note, row.actor])
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

type Cell = string | number | boolean | null

function line(cells: readonly Cell[]): string {
  return `${cells.map(cellOf).join(',')}\r\n`
}

/** A text that a spreadsheet would run as a formula is marked as text; amounts are numbers and stay as they are. */
function cellOf(cell: Cell): string {
  if (cell === null) return ''
  const text =
    typeof cell === 'string' && /^[=+\-@\t\r]/.test(cell) && !/^-?\d+(\.\d+)?$/.test(cell) ? `'${cell}` : String(cell)
  return /[",\r\n]/.test(text) ? `"${text.replaceAll('"', '""')}"` : text
}
