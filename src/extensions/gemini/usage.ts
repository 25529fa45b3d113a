// Token counts, as Google's vendors report them and as the format writes them.
import { isObject, type Json, objects } from '../../kernel/json.ts'
import { readCount } from '../../meter/usage.ts'
import { counts, servedOf, type TokenCounts, withUses } from '../../protocols/text/tokens.ts'

/**
 * This format omits zeros: once the prompt is counted, an absent count is zero. Thoughts are not part of the
 * candidates' count.
 */
export function readGeminiUsage(usage: unknown, searches = 0): TokenCounts | undefined {
  if (!isObject(usage)) return undefined
  const { promptTokenCount: prompt, toolUsePromptTokenCount: tools = 0 } = usage
  const { candidatesTokenCount: candidates = usage.responseTokenCount ?? 0, thoughtsTokenCount: thoughts = 0 } = usage
  const sum = (a: unknown, b: unknown) => {
    const counted = [readCount(a), readCount(b)]
    return counted.includes(undefined) ? undefined : counted.reduce<number>((all, one) => all + (one ?? 0), 0)
  }
  const read = (modality: string) =>
    tokensIn(usage.promptTokensDetails, modality) + tokensIn(usage.toolUsePromptTokensDetails, modality)
  const made = usage.candidatesTokensDetails ?? usage.responseTokensDetails
  const cached = readCount(usage.cachedContentTokenCount) ?? 0
  const tokens = counts({
    prompt: sum(prompt, tools),
    // Audio is charged as audio, even if it came from the cache.
    cached: Math.max(0, cached - tokensIn(usage.cacheTokensDetails, 'AUDIO')),
    output: sum(candidates, thoughts),
    inputAudio: read('AUDIO'),
    // Cached images are charged at the cache rate.
    inputImage: Math.max(0, read('IMAGE') - tokensIn(usage.cacheTokensDetails, 'IMAGE')),
    outputAudio: tokensIn(made, 'AUDIO'),
    outputImage: tokensIn(made, 'IMAGE'),
  })
  const total = readCount(usage.totalTokenCount)
  // Some vendors include the thoughts only in the total.
  const counted = tokens && {
    ...tokens,
    output: Math.max(tokens.output, (total ?? 0) - tokens.prompt),
    reasoning: readCount(usage.thoughtsTokenCount),
    ...servedOf(usage),
  }
  return withUses(counted, searches > 0 ? { webSearch: searches } : undefined)
}

/** Reads one modality from a list of counts. Google charges videos and documents at the rate of text. */
function tokensIn(details: unknown, of: string): number {
  return objects(details).reduce(
    (sum, { modality, tokenCount }) => sum + (modality === of ? (readCount(tokenCount) ?? 0) : 0),
    0,
  )
}

/** The searches of all candidates: each lists its queries. */
export function searchesOf(candidates: unknown): number {
  return objects(candidates).reduce((sum, { groundingMetadata: found }) => {
    if (!isObject(found)) return sum
    const { webSearchQueries: queries } = found
    // An empty list says that it did not search.
    const isFound = Object.values(found).some((one) =>
      typeof one === 'object' ? Object.keys(one ?? {}).length > 0 : one,
    )
    return sum + (Array.isArray(queries) ? queries.length : isFound ? 1 : 0)
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
