// The embeddings API. Equal texts have equal vectors, and texts with words or parts of words in common are near each
// other.
import type { ServerResponse } from 'node:http'
import { isRecord, type Json, list, number, parseJson, string } from './json.ts'
import { misbehave, sendWhole } from './misbehave.ts'
import { invalid, openaiError } from './refusal.ts'
import type { Room, RoomContext } from './room.ts'
import { dice, hash } from './seed.ts'
import { countTokens } from './tokens.ts'
import { readTriggers, type Triggers } from './trigger.ts'
import { chatUsage } from './usage.ts'

const PATH = /^\/openai(\/v1)?\/embeddings$/
const INPUTS_MAX = 2048
const INPUT_TOKENS_MAX = 8192
const REQUEST_TOKENS_MAX = 300_000

export const embeddingsRoom: Room = {
  name: 'openai-embeddings',
  match: (method, path) => method === 'POST' && PATH.test(path),
  serve: (_req, res, ctx) => serve(res, ctx),
}

interface EmbeddingsAsk {
  readonly model: string
  readonly inputs: readonly string[]
  readonly tokens: number
  readonly dimensions: number
  readonly base64: boolean
}

async function serve(res: ServerResponse, ctx: RoomContext): Promise<void> {
  const body = parseJson((await ctx.body()).toString('utf8'))
  if (!isRecord(body)) return ctx.json(400, openaiError(400, 'We could not parse the JSON body of your request.'))
  ctx.call.model = string(body.model)
  const texts = [body.input, ...list(body.input), body.model].map(string)
  const triggers = readTriggers({ texts, headers: ctx.call.headers, query: ctx.query, memory: ctx.memory })
  if (await misbehave(res, ctx, triggers, openaiError)) return
  try {
    await sendWhole(res, ctx, triggers, answerOf(readAsk(body), triggers))
  } catch (error) {
    ctx.refuse(error, openaiError)
  }
}

function readAsk(body: Json): EmbeddingsAsk {
  const model = string(body.model)
  if (model === '') throw invalid('you must provide a model parameter', 'model', null)
  const given = list(body.input)
  const inputs = typeof body.input === 'string' || typeof given[0] === 'number' ? [body.input] : given
  if (
    inputs.length === 0 ||
    inputs.length > INPUTS_MAX ||
    inputs.some((input) => list(input).length + string(input).length === 0)
  )
    throw invalid("'$.input' is invalid. Please check the API reference.", 'input', null)
  const counts = inputs.map((input) => (typeof input === 'string' ? countTokens(input) : list(input).length))
  const longest = Math.max(...counts)
  if (longest > INPUT_TOKENS_MAX)
    throw invalid(
      `This model's maximum context length is ${INPUT_TOKENS_MAX} tokens, however you requested ${longest} tokens. Please reduce your prompt.`,
      'input',
      'context_length_exceeded',
    )
  const tokens = counts.reduce((sum, count) => sum + count, 0)
  if (tokens > REQUEST_TOKENS_MAX)
    throw invalid(`Requested ${tokens} tokens, max ${REQUEST_TOKENS_MAX} tokens per request`, 'input', null)
  const whole = sizeOf(model)
  const dimensions = number(body.dimensions) ?? whole
  if (!Number.isInteger(dimensions) || dimensions < 1 || dimensions > whole)
    throw invalid(`Invalid value for 'dimensions' = ${dimensions}. Must be between 1 and ${whole}.`, 'dimensions', null)
  return {
    model,
    inputs: inputs.map((input) => (typeof input === 'string' ? input : list(input).join(' '))),
    tokens,
    dimensions,
    base64: body.encoding_format === 'base64',
  }
}

function sizeOf(model: string): number {
  return /large/.test(model) ? 3072 : 1536
}

function answerOf({ model, inputs, tokens, dimensions, base64 }: EmbeddingsAsk, triggers: Triggers): Json {
  const counted = { input: tokens, cached: 0, cacheWrite: 0, output: 0, reasoning: 0 }
  const usage = chatUsage(counted, triggers, 1)
  const data = inputs.map((input, index) => {
    const vector = vectorOf(input, model, dimensions)
    const embedding = base64 ? Buffer.from(vector.buffer).toString('base64') : Array.from(vector, rounded)
    return { object: 'embedding', index, embedding }
  })
  return {
    object: 'list',
    data: triggers.has('empty') ? [] : data,
    model,
    ...(usage ? { usage: { prompt_tokens: usage.prompt_tokens, total_tokens: usage.prompt_tokens } } : {}),
  }
}

/** As many digits as a 32-bit float holds at this size. */
function rounded(value: number): number {
  return Math.round(value * 1e9) / 1e9
}

/** How many places of a vector one feature of a text moves. */
const PLACES = 48
/** What no other text has, so that no place is quite empty. */
const OWN_SHARE = 0.05

/** Shorter ones are the beginnings of longer ones, at unit length as well. */
function vectorOf(text: string, model: string, dimensions: number): Float32Array {
  const size = sizeOf(model)
  const sums = new Float64Array(size)
  const own = dice(hash(`${model} ${text}`))
  for (let i = 0; i < size; i++) sums[i] = (own.roll(2001) / 1000 - 1) * OWN_SHARE
  for (const feature of featuresOf(text)) {
    const lot = dice(hash(`${model} ${feature}`))
    for (let i = 0; i < PLACES; i++) {
      const place = lot.roll(size)
      sums[place] = (sums[place] ?? 0) + (lot.roll(2) === 0 ? 1 : -1)
    }
  }
  const vector = Float32Array.from(sums.subarray(0, dimensions))
  const length = Math.sqrt(vector.reduce((sum, value) => sum + value * value, 0))
  return vector.map((value) => value / length)
}

/** Words, and threes of letters for words that are nearly the same. */
function featuresOf(text: string): Set<string> {
  const features = new Set<string>()
  for (const word of text.toLowerCase().split(/[^\p{L}\p{N}]+/u)) {
    if (word === '') continue
    features.add(word)
    for (let i = 0; i + 3 <= word.length; i++) features.add(word.slice(i, i + 3))
  }
  return features
}
