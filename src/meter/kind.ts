// The one table of what is sold: the units of prices and usage rows, and the kinds of products. Charges, the catalog,
// batches, vendor tests, tools, documentation and console read it. It imports nothing, because it is bundled into the
// console as well.

interface UnitRow {
  /** A rate is the price of this many units. */
  readonly per: 1 | 1_000_000
  readonly one: string
  readonly many: string
  /** The rate's label in a price form. */
  readonly rate: string
  /** For tokens: whether they were read or generated. */
  readonly side?: 'input' | 'output'
  /**
   * Without its own rate, the unit costs this many times the rate of plain tokens on its side. Absent: it then costs
   * nothing.
   */
  readonly times?: 1n | 2n
  /** A tool that runs at the vendor, charged per use. */
  readonly use?: true
  /** Not part of every call of a text model; available only where it has a price. */
  readonly extra?: true
}

const tokens = <Side extends 'input' | 'output'>(name: string, side: Side) => ({
  per: 1_000_000 as const,
  one: `${name} token`,
  many: `${name} tokens`,
  rate: `${name.charAt(0).toUpperCase()}${name.slice(1)}, per million tokens`,
  side,
})

const pieces = (one: string, many = `${one}s`) => ({ per: 1 as const, one, many, rate: `Per ${one}` })

/**
 * In the order in which a charge lists them. A tier without a rate for cached input or cache writes charges them as
 * ordinary input, and a one-hour cache write as twice that, which matches the vendor's price. Images without a rate are
 * charged as text: the vendors of the text formats charge the same for both. So is audio, which gets here only as part
 * of a video: a request with audio input or output is rejected without a rate.
 */
export const UNITS = {
  input: tokens('input', 'input'),
  cachedInput: { ...tokens('cached input', 'input'), times: 1n },
  cacheWrite: { ...tokens('cache write', 'input'), times: 1n },
  cacheWriteHour: { ...tokens('one-hour cache write', 'input'), times: 2n, extra: true },
  inputAudio: { ...tokens('audio input', 'input'), times: 1n, extra: true },
  inputImage: { ...tokens('image input', 'input'), times: 1n, extra: true },
  output: tokens('output', 'output'),
  outputAudio: { ...tokens('audio output', 'output'), times: 1n, extra: true },
  outputImage: { ...tokens('image output', 'output'), times: 1n, extra: true },
  image: { ...pieces('image'), use: true, extra: true },
  second: pieces('second'),
  page: { ...pieces('page'), rate: 'Per page read' },
  character: { per: 1_000_000, one: 'character', many: 'characters', rate: 'Per million characters' },
  webSearch: { ...pieces('web search', 'web searches'), use: true, extra: true },
  fileSearch: { ...pieces('file search', 'file searches'), use: true, extra: true },
  codeRun: { ...pieces('run of code', 'runs of code'), use: true, extra: true },
  call: pieces('call'),
  row: { ...pieces('row'), rate: 'Per row returned' },
  byte: { per: 1_000_000, one: 'byte', many: 'bytes', rate: 'Per million bytes' },
  /** What the expression of a product's operation counts. */
  metered: { ...pieces('unit'), rate: 'Per unit counted' },
} as const satisfies Record<string, UnitRow>

export type Unit = keyof typeof UNITS
export const UNIT_NAMES = Object.keys(UNITS) as [Unit, ...Unit[]] // The names of an object that has at least one.
export const unitRow = (unit: Unit): UnitRow => UNITS[unit]

/** The units of tools that run at a vendor. */
export type UseUnit = { [U in Unit]: (typeof UNITS)[U] extends { use: true } ? U : never }[Unit]
export const USE_UNITS = UNIT_NAMES.filter((unit): unit is UseUnit => unitRow(unit).use === true)

/** The unit of a rate as text: "a call", "per million input tokens". */
export function rateWords(unit: Unit): string {
  const { per, one, many } = unitRow(unit)
  return per === 1 ? `${/^[aeio]/.test(one) ? 'an' : 'a'} ${one}` : `per million ${many}`
}

interface Kind {
  /** The vendor formats that serve it, each with the simulated vendor that speaks it. */
  readonly protocols: Readonly<Record<string, string>>
  /** In each group, one unit needs a rate in every tier; the first is the usual one. */
  readonly priced: readonly (readonly [Unit, ...Unit[]])[]
  /** Further units that its price form shows. */
  readonly usual?: readonly Unit[]
  /** The usage of an ordinary call, for comparing price and cost. */
  readonly typical: { readonly [unit in Unit]?: number }
  /** One JSON in, one JSON out: it may be part of a batch, and its call is small enough to test a vendor with. */
  readonly batchable?: true
  /** Its tab in the playground, if that is not its own. */
  readonly tab?: string
  /** How the openai package calls it, and where the result is. Without a method it is called by its path. */
  readonly openai?: { readonly method?: string; readonly result: string }
}

export const KINDS = {
  text: {
    protocols: {
      'openai-chat': 'openai',
      'openai-responses': 'openai',
      'anthropic-messages': 'anthropic',
      gemini: 'google',
    },
    priced: [['input'], ['output']],
    usual: ['cachedInput', 'cacheWrite'],
    typical: { input: 1_000, output: 300 },
    batchable: true,
    tab: 'chat',
  },
  image: {
    protocols: { 'openai-images': 'openai' },
    priced: [['image', 'output']],
    usual: ['input'],
    typical: { image: 1, input: 100, output: 4_000 },
  },
  embedding: {
    protocols: { 'openai-embeddings': 'openai' },
    priced: [['input']],
    typical: { input: 1_000 },
    batchable: true,
    openai: { method: 'embeddings.create', result: 'data[0].embedding' },
  },
  rerank: {
    protocols: { rerank: 'openai' },
    priced: [['input', 'call']],
    typical: { input: 10_000, call: 1 },
    batchable: true,
    openai: { result: 'results' },
  },
  moderation: {
    protocols: { 'openai-moderations': 'openai' },
    priced: [['call']],
    typical: { call: 1 },
    batchable: true,
    openai: { method: 'moderations.create', result: 'results[0].flagged' },
  },
  ocr: {
    protocols: { 'mistral-ocr': 'openai' },
    priced: [['page']],
    typical: { page: 10 },
    batchable: true,
    openai: { result: 'pages' },
  },
  transcription: { protocols: { 'openai-audio': 'openai' }, priced: [['second']], typical: { second: 60 } },
  speech: { protocols: { 'openai-speech': 'openai' }, priced: [['character']], typical: { character: 500 } },
  realtime: {
    protocols: { 'openai-realtime': 'openai' },
    priced: [['input'], ['output']],
    usual: ['cachedInput', 'inputAudio', 'outputAudio', 'second'],
    typical: { input: 500, inputAudio: 500, output: 100, outputAudio: 400 },
  },
  video: {
    protocols: { 'video-task': 'ark' },
    priced: [['second', 'output']],
    typical: { second: 5, output: 100_000 },
  },
  data: {
    protocols: { 'social-v2': 'social', 'site-analytics': 'analytics', 'http-api': 'product', mcp: 'tools' },
    priced: [['call']],
    usual: ['row', 'byte', 'metered'],
    typical: { call: 1, row: 10 },
    tab: 'social',
  },
} as const satisfies Record<string, Kind>

export type KindName = keyof typeof KINDS
type ProtocolOf<K extends KindName> = keyof (typeof KINDS)[K]['protocols']
export type ProtocolName = { [K in KindName]: ProtocolOf<K> }[KindName]
/** What vendors of text models speak. */
export type TextProtocolName = ProtocolOf<'text'>
export type DataProtocolName = ProtocolOf<'data'>
export const KIND_NAMES = Object.keys(KINDS) as [KindName, ...KindName[]] // The names of an object that has at least one.
export const kindRow = (kind: KindName): Kind => KINDS[kind]
export const protocolsOf = <K extends KindName>(kind: K) =>
  Object.keys(KINDS[kind].protocols) as [ProtocolOf<K>, ...ProtocolOf<K>[]] // Each kind has at least one.
export const TEXT_PROTOCOLS = protocolsOf('text')
/** Those of them that callers may speak too. */
export const CLIENT_FORMATS = ['openai-chat', 'openai-responses', 'anthropic-messages', 'gemini'] as const
export type ClientFormatName = (typeof CLIENT_FORMATS)[number]
export const PROTOCOLS = KIND_NAMES.flatMap((kind): ProtocolName[] => protocolsOf(kind))
