// Rows as a table for people; with --json the same rows are for programs.

import type { Page } from '../kernel/view.ts'
import { CliError, type Invocation, type Option, type Told, takes, text } from './command.ts'

type Cell = string | number | boolean | null | undefined

/** Columns by heading: the name of a property, or a function of the row. */
export type Columns<Row> = Readonly<Record<string, keyof Row | ((row: Row) => Cell)>>

/** On a terminal as wide as that; elsewhere whole. */
export function table<Row extends object>(
  rows: readonly Row[],
  columns: Columns<Row>,
  width = process.stdout.isTTY ? process.stdout.columns : Number.POSITIVE_INFINITY,
): string {
  const headings = Object.keys(columns)
  const cell = (row: Row, column: Columns<Row>[string]) =>
    show(typeof column === 'function' ? column(row) : row[column])
  const lines = rows.map((row) => Object.values(columns).map((column) => cell(row, column)))
  const laidOut = fitted(
    headings.map((heading, column) =>
      aligned(
        heading,
        lines.map((line) => line[column] ?? ''),
      ),
    ),
    width,
  )
  return [headings, ...lines]
    .map((_, line) =>
      laidOut
        .map((cells) => cells[line])
        .join('  ')
        .trimEnd(),
    )
    .join('\n')
}

const NUMBER = /^-?\d+(\.\d+)?$/
const pad = (text: string, width: number) => ' '.repeat(Math.max(0, width - [...text].length))

/** One column with its heading: text is left-aligned, numbers are aligned at the decimal point. */
function aligned(heading: string, cells: readonly string[]): string[] {
  const isNumeric =
    cells.some((cell) => NUMBER.test(cell)) &&
    cells.every((cell) => NUMBER.test(cell) || cell === '–' || cell.trim() === '')
  const fraction = (cell: string) => (cell.includes('.') ? cell.length - cell.indexOf('.') : 0)
  const most = Math.max(0, ...cells.map(fraction))
  const even = isNumeric ? cells.map((cell) => cell + ' '.repeat(most - fraction(cell))) : cells
  const width = Math.max(...[heading, ...even].map((cell) => [...cell].length))
  return [heading, ...even].map((cell) => (isNumeric ? pad(cell, width) + cell : cell + pad(cell, width)))
}

const GAP = 2
const CELL_MIN = 11
const ID = /^[a-z]+_\w{20,}$/

/**
 * The widest columns of text lose the ends of their cells until all columns fit; an id loses its middle, since its end
 * tells it apart.
 */
function fitted(columns: readonly string[][], width: number): readonly string[][] {
  const widths = columns.map(([heading = '']) => [...heading].length)
  const isCut = columns.map((cells) => !cells.slice(1).some((cell) => NUMBER.test(cell.trim())))
  const total = () => widths.reduce((sum, one) => sum + one + GAP, -GAP)
  while (total() > width) {
    const most = Math.max(...widths.filter((_, at) => isCut[at]))
    if (most <= CELL_MIN) break
    widths[widths.findIndex((one, at) => isCut[at] && one === most)] = most - 1
  }
  const cut = (cell: string, most: number) => {
    const letters = [...cell.trimEnd()]
    if (letters.length <= most) return letters.join('').padEnd(most)
    const end = ID.test(cell.trim()) ? 6 : 0
    return [...letters.slice(0, most - 1 - end), '…', ...letters.slice(letters.length - end)].join('')
  }
  return columns.map((cells, at) => (isCut[at] ? cells.map((cell) => cut(cell, widths[at] ?? 0)) : cells))
}

/** One object, a line for each property, by name. */
export function figures(entries: Readonly<Record<string, unknown>>): string {
  const width = Math.max(...Object.keys(entries).map((name) => name.length))
  return Object.entries(entries)
    .map(([name, value]) => `${name.padEnd(width)}  ${show(value)}`)
    .join('\n')
}

/** The same for people: "Last used at" for `lastUsedAt`. */
export function card(entries: Readonly<Record<string, unknown>>): string {
  const words = (name: string) => name.replaceAll(/(?<=[a-z])[A-Z]/g, (letter) => ` ${letter.toLowerCase()}`)
  const label = (name: string) =>
    words(name)
      .replace(/^(?:id|ip)\b/, (short) => short.toUpperCase())
      .replace(/^[a-z]/, (letter) => letter.toUpperCase())
  return figures(Object.fromEntries(Object.entries(entries).map(([name, value]) => [label(name), value])))
}

const INSTANT = /^(\d{4}-\d\d-\d\d)T(\d\d:\d\d:\d\d)(?:\.\d+)?Z$/

/** Names are untrusted, so control characters that move the terminal's cursor are removed. */
function show(value: unknown): string {
  if (value === null || value === undefined || value === '') return '–'
  const text = typeof value === 'object' ? JSON.stringify(value) : String(value)
  return text.replace(INSTANT, '$1 $2 UTC').replaceAll(/\p{Cc}/gu, ' ')
}

/** Rows in words; `empty` says that there are none, and what to do about it. */
export function list<Row extends object>(rows: readonly Row[], columns: Columns<Row>, empty: string): Told {
  return { answer: rows, words: rows.length > 0 ? table(rows, columns) : empty }
}

// Lists of any length: pages are requested until there are enough rows.

export const PAGE_OPTIONS: Readonly<Record<string, Option>> = {
  limit: takes('n', 'Maximum number of rows; 50 by default.'),
}

type Filter = Readonly<Record<string, string | undefined>>

const PAGE_ROWS_MAX = 200

interface Listing<Row> {
  readonly filter?: Filter
  readonly columns: Columns<Row>
  /** The rows with names that must be requested. */
  readonly named?: (rows: readonly Row[]) => Promise<readonly Row[]>
  /** The text if there are no rows. */
  readonly empty: string
}

export async function listPages<Row extends object>(
  call: Invocation,
  path: string,
  { filter = {}, columns, named, empty }: Listing<Row>,
): Promise<Told> {
  const most = Number(text(call, 'limit') ?? '50')
  if (!Number.isInteger(most) || most < 1) throw new CliError('--limit takes a whole number of 1 or more.', 2)
  const rows: Row[] = []
  let cursor: string | undefined
  while (rows.length < most) {
    const limit = String(Math.min(PAGE_ROWS_MAX, most - rows.length))
    const page = await call.api.call<Page<Row>>('GET', path + query({ ...filter, limit, cursor }))
    rows.push(...page.items)
    if (page.next === null) break
    cursor = page.next
  }
  return list(named ? await named(rows) : rows, columns, empty)
}

export function query(values: Filter): string {
  const given = Object.entries(values).filter((entry): entry is [string, string] => entry[1] !== undefined)
  return given.length > 0 ? `?${new URLSearchParams(given)}` : ''
}
