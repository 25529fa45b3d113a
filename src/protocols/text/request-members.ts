// Which request members are forwarded to a vendor: one table for each client format. Members that spend the operator's
// money or act for the operator are priced, rejected or left out by name. Unknown members go only to the format's own
// maker, where new features begin.
import type { TextBody } from '../../catalog/text-bodies.ts'
import { type Fault, invalid } from '../../kernel/fault.ts'
import { edited, isObject, type Json, type JsonText, withMembers } from '../../kernel/json.ts'
import { words } from '../../kernel/words.ts'
import { Fields, wrong } from '../check.ts'

/**
 * `pass`: part of the format or common among its vendors; its cost is in the price or in the reported tokens. `limit`:
 * another name of the output limit. `drop`: left out for every vendor. `refuse`: a 400, unless the model's
 * `hostedTools` allow it.
 */
type Rule = 'pass' | 'limit' | 'drop' | 'refuse'
type Table = ReadonlyMap<string, Rule>

/** Members that search, call other models, use the operator's resources at the vendor, or multiply the work. */
const SPENDING = words(`
  models fallbacks provider preset plugins extra_body data_sources compound_custom search_settings search_parameters enable_search connectors
  search_mode search_domain_filter search_recency_filter search_after_date_filter search_before_date_filter search_context_size return_images
  return_related_questions deferred best_of use_beam_search beam_width num_return_sequences chat_template lora lora_request agents guardrails
`)
/** They name other models, for which neither the price nor the key's restrictions would apply. */
const OTHER_MODELS: ReadonlySet<string> = new Set(['fallbacks'])
/** Settings of proxies and servers; they belong to the operator and have no meaning here. */
const OPERATORS = words(`
  route transforms api_base base_url api_key api_version extra_headers headers organization proxy timeout custom_llm_provider mock_response
  priority request_id kv_transfer_params vllm_xargs id_slot slot_id cache_salt bootstrap_host bootstrap_port bootstrap_room betas
`)
const LIMITS = words(
  'max_tokens max_completion_tokens max_output_tokens max_new_tokens max_tokens_to_sample n_predict num_predict',
)

/** `forwarded`: the documented members, and those common among the format's other vendors. */
function tableOf(forwarded: readonly string[], refuse: readonly string[] = []): Table {
  return new Map<string, Rule>([
    ...[...SPENDING, ...refuse].map((name) => [name, 'refuse'] as const),
    ...OPERATORS.map((name) => [name, 'drop'] as const),
    ...forwarded.map((name) => [name, 'pass'] as const),
    ...LIMITS.map((name) => [name, 'limit'] as const),
  ])
}

/** What is known of the members of a text format's requests. */
export interface Members {
  readonly table: Table
  /** The format's own names of the output limit. */
  readonly limits: readonly string[]
  /** Members inside others that are refused like those of the table, by where they stand. */
  readonly inside?: ((value: Json) => Iterable<readonly [at: string, value: unknown]>) | undefined
}

/** Whether a member goes to every vendor of the format as it is. Of two limits, one is left out. */
export const passes = ({ table, limits }: Members, name: string): boolean =>
  table.get(name) === 'pass' || limits.includes(name)

export function membersOf(
  { forwarded, limits }: Pick<TextBody, 'forwarded' | 'limits'>,
  { refused = [], inside }: { readonly refused?: readonly string[] } & Pick<Members, 'inside'> = {},
): Members {
  for (const name of refused) DECIDING.add(name)
  return { table: tableOf(forwarded, refused), limits, inside }
}

/** Every name that decides the route or the cost, or that a table rejects or leaves out. */
const DECIDING = new Set([
  ...SPENDING,
  ...OPERATORS,
  ...LIMITS,
  ...words(`model messages input prompt instructions system documents query n stream stream_options thinking tools functions web_search_options
    service_tier speed inference_geo store background previous_response_id conversation thread container mcp_servers modalities audio
    prediction chat_template_kwargs images inputs image image_url`),
])
export const isDeciding = (name: string) => DECIDING.has(name)

/** Whether a value has no effect, so that clients may send it with every request. */
function isIdle(name: string, value: unknown): boolean {
  if (value === undefined || value === null || value === false) return true
  if (Array.isArray(value)) return value.length === 0
  if (name === 'search_parameters') return isObject(value) && value.mode === 'off'
  if (name === 'best_of' || name === 'num_return_sequences') return value === 1
  return value === '' || (isObject(value) && Object.keys(value).length === 0)
}

function refusalOf(name: string): Fault {
  const why = OTHER_MODELS.has(name)
    ? 'only "model" is asked and priced here; leave it out, and try another model yourself'
    : 'what it does at the vendor is paid or set up by the operator and has no price here; leave it out'
  return invalid(`"${name}": ${why}.`, name)
}

/**
 * Rejects, leaves out and normalizes what the table names, so that a single output limit is left; `allowed` are members
 * that the operator permits. `unknown` members are only for the format's own maker.
 */
export function admitMembers(members: Members, json: JsonText, allowed: readonly string[] = []) {
  const { table, limits: own } = members
  const unknown: string[] = []
  const remove: string[] = []
  const limits: string[] = []
  for (const name of Object.keys(json.value)) {
    const rule = table.get(name)
    if (rule === 'pass' || allowed.includes(name)) continue
    if (rule === 'limit' && own.length > 0) limits.push(name)
    else if (rule === 'refuse' && !isIdle(name, json.value[name])) throw refusalOf(name)
    else if (rule === undefined) unknown.push(name)
    else remove.push(name)
  }
  for (const [at, value] of members.inside?.(json.value) ?? []) if (!isIdle(at, value)) throw refusalOf(at)
  const [only] = limits
  const isPlain = only === undefined || (limits.length === 1 && own.includes(only)) // The usual case.
  const limit = isPlain ? undefined : oneLimit(own, new Fields(json), limits)
  if (!isPlain) remove.push(...limits.filter((name) => name !== limit?.name))
  if (remove.length === 0) return { json, unknown }
  return { json: withMembers(json, limit ? { [limit.name]: String(limit.value) } : {}, remove), unknown }
}

/**
 * Reduces the limit to one name. In chat, `max_completion_tokens` takes precedence, as the contract says; any other
 * name must have the same value, because a vendor that knows it would use it.
 */
function oneLimit(
  own: readonly string[],
  fields: Fields,
  names: readonly string[],
): { name: string; value: number } | undefined {
  const given = [...own, ...names.filter((name) => !own.includes(name))].flatMap((name) => {
    const value = fields.get(name)
    // For the other names, a negative value means no limit.
    if (value === undefined || (!own.includes(name) && typeof value === 'number' && value < 0)) return []
    return [{ name, value: fields.integer(name, 0) ?? 0 }]
  })
  const [first] = given
  if (!first) return undefined
  const other = given.find(({ name, value }) => value !== first.value && !own.includes(name))
  if (other)
    throw wrong(other.name, `and "${first.name}" are two names of one limit and must not differ: send one of them.`)
  return { name: own.at(-1) ?? first.name, value: first.value }
}

/** The request for a vendor that is not the format's own maker. */
export function withoutUnknown(json: JsonText, unknown: readonly string[]): JsonText {
  return unknown.length === 0 ? json : edited(json, { remove: unknown })
}
