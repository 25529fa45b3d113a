// What a call consumed, in the units that prices name.

export const UNITS = [
  'input',
  'cachedInput',
  'cacheWrite',
  'output',
  'image',
  'second',
  'character',
  'call',
  'row',
] as const
export type Unit = (typeof UNITS)[number]

/**
 * Quantities by unit; absent means none. The token units never overlap: `input` is the prompt without what was read from
 * or written to a cache, and `output` includes reasoning.
 */
export type Usage = { readonly [unit in Unit]?: number }

/** A count that a vendor reported: anything but a non-negative safe integer is nonsense and reads as undefined. */
export function readCount(value: unknown): number | undefined {
  return typeof value === 'number' && Number.isSafeInteger(value) && value >= 0 ? value : undefined
}
