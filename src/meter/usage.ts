// What a call consumed, in the units that prices name.

export const UNITS = [
  'input',
  'cachedInput',
  'cacheWrite',
  'cacheWriteHour',
  'inputAudio',
  'inputImage',
  'output',
  'outputAudio',
  'outputImage',
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
 * Quantities by unit; absent means none. The token units never overlap: `input` is the prompt without its sound, its pictures and
 * what was read from or written to a cache, and `output` includes reasoning but neither sound nor pictures.
 */
export type Usage = { readonly [unit in Unit]?: number }

export const TOKEN_UNITS = [
  'input',
  'cachedInput',
  'cacheWrite',
  'cacheWriteHour',
  'inputAudio',
  'inputImage',
  'output',
  'outputAudio',
  'outputImage',
] as const
/** Of tools that run at a vendor, by the use. */
export const USE_UNITS = ['webSearch', 'fileSearch', 'codeRun', 'image'] as const

/** The whole prompt, however it was read. */
export function inputTokensOf(usage: Usage): number {
  const cache = (usage.cachedInput ?? 0) + (usage.cacheWrite ?? 0) + (usage.cacheWriteHour ?? 0)
  return (usage.input ?? 0) + cache + (usage.inputAudio ?? 0) + (usage.inputImage ?? 0)
}

/** All that was made: text, sound and pictures. */
export function outputTokensOf(usage: Usage): number {
  return (usage.output ?? 0) + (usage.outputAudio ?? 0) + (usage.outputImage ?? 0)
}

export function tokensOf(usage: Usage): number {
  return inputTokensOf(usage) + outputTokensOf(usage)
}

/** A count that a vendor reported: anything but a non-negative safe integer is nonsense and reads as undefined. */
export function readCount(value: unknown): number | undefined {
  return typeof value === 'number' && Number.isSafeInteger(value) && value >= 0 ? value : undefined
}
