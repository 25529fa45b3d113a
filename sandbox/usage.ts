// Usage as each format reports it, and the triggers that falsify it.
import type { Json } from './json.ts'
import type { TextUsage } from './text.ts'
import type { TextAnswer } from './text-room.ts'
import type { Triggers } from './trigger.ts'

/** Undefined when `[[no-usage]]` asks for none. */
function reported(usage: TextUsage, triggers: Triggers, choices: number): TextUsage | undefined {
  if (triggers.has('no-usage')) return undefined
  if (triggers.has('zero-usage')) return { input: 0, cached: 0, cacheWrite: 0, output: 0, reasoning: 0 }
  const bad = triggers.find('bad-usage')
  if (bad) {
    // A number where it can be read as one; else the words themselves, for vendors that send strings.
    const value = (Number.isNaN(Number(bad.value)) ? bad.value : Number(bad.value)) as number
    return { ...usage, input: value, output: value }
  }
  return { ...usage, output: usage.output * choices, reasoning: usage.reasoning * choices }
}

export function chatUsage(given: TextUsage, triggers: Triggers, choices: number) {
  const usage = reported(given, triggers, choices)
  if (!usage) return undefined
  return {
    prompt_tokens: usage.input,
    completion_tokens: usage.output,
    total_tokens: usage.input + usage.output,
    prompt_tokens_details: { cached_tokens: usage.cached, cache_write_tokens: usage.cacheWrite, audio_tokens: 0 },
    completion_tokens_details: {
      reasoning_tokens: usage.reasoning,
      audio_tokens: 0,
      accepted_prediction_tokens: 0,
      rejected_prediction_tokens: 0,
    },
  }
}

export function responsesUsage(given: TextUsage, triggers: Triggers) {
  const usage = reported(given, triggers, 1)
  if (!usage) return undefined
  return {
    input_tokens: usage.input,
    input_tokens_details: { cached_tokens: usage.cached, cache_write_tokens: usage.cacheWrite },
    output_tokens: usage.output,
    output_tokens_details: { reasoning_tokens: usage.reasoning },
    total_tokens: usage.input + usage.output,
  }
}

/** Counts as they stand come with every piece; the output only with the last. Zeros are left out. */
export function geminiUsage(given: TextUsage, triggers: Triggers, last: boolean) {
  const usage = reported(given, triggers, 1)
  if (!usage) return undefined
  const output = typeof usage.output === 'number' ? usage.output - usage.reasoning : usage.output
  return {
    promptTokenCount: usage.input,
    ...(usage.cached > 0 ? { cachedContentTokenCount: usage.cached } : {}),
    ...(last ? { candidatesTokenCount: output, totalTokenCount: usage.input + usage.output } : {}),
    ...(last && usage.reasoning > 0 ? { thoughtsTokenCount: usage.reasoning } : {}),
  }
}

/** It serves the tier that was asked for. */
export function tierOf({ service_tier: asked }: Json, standard: string): string {
  return typeof asked === 'string' && asked !== 'auto' && asked !== 'standard_only' ? asked : standard
}

export function messagesUsage(
  given: TextUsage,
  { triggers, body }: Pick<TextAnswer, 'triggers' | 'body'>,
  longLived: boolean,
) {
  const usage = reported(given, triggers, 1)
  if (!usage) return undefined
  return {
    // This format counts what was cached beside the input, not within it.
    input_tokens: typeof usage.input === 'number' ? usage.input - usage.cached - usage.cacheWrite : usage.input,
    cache_creation_input_tokens: usage.cacheWrite,
    cache_read_input_tokens: usage.cached,
    cache_creation: {
      ephemeral_5m_input_tokens: longLived ? 0 : usage.cacheWrite,
      ephemeral_1h_input_tokens: longLived ? usage.cacheWrite : 0,
    },
    output_tokens: usage.output,
    output_tokens_details: { thinking_tokens: usage.reasoning },
    server_tool_use: triggers.has('searches') ? { web_search_requests: triggers.number('searches') ?? 1 } : null,
    service_tier: tierOf(body, 'standard'),
  }
}
