// Reads a configuration of LiteLLM's proxy as a catalog: deployments become vendors and routes, fallbacks become routes
// of a higher order. Reports for each setting whether it was taken, changed or left out, and why.

import { type CatalogInput, checkDocument } from '../../catalog/document.ts'
import type { Preset } from '../../catalog/preset.ts'
import { isObject, objectOf, objects } from '../../kernel/json.ts'
import type { KindName } from '../../meter/kind.ts'
import { filledAddress, filledIn } from '../connection/filled-preset.ts'
import { type Deployment, type ImportOptions, isSameRoute, Placement, uidOf, withDeployment } from './deployment.ts'
import { costOf, entryOf, isCost, isFree, listedCosts, type PriceTable, withMissing } from './litellm-costs.ts'
import type { Say } from './report.ts'

type ModelInput = CatalogInput['models'][string]
type RouteInput = ModelInput['routes'][number]

/** LiteLLM's provider names, and our preset names where they differ; for clouds, by the model. */
const PRESET_OF: readonly (readonly [provider: string, preset: string, model?: RegExp])[] = [
  ...([
    ['vertex_ai', 'vertex-anthropic', /^claude/],
    ['vertex_ai', 'vertex-gemini', /^gemini/],
  ] as const),
  ...([
    ['bedrock', 'bedrock-invoke', /anthropic\./],
    ['vertex_ai', 'vertex'],
    ['cohere_chat', 'cohere'],
  ] as const),
  ...([
    ['together_ai', 'together'],
    ['fireworks_ai', 'fireworks'],
    ['ollama_chat', 'ollama'],
  ] as const),
  ...([
    ['hosted_vllm', 'vllm'],
    ['lm_studio', 'lm-studio'],
    ['openai-compatible', 'openai'],
  ] as const),
]
const presetOf = (provider: string, model: string) =>
  PRESET_OF.find(([name, , only]) => name === provider && (only?.test(model) ?? true))?.[1] ?? provider
/** The members of a deployment that fill a preset's address. */
const VARIABLES = { project: 'vertex_project', location: 'vertex_location', region: 'aws_region_name' } as const
const KINDS: Readonly<Record<string, KindName>> = {
  chat: 'text',
  completion: 'text',
  responses: 'text',
  embedding: 'embedding',
  image_generation: 'image',
  rerank: 'rerank',
  moderation: 'moderation',
  ocr: 'ocr',
  realtime: 'realtime',
  audio_transcription: 'transcription',
  audio_speech: 'speech',
}
const STRATEGIES: Readonly<Record<string, NonNullable<ModelInput['routing']>>> = {
  'simple-shuffle': { policy: 'weighted' },
  'latency-based-routing': { policy: 'least-latency' },
  'cost-based-routing': { policy: 'cheapest-first' },
}
/** The members of a deployment that are imported. */
const READ = new Set([
  'model',
  'api_base',
  'base_url',
  'api_key',
  'weight',
  'custom_llm_provider',
  'api_version',
  'litellm_credential_name',
  ...Object.values(VARIABLES),
])
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
  /** What deployments that name a credential have in common. */
  readonly credentials: ReadonlyMap<unknown, Members>
}

export function importLitellm(config: unknown, current: CatalogInput, options: LitellmOptions): CatalogInput {
  const { say } = options
  const whole = isObject(config) ? config : {}
  const list = Array.isArray(whole.model_list) ? whole.model_list : []
  const { placement = new Placement(current, 'litellm', options) } = options
  const environment = isObject(whole.environment_variables) ? whole.environment_variables : {}
  const credentials = new Map(
    objects(whole.credential_list).map((one) => [one.credential_name, objectOf(one.credential_values)]),
  )
  const reading = { ...options, placement, environment, credentials }
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
    const problems = made.problems.length > 0 ? made.problems : problemsWith(made.document, place.uid, one.vendorName)
    if (problems.length > 0) {
      const why = problems.join(' ')
      say(at, 'left', `${one.group}: ${why}${/price/.test(why) ? NO_PRICE : ''}`)
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

/** What would make the document invalid, so that one entry does not fail a whole file. */
function problemsWith(document: CatalogInput, uid: string, vendorName: string): string[] {
  const { [uid]: model } = document.models
  const checked = checkDocument({ ...document, models: model ? { [uid]: model } : {} })
  const own = [`models.${uid}.`, `vendors.${vendorName}.`]
  return checked.ok ? [] : checked.problems.filter((problem) => own.some((start) => problem.startsWith(start)))
}

const NO_PRICE =
  ' Give input_cost_per_token and output_cost_per_token in the file, or LiteLLM’s table of prices with --prices.'

/** A wildcard stands for every model of its provider: the preset's priced models are imported. */
function expanded(entry: unknown, at: string, { presets, say }: Reading): { entry: unknown; at: string }[] {
  const { model_name: group, litellm_params: params } = isObject(entry) ? entry : {}
  if (typeof group !== 'string' || !isObject(params) || typeof params.model !== 'string') return [{ entry, at }]
  if (!group.includes('*') && !params.model.includes('*')) return [{ entry, at }]
  const { provider, model } = providerOf(params.model, params.custom_llm_provider)
  const preset = presets.find(({ name }) => name === presetOf(provider, model))
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
  'credential_list',
  'model_list',
  'router_settings',
  'litellm_settings',
  'general_settings',
  'environment_variables',
])

type Members = Readonly<Record<string, unknown>>

function readDeployment(entry: unknown, at: string, reading: Reading): Deployment | undefined {
  const { say, placement, prices = {} } = reading
  const { model_name: group, litellm_params: given, model_info, ...others } = isObject(entry) ? entry : {}
  if (typeof group !== 'string' || !isObject(given) || typeof given.model !== 'string') {
    say(at, 'left', 'It names no model.')
    return undefined
  }
  const params: Members & { model: string } = {
    ...reading.credentials.get(given.litellm_credential_name),
    ...given,
    model: given.model,
  }
  const info = isObject(model_info) ? model_info : {}
  const { provider, model, formats } = providerOf(params.model, params.custom_llm_provider)
  const listed =
    entryOf(prices, [info.base_model, params.base_model, params.model, `${provider}/${model}`, model]) ?? {}
  const preset = reading.presets.find(({ name }) => name === presetOf(provider, model))
  const facts = preset && Object.hasOwn(preset.models, model) ? preset.models[model] : undefined
  const mode = info.mode ?? listed.mode
  const type = mode == null ? (facts?.type ?? 'text') : Object.hasOwn(KINDS, String(mode)) && KINDS[String(mode)]
  if (!type) {
    say(at, 'left', `${group} is of the kind "${mode}", which is not offered here.`)
    return undefined
  }
  const base = baseOf(params.api_base ?? params.base_url, reading)
  const filling = variablesOf(params)
  const place = base ?? (preset && filledAddress(preset, filling))
  const address = addressOf(provider, place)
  if (address === undefined) {
    say(at, 'left', `${group}: ${addressUnknown(provider, base, preset)}`)
    return undefined
  }
  sayLeft(at, { params, info, others }, say)
  const wanted = vendorNameOf(preset?.name ?? provider, Object.keys(filling).length > 0 ? place : base, params.api_key)
  const credential = credentialOf(params.api_key, { at, wanted, address, preset, reading })
  const { credential: _, ...known } = preset?.vendor ?? {}
  const { name: vendorName, entry: vendor } = placement.vendor(
    wanted,
    {
      // The preset's entry is validated with the whole document.
      ...(filledIn(known, filling) as CatalogInput['vendors'][string]),
      baseUrl: address,
      ...(credential === undefined ? {} : { credential }),
    },
    at,
    say,
  )
  const own = withMissing({ ...info, ...params }, { ...listedCosts(facts?.usd), ...listed })
  const cost =
    costOf(own, type, reading.creditsPerDollar) ??
    (isFree(listed) ? undefined : costOf(listed, type, reading.creditsPerDollar))
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

function addressUnknown(provider: string, base: unknown, preset: Preset | undefined): string {
  if (typeof base === 'string' && base.startsWith(VARIABLE))
    return `its address is in the variable ${base.slice(VARIABLE.length)}; set it for this command and run it again.`
  if (preset && base === undefined) {
    const needs = Object.keys(preset.variables).map(
      (name) => Object.entries(VARIABLES).find(([one]) => one === name)?.[1] ?? 'api_base',
    )
    return `its address needs ${[...new Set(needs)].join(' and ')} in the file; or connect it with "tollgate connect".`
  }
  const why = typeof base === 'string' ? 'its address is none' : `the provider "${provider}" has no preset here`
  return `${why}; connect it with "tollgate connect".`
}

/** Values that are variables are not looked up: an address is no place for a secret. */
function variablesOf(params: Members): Record<string, string> {
  const given = Object.entries(VARIABLES).flatMap(([name, member]): [string, string][] => {
    const value = params[member]
    // The address of "global" has another form.
    return typeof value === 'string' && /^[a-z0-9-]{1,63}$/.test(value) && value !== 'global' ? [[name, value]] : []
  })
  return Object.fromEntries(given)
}

function addressOf(provider: string, base: unknown): string | undefined {
  if (typeof base !== 'string' || base.startsWith(VARIABLE) || !/^https?:$/.test(URL.parse(base)?.protocol ?? ''))
    return undefined
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

/**
 * Orders the fallbacks after the model's own routes, one after the other. Fallback routes from an earlier import are
 * moved to their new place.
 */
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
