// The compact form of an answer, for whoever reads it as text: tables as Markdown, long lists cut, deep values in one line.
// The whole answer is in the structured content.

const ROWS_MAX = 25
const COLUMNS_MAX = 12
const CELL_CHARS_MAX = 80
const DEPTH_MAX = 4
const CHARS_MAX = 8_000

export function markdownOf(value: unknown): string {
  const lines: string[] = []
  write(value, '', lines, 0)
  const text = lines.join('\n')
  return text.length <= CHARS_MAX
    ? text
    : `${text.slice(0, text.lastIndexOf('\n', CHARS_MAX)).toWellFormed()}\n… cut here; all of it is in the structured content.`
}

/** Plain objects, of which every value of parsed JSON is one that is no array. */
function isObject(value: unknown): value is Record<string, unknown> {
  return typeof value === 'object' && value !== null && !Array.isArray(value)
}

function write(value: unknown, path: string, lines: string[], depth: number): void {
  if (Array.isArray(value) && value.length > 0 && value.every(isObject)) writeTable(value, path, lines)
  else if (!isObject(value) || depth === DEPTH_MAX) lines.push(path ? `${path}: ${cell(value)}` : cell(value))
  else
    for (const [name, member] of rowsFirst(Object.entries(value))) {
      // What is null says nothing.
      if (member !== null) write(member, path ? `${path}.${name}` : name, lines, depth + 1)
    }
}

/** Analytics answers have lists of their filters before what was asked for. */
function rowsFirst<T>(members: ReadonlyArray<readonly [string, T]>): ReadonlyArray<readonly [string, T]> {
  const isRows = ([name]: readonly [string, T]) => /^(?:data|records)$/i.test(name)
  return [...members.filter(isRows), ...members.filter((member) => !isRows(member))]
}

function writeTable(rows: readonly Record<string, unknown>[], path: string, lines: string[]): void {
  const shown = rows.slice(0, ROWS_MAX)
  const columns = [...new Set(shown.flatMap((row) => Object.keys(row)))].slice(0, COLUMNS_MAX)
  const row = (cells: readonly string[]) => `| ${cells.join(' | ')} |`
  lines.push(
    ...(path ? [`${path}:`] : []),
    row(columns),
    row(columns.map(() => '---')),
    ...shown.map((one) => row(columns.map((name) => cell(one[name]).replaceAll('|', '\\|')))),
  )
  if (rows.length > shown.length)
    lines.push(`… ${shown.length} of ${rows.length} rows; all of them are in the structured content.`)
}

function cell(value: unknown): string {
  if (value === null || value === undefined) return ''
  const text = (typeof value === 'string' ? value : JSON.stringify(value)).replaceAll(/\s+/g, ' ')
  return text.length <= CELL_CHARS_MAX ? text : `${text.slice(0, CELL_CHARS_MAX).toWellFormed()}…`
}
