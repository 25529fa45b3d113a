// Answers have no common shape, so tables and charts are found by looking: lists of objects are tables, lists of
// Key/Value points are series, and objects of numbers are bars.

export interface TableShape {
  title: string
  columns: string[]
  rows: Record<string, unknown>[]
}

export interface SeriesShape {
  title: string
  labels: string[]
  lines: { name: string; values: (number | null)[] }[]
}

interface BarsShape {
  title: string
  bars: { name: string; value: number }[]
}

interface Shapes {
  tables: TableShape[]
  series: SeriesShape[]
  bars: BarsShape[]
  /** Numbers that stand side by side but measure different things. */
  figures: BarsShape[]
}

type Json = Record<string, unknown>

const isObject = (value: unknown): value is Json => typeof value === 'object' && value !== null && !Array.isArray(value)
const ROWS_MAX = 500
const DEPTH_MAX = 8

export function shapesOf(body: unknown): Shapes {
  const shapes: Shapes = { tables: [], series: [], bars: [], figures: [] }
  const countries = countryNames(body)
  const points: { group: string; name: string; points: Map<string, number> }[] = []
  look(body, [], 0)
  for (const [group, lines] of grouped(points)) shapes.series.push(joinLines(group, lines))
  return shapes

  function look(value: unknown, path: string[], depth: number): void {
    if (depth > DEPTH_MAX || isAside(path)) return
    if (Array.isArray(value)) {
      const flat = value.every(Array.isArray) ? value.flat() : value
      if (isPoints(flat)) {
        const name = path.at(-1) ?? 'Value'
        points.push({
          group: path.slice(0, -1).filter(isTelling).join(' · '),
          name,
          points: new Map(flat.map((point) => [String(point.Key).slice(0, 10), Number(point.Value)])),
        })
      } else if (flat.length && flat.every(isObject)) {
        shapes.tables.push(tableOf(path.filter(isTelling).join(' · '), flat.slice(0, ROWS_MAX), countries))
      } else for (const entry of flat) look(entry, path, depth + 1)
      return
    }
    if (!isObject(value)) return
    const entries = Object.entries(value)
    const numbers = entries.flatMap(([name, entry]) =>
      typeof entry === 'number' && !NOT_FIGURES.test(name) ? [{ name, value: entry }] : [],
    )
    if (numbers.length > 0) {
      const found = { title: path.filter(isTelling).join(' · '), bars: numbers }
      if (path.length > 0 && areShares(numbers)) shapes.bars.push(found)
      else shapes.figures.push(found)
    }
    // Networks and the like: each name holds an object with one telling number.
    const shares = entries.flatMap(([name, entry]) => {
      const own = isObject(entry) ? Object.entries(entry).filter(([, inner]) => typeof inner === 'number') : []
      return own.length === 1 ? [{ name, value: own[0]?.[1] as number }] : []
    })
    if (shares.length >= 2 && shares.length === entries.length) {
      shapes.bars.push({ title: path.filter(isTelling).join(' · '), bars: shares })
      return
    }
    for (const [name, entry] of entries) look(entry, [...path, name], depth + 1)
  }
}

/** Numbers that name something, or count what is in sight anyway. */
const NOT_FIGURES = /^(country|category|id|page|pagesize|total\w*count)$/i

const isTelling = (part: string) => !/^(data|records|total)$/i.test(part)
/** What describes the query or the page, not the answer. */
const isAside = (path: readonly string[]) =>
  path.some((part) => /^(meta|filters|header|keysdataverification)$/i.test(part))

function isPoints(list: readonly unknown[]): list is { Key: string; Value: number }[] {
  return (
    list.length > 0 &&
    list.every((entry) => isObject(entry) && typeof entry.Key === 'string' && typeof entry.Value === 'number')
  )
}

function tableOf(title: string, rows: Json[], countries: ReadonlyMap<unknown, string>): TableShape {
  const columns = new Set<string>()
  for (const row of rows) for (const name of Object.keys(row)) columns.add(name)
  // Pictures are never loaded from elsewhere, and their addresses are noise in a table.
  const kept = [...columns].filter((name) => !/^(favicon|icon|profile_image_url|profile_banner_url)$/i.test(name))
  const named = rows.map((row) => {
    const country = countries.get(row.Country)
    return country ? { ...row, Country: country } : row
  })
  return { title, columns: kept.slice(0, 12), rows: named }
}

/** Parts of one thing: all there is, none below zero, and none a thousand times another. */
function areShares(numbers: readonly { name: string; value: number }[]): boolean {
  const values = numbers.map((one) => one.value).filter((value) => value !== 0)
  if (numbers.length < 2 || values.length === 0 || numbers.some((one) => /^(value|total|change|rank)/i.test(one.name)))
    return false
  return Math.min(...values) > 0 && Math.max(...values) / Math.min(...values) < 1000
}

/** Some answers say beside their rows what the numbers of countries mean. */
function countryNames(body: unknown): Map<unknown, string> {
  const filters = isObject(body) && isObject(body.Filters) ? body.Filters.country : undefined
  const names = new Map<unknown, string>()
  for (const entry of Array.isArray(filters) ? filters : [])
    if (isObject(entry) && typeof entry.text === 'string') names.set(Number(entry.id), entry.text)
  return names
}

function grouped<T extends { group: string }>(list: readonly T[]): Map<string, T[]> {
  const groups = new Map<string, T[]>()
  for (const entry of list) groups.set(entry.group, [...(groups.get(entry.group) ?? []), entry])
  return groups
}

function joinLines(title: string, lines: readonly { name: string; points: Map<string, number> }[]): SeriesShape {
  const labels = [...new Set(lines.flatMap((line) => [...line.points.keys()]))].sort()
  return {
    title,
    labels,
    lines: lines.map((line) => ({ name: line.name, values: labels.map((label) => line.points.get(label) ?? null) })),
  }
}

/** What people look for first: how much, then how it changed, and last a place in a ranking. */
function telling(column: string): number {
  const order = [/^(total)?share$/i, /visits|clicks|volume|score|affinity/i, /^(?!.*(rank|change))/i]
  const found = order.findIndex((pattern) => pattern.test(column))
  return found < 0 ? order.length : found
}

/** A column of names and a column of numbers make a chart of a table. */
export function barsOfTable(table: TableShape): { name: string; numbers: string[] } | undefined {
  const typed = (column: string, type: string) => {
    const values = table.rows.map((row) => row[column]).filter((value) => value !== null && value !== undefined)
    return values.length > 0 && values.every((value) => typeof value === type)
  }
  const numbers = table.columns.filter((column) => typed(column, 'number'))
  const name =
    table.columns.find((column) => /^(domain|keyword|searchterm|name|text|username|site|country)$/i.test(column)) ??
    table.columns.find((column) => typed(column, 'string')) ??
    table.columns.find((column) => /^id$/i.test(column))
  const shown = numbers.filter((column) => column !== name).sort((one, other) => telling(one) - telling(other))
  return name && shown.length && table.rows.length > 1 ? { name, numbers: shown } : undefined
}
