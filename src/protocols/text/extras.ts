// Priced extras of a request besides tokens: tools that run at the vendor and are billed per use, service tiers that
// change the price of tokens, and long-lived caches. Each must have a price and is held at its worst case; otherwise
// the request is rejected.
import type { TextTraits } from '../../catalog/traits.ts'
import { Fault, invalid, valueWords } from '../../kernel/fault.ts'
import { edited, isObject, type Json, type JsonText, objects, text, withMembers } from '../../kernel/json.ts'
import { words } from '../../kernel/words.ts'
import type { UseUnit } from '../../meter/kind.ts'
import type { Pricing } from '../../meter/price.ts'
import type { Usage } from '../../meter/usage.ts'
import { wrong } from '../check.ts'
import type { PriceAttributes } from '../protocol.ts'
import { cannotConvert } from './canonical.ts'
import type { ClientFormat, FormatExtras } from './format.ts'
import { TIERS } from './tokens.ts'

type MediaUnit = 'inputAudio' | 'outputAudio' | 'inputImage' | 'outputImage'
type Extras = Pick<ClientFormat, 'name' | 'extras'>

/** The units that price tools whose uses some format counts. */
const UNIT_OF = {
  web_search: 'webSearch',
  file_search: 'fileSearch',
  code_interpreter: 'codeRun',
  code_execution: 'codeRun',
  image_generation: 'image',
} as const satisfies Record<string, UseUnit>
export type CountedTool = keyof typeof UNIT_OF

/** A search by the name of a member instead of a type: Google's clients ask so, in whichever format. */
export const SEARCH_MEMBER = /^(?:googleSearch|google_search|enterpriseWebSearch|enterprise_web_search)/
/** The most uses, if the request names no limit, and if it does: the input of one more turn than uses is plausible. */
const USES_DEFAULT = 10
export const USES_MAX = 63

/** The model's traits, with the tools that have a price allowed. */
export function withPriced({ extras }: Extras, traits: TextTraits, pricing: Pricing | undefined): TextTraits {
  const priced = extras.tools.filter((tool) => isPriced(pricing, UNIT_OF[tool]))
  return priced.length === 0 ? traits : { ...traits, hostedTools: [...traits.hostedTools, ...priced] }
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

interface AskedExtras {
  /** The usage that the hold covers at least: one use of each tool whose vendor can be told how often. */
  readonly worst: Usage
  /**
   * How often the vendor reads again after these uses; one whose uses cannot be limited counts as one. Absent: no tool
   * has a price.
   */
  readonly turns?: number | undefined
  /** What further uses add, up to the limit of the request. */
  readonly usesOpen?: { readonly most: number; readonly each: Usage } | undefined
  /** The request as the vendor gets it: with this limit on uses, or a lower one of its own. */
  readonly capped?: ((json: JsonText, usesCap: number) => JsonText) | undefined
  /** Charged with any answer, because the format does not count these uses. */
  readonly uses?: Usage
  readonly price: PriceAttributes
  readonly prices?: readonly PriceAttributes[] | undefined
  /** The fault if the vendor's format cannot express the extras. */
  readonly refusal?: ((protocol: string) => Fault | undefined) | undefined
}

/** For a validated request: everything left in it has a price, or is allowed at the operator's expense. */
export function readExtras(
  { name: clientFormat, extras }: Extras,
  json: JsonText,
  pricing: Pricing | undefined,
  { n, contextTokens }: { readonly n: number; readonly contextTokens: number },
): AskedExtras {
  const tools = pricedTools(extras, json.value, pricing)
  const price = attributesOf(json.value, pricing)
  const units = tools.map(({ unit }) => unit)
  const uses = extras.uncounted?.(units, n)
  const capped = cappedTools(extras, tools)
  const most = Math.min(USES_MAX, Math.max(0, ...capped.map(({ tool }) => usesMost(extras, json.value, tool))))
  const least = Math.min(1, most)
  const each = capped.length > 0 ? usesOf(capped, 1) : undefined
  // A limit on all tools together is one on the turns; else each tool has its own.
  const readers = extras.cap?.of === 'request' ? 1 : capped.length
  const only = tools.length > 0 ? 'tools' : ['speed', 'inference_geo'].find((name) => price[name] !== undefined)
  return {
    worst: { ...usesOf(tools, USES_DEFAULT), ...usesOf(capped, least), ...uses },
    turns: tools.length > 0 ? least * readers + tools.length - capped.length : undefined,
    usesOpen: each && most > 1 ? { most, each: { ...each, input: contextTokens * readers } } : undefined,
    capped: each && ((body, usesCap) => withCap(extras, body, pricing, usesCap)),
    ...(uses ? { uses } : {}),
    price,
    prices: answeredPrices(json.value, price, pricing),
    refusal: only
      ? (protocol) => (protocol === clientFormat ? undefined : cannotConvert(only, 'what runs at another vendor'))
      : undefined,
  }
}

/** The output modalities besides text. */
function wantedMedia({ media }: FormatExtras, body: Json): MediaUnit[] {
  if (!media) return []
  const { modalities, audio } = media.wanted(body)
  const asks = (modality: string) =>
    Array.isArray(modalities) && modalities.some((one) => String(one).toLowerCase() === modality)
  return [
    ...(isObject(audio) || asks('audio') ? (['outputAudio'] as const) : []),
    ...(asks('image') ? (['outputImage'] as const) : []),
  ]
}

/** Audio or image output is held at its own rate, up to a limit that is sent to the vendor. */
export function boundMedia({ extras }: Extras, json: JsonText, tokensMost: number): JsonText {
  return extras.media && wantedMedia(extras, json.value).length > 0 ? extras.media.bound(json, tokensMost) : json
}

/**
 * Audio (input or output) and image output need rates of their own: without one the request is rejected, because it
 * would be charged at the rates of text. Input images use their own rate if the price has one; otherwise vendors charge
 * them like text.
 */
export function readMedia(
  { extras }: Extras,
  body: Json,
  pricing: Pricing | undefined,
  { sound, pictures, output }: { sound: number; pictures: number; output: number },
): Usage | undefined {
  const made = wantedMedia(extras, body)
  if (sound === 0 && pictures === 0 && made.length === 0) return undefined
  const needed: MediaUnit[] = sound > 0 ? ['inputAudio', ...made] : made
  const unpriced = needed.find((unit) => pricing && !isPriced(pricing, unit))
  if (unpriced !== undefined) {
    const at = unpriced === 'inputAudio' ? 'input_audio' : (extras.media?.member ?? 'modalities')
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

function pricedTools(extras: FormatExtras, body: Json, pricing: Pricing | undefined): PricedTool[] {
  const priced = (unit: UseUnit | undefined, tool: Json) => (unit && isPriced(pricing, unit) ? [{ unit, tool }] : [])
  const option = extras.search && body[extras.search]
  if (isObject(option)) return priced('webSearch', option)
  const byType = ({ type }: Json) => extras.tools.find((name) => String(type).startsWith(name))
  return objects(body.tools).flatMap((tool) => {
    const found = (extras.toolOf ?? byType)(tool)
    return priced(found && UNIT_OF[found], tool)
  })
}

/**
 * Options of tools that vendors bill differently: each value besides the standard ones needs a price by its attribute.
 */
const OPTIONS: ReadonlyArray<readonly [tool: string, option: string, attribute: string, ...standard: unknown[]]> = [
  ['code_interpreter', 'memory_limit', 'memory_limit', '1g'],
  ['image_generation', 'quality', 'image_quality', 'auto', 'low'],
  ['image_generation', 'size', 'image_size', 'auto', '1024x1024'],
  ['image_generation', 'model', 'image_model'],
  ['image_generation', 'input_fidelity', 'image_fidelity', 'low'],
  ['image_generation', 'partial_images', 'image_partials', 0],
]

/** The options that a request sets: of a tool itself, or of its container. */
function optionsOf(body: Json): Array<{ attribute: string; value: unknown; at: string; standard: readonly unknown[] }> {
  return objects(body.tools).flatMap((tool, i) =>
    OPTIONS.flatMap(([type, option, attribute, ...standard]) => {
      if (typeof tool.type !== 'string' || !tool.type.startsWith(type)) return []
      const value = tool[option] ?? (isObject(tool.container) ? tool.container[option] : undefined)
      return value === undefined || value === null ? [] : [{ attribute, value, at: `tools[${i}].${option}`, standard }]
    }),
  )
}

function attributesOf(body: Json, pricing: Pricing | undefined): PriceAttributes {
  const price: Record<string, string> = {}
  for (const { attribute, value } of optionsOf(body))
    if (isTierPriced(pricing, attribute, String(value))) price[attribute] = String(value)
  for (const [name, fields] of TIERS)
    for (const field of fields) {
      const value = body[field]
      if (typeof value === 'string' && isTierPriced(pricing, name, value)) price[name] = value
    }
  return price
}

/** Tiers that the vendor decides where the request leaves it to it. */
const LEFT_OPEN: ReadonlySet<string> = new Set(['service_tier', 'inference_geo'])

/**
 * The attributes that the answer may have: a vendor may serve another tier than was asked for, and chooses where
 * nothing was.
 */
function answeredPrices(
  body: Json,
  price: PriceAttributes,
  pricing: Pricing | undefined,
): PriceAttributes[] | undefined {
  if (!pricing || (!pricing.multipliers && pricing.tiers.length === 1)) return undefined
  let all: PriceAttributes[] = [price]
  for (const [name, fields] of TIERS) {
    const asked = fields.map((field) => body[field]).find((value) => value !== undefined && value !== null)
    const isOpen = LEFT_OPEN.has(name) && (asked === undefined || asked === 'auto')
    const others = isOpen ? pricedValues(pricing, name) : price[name] === undefined ? [] : [undefined]
    const more = all.flatMap((one) => others.map((value) => withValue(one, name, value)))
    all = [...all, ...more]
  }
  return all.length > 1 ? all : undefined
}

function pricedValues({ multipliers, tiers }: Pricing, name: string): string[] {
  const values = tiers.flatMap(({ when }) => when?.[name] ?? [])
  return [...new Set([...values, ...Object.keys(multipliers?.[name] ?? {})])]
}

function withValue(price: PriceAttributes, name: string, value: string | undefined): PriceAttributes {
  const { [name]: _, ...others } = price
  return value === undefined ? others : { ...others, [name]: value }
}

/** The tools whose uses the vendor can be told to limit. */
function cappedTools({ cap }: FormatExtras, tools: readonly PricedTool[]): readonly PricedTool[] {
  return cap ? tools.filter(({ unit }) => cap.of === 'request' || cap.of.includes(unit)) : []
}

function usesOf(tools: readonly PricedTool[], uses: number): Partial<Record<UseUnit, number>> {
  const sum: Partial<Record<UseUnit, number>> = {}
  for (const { unit } of tools) sum[unit] = (sum[unit] ?? 0) + uses
  return sum
}

/** Tells the vendor the limit on uses that is held, where the request does not set a lower one. */
function withCap(extras: FormatExtras, json: JsonText, pricing: Pricing | undefined, uses: number): JsonText {
  const { value } = json
  const { member = '', of } = extras.cap ?? {}
  const lowered = (tool: Json) => Math.min(uses, usesMost(extras, value, tool))
  if (of === 'request') return withMembers(json, { [member]: String(lowered(value)) })
  const priced = cappedTools(extras, pricedTools(extras, value, pricing))
  const capped = new Set<unknown>(priced.map(({ tool }) => tool))
  const told = (tool: unknown) => (capped.has(tool) && isObject(tool) ? { ...tool, [member]: lowered(tool) } : tool)
  return edited(json, { replace: { tools: JSON.stringify([value.tools].flat().map(told)) } })
}

function isBound(value: unknown): value is number {
  return typeof value === 'number' && Number.isSafeInteger(value) && value >= 0
}

function usesMost({ cap }: FormatExtras, body: Json, tool: Json): number {
  const said = cap && (cap.of === 'request' ? body : tool)[cap.member]
  return isBound(said) ? said : USES_DEFAULT
}

// Features on the vendor's side. Tools that the vendor runs and bills per use are rejected without a price, unless the
// catalog allows them. So are tiers that cost more than the catalog knows, and answers stored at the vendor if the
// catalog says so.

/** Typed tools carry a date in some formats: `web_search_20260318`. */
const HOSTED = [
  ...words('web_search file_search code_interpreter code_execution image_generation advisor'),
  // Tools of other vendors that use these formats.
  ...words('x_search live_search collections_search browser_search browser_automation visit_website wolfram_alpha'),
  ...words('retrieval connector google_search openrouter: builtin_function'),
]
const KEPT = ['previous_response_id', 'conversation', 'prompt'] as const

/**
 * Clients offer web search in every request, whether or not it is wanted. If the model may choose its tools, the
 * request is served without web search and the caller is informed. A request that requires it is rejected by the check
 * below.
 */
export function leaveOutSearch(json: JsonText, traits: TextTraits): { json: JsonText; leftOut?: string } {
  const { tools, tool_choice: choice } = json.value
  if (!Array.isArray(tools)) return { json }
  const isSearch = (tool: Json) => text(tool.type)?.startsWith('web_search') === true || hasSearchMember(tool)
  const found = objects(tools).filter(isSearch)
  if (found.length === 0 || traits.webSearch === 'refuse' || traits.hostedTools.includes('web_search')) return { json }
  // One entry may then have several tools.
  const kept = tools.flatMap((tool) => {
    if (!isObject(tool) || !isSearch(tool)) return [tool]
    const others = hasSearchMember(tool) ? Object.entries(tool).filter(([name]) => !SEARCH_MEMBER.test(name)) : []
    return others.length === 0 ? [] : [Object.fromEntries(others)]
  })
  const mode = isObject(choice) ? choice.type : choice
  const named = isObject(choice) ? [choice, ...objects(choice.tools)] : []
  const demanded =
    named.some((one) => isSearch(one) || found.some(({ name }) => name !== undefined && name === one.name)) ||
    ((mode === 'required' || mode === 'any') && kept.length === 0)
  if (demanded) return { json }
  const edits =
    kept.length > 0 ? { replace: { tools: JSON.stringify(kept) } } : { remove: ['tools', 'tool_choice'] as const }
  return { json: edited(json, edits), leftOut: 'web_search' }
}

const hasSearchMember = (tool: Json) =>
  tool.type === undefined && Object.keys(tool).some((name) => SEARCH_MEMBER.test(name))

/** SDKs recognise the code and send the whole conversation. */
export function threadUnsupported(why: string): Fault {
  return new Fault('request_invalid', {
    message: `"thread": ${why}; send the whole conversation, without "thread".`,
    param: 'thread',
    errorDetails: { error_code: 'thread_unsupported_request' },
  })
}

/** Values that cost no more than the standard; unknown new values may cost anything. */
const STANDARD: Readonly<Record<string, readonly unknown[]>> = {
  service_tier: words('auto default standard standard_only on_demand flex scale'),
  speed: ['standard'],
  inference_geo: ['global'],
}
/** Rejects values that vendors price higher than the catalog does. */
function checkExtras(body: Json, pricing: Pricing | undefined): void {
  for (const [name, spellings] of TIERS) {
    const [first, second] = spellings.filter((field) => {
      const value = body[field] ?? undefined
      const refused = isTierPriced(pricing, name, value) ? undefined : dearer(field, value, STANDARD[name] ?? [])
      if (refused) throw refused
      return value !== undefined
    })
    if (second !== undefined) throw wrong(second, `is "${first}" in another spelling: send one of them.`)
  }
}

/** Each of several tools of a kind would have a price of its own, so all say the same. */
function checkOptions(body: Json, pricing: Pricing | undefined): void {
  const seen = new Map<string, string>()
  for (const { attribute, value, at, standard } of optionsOf(body)) {
    const said = String(value)
    if (!standard.includes(value) && !isTierPriced(pricing, attribute, said))
      throw invalid(
        `"${at}": ${valueWords(value)} may cost more at the vendor and has no price here ("${attribute}" in a "when" of the model's price sets one); leave it out.`,
        at,
      )
    if (seen.has(attribute) && seen.get(attribute) !== said)
      throw wrong(at, 'must be the same in all tools of a request.')
    seen.set(attribute, said)
  }
}

function dearer(name: string, value: unknown, standard: readonly unknown[]): Fault | undefined {
  if (value === undefined || standard.includes(value)) return undefined
  return invalid(
    `"${name}": ${valueWords(value)} may cost more at the vendor and has no price here ("multipliers" of the model's price set one); leave it out, or send one of ${standard.join(', ')}.`,
    name,
  )
}

/**
 * The fault for a tool that runs at the vendor; undefined if the catalog allows it. `counted`: those whose uses can
 * have a price there.
 */
export function hostedRefusal(
  hosted: string,
  at: string,
  traits: TextTraits,
  counted: readonly string[] = Object.keys(UNIT_OF),
): Fault | undefined {
  if (traits.hostedTools.includes(hosted)) return undefined
  const unit = counted.includes(hosted) ? UNIT_OF[hosted as CountedTool] : undefined // They are all there.
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
  if (pricing) checkOptions(body, pricing)
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
