// What a call consumed, in the units that prices name.
import { UNIT_NAMES, type Unit, unitRow } from './kind.ts'

/**
 * Quantities by unit; absent means none. The token units never overlap: `input` is the prompt without its sound, its pictures and
 * what was read from or written to a cache, and `output` includes reasoning but neither sound nor pictures.
 */
export type Usage = { readonly [unit in Unit]?: number }

/** Of the tokens that were read, and of those that were made. */
export const INPUT_UNITS = UNIT_NAMES.filter((unit) => unitRow(unit).side === 'input')
export const OUTPUT_UNITS = UNIT_NAMES.filter((unit) => unitRow(unit).side === 'output')

function sumOf(units: readonly Unit[], usage: Usage): number {
  let sum = 0
  for (const unit of units) sum += usage[unit] ?? 0
  return sum
}

/** The whole prompt, however it was read. */
export const inputTokensOf = (usage: Usage): number => sumOf(INPUT_UNITS, usage)

/** All that was made: text, sound and pictures. */
export const outputTokensOf = (usage: Usage): number => sumOf(OUTPUT_UNITS, usage)

export function tokensOf(usage: Usage): number {
  return inputTokensOf(usage) + outputTokensOf(usage)
}

/** A count that a vendor reported: anything but a non-negative safe integer is nonsense and reads as undefined. */
export function readCount(value: unknown): number | undefined {
  return typeof value === 'number' && Number.isSafeInteger(value) && value >= 0 ? value : undefined
}
