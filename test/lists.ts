// What tests say of lists.
import assert from 'node:assert/strict'

type List = readonly unknown[] | undefined
type Of<L extends List> = NonNullable<L>[number]
type PluckedRow<T, Names extends readonly (keyof T)[]> = { [At in keyof Names]: T[Names[At]] }

/** By what they are compared: one member of each, or several of them as a row. */
export function pluck<L extends List, Name extends keyof Of<L>>(list: L, name: Name): Of<L>[Name][]
export function pluck<L extends List, const Names extends readonly (keyof Of<L>)[]>(
  list: L,
  ...names: Names
): PluckedRow<Of<L>, Names>[]
export function pluck<T>(list: readonly T[] | undefined, first: keyof T, ...more: (keyof T)[]): unknown[] {
  assert.ok(list, 'there is no list')
  return list.map((one) => (more.length === 0 ? one[first] : [first, ...more].map((name) => one[name])))
}

/** A list of words that have no blanks in them. */
export const words = (text: string): string[] => text.trim().split(/\s+/)

/** Nothing in it is like this; whatever is, is shown. */
export function none<T>(list: Iterable<T>, isLikeThis: (one: T, at: number) => unknown, why = 'found'): void {
  assert.deepEqual({ [why]: [...list].filter(isLikeThis) }, { [why]: [] })
}

/** As many at the same time, and what they came to. */
export function atOnce<T>(count: number, run: (at: number) => Promise<T>): Promise<T[]> {
  return Promise.all(Array.from({ length: count }, (_, at) => run(at)))
}
