// What views are made of. A view is the schema of an answer, written once: the function that makes the answer, OpenAPI,
// the console, the command line and the CSV files all take it from there. Files with views do no I/O, because the
// console imports their types.
import * as z from 'zod'
import { formatCredits } from './credits.ts'

/** A decimal string: "12.5". */
export const credits = z.string().regex(/^-?\d+(\.\d+)?$/)
export const time = z.iso.datetime()
export const count = z.number().int().min(0)

export interface Paging {
  readonly cursor?: string | undefined
  readonly limit: number
}

export interface Page<T> {
  items: T[]
  /** The cursor of the next page; null at the end. */
  next: string | null
}

export function page<T extends z.ZodType>(item: T) {
  return z.object({ items: z.array(item), next: z.string().nullable() })
}

/** A page of rows, of which one more than the limit was read. */
export function asPage<Row extends { readonly id: string }, View>(
  rows: readonly Row[],
  limit: number,
  view: (row: Row) => View,
): Page<View> {
  return { items: rows.slice(0, limit).map(view), next: rows.length > limit ? (rows[limit - 1]?.id ?? null) : null }
}

/**
 * A row in the words of its view: the column `ends_at` becomes the member `endsAt`. Members without a column are left
 * to the caller.
 */
export function asView<T extends z.ZodObject>({ shape }: T, row: object): z.output<T> {
  const columns = new Map<string, unknown>(Object.entries(row))
  const members = Object.entries(shape).flatMap(([name, type]) => {
    const value = columns.get(name.replaceAll(/[A-Z]/g, (letter) => `_${letter.toLowerCase()}`))
    return value === undefined
      ? []
      : [[name, typeof value === 'bigint' && isCredits(type) ? formatCredits(value) : plain(value)]]
  })
  return Object.fromEntries(members) as z.output<T> // The tests parse every answer with its view, so they find a column that is missing.
}

export const isCredits = (type: z.core.$ZodType): boolean =>
  type === credits ||
  ((type instanceof z.ZodNullable || type instanceof z.ZodExactOptional) && isCredits(type.unwrap()))

function plain(value: unknown): unknown {
  if (value instanceof Date) return value.toISOString()
  return typeof value === 'bigint' ? Number(value) : value
}
