// Priced extras of a request besides tokens: tools that run at the vendor and are billed per use, service tiers that change the price of
// tokens, and long-lived caches. Each must have a price and is held at its worst case; otherwise the request is rejected.
import type { TextTraits } from '../../catalog/traits.ts'
import { Fault, invalid } from '../../kernel/fault.ts'
import { type JsonText, readJson, splice } from '../../kernel/json.ts'
import type { TextProtocolName, UseUnit } from '../../meter/kind.ts'
import type { Pricing } from '../../meter/price.ts'
import type { Usage } from '../../meter/usage.ts'
import { isObject, type Json, objects, shown, text, wrong } from '../check.ts'
import type { PriceAttributes } from '../protocol.ts'
import { cannotConvert } from './canonical.ts'

type MediaUnit = 'inputAudio' | 'outputAudio' | 'inputImage' | 'outputImage'
type Tools = ReadonlyArray<readonly [tool: string, unit: UseUnit]>

/** The tools whose uses a format counts, with the units that price them. */
const TOOLS: Record<TextProtocolName, Tools> = {
  'openai-chat': [['web_search', 'webSearch']],
  'openai-responses': [
    ['web_search', 'webSearch'],
    ['file_search', 'fileSearch'],
    ['code_interpreter', 'codeRun'],
    ['image_generation', 'image'],
  ],
  'anthropic-messages': [['web_search', 'webSearch']],
  gemini: [['web_search', 'webSearch']],
}
const GEMINI_SEARCH = /^(?:googleSearch|google_search|enterpriseWebSearch|enterprise_web_search)/
/** The limit on uses for the hold and for the vendor, if the request names none. */
const USES_MAX = 10

/** Request fields whose values change the price of tokens; Google spells the first one differently. */
const TIERS: ReadonlyArray<readonly [attribute: string, fields: readonly string[]]> = [
  ['service_tier', ['service_tier', 'serviceTier']],
  ['speed', ['speed']],
  ['inference_geo', ['inference_geo']],
]

/** The spellings of a tier field. */
function spellingsOf(tier: string): readonly string[] {
  return TIERS.find(([name]) => name === tier)?.[1] ?? [tier]
}

/** The unit that prices a tool; undefined if its uses are not counted. */
function unitOf(tool: string): string | undefined {
  return Object.values(TOOLS)
    .flat()
    .find(([name]) => name === tool)?.[1]
}

/** The model's traits, with the tools that have a price allowed. */
export function withPriced(
  clientFormat: TextProtocolName,
  traits: TextTraits,
  pricing: Pricing | undefined,
): TextTraits {
  const priced = TOOLS[clientFormat].filter(([, unit]) => isPriced(pricing, unit))
  return priced.length === 0
    ? traits
    : { ...traits, hostedTools: [...traits.hostedTools, ...priced.map(([tool]) => tool)] }
}

function isPriced(pricing: Pricing | undefined, unit: UseUnit | MediaUnit): boolean {
  return pricing?.tiers.every((tier) => tier[unit] !== undefined) ?? false
}

/** Whether a non-standard value has a price: a multiplier or a tier of its own. */
function isTierPriced(pricing: Pricing | undefined, name: string, value: unknown): boolean {
  if (typeof value !== 'string' || !pricing) return false
  const values = pricing.multipliers?.[name] ?? {}
  return Object.hasOwn(values, value) || pricing.tiers.some(({ when }) => when?.[name] === value)
}

interface Extras {
  /** The request, with a limit on uses for every priced tool. */
  readonly json: JsonText
  /** The usage that the hold covers. */
  readonly worst: Usage
  /** Charged with any answer, because the format does not count these uses. */
  readonly uses?: Usage
  readonly price: PriceAttributes
  readonly keepsForAnHour: boolean
  /** The fault if the vendor's format cannot express the extras. */
  refusal(protocol: string): Fault | undefined
}

/** For a validated request: everything left in it has a price, or is allowed at the operator's expense. */
export function readExtras(
  clientFormat: TextProtocolName,
  json: JsonText,
  pricing: Pricing | undefined,
  n: number,
): Extras {
  const tools = pricedTools(clientFormat, json.value, pricing)
  const price = attributesOf(json.value, pricing)
  const bounded = tools.length > 0 ? bound(clientFormat, json, tools) : json
  const uses = clientFormat === 'openai-chat' && tools.length > 0 ? { webSearch: n } : undefined
  const most = (tool: Json) => usesMost(clientFormat, bounded.value, tool)
  const worst: Partial<Record<UseUnit, number>> = {}
  for (const { unit, tool } of tools) worst[unit] = (worst[unit] ?? 0) + most(tool)
  const only = tools.length > 0 ? 'tools' : ['speed', 'inference_geo'].find((name) => price[name] !== undefined)
  return {
    json: bounded,
    worst: uses ?? worst,
    ...(uses ? { uses } : {}),
    price,
    keepsForAnHour: clientFormat === 'anthropic-messages' && /"ttl"\s*:\s*"1h"/.test(json.text),
    refusal: (protocol) =>
      only === undefined || protocol === clientFormat ? undefined : cannotConvert(only, 'what runs at another vendor'),
  }
}

/** The output modalities besides text; only chat requests can ask for them. */
function wantedMedia(clientFormat: TextProtocolName, { modalities, audio }: Json): MediaUnit[] {
  if (clientFormat !== 'openai-chat') return []
  const asks = (modality: string) => Array.isArray(modalities) && modalities.includes(modality)
  return [
    ...(isObject(audio) || asks('audio') ? (['outputAudio'] as const) : []),
    ...(asks('image') ? (['outputImage'] as const) : []),
  ]
}

/** Audio or image output is held at its own rate, up to a limit that is sent to the vendor. */
export function boundMedia(clientFormat: TextProtocolName, json: JsonText, tokensMost: number): JsonText {
  const { max_tokens: plain, max_completion_tokens: completion } = json.value
  if (wantedMedia(clientFormat, json.value).length === 0 || (plain ?? completion ?? undefined) !== undefined)
    return json
  const most = { max_tokens: String(tokensMost) }
  return edited(json, json.member('max_tokens') ? { replace: most } : { add: most })
}

interface MediaTokens {
  readonly sound: number
  readonly pictures: number
  readonly output: number
}

/**
 * Audio (input or output) and image output need rates of their own: without one the request is rejected, because it would be charged at the
 * rates of text. Input images use their own rate if the price has one; otherwise vendors charge them like text.
 */
export function readMedia(
  clientFormat: TextProtocolName,
  body: Json,
  pricing: Pricing | undefined,
  { sound, pictures, output }: MediaTokens,
): Usage | undefined {
  const made = wantedMedia(clientFormat, body)
  if (sound === 0 && pictures === 0 && made.length === 0) return undefined
  const needed: MediaUnit[] = sound > 0 ? ['inputAudio', ...made] : made
  const unpriced = needed.find((unit) => pricing && !isPriced(pricing, unit))
  if (unpriced !== undefined) {
    const at = unpriced === 'inputAudio' ? 'input_audio' : 'modalities'
    const what = unpriced === 'outputImage' ? 'a picture' : 'sound'
    throw invalid(`"${at}": ${what} has no price here ("${unpriced}" of the model's price sets one); send text.`, at)
  }
  return {
    ...(sound > 0 ? { inputAudio: sound } : {}),
    ...(pictures > 0 && isPriced(pricing, 'inputImage') ? { inputImage: pictures } : {}),
    ...Object.fromEntries(made.map((unit) => [unit, output])),
  }
}

interface PricedTool {
  readonly unit: UseUnit
  readonly tool: Json
}

function pricedTools(clientFormat: TextProtocolName, body: Json, pricing: Pricing | undefined): PricedTool[] {
  const priced = (unit: UseUnit, tool: Json) => (isPriced(pricing, unit) ? [{ unit, tool }] : [])
  const option = clientFormat === 'openai-chat' ? body.web_search_options : undefined
  if (isObject(option)) return priced('webSearch', option)
  return objects(body.tools).flatMap((tool) => {
    if (clientFormat === 'gemini')
      return Object.keys(tool).some((name) => GEMINI_SEARCH.test(name)) ? priced('webSearch', tool) : []
    const found = TOOLS[clientFormat].find(([name]) => String(tool.type).startsWith(name))
    return found ? priced(found[1], tool) : []
  })
}

function attributesOf(body: Json, pricing: Pricing | undefined): PriceAttributes {
  const price: Record<string, string> = {}
  for (const [name, fields] of TIERS)
    for (const field of fields) {
      const value = body[field]
      if (typeof value === 'string' && isTierPriced(pricing, name, value)) price[name] = value
    }
  return price
}

/** Sends the held limit on uses to the vendor, if its format has a field for it. */
function bound(clientFormat: TextProtocolName, json: JsonText, tools: readonly PricedTool[]): JsonText {
  const { value } = json
  if (clientFormat === 'openai-responses' && !isBound(value.max_tool_calls)) {
    const most = { max_tool_calls: String(USES_MAX) }
    return edited(json, json.member('max_tool_calls') ? { replace: most } : { add: most })
  }
  if (clientFormat !== 'anthropic-messages' || tools.every(({ tool }) => isBound(tool.max_uses))) return json
  const bounded = (tool: unknown) =>
    tools.some((one) => one.tool === tool) && isObject(tool) && !isBound(tool.max_uses)
      ? { ...tool, max_uses: USES_MAX }
      : tool
  return edited(json, { replace: { tools: JSON.stringify([value.tools].flat().map(bounded)) } })
}

function edited(json: JsonText, edits: Parameters<typeof splice>[1]): JsonText {
  return readJson(Buffer.from(splice(json, edits)))
}

function isBound(value: unknown): value is number {
  return typeof value === 'number' && Number.isSafeInteger(value) && value >= 0
}

function usesMost(clientFormat: TextProtocolName, body: Json, tool: Json): number {
  const said = clientFormat === 'openai-responses' ? body.max_tool_calls : tool.max_uses
  return isBound(said) ? said : USES_MAX
}

// Features on the vendor's side. Tools that the vendor runs and bills per use are rejected without a price, unless the catalog allows them. So
// are tiers that cost more than the catalog knows, and answers stored at the vendor if the catalog says so.

/** Typed tools carry a date in some formats: `web_search_20260318`. */
const HOSTED = [
  'web_search',
  'file_search',
  'code_interpreter',
  'code_execution',
  'image_generation',
  'advisor',
  // Tools of other vendors that use these formats.
  'x_search',
  'live_search',
  'collections_search',
  'browser_search',
  'browser_automation',
  'visit_website',
  'wolfram_alpha',
  'retrieval',
  'connector',
  'google_search',
  'openrouter:',
  'builtin_function',
] as const
const KEPT = ['previous_response_id', 'conversation', 'prompt'] as const

/**
 * Clients offer web search in every request, whether or not it is wanted. If the model may choose its tools, the request is served without web
 * search and the caller is informed. A request that requires it is rejected by the check below.
 */
export function leaveOutSearch(json: JsonText, traits: TextTraits): { json: JsonText; leftOut?: string } {
  const { tools, tool_choice: choice } = json.value
  if (!Array.isArray(tools)) return { json }
  const isSearch = (tool: Json) => text(tool.type)?.startsWith('web_search') === true
  const found = objects(tools).filter(isSearch)
  if (found.length === 0 || traits.webSearch === 'refuse' || traits.hostedTools.includes('web_search')) return { json }
  const kept = tools.filter((tool) => !isObject(tool) || !isSearch(tool))
  const mode = isObject(choice) ? choice.type : choice
  const named = isObject(choice) ? [choice, ...objects(choice.tools)] : []
  const demanded =
    named.some((one) => isSearch(one) || found.some(({ name }) => name !== undefined && name === one.name)) ||
    ((mode === 'required' || mode === 'any') && kept.length === 0)
  if (demanded) return { json }
  const edits =
    kept.length > 0 ? { replace: { tools: JSON.stringify(kept) } } : { remove: ['tools', 'tool_choice'] as const }
  return { json: readJson(Buffer.from(splice(json, edits))), leftOut: 'web_search' }
}

/** SDKs recognise the code and send the whole conversation. */
export function threadUnsupported(why: string): Fault {
  return new Fault('request_invalid', {
    message: `"thread": ${why}; send the whole conversation, without "thread".`,
    param: 'thread',
    errorDetails: { error_code: 'thread_unsupported_request' },
  })
}

/** Values that cost no more than the standard; unknown new values may cost anything. */
const STANDARD = Object.entries<readonly unknown[]>({
  service_tier: ['auto', 'default', 'standard', 'standard_only', 'flex', 'scale'],
  speed: ['standard'],
  inference_geo: ['global'],
}).map(([name, values]) => ({ name, values, spellings: spellingsOf(name) }))
/** Rejects values that vendors price higher than the catalog does. */
function checkExtras(body: Json, pricing: Pricing | undefined): void {
  for (const { name, values, spellings } of STANDARD) {
    const [first, second] = spellings.filter((field) => {
      const value = body[field] ?? undefined
      const refused = isTierPriced(pricing, name, value) ? undefined : dearer(field, value, values)
      if (refused) throw refused
      return value !== undefined
    })
    if (second !== undefined) throw wrong(second, `is "${first}" in another spelling: send one of them.`)
  }
}

function dearer(name: string, value: unknown, standard: readonly unknown[]): Fault | undefined {
  if (value === undefined || standard.includes(value)) return undefined
  return invalid(
    `"${name}": ${shown(value)} may cost more at the vendor and has no price here ("multipliers" of the model's price set one); leave it out, or send one of ${standard.join(', ')}.`,
    name,
  )
}

/** The fault for a tool that runs at the vendor; undefined if the catalog allows it. */
export function hostedRefusal(hosted: string, at: string, traits: TextTraits): Fault | undefined {
  if (traits.hostedTools.includes(hosted)) return undefined
  const unit = unitOf(hosted)
  const setting = unit === undefined ? '' : ` ("${unit}" of the model's price sets one)`
  return invalid(
    `"${at}": the tool "${hosted}" runs at the vendor and has no price here${setting}; use function tools.`,
    at,
  )
}

/** Includes nested tools, which the pricing does not look for. */
function checkTools(tools: unknown, at: string, traits: TextTraits): void {
  const isNested = at !== 'tools'
  objects(tools).forEach((tool, i) => {
    const here = `${at}[${i}]`
    const hosted = hostedIn(tool)
    const refused = hosted && hostedRefusal(hosted, `${here}.type`, isNested ? { ...traits, hostedTools: [] } : traits)
    if (refused) throw refused
    checkTools(tool.tools, `${here}.tools`, traits)
  })
}

function hostedIn({ type, environment }: Json): string | undefined {
  // A shell runs on the caller's side only if the request says so.
  if (type === 'shell' && isObject(environment) && environment.type !== 'local') return 'shell'
  return HOSTED.find((name) => typeof type === 'string' && type.startsWith(name))
}

export function checkVendorSide(body: Json, traits: TextTraits, pricing?: Pricing): void {
  checkExtras(body, pricing)
  checkTools(body.tools, 'tools', traits)
  const options = body.web_search_options ?? undefined
  if (options !== undefined && !(isObject(options) && traits.hostedTools.includes('web_search')))
    throw invalid(
      '"web_search_options": web search runs at the vendor and has no price here ("webSearch" of the model\'s price sets one); leave it out.',
      'web_search_options',
    )
  if (traits.vendorState) return
  if (isObject(body.thread)) throw threadUnsupported('nothing is kept at the vendor')
  for (const name of KEPT)
    if (body[name] !== undefined && body[name] !== null)
      throw wrong(
        name,
        'refers to what a vendor keeps, which is not shared between accounts here; send the whole conversation as "input".',
      )
  objects(body.input).forEach((item, i) => {
    if (item.type === 'item_reference')
      throw wrong(`input[${i}]`, 'refers to an item that a vendor keeps; send the item itself, with "store": false.')
  })
}
