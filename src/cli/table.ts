// Rows as a table that is read by people; with --json the same rows are for programs.

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
