// What happens on the vendor's side only: tools that the vendor runs and bills by use are refused where there is no price for
// them, unless the catalog lets them through; so is what makes the same tokens dearer than the catalog knows; answers
// that the vendor keeps are refused where the catalog says so.

import type { TextTraits } from '../../catalog/traits.ts'
import { Fault, invalid } from '../../kernel/fault.ts'
import { type JsonText, readJson, splice } from '../../kernel/json.ts'
import type { Pricing } from '../../meter/price.ts'
import { isObject, type Json, objects, shown, text } from '../check.ts'
import { isTierPriced, spellingsOf, unitOf } from './extras.ts'

/** Typed tools carry a date in some formats: `web_search_20260318`. */
const HOSTED = [
  'web_search',
  'file_search',
  'code_interpreter',
  'code_execution',
  'image_generation',
  'advisor',
  // Of other vendors that speak these formats.
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
 * Clients offer web search in every request, whether or not it is wanted: while the choice of tools is the model's, the
 * request is answered without it, and the caller is told. A request that demands it is refused by the check below.
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

/** SDKs know the code, and send the conversation whole. */
export function threadUnsupported(why: string): Fault {
  return new Fault('request_invalid', {
    message: `"thread": ${why}; send the whole conversation, without "thread".`,
    param: 'thread',
    errorDetails: { error_code: 'thread_unsupported_request' },
  })
}

/** Values that cost no more than the standard; a vendor's newest may cost anything. */
const STANDARD = Object.entries<readonly unknown[]>({
  service_tier: ['auto', 'default', 'standard', 'standard_only', 'flex', 'scale'],
  speed: ['standard'],
  inference_geo: ['global'],
}).map(([name, values]) => ({ name, values, spellings: spellingsOf(name) }))
/** What vendors price higher than the catalog does. */
function checkExtras(body: Json, pricing: Pricing | undefined): void {
  for (const { name, values, spellings } of STANDARD) {
    const [first, second] = spellings.filter((field) => {
      const value = body[field] ?? undefined
      const refused = isTierPriced(pricing, name, value) ? undefined : dearer(field, value, values)
      if (refused) throw refused
      return value !== undefined
    })
    if (second !== undefined) throw invalid(`"${second}" is "${first}" in another spelling: send one of them.`, second)
  }
}

function dearer(name: string, value: unknown, standard: readonly unknown[]): Fault | undefined {
  if (value === undefined || standard.includes(value)) return undefined
  return invalid(
    `"${name}": ${shown(value)} may cost more at the vendor and has no price here ("multipliers" of the model's price set one); leave it out, or send one of ${standard.join(', ')}.`,
    name,
  )
}

/** A tool that runs at the vendor; undefined when the catalog lets it through. */
export function hostedRefusal(hosted: string, at: string, traits: TextTraits): Fault | undefined {
  if (traits.hostedTools.includes(hosted)) return undefined
  const unit = unitOf(hosted)
  const setting = unit === undefined ? '' : ` ("${unit}" of the model's price sets one)`
  return invalid(
    `"${at}": the tool "${hosted}" runs at the vendor and has no price here${setting}; use function tools.`,
    at,
  )
}

/** Also those that stand in another, where no price looks for them. */
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
  // It runs at the caller's only where that is said.
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
      throw invalid(
        `"${name}" refers to what a vendor keeps, which is not shared between accounts here; send the whole conversation as "input".`,
        name,
      )
  objects(body.input).forEach((item, i) => {
    if (item.type === 'item_reference')
      throw invalid(
        `"input[${i}]" refers to an item that a vendor keeps; send the item itself, with "store": false.`,
        `input[${i}]`,
      )
  })
}
