// Token counts: as vendors report them, and as the formats write them.
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
