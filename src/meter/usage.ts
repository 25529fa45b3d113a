// What a call consumed, in the units that prices name.

export const UNITS = [
  'input',
  'cachedInput',
  'cacheWrite',
  'cacheWriteHour',
  'output',
  'image',
  'second',
  'character',
  'webSearch',
  'fileSearch',
  'codeRun',
  'call',
  'row',
] as const
export type Unit = (typeof UNITS)[number]

/**
 * Quantities by unit; absent means none. The token units never overlap: `input` is the prompt without what was read from
 * or written to a cache, and `output` includes reasoning.
 */
export type Usage = { readonly [unit in Unit]?: number }

export const TOKEN_UNITS = ['input', 'cachedInput', 'cacheWrite', 'cacheWriteHour', 'output'] as const
/** Of tools that run at a vendor, by the use. */
export const USE_UNITS = ['webSearch', 'fileSearch', 'codeRun', 'image'] as const

/** The whole prompt, however it was read. */
export function inputTokensOf(usage: Usage): number {
  return (usage.input ?? 0) + (usage.cachedInput ?? 0) + (usage.cacheWrite ?? 0) + (usage.cacheWriteHour ?? 0)
}

export function tokensOf(usage: Usage): number {
  return inputTokensOf(usage) + (usage.output ?? 0)
}

/** A count that a vendor reported: anything but a non-negative safe integer is nonsense and reads as undefined. */
export function readCount(value: unknown): number | undefined {
  return typeof value === 'number' && Number.isSafeInteger(value) && value >= 0 ? value : undefined
}
