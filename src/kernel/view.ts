// What views are made of. A view is the schema of an answer, written once: the function that makes the answer, OpenAPI,
// the console, the command line and the CSV files all take it from there. Files with views do no I/O, because the console
// imports their types.
import * as z from 'zod'

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
