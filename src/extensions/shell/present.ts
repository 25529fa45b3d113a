// Shows answers of any form: rows as tables, figures as lines, bars on request.
import { CliError } from '../../cli/command.ts'
import { figures as linesOf, table } from '../../cli/table.ts'

type JsonRecord = Readonly<Record<string, unknown>>
type Bar = readonly [label: string, number: number]

const COLUMNS_MAX = 8
const CELL_CHARS_MAX = 40
const BAR_CHARS = 40
const DEPTH_MAX = 6

const isRow = (value: unknown): value is JsonRecord =>
  typeof value === 'object' && value !== null && !Array.isArray(value)
const isScalar = (value: unknown) => !isRow(value) && !Array.isArray(value)
const isPoint = (row: JsonRecord) => 'Key' in row && 'Value' in row

/** Every list of rows in an answer with its path, the least nested first. */
function listsIn(answer: unknown): { at: string; rows: JsonRecord[] }[] {
  const found: { at: string; rows: JsonRecord[]; depth: number }[] = []
  const visit = (value: unknown, at: string, depth: number): void => {
    if (depth > DEPTH_MAX || isScalar(value)) return
    if (Array.isArray(value)) {
      const rows = value.filter(isRow)
      if (rows.length > 0) found.push({ at, rows, depth })
      else for (const inner of value) visit(inner, at, depth + 1)
      return
    }
    if (isRow(value))
      for (const [name, inner] of Object.entries(value)) visit(inner, at ? `${at}.${name}` : name, depth + 1)
  }
  visit(answer, '', 0)
  return found.sort((a, b) => a.depth - b.depth)
}

/** Values outside of lists: `Data.example.com.TotalVisits`. */
function figuresIn(value: unknown, at = '', depth = 0): [string, unknown][] {
  if (isScalar(value)) return at === '' ? [] : [[at, value]]
  if (!isRow(value) || depth > DEPTH_MAX) return []
  return Object.entries(value).flatMap(([name, inner]) => figuresIn(inner, at ? `${at}.${name}` : name, depth + 1))
}

const unwrap = (value: unknown) => (isRow(value) && value.success === true && 'data' in value ? value.data : value)

const rowsIn = (value: unknown) => (Array.isArray(value) ? value.filter(isRow) : [])
const textsIn = (parts: unknown) => rowsIn(parts).flatMap(({ text }) => (typeof text === 'string' ? [text] : []))

/** The text of an answer in any text format; undefined: the answer has no text. */
export function saidIn(answer: unknown): string | undefined {
  if (!isRow(answer)) return undefined
  const said = [
    ...rowsIn(answer.choices).flatMap(({ message }) =>
      isRow(message) && typeof message.content === 'string' ? [message.content] : [],
    ),
    ...rowsIn(answer.output).flatMap(({ content }) => textsIn(content)),
    ...(answer.type === 'message' ? textsIn(answer.content) : []),
    ...rowsIn(answer.candidates).flatMap(({ content }) => (isRow(content) ? textsIn(content.parts) : [])),
  ]
  // Keeps line breaks and removes all other control characters that move the terminal's cursor.
  return said.length > 0 ? said.join('\n\n').replaceAll(/(?!\n|\t)\p{Cc}/gu, ' ') : undefined
}

export function showAnswer(value: unknown): string {
  const answer = unwrap(value)
  const [first] = listsIn(answer)
  const figures = figuresIn(answer)
  // A table of rows, unless the rows only explain a figure.
  if (first && !(first.rows.every(isPoint) && figures.length > 0)) {
    const [rows, others] = [tableOf(first.rows), cardOf(figures)]
    if (others === '') return rows
    // Lists that are nested deeper than the figures belong to them.
    return first.at.includes('.') ? `${others}\n\n${rows}` : `${rows}\n\n${others}`
  }
  if (figures.length > 0) return cardOf(figures)
  return Array.isArray(answer) ? 'Nothing was found.' : JSON.stringify(answer, null, 2)
}

const cardOf = (figures: readonly [string, unknown][]) =>
  figures.length === 0 ? '' : linesOf(Object.fromEntries(figures.map(([name, one]) => [name, cellOf(one)])))

function tableOf(rows: readonly JsonRecord[]): string {
  const names = [...new Set(rows.flatMap((row) => Object.keys(row).filter((name) => isScalar(row[name]))))]
  const columns = (names.length > 0 ? names : Object.keys(rows[0] ?? {})).slice(0, COLUMNS_MAX)
  return table(rows, Object.fromEntries(columns.map((name) => [name, (row: JsonRecord) => cellOf(row[name])])))
}

function cellOf(value: unknown): string | number | undefined {
  if (typeof value === 'number') return Number.isInteger(value) ? value : Number(value.toPrecision(6))
  if (value === null || value === undefined) return undefined
  if (typeof value !== 'string') return JSON.stringify(value)
  const line = value.replaceAll(/\s+/g, ' ')
  return line.length > CELL_CHARS_MAX ? `${line.slice(0, CELL_CHARS_MAX - 1)}…` : line
}

/** A bar for each row, or for each figure if there are no rows. */
export function chartOf(value: unknown, by?: string): string {
  const answer = unwrap(value)
  const lists = listsIn(answer)
  const list = lists.find(({ rows }) => rows.every(isPoint)) ?? lists[0]
  const bars = (list && barsOf(list.rows, by)) ?? figuresOf(answer)
  if (bars.length === 0) throw new CliError('There are no numbers in this answer to draw.')
  const most = Math.max(...bars.map(([, number]) => Math.abs(number)))
  const width = Math.max(...bars.map(([label]) => [...label].length))
  const numbers = bars.map(([, number]) => String(cellOf(number)))
  const wide = Math.max(...numbers.map((number) => number.length))
  return bars
    .map(
      ([label, number], index) =>
        `${label.padEnd(width)}  ${(numbers[index] ?? '').padStart(wide)}  ${bar(number, most)}`,
    )
    .map((line) => line.trimEnd())
    .join('\n')
}

function barsOf(rows: readonly JsonRecord[], by: string | undefined): Bar[] | undefined {
  const first = rows[0] ?? {}
  const column = by ?? Object.keys(first).find((name) => typeof first[name] === 'number')
  if (column === undefined) return undefined
  if (!rows.some((row) => typeof row[column] === 'number'))
    throw new CliError(`There is no column of numbers "${column}". There are: ${Object.keys(first).join(', ')}.`, 2)
  const label = Object.keys(first).find((name) => typeof first[name] === 'string')
  return rows.flatMap((row, index): Bar[] => {
    const number = row[column]
    return typeof number === 'number' ? [[plain(label ? row[label] : index + 1), number]] : []
  })
}

const figuresOf = (answer: unknown): Bar[] =>
  figuresIn(answer).flatMap(([name, number]): Bar[] => (typeof number === 'number' ? [[plain(name), number]] : []))

/** Names are untrusted, so control characters that move the terminal's cursor are removed. */
const plain = (value: unknown) => String(cellOf(value) ?? '–').replaceAll(/\p{Cc}/gu, ' ')

/** The smallest bar is an eighth of a character. */
const EIGHTHS = ['', '▏', '▎', '▍', '▌', '▋', '▊', '▉']

function bar(number: number, most: number): string {
  const eighths = most === 0 ? 0 : Math.round((Math.abs(number) / most) * BAR_CHARS * 8)
  return `${number < 0 ? '-' : ''}${'█'.repeat(Math.floor(eighths / 8))}${EIGHTHS[eighths % 8]}`
}
