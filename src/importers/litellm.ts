// Reads a configuration of LiteLLM's proxy as a catalog: deployments become vendors and routes, fallbacks become routes of a higher order.
// Reports for each setting whether it was taken, changed or left out, and why.
import { createReadStream } from 'node:fs'
import { glob } from 'node:fs/promises'
import { homedir } from 'node:os'
import { dirname, join } from 'node:path'
import { text as readText } from 'node:stream/consumers'
import type { ChosenModel } from '../catalog/connect.ts'
import type { CatalogInput } from '../catalog/document.ts'
import { filledAddress, type Preset } from '../catalog/preset.ts'
import { formatCredits, parseCredits } from '../kernel/credits.ts'
import type { KindName } from '../meter/kind.ts'
import { isObject } from '../protocols/check.ts'
import { type Deployment, type ImportOptions, isSameRoute, Placement, uidOf, withDeployment } from './deployment.ts'
import { ImportProblem, type Say } from './report.ts'

type ModelInput = CatalogInput['models'][string]
type RouteInput = ModelInput['routes'][number]

/** LiteLLM's provider names, and our preset names where they differ. */
const PRESET_OF: Readonly<Record<string, string>> = {
  ...{ vertex_ai: 'vertex', together_ai: 'together', fireworks_ai: 'fireworks', cohere_chat: 'cohere' },
  ...{ ollama_chat: 'ollama', hosted_vllm: 'vllm', lm_studio: 'lm-studio', 'openai-compatible': 'openai' },
}
const KINDS: Readonly<Record<string, KindName>> = {
  ...{ chat: 'text', completion: 'text', responses: 'text', embedding: 'embedding', image_generation: 'image' },
  ...{ rerank: 'rerank', moderation: 'moderation', ocr: 'ocr' },
}
const STRATEGIES: Readonly<Record<string, NonNullable<ModelInput['routing']>>> = {
  'simple-shuffle': { policy: 'weighted' },
  'latency-based-routing': { policy: 'least-latency' },
  'cost-based-routing': { policy: 'cheapest-first' },
}
/** The members of a deployment that are imported. */
const READ = new Set(['model', 'api_base', 'base_url', 'api_key', 'weight', 'custom_llm_provider', 'api_version'])
const READ_INFO = new Set(['mode', 'base_model', 'id'])
const LEFT_INFO: Readonly<Record<string, string>> = {
  team_id: 'Models are offered to all accounts; restrict keys with "tollgate keys create --models".',
  team_public_model_name: 'Models are offered to all accounts under one name.',
  access_groups: 'There are no groups of models; restrict keys with "tollgate keys create --models".',
}

interface LitellmOptions extends ImportOptions {
  readonly say: Say
  /** LiteLLM's own price table, if it is available. */
  readonly prices?: PriceTable | undefined
  /** Looks up an environment variable that may hold an address. */
  readonly variable?: (name: string) => string | undefined
  readonly placement?: Placement
}

interface Reading extends LitellmOptions {
  readonly placement: Placement
  /** The environment variables that the configuration itself sets. */
  readonly environment: Readonly<Record<string, unknown>>
}

export function importLitellm(config: unknown, current: CatalogInput, options: LitellmOptions): CatalogInput {
  const { say } = options
  const whole = isObject(config) ? config : {}
  const list = Array.isArray(whole.model_list) ? whole.model_list : []
  const { placement = new Placement(current, 'litellm', options) } = options
  const environment = isObject(whole.environment_variables) ? whole.environment_variables : {}
  const reading = { ...options, placement, environment }
  const read = list.flatMap((entry, index) =>
    expanded(entry, `model_list[${index}]`, reading).flatMap(({ entry: one, at }) => {
      const deployment = readDeployment(one, at, reading)
      return deployment ? [{ ...deployment, at }] : []
    }),
  )
  const groups = new Map<string, string>()
  const placed = new Map<string, ReturnType<Placement['model']>>()
  let document = current
  for (const { at, ...one } of read) {
    const wanted = uidOf(one.group)
    const place =
      placed.get(wanted) ??
      placement.model(
        wanted,
        read.filter(({ group }) => uidOf(group) === wanted),
        at,
        say,
      )
    placed.set(wanted, place)
    const made = withDeployment(document, one, place, options)
    if (made.problems.length > 0) {
      say(at, 'left', `${one.group}: ${made.problems.join(' ')} ${NO_PRICE}`)
      continue
    }
    groups.set(one.group, place.uid)
    document = made.document
    const where = `served by ${one.vendorName} as ${one.model}`
    say(at, place.uid === one.group ? 'taken' : 'changed', `${one.group} is offered as ${place.uid}, ${where}.`)
  }
  if (list.length === 0) say('model_list', 'left', 'There is no list of models.')
  document = withRouter(document, whole, { groups, placement, say })
  for (const name of Object.keys(whole)) if (!KNOWN.has(name)) say(name, 'left', 'It has no counterpart here.')
  return document
}

const NO_PRICE =
  'Give input_cost_per_token and output_cost_per_token in the file, or LiteLLM’s table of prices with --prices.'

/** A wildcard stands for every model of its provider: the preset's priced models are imported. */
function expanded(entry: unknown, at: string, { presets, say }: Reading): { entry: unknown; at: string }[] {
  const { model_name: group, litellm_params: params } = isObject(entry) ? entry : {}
  if (typeof group !== 'string' || !isObject(params) || typeof params.model !== 'string') return [{ entry, at }]
  if (!group.includes('*') && !params.model.includes('*')) return [{ entry, at }]
  const { provider, model } = providerOf(params.model, params.custom_llm_provider)
  const preset = presets.find(({ name }) => name === (PRESET_OF[provider] ?? provider))
  const names = Object.entries(preset?.models ?? {}).flatMap(([name, { usd }]) => (usd ? [name] : []))
  if (!/^[^*]*\*$/.test(model) || !/^[^*]*\*$/.test(group) || params.model === '*' || names.length === 0) {
    const why = `${group} is a wildcard of ${params.model}, for which no models are listed here`
    say(at, 'left', `${why}; name them with "tollgate connect".`)
    return []
  }
  const start = model.slice(0, -1)
  const chosen = names.filter((name) => name.startsWith(start))
  say(at, 'changed', `${group} is a wildcard: the ${chosen.length} models that the preset ${provider} lists are taken.`)
  return chosen.map((name) => ({
    at: `${at}.${name}`,
    entry: {
      ...(isObject(entry) ? entry : {}),
      model_name: group.replace('*', name.slice(start.length)),
      litellm_params: { ...params, model: `${provider}/${name}`, custom_llm_provider: undefined },
    },
  }))
}

const KNOWN = new Set([
  'model_list',
  'router_settings',
  'litellm_settings',
  'general_settings',
  'environment_variables',
])

type Members = Readonly<Record<string, unknown>>

function readDeployment(entry: unknown, at: string, reading: Reading): Deployment | undefined {
  const { say, placement, prices = {} } = reading
  const { model_name: group, litellm_params: params, model_info, ...others } = isObject(entry) ? entry : {}
  if (typeof group !== 'string' || !isObject(params) || typeof params.model !== 'string') {
    say(at, 'left', 'It names no model.')
    return undefined
  }
  const info = isObject(model_info) ? model_info : {}
  const { provider, model, formats } = providerOf(params.model, params.custom_llm_provider)
  const listed =
    entryOf(prices, [info.base_model, params.base_model, params.model, `${provider}/${model}`, model]) ?? {}
  const mode = String(info.mode ?? listed.mode ?? 'chat')
  const type = Object.hasOwn(KINDS, mode) ? KINDS[mode] : undefined
  if (!type) {
    say(at, 'left', `${group} is of the kind "${mode}", which is not offered here.`)
    return undefined
  }
  const preset = reading.presets.find(({ name }) => name === (PRESET_OF[provider] ?? provider))
  const base = baseOf(params.api_base ?? params.base_url, reading)
  const address = addressOf(provider, base, preset)
  if (address === undefined) {
    say(at, 'left', `${group}: ${addressUnknown(provider, base)}`)
    return undefined
  }
  sayLeft(at, { params, info, others }, say)
  const wanted = vendorNameOf(PRESET_OF[provider] ?? provider, base, params.api_key)
  const credential = credentialOf(params.api_key, { at, wanted, address, preset, reading })
  const { credential: _, ...known } = preset?.vendor ?? {}
  const { name: vendorName, entry: vendor } = placement.vendor(
    wanted,
    {
      // The preset's entry is validated with the whole document.
      ...(known as CatalogInput['vendors'][string]),
      baseUrl: address,
      ...(credential === undefined ? {} : { credential }),
    },
    at,
    say,
  )
  const own = { ...info, ...params }
  const cost =
    costOf(own, reading.creditsPerDollar) ?? (isFree(listed) ? undefined : costOf(listed, reading.creditsPerDollar))
  const weight = typeof params.weight === 'number' ? Math.max(1, Math.round(params.weight)) : undefined
  return { group, model, type, vendorName, preset, cost, formats, vendor, weight }
}

/** Reports each member that is not imported. */
function sayLeft(at: string, { params, info, others }: Record<'params' | 'info' | 'others', Members>, say: Say): void {
  for (const name of Object.keys(others)) say(`${at}.${name}`, 'left', 'Deployments have no such setting here.')
  for (const name of Object.keys(params))
    if (!READ.has(name) && !isCost(name) && params[name] !== undefined)
      say(`${at}.litellm_params.${name}`, 'left', 'Deployments have no such setting here.')
  if (params.api_version !== undefined) say(`${at}.litellm_params.api_version`, 'left', 'The v1 addresses need none.')
  for (const name of Object.keys(info))
    if (!READ_INFO.has(name) && !isCost(name))
      say(`${at}.model_info.${name}`, 'left', LEFT_INFO[name] ?? 'Models have no such setting here.')
}

function providerOf(
  model: string,
  custom: unknown,
): { provider: string; model: string; formats?: Deployment['formats'] } {
  const slash = model.indexOf('/')
  const isPrefixed = slash > 0 && (typeof custom !== 'string' || model.slice(0, slash) === custom)
  const provider = typeof custom === 'string' ? custom : isPrefixed ? model.slice(0, slash) : usualProvider(model)
  const rest = isPrefixed ? model.slice(slash + 1) : model
  if (/^(?:openai|azure)$/.test(provider) && rest.startsWith('responses/'))
    return { provider, model: rest.slice('responses/'.length), formats: [{ protocol: 'openai-responses' }] }
  // Prefixes that select LiteLLM's API for Bedrock; they are not part of the model's name.
  return { provider, model: provider === 'bedrock' ? rest.replace(/^(?:converse|invoke)\//, '') : rest }
}

/** LiteLLM finds the provider of a bare model name in its own table. */
function usualProvider(model: string): string {
  return /^claude/.test(model) ? 'anthropic' : /^gemini/.test(model) ? 'gemini' : 'openai'
}

const VARIABLE = 'os.environ/'

/** Resolves an address given as a variable: from the configuration, then from this command's environment. */
function baseOf(base: unknown, { environment, variable }: Reading): unknown {
  if (typeof base !== 'string' || !base.startsWith(VARIABLE)) return base
  const name = base.slice(VARIABLE.length)
  const value = Object.hasOwn(environment, name) ? environment[name] : variable?.(name)
  const address = typeof value === 'string' ? URL.parse(value) : null
  // Only a plain web address is accepted, because a variable may hold a secret.
  return address && /^https?:$/.test(address.protocol) && !address.username && !address.password ? value : base
}

function addressUnknown(provider: string, base: unknown): string {
  if (typeof base === 'string' && base.startsWith(VARIABLE))
    return `its address is in the variable ${base.slice(VARIABLE.length)}; set it for this command and run it again.`
  const why = typeof base === 'string' ? 'its address is none' : `the provider "${provider}" has no preset here`
  return `${why}; connect it with "tollgate connect".`
}

function addressOf(provider: string, base: unknown, preset: Preset | undefined): string | undefined {
  if (typeof base !== 'string') {
    const filled = preset && filledAddress(preset, {})
    return typeof filled === 'string' ? filled : undefined
  }
  if (base.startsWith(VARIABLE) || !/^https?:$/.test(URL.parse(base)?.protocol ?? '')) return undefined
  const bare = base.replace(/(?<!\/)\/+$/, '')
  if (provider === 'azure') return /\/openai\/v1$/.test(bare) ? bare : `${bare.replace(/\/openai$/, '')}/openai/v1`
  return /^ollama/.test(provider) && !bare.endsWith('/v1') ? `${bare}/v1` : bare
}

/** Deployments with the same address and key become one vendor. */
function vendorNameOf(provider: string, base: unknown, key: unknown): string {
  const host = typeof base === 'string' ? URL.parse(base)?.host : undefined
  const named = typeof key === 'string' && key.startsWith(VARIABLE) ? key.slice(VARIABLE.length) : undefined
  const usual = `${provider.toUpperCase().replaceAll(/[^A-Z0-9]+/g, '_')}_API_KEY`
  const parts = [provider, host, named === usual ? undefined : named].filter((part) => part !== undefined)
  return parts
    .join('-')
    .toLowerCase()
    .replaceAll(/[^a-z0-9._-]+/g, '-')
    .slice(0, 100)
}

interface Addressed {
  readonly at: string
  readonly wanted: string
  readonly address: string
  readonly preset: Preset | undefined
  readonly reading: Reading
}

/** The name of the credential's variable; undefined if the vendor needs no key. */
function credentialOf(key: unknown, { at, wanted, address, preset, reading }: Addressed): string | undefined {
  const { say, placement } = reading
  const given = typeof key === 'string' && key !== '' ? key : undefined
  const named = given?.startsWith(VARIABLE) ? given.slice(VARIABLE.length) : undefined
  const chosen = placement.credential(wanted, address, named, preset)
  const place = `${at}.litellm_params.api_key`
  const store = `Store it: tollgate vendors credential ${wanted}`
  if (given === undefined) {
    // A custom address may need no key, and the preset's key must not be sent to a stranger.
    const isUsual = chosen === preset?.vendor.credential
    if (!isUsual && preset?.vendor.credential !== undefined)
      say(
        place,
        'changed',
        `No key is named for ${address}, and none is sent there. If it needs one, connect it by hand.`,
      )
    return isUsual ? chosen : undefined
  }
  if (named === undefined) say(place, 'changed', `The key is in the file and is not copied. ${store}`)
  else if (named !== chosen)
    say(
      place,
      'changed',
      `${named} is not sent to ${address}: no vendor of its name is there. Set ${chosen}, or: ${store}`,
    )
  return chosen
}

function withRouter(given: CatalogInput, whole: Members, router: Omit<Router, 'at'>): CatalogInput {
  const { say } = router
  const document = { ...given, models: { ...given.models } }
  for (const section of ['router_settings', 'litellm_settings', 'general_settings', 'environment_variables'] as const) {
    const settings = isObject(whole[section]) ? whole[section] : {}
    for (const [name, value] of Object.entries(settings)) {
      const at = `${section}.${name}`
      if (name === 'fallbacks') addFallbacks(document, value, { ...router, at })
      else if (name === 'model_group_alias') addAliases(document, value, { ...router, at })
      else if (name === 'routing_strategy') setStrategy(document, value, { ...router, at })
      else say(at, 'left', LEFT[name] ?? 'It has no counterpart here.')
    }
  }
  return document
}

const LEFT: Readonly<Record<string, string>> = {
  master_key: 'The gateway has an operator token of its own.',
  database_url: 'Keys, teams and budgets are imported with --database.',
  max_budget: 'Set a limit instead: tollgate limits, or spendPerMonth of an account or key.',
  num_retries: 'A route is left for the next one when its vendor fails; one that is alone is tried twice.',
  drop_params: 'Parameters that a model rejects are a trait of its family here.',
}

interface Router {
  readonly groups: ReadonlyMap<string, string>
  readonly placement: Placement
  readonly say: Say
  readonly at: string
}

const STAYS = 'is here already and stays as it is; --replace changes it.'

/** Adds the fallback models' routes after the model's own routes. */
function addFallbacks({ models }: CatalogInput, value: unknown, { groups, placement, say, at }: Router): void {
  const pairs = (Array.isArray(value) ? value : []).flatMap((one) => (isObject(one) ? Object.entries(one) : []))
  for (const [from, to] of pairs) {
    const uid = groups.get(from)
    const model = uid === undefined ? undefined : models[uid]
    if (uid === undefined || !model) {
      say(at, 'left', `${from} is not among the models that were taken.`)
      continue
    }
    if (!placement.isChangeable(uid)) {
      say(at, 'left', `${uid} ${STAYS}`)
      continue
    }
    const others = new Map<string, RouteInput[]>()
    for (const name of Array.isArray(to) ? to.map(String) : []) {
      const other = models[groups.get(name) ?? '']
      if (!other || other.type !== model.type) say(at, 'left', `${name} cannot replace ${from}.`)
      else {
        others.set(
          name,
          other.routes.map((route) => ({ ...route, model: route.model ?? name })),
        )
        say(at, 'changed', `When ${from} fails, the routes of ${name} are tried; the caller pays the price of ${from}.`)
      }
    }
    models[uid] = { ...model, routes: behind(uid, model.routes, [...others.values()]) }
  }
}

/** Orders the fallbacks after the model's own routes, one after the other. Fallback routes from an earlier import are moved to their new place. */
function behind(uid: string, routes: readonly RouteInput[], others: readonly RouteInput[][]): RouteInput[] {
  const own = routes.filter((route) => !others.flat().some((other) => isSameRoute(route, other, uid)))
  // The model would only be its own fallback, so nothing changes.
  if (own.length === 0) return [...routes]
  const last = Math.max(...own.map((route) => route.order ?? 0))
  return [...own, ...others.flatMap((one, place) => one.map((route) => ({ ...route, order: last + 1 + place })))]
}

/** An alias is a name or an object that contains one; it may refer to another alias. */
function addAliases({ models }: CatalogInput, value: unknown, { groups, placement, say, at }: Router): void {
  const aliases = new Map(
    (isObject(value) ? Object.entries(value) : []).map(([alias, to]) => [alias, isObject(to) ? to.model : to]),
  )
  for (const [alias, to] of isObject(value) ? Object.entries(value) : []) {
    const target = String(followed(alias, aliases))
    const own = groups.get(target) ?? ''
    const model = models[own]
    if (!model) {
      say(at, 'left', `${target} is not among the models that were taken.`)
      continue
    }
    if (isObject(to) && to.hidden === true) say(`${at}.${alias}.hidden`, 'left', 'Whatever is offered is listed.')
    const routes = model.routes.map((route) => ({ ...route, model: route.model ?? own }))
    const wanted = routes.map(({ vendor, model: name }) => ({ vendorName: vendor, model: name }))
    const { uid, kept } = placement.model(uidOf(alias), wanted, at, say)
    if (!kept) models[uid] = { ...model, name: alias, routes }
    say(at, 'changed', `${alias} is a model of its own, ${uid}, with the routes and the price of ${target}.`)
  }
}

function followed(alias: string, aliases: ReadonlyMap<string, unknown>): unknown {
  const seen = new Set<unknown>()
  let name: unknown = alias
  while (typeof name === 'string' && aliases.has(name) && !seen.has(name)) {
    seen.add(name)
    name = aliases.get(name)
  }
  return name
}

function setStrategy({ models }: CatalogInput, value: unknown, { groups, placement, say, at }: Router): void {
  const routing = STRATEGIES[String(value)]
  if (!routing) {
    say(at, 'left', `"${String(value)}" has no counterpart here; calls are shared by weight.`)
    return
  }
  for (const uid of new Set(groups.values())) {
    const model = models[uid]
    if (model && placement.isChangeable(uid)) models[uid] = { ...model, routing }
    else say(at, 'left', `${uid} ${STAYS}`)
  }
  say(at, 'taken', `Routes of equal order are chosen ${routing.policy}.`)
}

// Costs that LiteLLM knows: from the deployment, from its `model_info`, and from the price table of its package.

/** Entries by model name, with or without the provider as a prefix. */
type PriceTable = Readonly<Record<string, unknown>>

const TABLE = 'litellm/model_prices_and_context_window_backup.json'
const TABLE_BYTES_MAX = 32 * 1024 * 1024

/** Where Python packages are installed: in environments beside the configuration, for the user, for the machine. */
function packagesNear(file: string | undefined): string[] {
  const places = [...new Set([file === undefined ? '.' : dirname(file), '.'])]
  return [
    ...places.flatMap((place) => ['.venv', 'venv', 'env'].map((name) => join(place, name, 'lib'))),
    ...[join(homedir(), '.local', 'lib'), '/usr/local/lib', '/usr/lib'],
  ].map((lib) => `${lib}/python3*/{site,dist}-packages/${TABLE}`)
}

/** Reads the table from this file; without one, from the installed package nearest to the configuration. */
export async function readPriceTable(
  file: string | undefined,
  config: string | undefined,
): Promise<{ readonly path: string; readonly table: PriceTable } | undefined> {
  if (file !== undefined) return { path: file, table: await readTable(file) }
  for (const pattern of packagesNear(config))
    for await (const path of glob(pattern)) return { path, table: await readTable(path) }
  return undefined
}

async function readTable(file: string): Promise<PriceTable> {
  try {
    const content = await readText(createReadStream(file, { end: TABLE_BYTES_MAX }))
    if (content.length > TABLE_BYTES_MAX) throw new ImportProblem(`${file} is too large for a table of prices.`)
    const table: unknown = JSON.parse(content)
    if (isObject(table)) return table
  } catch (error) {
    if (error instanceof ImportProblem) throw error
    throw new ImportProblem(
      `${file} cannot be read as a table of prices: ${error instanceof Error ? error.message : ''}.`,
    )
  }
  throw new ImportProblem(`${file} is not a table of prices: it should contain an object.`)
}

/** The table's entry for a deployment, looked up by its base model, its full name, then its bare name. */
function entryOf(table: PriceTable, names: readonly unknown[]): Members | undefined {
  for (const name of names) {
    const entry = typeof name === 'string' && Object.hasOwn(table, name) ? table[name] : undefined
    if (isObject(entry)) return entry
  }
  return undefined
}

/** LiteLLM's names for rates per token, and our units. */
const RATES = {
  input_cost_per_token: 'input',
  output_cost_per_token: 'output',
  cache_read_input_token_cost: 'cachedInput',
  cache_creation_input_token_cost: 'cacheWrite',
  cache_creation_input_token_cost_above_1hr: 'cacheWriteHour',
} as const
const IMAGE = 'output_cost_per_image'
const ABOVE = /^(\w+?)_above_(\d{1,5})k_tokens$/

/** Whether a member is a cost that is imported. */
function isCost(name: string): boolean {
  const [, base] = ABOVE.exec(name) ?? []
  return name in RATES || name === IMAGE || (base !== undefined && base in RATES)
}

/** Without trailing zeros: 10 and not 10.000000. */
const shortest = (decimal: string) => formatCredits(parseCredits(decimal) ?? 0n)

/** Converts dollars per token to credits per million, with one tier for each threshold in a member's name. */
function costOf(members: Members, creditsPerDollar: string): ChosenModel['cost'] {
  const rate = (name: string, per: number) => {
    const value = members[name]
    const dollars = typeof value === 'number' || (typeof value === 'string' && value.trim() !== '') ? Number(value) : -1
    return Number.isFinite(dollars) && dollars >= 0
      ? shortest((dollars * per * Number(creditsPerDollar)).toFixed(6))
      : undefined
  }
  const image = rate(IMAGE, 1)
  const bounds = [
    ...new Set(Object.keys(members).flatMap((name) => (isCost(name) ? (ABOVE.exec(name)?.[2] ?? []) : []))),
  ]
    .map(Number)
    .sort((a, b) => a - b)
  const tierAbove = (above: readonly number[]) =>
    Object.fromEntries(
      Object.entries(RATES).flatMap(([name, unit]) => {
        const names = [...above.map((bound) => `${name}_above_${bound}k_tokens`).reverse(), name]
        const found = names.map((one) => rate(one, 1_000_000)).find((one) => one !== undefined)
        return found === undefined ? [] : [[unit, found]]
      }),
    )
  const tiers = [0, ...bounds].map((_, place) => ({
    ...(place < bounds.length ? { upTo: (bounds[place] ?? 0) * 1_000 } : {}),
    ...tierAbove(bounds.slice(0, place)),
    ...(image === undefined ? {} : { image }),
  }))
  const [first = {}] = tiers
  if (Object.keys(first).every((name) => name === 'upTo')) return undefined
  return { unit: 'credits', ...(bounds.length > 0 ? { tokenTierBasis: 'input_tokens' as const } : {}), tiers }
}

/** Whether all prices are zero, which in this table means that the price is unknown. */
function isFree(members: Members): boolean {
  return Object.keys(RATES).every((name) => !members[name]) && !members[IMAGE]
}
