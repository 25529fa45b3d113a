// Tables as CSV, page by page, so that a download of any length needs the memory of one page.
import type { LedgerFilter, Page, Statements, UsageFilter } from './statement.ts'

const PAGE_ROWS = 2_000

export async function* usageCsv(statements: Statements, filter: Omit<UsageFilter, 'limit'>): AsyncGenerator<string> {
  yield line(
    'id,at,product,door,key,keyName,outcome,status,charged,held,loss,units,estimated,stream,durationMs,firstByteMs,route,job'.split(
      ',',
    ),
  )
  for await (const row of rows((paging) => statements.usage({ ...filter, ...paging }), filter.cursor))
    yield line([
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
      Object.entries(row.units)
        .map(([unit, quantity]) => `${unit}=${quantity}`)
        .join(' '),
      row.estimated,
      row.stream,
      row.durationMs,
      row.firstByteMs,
      row.route,
      row.job,
    ])
}

export async function* ledgerCsv(
  statements: Statements,
  filter: Omit<LedgerFilter, 'limit' | 'balances'>,
): AsyncGenerator<string> {
  yield line(['id', 'at', 'kind', 'amount', 'loss', 'requestId', 'product', 'note', 'actor'])
  for await (const row of rows((paging) => statements.ledger({ ...filter, ...paging, balances: false }), filter.cursor))
    yield line([row.id, row.at, row.kind, row.amount, row.loss, row.requestId, row.product, row.note, row.actor])
}

async function* rows<T>(
  read: (paging: { cursor: string | undefined; limit: number }) => Promise<Page<T>>,
  from: string | undefined,
): AsyncGenerator<T> {
  let cursor: string | undefined = from
  for (;;) {
    const page = await read({ cursor, limit: PAGE_ROWS })
    yield* page.items
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
