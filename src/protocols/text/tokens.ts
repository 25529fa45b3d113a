// Token counts: as vendors report them, and as the formats write them.
import { readCount, type USE_UNITS, type Usage } from '../../meter/usage.ts'
import { isObject, type Json, objects } from '../check.ts'

/** What a vendor reported, in the words of the chat format: the prompt includes what was read from or written to a cache. */
export interface TokenCounts {
  readonly prompt: number
  readonly cached: number
  readonly cacheWrite: number
  /** Includes reasoning. */
  readonly output: number
  readonly reasoning: number | undefined
  /** Of `cacheWrite`, what is kept for an hour. */
  readonly cacheWriteHour?: number
  /** Of tools that ran at the vendor. */
  readonly uses?: Usage | undefined
}

/**
 * Counts whose parts cannot exceed their whole. Undefined when one of the two main counts is missing or nonsense: an
 * estimate is then nearer to the truth than half a report.
 */
function counts(
  reported: Record<Exclude<keyof TokenCounts, 'cacheWriteHour' | 'uses'>, unknown>,
): TokenCounts | undefined {
  const prompt = readCount(reported.prompt)
  const output = readCount(reported.output)
  if (prompt === undefined || output === undefined) return undefined
  const cached = Math.min(readCount(reported.cached) ?? 0, prompt)
  const reasoning = readCount(reported.reasoning)
  return {
    prompt,
    cached,
    cacheWrite: Math.min(readCount(reported.cacheWrite) ?? 0, prompt - cached),
    output,
    reasoning: reasoning === undefined ? undefined : Math.min(reasoning, output),
  }
}

export function readChatUsage(usage: unknown): TokenCounts | undefined {
  if (!isObject(usage)) return undefined
  const input = isObject(usage.prompt_tokens_details) ? usage.prompt_tokens_details : {}
  const output = isObject(usage.completion_tokens_details) ? usage.completion_tokens_details : {}
  return counts({
    prompt: usage.prompt_tokens,
    cached: input.cached_tokens ?? usage.prompt_cache_hit_tokens ?? usage.cached_tokens,
    cacheWrite: input.cache_write_tokens,
    output: usage.completion_tokens,
    reasoning: output.reasoning_tokens,
  })
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

const USES: Readonly<Record<string, (typeof USE_UNITS)[number]>> = {
  web_search_call: 'webSearch',
  file_search_call: 'fileSearch',
  code_interpreter_call: 'codeRun',
  image_generation_call: 'image',
}

/** The items of an answer that a tool at the vendor has made, counted. */
export function usesOf(output: unknown): Usage | undefined {
  const uses: Partial<Record<(typeof USE_UNITS)[number], number>> = {}
  for (const { type } of objects(output)) {
    const unit = typeof type === 'string' && Object.hasOwn(USES, type) ? USES[type] : undefined
    if (unit) uses[unit] = (uses[unit] ?? 0) + 1
  }
  return Object.keys(uses).length > 0 ? uses : undefined
}

function withUses(tokens: TokenCounts | undefined, uses: Usage | undefined): TokenCounts | undefined {
  return tokens && uses ? { ...tokens, uses } : tokens
}

export function readResponsesUsage(usage: unknown, items?: unknown): TokenCounts | undefined {
  if (!isObject(usage)) return undefined
  const input = isObject(usage.input_tokens_details) ? usage.input_tokens_details : {}
  const output = isObject(usage.output_tokens_details) ? usage.output_tokens_details : {}
  const tokens = counts({
    prompt: usage.input_tokens,
    cached: input.cached_tokens,
    cacheWrite: input.cache_write_tokens,
    output: usage.output_tokens,
    reasoning: output.reasoning_tokens,
  })
  return withUses(tokens, usesOf(items))
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
  const cached = readCount(usage.cache_read_input_tokens) ?? 0
  const cacheWrite = readCount(usage.cache_creation_input_tokens) ?? 0
  const fresh = readCount(usage.input_tokens)
  const prompt = fresh === undefined ? undefined : fresh + cached + cacheWrite
  const tokens = counts({
    prompt,
    cached,
    cacheWrite,
    output: usage.output_tokens,
    reasoning: details.thinking_tokens,
  })
  const hour = readCount(isObject(usage.cache_creation) ? usage.cache_creation.ephemeral_1h_input_tokens : 0) ?? 0
  const searches = readCount(isObject(usage.server_tool_use) ? usage.server_tool_use.web_search_requests : 0) ?? 0
  if (!tokens || (hour === 0 && searches === 0)) return tokens
  return {
    ...tokens,
    cacheWriteHour: Math.min(hour, tokens.cacheWrite),
    ...(searches > 0 ? { uses: { webSearch: searches } } : {}),
  }
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

/** Zeros are left out in this format: once the prompt was counted, what is absent is none. Thoughts are not in the candidates. */
export function readGeminiUsage(usage: unknown, searches = 0): TokenCounts | undefined {
  if (!isObject(usage)) return undefined
  const { promptTokenCount: prompt, toolUsePromptTokenCount: tools = 0 } = usage
  const { candidatesTokenCount: candidates = 0, thoughtsTokenCount: thoughts = 0 } = usage
  const sum = (a: unknown, b: unknown) => {
    const counted = [readCount(a), readCount(b)]
    return counted.includes(undefined) ? undefined : counted.reduce<number>((all, one) => all + (one ?? 0), 0)
  }
  const tokens = counts({
    prompt: sum(prompt, tools),
    cached: usage.cachedContentTokenCount,
    cacheWrite: 0,
    output: sum(candidates, thoughts),
    reasoning: usage.thoughtsTokenCount,
  })
  return withUses(tokens, searches > 0 ? { webSearch: searches } : undefined)
}

/** Searches of all candidates: each names its queries. */
export function searchesOf(candidates: unknown): number {
  return objects(candidates).reduce((sum, { groundingMetadata: found }) => {
    if (!isObject(found)) return sum
    return sum + (Array.isArray(found.webSearchQueries) ? found.webSearchQueries.length : 1)
  }, 0)
}

export function writeGeminiUsage(tokens: TokenCounts): Json {
  const { prompt, cached, output, reasoning = 0 } = tokens
  return {
    promptTokenCount: prompt,
    candidatesTokenCount: output - reasoning,
    totalTokenCount: prompt + output,
    ...(cached > 0 ? { cachedContentTokenCount: cached } : {}),
    ...(reasoning > 0 ? { thoughtsTokenCount: reasoning } : {}),
  }
}

export function toUsage(tokens: TokenCounts | undefined): Usage | undefined {
  if (!tokens) return undefined
  const { cacheWriteHour: hour = 0 } = tokens
  const cacheWrite = tokens.cacheWrite - hour
  return {
    input: tokens.prompt - tokens.cached - tokens.cacheWrite,
    ...(tokens.cached > 0 ? { cachedInput: tokens.cached } : {}),
    ...(cacheWrite > 0 ? { cacheWrite } : {}),
    ...(hour > 0 ? { cacheWriteHour: hour } : {}),
    output: tokens.output,
    ...tokens.uses,
  }
}
