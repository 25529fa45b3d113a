// What a call consumed, in the units of prices.
import { UNIT_NAMES, type Unit, unitRow } from './kind.ts'

/**
 * Quantities by unit; absent means none. The token units never overlap: `input` is the prompt without audio, images and
 * tokens read from or written to a cache; `output` includes reasoning but neither audio nor images.
 */
export type Usage = { readonly [unit in Unit]?: number }

/** The units of tokens that were read, and of those that were generated. */
export const INPUT_UNITS = UNIT_NAMES.filter((unit) => unitRow(unit).side === 'input')
export const OUTPUT_UNITS = UNIT_NAMES.filter((unit) => unitRow(unit).side === 'output')

function sumOf(units: readonly Unit[], usage: Usage): number {
  let sum = 0
  for (const unit of units) sum += usage[unit] ?? 0
  return sum
}

/** The tokens of the whole prompt, cached or not. */
export const inputTokensOf = (usage: Usage): number => sumOf(INPUT_UNITS, usage)

/** All generated tokens: text, audio and images. */
export const outputTokensOf = (usage: Usage): number => sumOf(OUTPUT_UNITS, usage)

export function tokensOf(usage: Usage): number {
  return inputTokensOf(usage) + outputTokensOf(usage)
}

/** Reads a count reported by a vendor: undefined for anything but a non-negative safe integer. */
export function readCount(value: unknown): number | undefined {
  return typeof value === 'number' && Number.isSafeInteger(value) && value >= 0 ? value : undefined
}
