// The usage objects that vendors publish, read from the types of their SDKs, and what each of their members means: a report that has it, and what is due for that.
import assert from 'node:assert/strict'
import { readFileSync } from 'node:fs'
import type { TextProtocolName } from '../src/catalog/kind.ts'
import type { Unit } from '../src/meter/usage.ts'

// ---- The published members.

/** The members of an interface and of those that it names, as paths: `prompt_tokens_details.audio_tokens`. */
export function publishedMembers(file: string, name: string): string[] {
  const text = readFileSync(file, 'utf8').replace(/\/\*[\s\S]*?\*\//g, '')
  const found = declarationsIn(text)
  const pathsOf = (declared: string, before: string): string[] => {
    const body = found.get(declared)
    assert.ok(body !== undefined, `${declared} is declared in ${file}`)
    return [...body.matchAll(/^\s*(\w+)\??:\s*([^;]+);/gm)].flatMap(([, member = '', type = '']) => {
      const plain = type
        .replace(/\s*\|\s*null/, '')
        .replace(/\[\]$/, '')
        .trim()
      const inner = [plain, `${declared.split('.')[0]}.${plain}`].find((one) => found.has(one))
      return inner === undefined ? [before + member] : pathsOf(inner, `${before}${member}.`)
    })
  }
  return pathsOf(name, '')
}

/** The bodies of interfaces and classes, by their names: `CompletionUsage`, `CompletionUsage.PromptTokensDetails`. */
function declarationsIn(text: string, scope = ''): Map<string, string> {
  const found = new Map<string, string>()
  const opening = /\b(interface|class|namespace) (\w+)[^{;]*\{/g
  for (let match = opening.exec(text); match; match = opening.exec(text)) {
    let depth = 1
    let end = opening.lastIndex
    for (; depth > 0 && end < text.length; end++) depth += text[end] === '{' ? 1 : text[end] === '}' ? -1 : 0
    const body = text.slice(opening.lastIndex, end - 1)
    const [, kind, name = ''] = match
    if (kind === 'namespace') for (const [inner, one] of declarationsIn(body, `${scope}${name}.`)) found.set(inner, one)
    else if (!found.has(scope + name)) found.set(scope + name, body)
    opening.lastIndex = end
  }
  return found
}

const OPENAI = 'node_modules/openai/resources'
const ANTHROPIC = 'node_modules/@anthropic-ai/sdk/resources'
export const PUBLISHED: Record<TextProtocolName, readonly (readonly [file: string, name: string])[]> = {
  'openai-chat': [[`${OPENAI}/completions.d.ts`, 'CompletionUsage']],
  'openai-responses': [[`${OPENAI}/responses/responses.d.ts`, 'ResponseUsage']],
  'anthropic-messages': [
    [`${ANTHROPIC}/messages/messages.d.ts`, 'Usage'],
    [`${ANTHROPIC}/beta/messages/messages.d.ts`, 'BetaUsage'],
    [`${ANTHROPIC}/beta/messages/messages.d.ts`, 'BetaMessageDeltaUsage'],
  ],
  gemini: [
    ['node_modules/@google/genai/dist/genai.d.ts', 'GenerateContentResponseUsageMetadata'],
    ['node_modules/@google/genai/dist/genai.d.ts', 'UsageMetadata'],
  ],
}

// ---- What each member means: a report that has it, and the units that are due for that.

export type Due = Partial<Record<Unit, number>>
export interface Cell {
  readonly member: string
  readonly usage: object
  readonly due: Due
  /** Tools that run at the vendor, which no other format can say. */
  readonly asks?: object
}
type Meaning = readonly [usage: object, due: Due, asks?: object] | 'part of another' | 'no quantity'

const chat = (more: object, prompt = 900, completion = 70) => ({
  prompt_tokens: prompt,
  completion_tokens: completion,
  total_tokens: prompt + completion,
  ...more,
})
const responses = (more: object) => ({ input_tokens: 900, output_tokens: 70, total_tokens: 970, ...more })
const messages = (more: object) => ({ input_tokens: 900, output_tokens: 70, ...more })
const google = (more: object) => ({ promptTokenCount: 900, candidatesTokenCount: 70, ...more })
const PLAIN: Due = { input: 900, output: 70 }
const compaction = { type: 'compaction', input_tokens: 5000, output_tokens: 300, cache_read_input_tokens: 40 }
const turn = { type: 'message', input_tokens: 900, output_tokens: 70 }
const sound = (tokenCount: number) => [
  { modality: 'TEXT', tokenCount: 1 },
  { modality: 'AUDIO', tokenCount },
]

export const MEANINGS: Record<TextProtocolName, Readonly<Record<string, Meaning>>> = {
  'openai-chat': {
    prompt_tokens: [chat({}), PLAIN],
    completion_tokens: [chat({}, 900, 71), { input: 900, output: 71 }],
    // Reasoning beside the completion, as some vendors count it.
    total_tokens: [
      { prompt_tokens: 900, completion_tokens: 9, total_tokens: 5909 },
      { input: 900, output: 5009 },
    ],
    'completion_tokens_details.reasoning_tokens': [
      { ...chat({}, 900, 9), total_tokens: 5909, completion_tokens_details: { reasoning_tokens: 5000 } },
      { input: 900, output: 5009 },
    ],
    'completion_tokens_details.audio_tokens': [
      chat({ completion_tokens_details: { audio_tokens: 50 } }),
      { input: 900, output: 20, outputAudio: 50 },
    ],
    'completion_tokens_details.accepted_prediction_tokens': 'part of another',
    'completion_tokens_details.rejected_prediction_tokens': [
      chat({ completion_tokens_details: { rejected_prediction_tokens: 30, accepted_prediction_tokens: 20 } }),
      PLAIN,
    ],
    'completion_tokens_details.text_tokens': 'part of another',
    'prompt_tokens_details.audio_tokens': [
      chat({ prompt_tokens_details: { audio_tokens: 400 } }),
      { input: 500, inputAudio: 400, output: 70 },
    ],
    'prompt_tokens_details.cache_write_tokens': [
      chat({ prompt_tokens_details: { cache_write_tokens: 300 } }),
      { input: 600, cacheWrite: 300, output: 70 },
    ],
    'prompt_tokens_details.cached_tokens': [
      chat({ prompt_tokens_details: { cached_tokens: 300 } }),
      { input: 600, cachedInput: 300, output: 70 },
    ],
    'prompt_tokens_details.image_tokens': 'part of another',
    'prompt_tokens_details.text_tokens': 'part of another',
  },
  'openai-responses': {
    input_tokens: [responses({}), PLAIN],
    output_tokens: [responses({ output_tokens: 71, total_tokens: 971 }), { input: 900, output: 71 }],
    total_tokens: [responses({ total_tokens: 5970 }), { input: 900, output: 5070 }],
    'input_tokens_details.cache_write_tokens': [
      responses({ input_tokens_details: { cache_write_tokens: 300 } }),
      { input: 600, cacheWrite: 300, output: 70 },
    ],
    'input_tokens_details.cached_tokens': [
      responses({ input_tokens_details: { cached_tokens: 300 } }),
      { input: 600, cachedInput: 300, output: 70 },
    ],
    'input_tokens_details.cache_write_tokens_details.ttl_30m_tokens': 'part of another',
    'input_tokens_details.cache_write_tokens_details.ttl_12h_tokens': [
      responses({ input_tokens_details: { cache_write_tokens_details: { ttl_12h_tokens: 200, ttl_30m_tokens: 100 } } }),
      { input: 600, cacheWrite: 100, cacheWriteHour: 200, output: 70 },
    ],
    'output_tokens_details.reasoning_tokens': [responses({ output_tokens_details: { reasoning_tokens: 60 } }), PLAIN],
  },
  'anthropic-messages': {
    input_tokens: [messages({}), PLAIN],
    output_tokens: [messages({ output_tokens: 71 }), { input: 900, output: 71 }],
    cache_creation_input_tokens: [messages({ cache_creation_input_tokens: 300 }), { ...PLAIN, cacheWrite: 300 }],
    cache_read_input_tokens: [messages({ cache_read_input_tokens: 300 }), { ...PLAIN, cachedInput: 300 }],
    // Without their sum.
    'cache_creation.ephemeral_1h_input_tokens': [
      messages({ cache_creation: { ephemeral_1h_input_tokens: 200, ephemeral_5m_input_tokens: 100 } }),
      { ...PLAIN, cacheWrite: 100, cacheWriteHour: 200 },
    ],
    'cache_creation.ephemeral_5m_input_tokens': [
      messages({ cache_creation: { ephemeral_5m_input_tokens: 100 } }),
      { ...PLAIN, cacheWrite: 100 },
    ],
    iterations: [messages({ iterations: [compaction, turn] }), { input: 5900, cachedInput: 40, output: 370 }],
    'output_tokens_details.thinking_tokens': [messages({ output_tokens_details: { thinking_tokens: 60 } }), PLAIN],
    'server_tool_use.web_search_requests': [
      messages({ server_tool_use: { web_search_requests: 3 } }),
      { ...PLAIN, webSearch: 3 },
      { tools: [{ type: 'web_search_20260318', name: 'web_search' }] },
    ],
    // Its vendor takes nothing for it but the tokens.
    'server_tool_use.web_fetch_requests': 'no quantity',
    inference_geo: 'no quantity',
    service_tier: 'no quantity',
    speed: 'no quantity',
    'fallback_credit.status': 'no quantity',
  },
  gemini: {
    promptTokenCount: [google({}), PLAIN],
    candidatesTokenCount: [google({ candidatesTokenCount: 71 }), { input: 900, output: 71 }],
    responseTokenCount: [{ promptTokenCount: 900, responseTokenCount: 70 }, PLAIN],
    thoughtsTokenCount: [google({ thoughtsTokenCount: 500 }), { input: 900, output: 570 }],
    totalTokenCount: [google({ totalTokenCount: 5970 }), { input: 900, output: 5070 }],
    toolUsePromptTokenCount: [google({ toolUsePromptTokenCount: 200 }), { input: 1100, output: 70 }],
    cachedContentTokenCount: [google({ cachedContentTokenCount: 300 }), { input: 600, cachedInput: 300, output: 70 }],
    'promptTokensDetails.tokenCount': [
      google({ promptTokensDetails: sound(400) }),
      { input: 500, inputAudio: 400, output: 70 },
    ],
    'toolUsePromptTokensDetails.tokenCount': [
      google({ toolUsePromptTokenCount: 200, toolUsePromptTokensDetails: sound(150) }),
      { input: 950, inputAudio: 150, output: 70 },
    ],
    'cacheTokensDetails.tokenCount': [
      google({ cachedContentTokenCount: 300, cacheTokensDetails: sound(200), promptTokensDetails: sound(400) }),
      { input: 400, cachedInput: 100, inputAudio: 400, output: 70 },
    ],
    'candidatesTokensDetails.tokenCount': [
      google({ candidatesTokensDetails: sound(50) }),
      { input: 900, output: 20, outputAudio: 50 },
    ],
    'responseTokensDetails.tokenCount': 'part of another',
    'promptTokensDetails.modality': 'no quantity',
    'toolUsePromptTokensDetails.modality': 'no quantity',
    'cacheTokensDetails.modality': 'no quantity',
    'candidatesTokensDetails.modality': 'no quantity',
    'responseTokensDetails.modality': 'no quantity',
    trafficType: 'no quantity',
    serviceTier: 'no quantity',
    initialPromptTokenCount: 'part of another',
  },
}
