// Token counts: as vendors report them, as the formats write them, and as we estimate them.
import { readCount, type Usage } from '../meter/usage.ts'
import { isObject, type Json } from './check.ts'

/** What a vendor reported, in the words of the chat format: the prompt includes what was read from or written to a cache. */
export interface TokenCounts {
  readonly prompt: number
  readonly cached: number
  readonly cacheWrite: number
  /** Includes reasoning. */
  readonly output: number
  readonly reasoning: number | undefined
}

/**
 * Counts whose parts cannot exceed their whole. Undefined when one of the two main counts is missing or nonsense: an
 * estimate is then nearer to the truth than half a report.
 */
function counts(
  prompt: unknown,
  cached: unknown,
  cacheWrite: unknown,
  output: unknown,
  reasoning: unknown,
): TokenCounts | undefined {
  const whole = readCount(prompt)
  const out = readCount(output)
  if (whole === undefined || out === undefined) return undefined
  const read = Math.min(readCount(cached) ?? 0, whole)
  const thought = readCount(reasoning)
  return {
    prompt: whole,
    cached: read,
    cacheWrite: Math.min(readCount(cacheWrite) ?? 0, whole - read),
    output: out,
    reasoning: thought === undefined ? undefined : Math.min(thought, out),
  }
}

export function readChatUsage(usage: unknown): TokenCounts | undefined {
  if (!isObject(usage)) return undefined
  const input = isObject(usage.prompt_tokens_details) ? usage.prompt_tokens_details : {}
  const output = isObject(usage.completion_tokens_details) ? usage.completion_tokens_details : {}
  return counts(
    usage.prompt_tokens,
    input.cached_tokens ?? usage.prompt_cache_hit_tokens ?? usage.cached_tokens,
    input.cache_write_tokens,
    usage.completion_tokens,
    output.reasoning_tokens,
  )
}

export function writeChatUsage(tokens: TokenCounts): Json {
  return {
    prompt_tokens: tokens.prompt,
    completion_tokens: tokens.output,
    total_tokens: tokens.prompt + tokens.output,
    prompt_tokens_details: { cached_tokens: tokens.cached, cache_write_tokens: tokens.cacheWrite },
    completion_tokens_details: { reasoning_tokens: tokens.reasoning ?? 0 },
  }
}

export function readResponsesUsage(usage: unknown): TokenCounts | undefined {
  if (!isObject(usage)) return undefined
  const input = isObject(usage.input_tokens_details) ? usage.input_tokens_details : {}
  const output = isObject(usage.output_tokens_details) ? usage.output_tokens_details : {}
  return counts(
    usage.input_tokens,
    input.cached_tokens,
    input.cache_write_tokens,
    usage.output_tokens,
    output.reasoning_tokens,
  )
}

export function writeResponsesUsage(tokens: TokenCounts): Json {
  return {
    input_tokens: tokens.prompt,
    input_tokens_details: { cached_tokens: tokens.cached, cache_write_tokens: tokens.cacheWrite },
    output_tokens: tokens.output,
    output_tokens_details: { reasoning_tokens: tokens.reasoning ?? 0 },
    total_tokens: tokens.prompt + tokens.output,
  }
}

export function readMessagesUsage(usage: unknown): TokenCounts | undefined {
  if (!isObject(usage)) return undefined
  const details = isObject(usage.output_tokens_details) ? usage.output_tokens_details : {}
  const read = readCount(usage.cache_read_input_tokens) ?? 0
  const written = readCount(usage.cache_creation_input_tokens) ?? 0
  const fresh = readCount(usage.input_tokens)
  const prompt = fresh === undefined ? undefined : fresh + read + written
  return counts(prompt, read, written, usage.output_tokens, details.thinking_tokens)
}

/** In this format the input excludes what was read from or written to a cache. */
export function writeMessagesUsage(tokens: TokenCounts): Json {
  return {
    input_tokens: tokens.prompt - tokens.cached - tokens.cacheWrite,
    cache_creation_input_tokens: tokens.cacheWrite,
    cache_read_input_tokens: tokens.cached,
    output_tokens: tokens.output,
    ...(tokens.reasoning === undefined ? {} : { output_tokens_details: { thinking_tokens: tokens.reasoning } }),
  }
}

export function toUsage(tokens: TokenCounts | undefined): Usage | undefined {
  if (!tokens) return undefined
  return {
    input: tokens.prompt - tokens.cached - tokens.cacheWrite,
    ...(tokens.cached > 0 ? { cachedInput: tokens.cached } : {}),
    ...(tokens.cacheWrite > 0 ? { cacheWrite: tokens.cacheWrite } : {}),
    output: tokens.output,
  }
}

// The estimate before a call. Tokenizers differ; two bytes of UTF-8 a token is above what they need for any natural
// language and for code (English takes about four), so that a hold made with it covers the prompt.
const TEXT_BYTES_PER_TOKEN = 2
/** The frame of a message: role, separators. */
const MESSAGE_TOKENS = 8
/** The largest that vendors charge for one picture at ordinary detail. */
const IMAGE_TOKENS = 1_600
/** A document or a sound: something to start with, and more by its size (base64 characters). */
const FILE_TOKENS = 4_000
const FILE_CHARS_PER_TOKEN = 8
/** Base64 shorter than this is counted as text; it is cheaper than looking for a media type. */
const BLOB_CHARS_MIN = 256

const MEDIA = /image|file|audio|video|document/

/**
 * How many tokens a list of messages (or items, blocks, parts) has, roughly and cheaply: the text is measured, never
 * read, and media count by kind and size, so that base64 is not taken for text.
 */
export function estimateTokens(value: unknown): number {
  return Math.ceil(measure(value))
}

function measure(value: unknown): number {
  if (typeof value === 'string') return Buffer.byteLength(value) / TEXT_BYTES_PER_TOKEN
  if (typeof value !== 'object' || value === null) return 1
  if (Array.isArray(value)) {
    let sum = 0
    for (const entry of value) sum += measure(entry)
    return sum
  }
  const object = value as Json
  const type = object.type
  if (typeof type === 'string' && MEDIA.test(type)) return measureMedia(object, type)
  let sum = typeof object.role === 'string' ? MESSAGE_TOKENS : 2
  for (const name in object) {
    const member = object[name]
    if (name === 'role' || name === 'type' || member === null) continue
    // The signature of a thought is not shown to the model as text.
    if (
      typeof member === 'string' &&
      member.length >= BLOB_CHARS_MIN &&
      (name === 'signature' || name === 'encrypted_content')
    )
      continue
    sum += measure(member) + (typeof member === 'object' ? name.length / TEXT_BYTES_PER_TOKEN : 0)
  }
  return sum
}

function measureMedia(part: Json, type: string): number {
  if (/image/.test(type)) return IMAGE_TOKENS
  const source = part.source
  if (isObject(source) && source.type === 'text') return measure(source.data)
  return FILE_TOKENS + longest(part) / FILE_CHARS_PER_TOKEN
}

/** The length of the longest string inside a part: its data, if it has any. */
function longest(value: unknown): number {
  if (typeof value === 'string') return value.length
  if (typeof value !== 'object' || value === null) return 0
  let most = 0
  for (const member of Object.values(value)) most = Math.max(most, longest(member))
  return most
}
