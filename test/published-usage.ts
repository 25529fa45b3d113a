// The usage objects that vendors publish, read from the types of their SDKs, and what each of their members means: a
// report that has it, and what is due for that.
import assert from 'node:assert/strict'
import { readFileSync } from 'node:fs'
import { CLIENT_FORMATS, type ClientFormatName, type ProtocolName, UNITS, type Unit } from '../src/meter/kind.ts'

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
type Declared = readonly [file: string, name: string]
export const PUBLISHED: Partial<Record<ProtocolName, readonly Declared[]>> &
  Record<ClientFormatName, readonly Declared[]> = {
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
  'openai-embeddings': [[`${OPENAI}/embeddings.d.ts`, 'CreateEmbeddingResponse.Usage']],
  'openai-images': [
    [`${OPENAI}/images.d.ts`, 'ImagesResponse.Usage'],
    [`${OPENAI}/images.d.ts`, 'ImageGenCompletedEvent.Usage'],
    [`${OPENAI}/images.d.ts`, 'ImageEditCompletedEvent.Usage'],
  ],
  'openai-audio': [
    [`${OPENAI}/audio/transcriptions.d.ts`, 'Transcription.Tokens'],
    [`${OPENAI}/audio/transcriptions.d.ts`, 'Transcription.Duration'],
    [`${OPENAI}/audio/transcriptions.d.ts`, 'TranscriptionDiarized.Tokens'],
    [`${OPENAI}/audio/transcriptions.d.ts`, 'TranscriptionDiarized.Duration'],
    [`${OPENAI}/audio/transcriptions.d.ts`, 'TranscriptionVerbose.Usage'],
    [`${OPENAI}/audio/transcriptions.d.ts`, 'TranscriptionTextDoneEvent.Usage'],
  ],
}

/** The kinds of content that Google counts apart, from the enumeration in its SDK. */
export function publishedModalities(): string[] {
  const text = readFileSync('node_modules/@google/genai/dist/genai.d.ts', 'utf8')
  const [, body = ''] = /enum MediaModality \{([\s\S]*?)\n\}/.exec(text) ?? []
  return [...body.matchAll(/^\s+(\w+) = /gm)].map(([, name = '']) => name)
}

/**
 * What Google takes for each: pictures have a unit of their own, and the price of text where a model's price does not
 * name it.
 */
export const MODALITIES: Readonly<Record<string, Unit | 'billed by the vendor at the rate of text'>> = {
  TEXT: 'input',
  MODALITY_UNSPECIFIED: 'input',
  IMAGE: 'inputImage',
  AUDIO: 'inputAudio',
  VIDEO: 'billed by the vendor at the rate of text',
  DOCUMENT: 'billed by the vendor at the rate of text',
}

// ---- Rates: no two are alike, so that nothing passes at another's.

export const RATES: Readonly<Record<Unit, number>> = {
  input: 101,
  cachedInput: 11,
  cacheWrite: 131,
  cacheWriteHour: 211,
  inputAudio: 307,
  inputImage: 401,
  output: 1009,
  outputAudio: 2003,
  outputImage: 3001,
  image: 13,
  second: 17,
  page: 23,
  character: 503,
  webSearch: 7,
  fileSearch: 5,
  codeRun: 3,
  call: 2,
  byte: 1_013,
  metered: 1_019,
  row: 19,
}

/** In micro-credits. What is priced by the million has its rate for one. */
export function price(due: Due, part = 1): bigint {
  const whole = Object.entries(due).reduce((sum, [unit, count]) => {
    // The names of a due are units.
    const of = unit as Unit
    return sum + RATES[of] * (1_000_000 / UNITS[of].per) * count
  }, 0)
  return BigInt(Math.ceil(whole * part))
}

/** Every tier that a model of a table is priced by, or some of its units. */
export const tiersOf = (units: readonly Unit[]) => [
  Object.fromEntries(units.map((unit) => [unit, String(RATES[unit])])),
]

// ---- What each member means: a report that has it, and the units that are due for that.

export type Due = Partial<Record<Unit, number>>
export interface Cell {
  readonly member: string
  readonly usage: object
  readonly due: Due
  /** Tools that run at the vendor, which no other format can say. */
  readonly asks?: object
  /** What the answer has beside its text: the traces of those tools. */
  readonly traces?: readonly object[]
}
/** The member alone, which has this value in an ordinary report of its format. */
type Alone = number
type Meaning =
  | readonly [usage: object | Alone, due: Due, asks?: object, traces?: readonly object[]]
  | 'part of another'
  | 'no quantity'
  | 'sold by another unit'

const chat = (more: object, prompt = 900, completion = 70) => ({
  prompt_tokens: prompt,
  completion_tokens: completion,
  total_tokens: prompt + completion,
  ...more,
})
const responses = (more: object) => ({ input_tokens: 900, output_tokens: 70, total_tokens: 970, ...more })
const messages = (more: object) => ({ input_tokens: 900, output_tokens: 70, ...more })
const image = (more: object) => ({ input_tokens: 40, output_tokens: 90, total_tokens: 130, ...more })
const google = (more: object) => ({ promptTokenCount: 900, candidatesTokenCount: 70, ...more })
const PLAIN: Due = { input: 900, output: 70 }
const compaction = { type: 'compaction', input_tokens: 5000, output_tokens: 300, cache_read_input_tokens: 40 }
const turn = { type: 'message', input_tokens: 900, output_tokens: 70 }
const of = (modality: string, tokenCount: number) => [
  { modality: 'TEXT', tokenCount: 1 },
  { modality, tokenCount },
]
const sound = (tokenCount: number) => of('AUDIO', tokenCount)
const pictures = (tokenCount: number) => of('IMAGE', tokenCount)
const trace = (type: string, count: number) => Array.from({ length: count }, (_, at) => ({ type, id: `t_${at}` }))

/** By the member, and where several reports of one say different things, what they are about behind a blank. */
export const MEANINGS: Record<ProtocolName, Readonly<Record<string, Meaning>>> = {
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
    'completion_tokens_details.audio_tokens': [50, { input: 900, output: 20, outputAudio: 50 }],
    'completion_tokens_details.accepted_prediction_tokens': 'part of another',
    'completion_tokens_details.rejected_prediction_tokens': [
      chat({ completion_tokens_details: { rejected_prediction_tokens: 30, accepted_prediction_tokens: 20 } }),
      PLAIN,
    ],
    'completion_tokens_details.text_tokens': 'part of another',
    'prompt_tokens_details.audio_tokens': [400, { input: 500, inputAudio: 400, output: 70 }],
    'prompt_tokens_details.cache_write_tokens': [300, { input: 600, cacheWrite: 300, output: 70 }],
    'prompt_tokens_details.cached_tokens': [300, { input: 600, cachedInput: 300, output: 70 }],
    'prompt_tokens_details.image_tokens': [400, { input: 500, inputImage: 400, output: 70 }],
    // What of them was in the cache, no report says: the cache comes first.
    'prompt_tokens_details.image_tokens beside cached_tokens': [
      chat({ prompt_tokens_details: { image_tokens: 400, cached_tokens: 600 } }),
      { inputImage: 300, cachedInput: 600, output: 70 },
    ],
    // Of vendors whose models draw.
    'completion_tokens_details.image_tokens unpublished': [50, { input: 900, output: 20, outputImage: 50 }],
    'completion_tokens beside web_search_options': [chat({}), { ...PLAIN, webSearch: 1 }, { web_search_options: {} }],
    'prompt_tokens_details.text_tokens': 'part of another',
  },
  'openai-responses': {
    input_tokens: [responses({}), PLAIN],
    output_tokens: [responses({ output_tokens: 71, total_tokens: 971 }), { input: 900, output: 71 }],
    total_tokens: [5970, { input: 900, output: 5070 }],
    'input_tokens_details.cache_write_tokens': [300, { input: 600, cacheWrite: 300, output: 70 }],
    'input_tokens_details.cached_tokens': [300, { input: 600, cachedInput: 300, output: 70 }],
    'input_tokens_details.cache_write_tokens_details.ttl_30m_tokens': 'part of another',
    'input_tokens_details.cache_write_tokens_details.ttl_12h_tokens': [
      responses({ input_tokens_details: { cache_write_tokens_details: { ttl_12h_tokens: 200, ttl_30m_tokens: 100 } } }),
      { input: 600, cacheWrite: 100, cacheWriteHour: 200, output: 70 },
    ],
    'output_tokens_details.reasoning_tokens': [60, PLAIN],
    'input_tokens_details.image_tokens unpublished': [400, { input: 500, inputImage: 400, output: 70 }],
    'output_tokens_details.image_tokens unpublished': [50, { input: 900, output: 20, outputImage: 50 }],
    'output_tokens beside web_search_call': [
      responses({}),
      { ...PLAIN, webSearch: 2 },
      { tools: [{ type: 'web_search' }] },
      trace('web_search_call', 2),
    ],
    'output_tokens beside file_search_call': [
      responses({}),
      { ...PLAIN, fileSearch: 3 },
      { tools: [{ type: 'file_search', vector_store_ids: [] }] },
      trace('file_search_call', 3),
    ],
    'output_tokens beside code_interpreter_call': [
      responses({}),
      { ...PLAIN, codeRun: 2 },
      { tools: [{ type: 'code_interpreter', container: { type: 'auto' } }] },
      trace('code_interpreter_call', 2),
    ],
    'output_tokens beside image_generation_call': [
      responses({}),
      { ...PLAIN, image: 1 },
      { tools: [{ type: 'image_generation' }] },
      trace('image_generation_call', 1),
    ],
  },
  'anthropic-messages': {
    input_tokens: [messages({}), PLAIN],
    output_tokens: [71, { input: 900, output: 71 }],
    cache_creation_input_tokens: [300, { ...PLAIN, cacheWrite: 300 }],
    cache_read_input_tokens: [300, { ...PLAIN, cachedInput: 300 }],
    // Without their sum.
    'cache_creation.ephemeral_1h_input_tokens': [
      messages({ cache_creation: { ephemeral_1h_input_tokens: 200, ephemeral_5m_input_tokens: 100 } }),
      { ...PLAIN, cacheWrite: 100, cacheWriteHour: 200 },
    ],
    'cache_creation.ephemeral_5m_input_tokens': [100, { ...PLAIN, cacheWrite: 100 }],
    iterations: [messages({ iterations: [compaction, turn] }), { input: 5900, cachedInput: 40, output: 370 }],
    'output_tokens_details.thinking_tokens': [60, PLAIN],
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
    candidatesTokenCount: [71, { input: 900, output: 71 }],
    responseTokenCount: [{ promptTokenCount: 900, responseTokenCount: 70 }, PLAIN],
    thoughtsTokenCount: [500, { input: 900, output: 570 }],
    totalTokenCount: [5970, { input: 900, output: 5070 }],
    toolUsePromptTokenCount: [200, { input: 1100, output: 70 }],
    cachedContentTokenCount: [300, { input: 600, cachedInput: 300, output: 70 }],
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
    'promptTokensDetails.tokenCount of pictures': [
      google({ promptTokensDetails: pictures(400) }),
      { input: 500, inputImage: 400, output: 70 },
    ],
    'promptTokensDetails.tokenCount of a film': [google({ promptTokensDetails: of('VIDEO', 400) }), PLAIN],
    'cacheTokensDetails.tokenCount of pictures': [
      google({ cachedContentTokenCount: 300, cacheTokensDetails: pictures(200), promptTokensDetails: pictures(400) }),
      { input: 400, cachedInput: 300, inputImage: 200, output: 70 },
    ],
    'candidatesTokensDetails.tokenCount of pictures': [
      google({ candidatesTokensDetails: pictures(50) }),
      { input: 900, output: 20, outputImage: 50 },
    ],
    'candidatesTokenCount beside webSearchQueries': [
      google({}),
      { ...PLAIN, webSearch: 2 },
      { tools: [{ googleSearch: {} }] },
      [{ webSearchQueries: ['a', 'b'] }],
    ],
    'promptTokensDetails.modality': 'no quantity',
    'toolUsePromptTokensDetails.modality': 'no quantity',
    'cacheTokensDetails.modality': 'no quantity',
    'candidatesTokensDetails.modality': 'no quantity',
    'responseTokensDetails.modality': 'no quantity',
    trafficType: 'no quantity',
    serviceTier: 'no quantity',
    initialPromptTokenCount: 'part of another',
  },
  'openai-embeddings': {
    prompt_tokens: [{ prompt_tokens: 900, total_tokens: 900 }, { input: 900 }],
    total_tokens: [{ total_tokens: 901 }, { input: 901 }],
    'prompt_tokens_details.image_tokens unpublished': [
      { prompt_tokens: 900, total_tokens: 900, prompt_tokens_details: { image_tokens: 400 } },
      { input: 500, inputImage: 400 },
    ],
    'prompt_tokens_details.audio_tokens unpublished': [
      { prompt_tokens: 900, total_tokens: 900, prompt_tokens_details: { audio_tokens: 400 } },
      { input: 500, inputAudio: 400 },
    ],
  },
  'openai-images': {
    input_tokens: [41, { image: 1, input: 41, outputImage: 90 }],
    output_tokens: [91, { image: 1, input: 40, outputImage: 91 }],
    total_tokens: 'part of another',
    'input_tokens_details.text_tokens': 'part of another',
    'input_tokens_details.image_tokens': [
      image({ input_tokens_details: { text_tokens: 10, image_tokens: 30 } }),
      { image: 1, input: 10, inputImage: 30, outputImage: 90 },
    ],
    'output_tokens_details.text_tokens': [
      image({ output_tokens_details: { text_tokens: 20, image_tokens: 70 } }),
      { image: 1, input: 40, output: 20, outputImage: 70 },
    ],
    'output_tokens_details.image_tokens': 'part of another',
  },
  // Sold by the second of what was heard: a vendor that counts tokens counts ten of sound in one.
  'openai-audio': {
    seconds: [{ type: 'duration', seconds: 3 }, { second: 3 }],
    'input_token_details.audio_tokens': [
      {
        type: 'tokens',
        input_tokens: 34,
        output_tokens: 5,
        total_tokens: 39,
        input_token_details: { audio_tokens: 30 },
      },
      { second: 3 },
    ],
    'input_token_details.text_tokens': 'sold by another unit',
    input_tokens: 'sold by another unit',
    output_tokens: 'sold by another unit',
    total_tokens: 'sold by another unit',
    type: 'no quantity',
  },
  // Sold by the character that was sent, so that no report changes it.
  'openai-speech': {
    input_tokens: 'sold by another unit',
    output_tokens: 'sold by another unit',
    total_tokens: 'sold by another unit',
    'input unpublished': [{ input_tokens: 9, output_tokens: 99, total_tokens: 108 }, { character: 25 }],
  },
  // By Cohere's documentation and Jina's, which have no types here. A price names tokens or searches.
  rerank: {
    'meta.billed_units.search_units unpublished': [{ meta: { billed_units: { search_units: 1 } } }, { call: 1 }],
    'meta.billed_units.input_tokens unpublished': [{ meta: { billed_units: { input_tokens: 31 } } }, { input: 31 }],
    'meta.tokens.input_tokens unpublished': [{ meta: { tokens: { input_tokens: 32 } } }, { input: 32 }],
    'usage.total_tokens unpublished': [{ usage: { total_tokens: 33 } }, { input: 33 }],
    'usage.prompt_tokens unpublished': [{ usage: { prompt_tokens: 34 } }, { input: 34 }],
  },
  // Vendors report nothing: each input is one.
  'openai-moderations': { 'input unpublished': [{}, { call: 1 }] },
  'mistral-ocr': {
    'usage_info.pages_processed unpublished': [{ usage_info: { pages_processed: 3, doc_size_bytes: 9 } }, { page: 3 }],
    'pages unpublished': [{}, { page: 2 }],
  },
  // By the documentation of its maker. A price names tokens or seconds.
  'video-task': {
    'duration unpublished': [{ duration: 5 }, { second: 5 }],
    'usage.completion_tokens unpublished': [{ usage: { completion_tokens: 70_000 }, duration: 5 }, { output: 70_000 }],
    'usage.total_tokens unpublished': 'part of another',
  },
  'social-v2': { 'data unpublished': [{}, { call: 1, row: 1 }] },
  'http-api': {},
  'site-analytics': {
    'Data.Records unpublished': [{ Data: { Records: [{}, {}, {}] } }, { call: 1, row: 3 }],
    'Records unpublished': [{ Records: [{}, {}] }, { call: 1, row: 2 }],
  },
  // Reported on a socket: sockets/realtime/usage.test.ts has each member.
  'openai-realtime': {},
  // No server reports usage; results are counted, which test/mcp/tool-servers.test.ts shows.
  mcp: {},
}

/**
 * No vendor publishes what these report: the catalog says what is counted. Their own tests are those of products and of
 * tools of other servers.
 */
export const isByCatalog = (name: string) => ['http-api', 'mcp', 'openai-realtime', 'byte', 'metered'].includes(name)

export interface FormatCell extends Cell {
  readonly format: ProtocolName
}

export function cellsOf(formats: readonly ProtocolName[]): FormatCell[] {
  return formats.flatMap((format) =>
    Object.entries(MEANINGS[format]).flatMap(([member, meaning]) => {
      if (typeof meaning === 'string') return []
      const [reported, due, asks, traces] = meaning
      const usage = typeof reported === 'number' ? alone(format, member, reported) : reported
      return [{ format, member, usage, due, ...(asks ? { asks } : {}), ...(traces ? { traces } : {}) }]
    }),
  )
}

const ORDINARY: Partial<Record<ProtocolName, (more: object) => object>> = {
  'openai-chat': chat,
  'openai-responses': responses,
  'anthropic-messages': messages,
  gemini: google,
  'openai-images': image,
}
function alone(format: ProtocolName, member: string, value: Alone): object {
  const [path = ''] = member.split(' ')
  const more = path.split('.').reduceRight<object | Alone>((inner, name) => ({ [name]: inner }), value)
  return ORDINARY[format]!(more as object) // A path has one name at least.
}

export const isText = (format: ProtocolName): format is ClientFormatName =>
  CLIENT_FORMATS.some((known) => known === format)
