// The usage objects that vendors publish, read from the types of their SDKs, and what each of their members means: a
// report that has it, and what is due for that.
import assert from 'node:assert/strict'
import { readFileSync } from 'node:fs'
import { type ClientFormatName, type ProtocolName, UNITS, type Unit } from '../src/meter/kind.ts'
import { fixtureOf } from './fixture.ts'
import { CLIENT_FORMATS } from './formats.ts'

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

const chat = (more: object) => ({ prompt_tokens: 900, completion_tokens: 70, total_tokens: 970, ...more })
const responses = (more: object) => ({ input_tokens: 900, output_tokens: 70, total_tokens: 970, ...more })
const messages = (more: object) => ({ input_tokens: 900, output_tokens: 70, ...more })
const image = (more: object) => ({ input_tokens: 40, output_tokens: 90, total_tokens: 130, ...more })
const google = (more: object) => ({ promptTokenCount: 900, candidatesTokenCount: 70, ...more })

/** By the member, and where several reports of one say different things, what they are about behind a blank. */
export const MEANINGS = fixtureOf<Record<ProtocolName, Readonly<Record<string, Meaning>>>>('published-usage.yaml')

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
