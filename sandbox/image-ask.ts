// Reading and checking what the image vendor is asked to paint. Fields of a form are strings, those of JSON are not.
import type { Json } from './json.ts'
import { string } from './json.ts'
import { invalid, missing, notAmong, unknown } from './refusal.ts'
import { hash } from './seed.ts'
import { countTokens } from './tokens.ts'

export interface ImageReference {
  readonly type: string
  readonly width: number
  readonly height: number
  readonly bytes: number
}

export interface ImageAsk {
  readonly model: string
  readonly prompt: string
  readonly width: number
  readonly height: number
  readonly format: 'png' | 'jpeg' | 'webp'
  readonly quality: string
  readonly background: string
  readonly compression: number
  readonly n: number
  readonly partials: number
  readonly seed: number
  readonly references: readonly ImageReference[]
  readonly tokens: { readonly text: number; readonly image: number; readonly output: number }
}

const KNOWN =
  'model prompt size quality output_format output_compression background moderation n partial_images stream user safety_identifier complexity input_fidelity'.split(
    ' ',
  )
const PROMPT_CHARS_MAX = 32_000
const SIDE_MAX = 3840
const SIDE_MIN = 256
const PIXELS_MAX = 3840 * 2160

/** Throws the vendor's refusal. */
export function readImageAsk(fields: Json, references: readonly ImageReference[]): ImageAsk {
  for (const name of Object.keys(fields)) if (!KNOWN.includes(name)) throw unknown(name)
  const model = string(fields.model)
  const prompt = string(fields.prompt)
  if (model === '') throw missing('model')
  if (prompt === '') throw missing('prompt')
  const long = `Invalid 'prompt': string too long. Expected a string with maximum length ${PROMPT_CHARS_MAX}.`
  if (prompt.length > PROMPT_CHARS_MAX) throw invalid(long, 'prompt', 'string_above_max_length')
  const fidelity = "The model does not support the 'input_fidelity' parameter."
  if (fields.input_fidelity !== undefined) throw invalid(fidelity, 'input_fidelity', 'unsupported_parameter')
  const finer = /2[.-]5/.test(model) ? ['xhigh', 'max'] : []
  const quality = oneOf(fields, 'quality', ['auto', 'low', 'medium', 'high', ...finer])
  const format = oneOf(fields, 'output_format', ['png', 'jpeg', 'webp'])
  const { width, height } = readSize(string(fields.size) || 'auto')
  const background = oneOf(fields, 'background', ['auto', 'transparent', 'opaque'])
  if (background === 'transparent' && format === 'jpeg')
    throw invalid('Transparent background is not supported for JPEG.', 'background')
  return {
    model,
    prompt,
    width,
    height,
    format: format as ImageAsk['format'],
    quality: quality === 'auto' ? 'medium' : quality,
    background: 'opaque',
    compression: between(fields, 'output_compression', [0, 100], 90),
    n: between(fields, 'n', [1, 10], 1),
    partials: between(fields, 'partial_images', [0, 3], 0),
    seed: hash(`${model} ${prompt}`) % 1_000_000,
    references,
    tokens: {
      text: countTokens(prompt),
      image: references.reduce((sum, reference) => sum + referenceTokens(reference), 0),
      output: outputTokens(quality, width, height) * between(fields, 'n', [1, 10], 1),
    },
  }
}

function readSize(size: string): { width: number; height: number } {
  if (size === 'auto') return { width: 1024, height: 1024 }
  const [, across, down] = size.match(/^(\d{2,5})x(\d{2,5})$/) ?? []
  const [width, height] = [Number(across), Number(down)]
  const refuse = (why: string) => invalid(`Invalid value: '${size}'. ${why}`, 'size')
  if (across === undefined) throw refuse("Expected 'auto' or a size such as 1024x1024.")
  if (width % 16 !== 0 || height % 16 !== 0) throw refuse('Width and height must both be divisible by 16.')
  if (Math.max(width, height) > SIDE_MAX || width * height > PIXELS_MAX) throw refuse('The largest size is 3840x2160.')
  if (Math.min(width, height) < SIDE_MIN) throw refuse(`The least side is ${SIDE_MIN}.`)
  if (Math.max(width, height) > 3 * Math.min(width, height)) throw refuse('The ratio must be between 1:3 and 3:1.')
  return { width, height }
}

/** The first of the values stands for "not given". */
function oneOf(fields: Json, name: string, values: readonly string[]): string {
  const value = fields[name] ?? values[0]
  if (typeof value === 'string' && values.includes(value)) return value
  throw notAmong(values, value, name)
}

function between(fields: Json, name: string, [least, most]: readonly [number, number], otherwise: number): number {
  const value = fields[name] === undefined || fields[name] === null ? otherwise : Number(fields[name])
  if (Number.isInteger(value) && value >= least && value <= most) return value
  throw invalid(`Invalid '${name}': integer between ${least} and ${most} expected.`, name)
}

const SQUARE_TOKENS: Readonly<Record<string, number>> = { low: 272, medium: 1056, high: 4160, xhigh: 6240, max: 8320 }

function outputTokens(quality: string, width: number, height: number): number {
  return Math.ceil(((SQUARE_TOKENS[quality] ?? 1056) * width * height) / (1024 * 1024))
}

/** A token for each square of 32 pixels, as far as the vendor looks at a picture. */
function referenceTokens({ width, height }: ImageReference): number {
  return Math.min(1536, Math.max(64, Math.ceil(width / 32) * Math.ceil(height / 32)))
}
