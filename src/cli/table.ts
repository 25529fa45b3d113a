// Rows as a table that is read by people; with --json the same rows are for programs.

import type { Page } from '../kernel/view.ts'
import { CliError, type Invocation, type Option, type Told, text } from './command.ts'

type Cell = string | number | boolean | null | undefined

/** A column by its heading: the name of a property, or what to show of a row. */
export type Columns<Row> = Readonly<Record<string, keyof Row | ((row: Row) => Cell)>>

export function table<Row extends object>(rows: readonly Row[], columns: Columns<Row>): string {
  const headings = Object.keys(columns)
  const cell = (row: Row, column: Columns<Row>[string]) =>
    show(typeof column === 'function' ? column(row) : row[column])
  const lines = [headings, ...rows.map((row) => Object.values(columns).map((column) => cell(row, column)))]
  const widths = headings.map((_, column) => Math.max(...lines.map((line) => [...(line[column] ?? '')].length)))
  return lines
    .map((line) =>
      line
        .map((cell, column) => cell + ' '.repeat((widths[column] ?? 0) - [...cell].length))
        .join('  ')
        .trimEnd(),
    )
    .join('\n')
}

/** One thing, a line for each of its properties. */
export function card(entries: Readonly<Record<string, unknown>>): string {
  const width = Math.max(...Object.keys(entries).map((name) => name.length))
  return Object.entries(entries)
    .map(([name, value]) => `${name.padEnd(width)}  ${show(value)}`)
    .join('\n')
}

/** Names come from strangers: nothing that moves a terminal's cursor gets through. */
function show(value: unknown): string {
  if (value === null || value === undefined || value === '') return '–'
  const text = typeof value === 'object' ? JSON.stringify(value) : String(value)
  return text.replaceAll(/\p{Cc}/gu, ' ')
}

// Lists of any length: pages are asked for until enough rows are there.

export const PAGE_OPTIONS: Readonly<Record<string, Option>> = {
  limit: { type: 'string', value: 'n', help: 'Maximum number of rows; 50 by default.' },
}

/** Whose rows: the account's own, or those of its test keys. */
export const TEST_OPTION: Readonly<Record<string, Option>> = {
  test: { type: 'boolean', help: 'Those of its test keys instead.' },
}

export function testOf(call: Invocation): string | undefined {
  return call.values.test === true ? 'true' : undefined
}

type Filter = Readonly<Record<string, string | undefined>>

const PAGE_ROWS_MAX = 200

export async function listPages<Row extends object>(
  call: Invocation,
  path: string,
  { filter = {}, columns }: { filter?: Filter; columns: Columns<Row> },
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
  return { answer: rows, words: table(rows, columns) }
}

export function query(values: Filter): string {
  const given = Object.entries(values).filter((entry): entry is [string, string] => entry[1] !== undefined)
  return given.length > 0 ? `?${new URLSearchParams(given)}` : ''
}
