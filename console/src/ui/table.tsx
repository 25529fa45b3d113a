// A table on wide screens; on narrow ones each row becomes a card that names its own columns. The roles are written out
// because browsers drop a table's meaning when its display changes.
import { type ReactNode, useState } from 'react'
import type { List } from '../query.ts'
import { Link, navigate } from '../router.tsx'
import { Card } from './page.tsx'
import { Loaded, LoadMore, Skeleton } from './state.tsx'

export interface TableColumn<Row> {
  head: string
  cell: (row: Row) => ReactNode
  /** Right-aligned, so that digits line up. */
  right?: boolean
  /** The name of the row; the heading of the card on narrow screens. */
  main?: boolean
  /** Hidden on narrow screens. */
  wideOnly?: boolean
  /** Never wraps. */
  tight?: boolean
  /** The rows can be put in this order: here, where all of them are loaded, or by the server under this name. */
  sort?: ((row: Row) => number | string) | string
}

/** The name of a row, which leads to it where it can be opened, and below it what tells it apart from its like. */
export function Named({ name, to, sub }: { name: string; to?: string; sub?: string | null }) {
  return (
    <>
      {to ? (
        <Link to={to} className="cell-link clamp">
          {name}
        </Link>
      ) : (
        <b>{name}</b>
      )}
      {sub ? <code className="cell-sub">{sub}</code> : null}
    </>
  )
}

interface TableProps<Row> {
  label: string
  rows: readonly Row[]
  columns: readonly (TableColumn<Row> | false)[]
  rowKey: (row: Row) => string
  /** Where a click on the row leads; the row's main cell should hold a real link to the same place. */
  to?: (row: Row) => string | undefined
  /** Shows the row beside the list instead. */
  onOpen?: (row: Row) => void
  dim?: (row: Row) => boolean
  /** The server sorts: by which column, and whom to ask for another order. */
  served?: { sort: string | null; down: boolean; onSort: (sort: string | undefined, down: boolean) => void }
}

/** Of a list that is still being read. */
const ROWS_EXPECTED = 8

/** A card with a list of the server's: loading, empty, its rows, and the button for more of them. */
export function TableCard<Row>({
  list,
  empty,
  title,
  lead,
  actions,
  ...table
}: { list: List<Row>; empty?: ReactNode; title?: string; lead?: string; actions?: ReactNode } & Omit<
  TableProps<Row>,
  'rows'
>) {
  return (
    <Card flush title={title} lead={lead} actions={actions}>
      <Loaded query={list} skeleton={<Skeleton lines={ROWS_EXPECTED} like="rows" />}>
        {(rows) => (rows.length === 0 && empty ? empty : <Table {...table} rows={rows} />)}
      </Loaded>
      <LoadMore list={list} />
    </Card>
  )
}

interface Order {
  head: string
  down: boolean
}

function ordered<Row>(rows: readonly Row[], column: TableColumn<Row> | undefined, down: boolean): readonly Row[] {
  const key = column?.sort
  if (typeof key !== 'function') return rows
  const compare = (a: number | string, b: number | string) => (a < b ? -1 : a > b ? 1 : 0)
  return rows.toSorted((a, b) => compare(key(a), key(b)) * (down ? -1 : 1))
}

export function Table<Row>({ label, rows: given, columns, rowKey, to, onOpen, dim, served }: TableProps<Row>) {
  const [chosen, setChosen] = useState<Order>()
  const shown = columns.filter((column) => column !== false)
  const by = served && shown.find(({ sort }) => sort === served.sort)
  const order = served ? by && { head: by.head, down: served.down } : chosen
  const setOrder = (next?: Order) => {
    const sort = shown.find(({ head }) => head === next?.head)?.sort
    if (served) served.onSort(typeof sort === 'string' ? sort : undefined, next?.down ?? true)
    else setChosen(next)
  }
  const rows = ordered(
    given,
    shown.find(({ head }) => head === order?.head),
    order?.down ?? false,
  )
  return (
    <div className="table-frame">
      <table className="table" role="table" aria-label={label}>
        <thead role="rowgroup">
          <tr role="row">
            {shown.map((column) => (
              <th
                key={column.head}
                scope="col"
                role="columnheader"
                className={cellClass(column)}
                aria-sort={order?.head === column.head ? (order.down ? 'descending' : 'ascending') : undefined}
              >
                <Head column={column} order={order} onOrder={setOrder} />
              </th>
            ))}
          </tr>
        </thead>
        <tbody role="rowgroup">
          {rows.map((row) => {
            const target = to?.(row)
            const open = onOpen ? () => onOpen(row) : target ? () => navigate(target) : undefined
            return (
              <tr
                key={rowKey(row)}
                role="row"
                className={`${open ? 'row-link' : ''}${dim?.(row) ? ' row-dim' : ''}`}
                onClick={(event) => {
                  const inner = (event.target as HTMLElement).closest('a, button, input, select, label, dialog')
                  if (!inner && !window.getSelection()?.toString()) open?.()
                }}
              >
                {shown.map((column) => (
                  <td key={column.head} role="cell" data-head={column.head} className={cellClass(column)}>
                    <div>{column.cell(row)}</div>
                  </td>
                ))}
              </tr>
            )
          })}
        </tbody>
      </table>
    </div>
  )
}

/** Largest first, then smallest first, then as the server gave them. */
function Head<Row>(props: { column: TableColumn<Row>; order: Order | undefined; onOrder: (order?: Order) => void }) {
  const { column, order, onOrder } = props
  const { head } = column
  if (head === 'Actions') return <span className="sr-only">Actions</span>
  if (!column.sort) return head
  const mine = order?.head === head ? order : undefined
  const next = mine ? (mine.down ? { head, down: false } : undefined) : { head, down: true }
  return (
    <button type="button" className="head-sort" onClick={() => onOrder(next)}>
      {head}
      <span aria-hidden="true">{mine ? (mine.down ? ' ↓' : ' ↑') : ' ↕'}</span>
    </button>
  )
}

function cellClass(column: TableColumn<never>): string | undefined {
  const names = [
    column.right ? 'cell-right' : '',
    column.main ? 'cell-main' : '',
    column.wideOnly ? 'cell-wide' : '',
    column.tight ? 'cell-tight' : '',
    column.head === 'Actions' ? 'cell-actions' : '',
  ]
  return names.filter(Boolean).join(' ') || undefined
}
