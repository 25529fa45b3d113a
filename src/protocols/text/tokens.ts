// Token counts: as vendors report them, and as each format writes them.

import type { TextTraits } from '../../catalog/traits.ts'
import { isObject, type Json, objectOf, objects } from '../../kernel/json.ts'
import type { UseUnit } from '../../meter/kind.ts'
import { readCount, type Usage } from '../../meter/usage.ts'
import type { PriceAttributes } from '../protocol.ts'

/**
 * A vendor's report in the chat format's terms: the prompt includes audio, images, and tokens read from or written to a
 * cache.
 */
export interface TokenCounts {
  readonly prompt: number
  readonly cached: number
  readonly cacheWrite: number
  /** Includes reasoning, audio and images. */
  readonly output: number
  readonly reasoning: number | undefined
  /** The part of `cacheWrite` that is kept for an hour or longer. */
  readonly cacheWriteHour?: number
  /** Part of `prompt`; not included in `cached` or `cacheWrite`. */
  readonly inputAudio?: number
  /** Likewise. */
  readonly inputImage?: number
  /** Parts of `output`. */
  readonly outputAudio?: number
  readonly outputImage?: number
  /** Uses of tools that ran at the vendor. */
  readonly uses?: Usage | undefined
  /** How the vendor served it, where it says so: the tier, the speed, the region. */
  readonly served?: PriceAttributes | undefined
}

/** Members of requests and answers whose values change the price of tokens; Google spells the first one differently. */
export const TIERS: ReadonlyArray<readonly [attribute: string, fields: readonly string[]]> = [
  ['service_tier', ['service_tier', 'serviceTier']],
  ['speed', ['speed']],
  ['inference_geo', ['inference_geo']],
]

const TIER_FIELDS = TIERS.flatMap(([name, fields]) => fields.map((field) => ({ name, field })))

/** How the vendor served an answer, from its report of usage or from the answer itself. */
export function servedOf(...places: readonly unknown[]): Pick<TokenCounts, 'served'> {
  let served: Record<string, string> | undefined
  for (const place of places)
    for (const { name, field } of TIER_FIELDS) {
      const value = isObject(place) ? place[field] : undefined
      if (typeof value !== 'string' || value.length > SERVED_CHARS_MAX) continue
      served ??= {}
      served[name] ??= value.toLowerCase()
    }
  return served ? { served } : {}
}

const SERVED_CHARS_MAX = 40

type Reported = Partial<Record<Exclude<keyof TokenCounts, 'uses' | 'served'> | 'total', unknown>>

/**
 * Normalizes counts so that parts never exceed their whole. Undefined if one of the two main counts is missing or
 * invalid: an estimate is then closer than half a report.
 */
export function counts(
  reported: Reported,
  reasoningTokens: TextTraits['reasoningTokens'] = 'total',
): TokenCounts | undefined {
  const counted = readCount(reported.prompt)
  const written = readCount(reported.output)
  if (counted === undefined || written === undefined) return undefined
  const cachedCount = readCount(reported.cached) ?? 0
  const isBeside = cachedCount > counted && (readCount(reported.total) ?? 0) >= counted + cachedCount + written
  // Some vendors leave what they read from the cache out of the prompt: it is more than that, and the total has both.
  const prompt = isBeside ? counted + cachedCount : counted
  const reasoning = readCount(reported.reasoning)
  const output = outputOf(
    { prompt, written, reasoning: reasoning ?? 0, total: readCount(reported.total) },
    reasoningTokens,
  )
  const inputAudio = Math.min(readCount(reported.inputAudio) ?? 0, prompt)
  const cached = Math.min(cachedCount, prompt - inputAudio)
  const cacheWrite = Math.min(readCount(reported.cacheWrite) ?? 0, prompt - inputAudio - cached)
  // Cached tokens are charged as cached, even if they are images: no report says which ones are, except one that has
  // already subtracted them.
  const inputImage = Math.min(readCount(reported.inputImage) ?? 0, prompt - inputAudio - cached - cacheWrite)
  const outputAudio = Math.min(readCount(reported.outputAudio) ?? 0, output)
  const outputImage = Math.min(readCount(reported.outputImage) ?? 0, output - outputAudio)
  const cacheWriteHour = Math.min(readCount(reported.cacheWriteHour) ?? 0, cacheWrite)
  return {
    prompt,
    cached,
    cacheWrite,
    output,
    reasoning: reasoning === undefined ? undefined : Math.min(reasoning, output),
    ...(cacheWriteHour > 0 ? { cacheWriteHour } : {}),
    ...(inputAudio > 0 ? { inputAudio } : {}),
    ...(inputImage > 0 ? { inputImage } : {}),
    ...(outputAudio > 0 ? { outputAudio } : {}),
    ...(outputImage > 0 ? { outputImage } : {}),
  }
}

interface Written {
  readonly prompt: number
  /** The output as the vendor counts it. */
  readonly written: number
  readonly reasoning: number
  readonly total: number | undefined
}

/**
 * Some vendors count reasoning separately from the output: the total shows it, or a reasoning count larger than the
 * output.
 */
function outputOf({ prompt, written, reasoning, total }: Written, counted: TextTraits['reasoningTokens']): number {
  if (counted === 'inside') return written
  const beside = Math.min(written + reasoning, Number.MAX_SAFE_INTEGER)
  if (total !== undefined && total >= prompt + beside) return total - prompt
  if (counted === 'outside') return beside
  const isInside = total !== undefined && total > 0 && total <= prompt + written
  return reasoning > written && !isInside ? beside : written
}

const memberOf = (holder: unknown, name: string): Json => {
  const value = isObject(holder) ? holder[name] : undefined
  return objectOf(value)
}

/** Whether all counts are zero: vendors send such reports before they have counted. */
function isNothing(report: unknown): boolean {
  if (isObject(report)) return Object.values(report).every(isNothing)
  if (Array.isArray(report)) return report.every(isNothing)
  return report === undefined || report === null || report === 0
}

/** The later of two reports, unless it is empty and the earlier one is not. */
export function laterReport(earlier: unknown, later: unknown): unknown {
  if (!isObject(later)) return earlier
  return isNothing(later) && !isNothing(earlier) ? earlier : later
}

/**
 * Merges two reports by member: counts that the later one lacks are kept, except for the output, which the first event
 * only estimates.
 */
export function mergedReports(earlier: Json, later: unknown): Json {
  const merged = { ...earlier }
  if (laterReport(earlier, later) !== later || !isObject(later)) return merged
  // One that counts the input too is a whole report, whose zeros mean zero: what it leaves out of a sum it lists
  // elsewhere.
  const isWhole = (readCount(later.input_tokens) ?? 0) > 0
  for (const [name, value] of Object.entries(later))
    if (isWhole || !isNothing(value) || isNothing(merged[name]) || name === 'output_tokens')
      merged[name] = value ?? merged[name]
  return merged
}

/** Whether a report has any count; a report of zeros is valid only at the end of an answer. */
export function isCounted(report: unknown): boolean {
  return isObject(report) && !isNothing(report)
}

/** Where vendors of this format put their report. */
export function chatReport({ usage, x_groq: own }: Json): unknown {
  return isObject(usage) ? usage : memberOf(own, 'usage').prompt_tokens === undefined ? usage : memberOf(own, 'usage')
}

/** Tokens of sound that a vendor counts in seconds: its total has them, and neither prompt nor output does. */
function soundBeside(usage: Json): number {
  const [prompt, output, total] = [usage.prompt_tokens, usage.completion_tokens, usage.total_tokens].map(readCount)
  return Math.max(0, (total ?? 0) - (prompt ?? 0) - (output ?? 0))
}

/** Searches, where the report counts them. */
function searchUses(usage: Json): Usage | undefined {
  const searches = readCount(memberOf(usage, 'server_tool_use').web_search_requests)
  return searches === undefined ? undefined : { webSearch: searches }
}

export function readChatUsage(
  usage: unknown,
  traits?: Pick<TextTraits, 'reasoningTokens'>,
  answer?: unknown,
): TokenCounts | undefined {
  if (!isObject(usage)) return undefined
  const input = memberOf(usage, 'prompt_tokens_details')
  const output = memberOf(usage, 'completion_tokens_details')
  const sound = Number(usage.prompt_audio_seconds) > 0 ? soundBeside(usage) : 0
  const reported = {
    prompt: sound > 0 ? (readCount(usage.prompt_tokens) ?? 0) + sound : usage.prompt_tokens,
    cached:
      input.cached_tokens ?? usage.prompt_cache_hit_tokens ?? usage.cached_tokens ?? usage.cache_read_input_tokens,
    cacheWrite: input.cache_write_tokens ?? input.cache_creation_tokens ?? usage.cache_creation_input_tokens,
    output: usage.completion_tokens,
    reasoning: output.reasoning_tokens ?? usage.reasoning_tokens,
    total: usage.total_tokens,
    inputAudio: sound > 0 ? sound : input.audio_tokens,
    inputImage: input.image_tokens,
    outputAudio: output.audio_tokens,
    outputImage: output.image_tokens,
  }
  const tokens = counts(reported, traits?.reasoningTokens)
  const counted = tokens && { ...tokens, ...servedOf(usage, answer) }
  return usage.server_tool_use === undefined ? counted : withUses(counted, searchUses(usage))
}

/** Embeddings have no output. Some vendors report only the total, which then equals the input. */
export function readEmbeddingsUsage(usage: unknown): Usage | undefined {
  if (!isObject(usage)) return undefined
  const prompt = readCount(usage.prompt_tokens) ?? usage.total_tokens
  const tokens = readChatUsage({ ...usage, prompt_tokens: prompt, completion_tokens: 0, total_tokens: prompt })
  if (!tokens) return undefined
  const { output: _, ...read } = toUsage(tokens) ?? {}
  return read
}

export function writeChatUsage(tokens: TokenCounts): Json {
  return {
    prompt_tokens: tokens.prompt,
    completion_tokens: tokens.output,
    total_tokens: tokens.prompt + tokens.output,
    prompt_tokens_details: {
      cached_tokens: tokens.cached,
      cache_write_tokens: tokens.cacheWrite,
      ...(tokens.inputAudio === undefined ? {} : { audio_tokens: tokens.inputAudio }),
      ...(tokens.inputImage === undefined ? {} : { image_tokens: tokens.inputImage }),
    },
    completion_tokens_details: {
      reasoning_tokens: tokens.reasoning ?? 0,
      ...(tokens.outputAudio === undefined ? {} : { audio_tokens: tokens.outputAudio }),
      ...(tokens.outputImage === undefined ? {} : { image_tokens: tokens.outputImage }),
    },
  }
}

const USES: Readonly<Record<string, UseUnit>> = {
  web_search_call: 'webSearch',
  file_search_call: 'fileSearch',
  code_interpreter_call: 'codeRun',
  image_generation_call: 'image',
}

/** Counts the items of an answer that were made by a tool at the vendor. */
export function usesOf(output: unknown): Usage | undefined {
  const uses: Partial<Record<UseUnit, number>> = {}
  for (const { type } of objects(output)) {
    const unit = typeof type === 'string' && Object.hasOwn(USES, type) ? USES[type] : undefined
    if (unit) uses[unit] = (uses[unit] ?? 0) + 1
  }
  return Object.keys(uses).length > 0 ? uses : undefined
}

export function withUses(tokens: TokenCounts | undefined, uses: Usage | undefined): TokenCounts | undefined {
  return tokens && uses ? { ...tokens, uses } : tokens
}

export function readResponsesUsage(usage: unknown, items?: unknown, answer?: unknown): TokenCounts | undefined {
  if (!isObject(usage)) return undefined
  const input = memberOf(usage, 'input_tokens_details')
  const output = memberOf(usage, 'output_tokens_details')
  const tokens = counts({
    prompt: usage.input_tokens,
    cached: input.cached_tokens,
    ...cacheWrites(input.cache_write_tokens, input.cache_write_tokens_details, ['ttl_30m_tokens', 'ttl_12h_tokens']),
    output: usage.output_tokens,
    reasoning: output.reasoning_tokens,
    total: usage.total_tokens,
    inputAudio: input.audio_tokens,
    inputImage: input.image_tokens,
    outputAudio: output.audio_tokens,
    outputImage: output.image_tokens,
  })
  return withUses(tokens && { ...tokens, ...servedOf(usage, answer) }, usesOf(items) ?? searchUses(usage))
}

/** Cache writes: the reported sum, or the sum of the details if that is higher. */
function cacheWrites(sum: unknown, details: unknown, [short, long]: readonly [short: string, long: string]) {
  const counted = objectOf(details)
  const hour = readCount(counted[long]) ?? 0
  const parts = hour + (readCount(counted[short]) ?? 0)
  return { cacheWrite: Math.max(readCount(sum) ?? 0, parts), cacheWriteHour: hour }
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

const CACHED_FOR = ['ephemeral_5m_input_tokens', 'ephemeral_1h_input_tokens'] as const
/**
 * Turns that are part of the answer and included in the reported sum. Any other turn (a compaction, an advisor) is
 * added to it.
 */
const OWN_TURNS: ReadonlySet<unknown> = new Set(['message', 'fallback_message'])

type MessagesCounts = ReturnType<typeof messagesCounts>

function messagesCounts(usage: Json) {
  return {
    fresh: readCount(usage.input_tokens),
    output: readCount(usage.output_tokens),
    cached: readCount(usage.cache_read_input_tokens) ?? 0,
    ...cacheWrites(usage.cache_creation_input_tokens, usage.cache_creation, CACHED_FOR),
  }
}

function summed(
  one: MessagesCounts,
  other: MessagesCounts,
  join: (a: number, b: number) => number = (a, b) => a + b,
): MessagesCounts {
  const both = (a: number | undefined, b: number | undefined) => (a === undefined ? b : join(a, b ?? 0))
  return {
    fresh: both(one.fresh, other.fresh),
    output: both(one.output, other.output),
    cached: join(one.cached, other.cached),
    cacheWrite: join(one.cacheWrite, other.cacheWrite),
    cacheWriteHour: join(one.cacheWriteHour, other.cacheWriteHour),
  }
}

const NO_TURN = messagesCounts({})

export function readMessagesUsage(usage: unknown): TokenCounts | undefined {
  if (!isObject(usage)) return undefined
  let own = NO_TURN
  let others = NO_TURN
  for (const turn of objects(usage.iterations))
    if (OWN_TURNS.has(turn.type)) own = summed(own, messagesCounts(turn))
    else others = summed(others, messagesCounts(turn))
  const all = summed(summed(messagesCounts(usage), own, Math.max), others)
  const tokens = counts(
    {
      ...all,
      prompt: all.fresh === undefined ? undefined : all.fresh + all.cached + all.cacheWrite,
      reasoning: memberOf(usage, 'output_tokens_details').thinking_tokens,
    },
    'inside',
  )
  return withUses(tokens && { ...tokens, ...servedOf(usage) }, searchUses(usage))
}

/** In this format the input excludes tokens read from or written to a cache. */
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
  const { cacheWriteHour: hour = 0, inputAudio = 0, inputImage = 0, outputAudio = 0, outputImage = 0 } = tokens
  const cacheWrite = tokens.cacheWrite - hour
  return {
    input: tokens.prompt - tokens.cached - tokens.cacheWrite - inputAudio - inputImage,
    ...(tokens.cached > 0 ? { cachedInput: tokens.cached } : {}),
    ...(cacheWrite > 0 ? { cacheWrite } : {}),
    ...(hour > 0 ? { cacheWriteHour: hour } : {}),
    ...(inputAudio > 0 ? { inputAudio } : {}),
    ...(inputImage > 0 ? { inputImage } : {}),
    output: tokens.output - outputAudio - outputImage,
    ...(outputAudio > 0 ? { outputAudio } : {}),
    ...(outputImage > 0 ? { outputImage } : {}),
    ...tokens.uses,
  }
}
