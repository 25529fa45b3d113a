// The native shapes of the data source. Any listed field may be absent or null, and others may come.
import { integer, type JsonSchema, list, loose, mapOf, nullable, number, string } from './endpoint.ts'

const figure = nullable(number)
const words = (names: string) => names.split(' ').filter(Boolean)

/** Fields by their names: those that hold numbers, and those that hold text. */
export function fields(numbers: string, texts = ''): Record<string, JsonSchema> {
  return {
    ...Object.fromEntries(words(texts).map((name) => [name, nullable(string)])),
    ...Object.fromEntries(words(numbers).map((name) => [name, figure])),
  }
}

/** A table: rows under a name, and how many there are under another. */
export function rows(at: string, row: Readonly<Record<string, JsonSchema>>, total = 'TotalCount'): JsonSchema {
  return loose({ [at]: list(loose(row)), [total]: integer })
}

/** One answer for each domain that was asked for. */
export const byDomain = (figures: JsonSchema): JsonSchema => loose({ Data: mapOf(figures) })

export const points = list(loose({ Key: nullable(string), Value: figure }))
export const bySource = (series: JsonSchema): JsonSchema => byDomain(mapOf(series))
export const figures = mapOf(figure)
