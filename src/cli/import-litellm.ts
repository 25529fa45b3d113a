// A configuration of LiteLLM's proxy as a catalogue: its deployments become vendors and routes, its fallbacks routes of a higher
// order. Says of every setting whether it was taken, changed or left, and why.

import type { ChosenModel } from '../catalog/connect.ts'
import type { CatalogInput } from '../catalog/document.ts'
import type { KindName } from '../catalog/kind.ts'
import { filledAddress, type Preset } from '../catalog/preset.ts'
import { formatCredits, parseCredits } from '../kernel/credits.ts'
import { isObject } from '../protocols/check.ts'
import { type Deployment, type ImportOptions, isSameRoute, uidOf, withDeployment } from './import-deployment.ts'
import type { Say } from './import-report.ts'

type ModelInput = CatalogInput['models'][string]
type RouteInput = ModelInput['routes'][number]

/** LiteLLM's word for a provider, and ours where it is another. */
const PRESET_OF: Readonly<Record<string, string>> = {
  ...{ vertex_ai: 'vertex', together_ai: 'together', fireworks_ai: 'fireworks', cohere_chat: 'cohere' },
  ...{ ollama_chat: 'ollama', hosted_vllm: 'vllm', lm_studio: 'lm-studio', 'openai-compatible': 'openai' },
}
const KINDS: Readonly<Record<string, KindName>> = {
  ...{ chat: 'text', completion: 'text', responses: 'text', embedding: 'embedding', image_generation: 'image' },
}
const STRATEGIES: Readonly<Record<string, NonNullable<ModelInput['routing']>>> = {
  'simple-shuffle': { policy: 'weighted' },
  'latency-based-routing': { policy: 'least-latency' },
  'cost-based-routing': { policy: 'cheapest-first' },
}
/** Of a deployment: what is read below. */
const READ = new Set([
  'model',
  'api_base',
  'base_url',
  'api_key',
  'weight',
  'custom_llm_provider',
  'input_cost_per_token',
  'output_cost_per_token',
  'api_version',
])

export function importLitellm(
  config: unknown,
  current: CatalogInput,
  options: ImportOptions & { readonly say: Say },
): CatalogInput {
  const { say } = options
  const whole = isObject(config) ? config : {}
  const list = Array.isArray(whole.model_list) ? whole.model_list : []
  const groups = new Map<string, string>()
  let document = current
  for (const [index, entry] of list.entries()) {
    const at = `model_list[${index}]`
    const read = readDeployment(entry, at, say, options)
    if (!read) continue
    const uid = groups.get(read.group) ?? uidOf(read.group)
    const made = withDeployment(document, read, uid, options)
    if (made.problems.length > 0) {
      say(at, 'left', made.problems.join(' '))
      continue
    }
    groups.set(read.group, uid)
    document = made.document
    const where = `served by ${read.vendorName} as ${read.model}`
    say(at, uid === read.group ? 'taken' : 'changed', `${read.group} is offered as ${uid}, ${where}.`)
  }
  if (list.length === 0) say('model_list', 'left', 'There is no list of models.')
  document = withRouter(document, whole, groups, say)
  for (const name of Object.keys(whole)) if (!KNOWN.has(name)) say(name, 'left', 'It has no counterpart here.')
  return document
}

const KNOWN = new Set([
  'model_list',
  'router_settings',
  'litellm_settings',
  'general_settings',
  'environment_variables',
])

function readDeployment(entry: unknown, at: string, say: Say, options: ImportOptions): Deployment | undefined {
  const { model_name: group, litellm_params: params, model_info: info = {} } = isObject(entry) ? entry : {}
  if (typeof group !== 'string' || !isObject(params) || typeof params.model !== 'string') {
    say(at, 'left', 'It names no model.')
    return undefined
  }
  const mode = isObject(info) && typeof info.mode === 'string' ? info.mode : 'chat'
  const type = KINDS[mode]
  if (!type) {
    say(at, 'left', `${group} is of the kind "${mode}", which is not offered here.`)
    return undefined
  }
  const { provider, model } = providerOf(params.model, params.custom_llm_provider)
  const preset = options.presets.find(({ name }) => name === (PRESET_OF[provider] ?? provider))
  const base = params.api_base ?? params.base_url
  const address = addressOf(provider, base, preset)
  if (address === undefined) {
    const why =
      typeof base === 'string' ? `its address ${base} is in LiteLLM's environment` : 'its address is not known'
    say(
      at,
      'left',
      `${group}: the provider "${provider}" has no preset here, or ${why}; connect it with "tollgate connect".`,
    )
    return undefined
  }
  const vendorName = vendorNameOf(PRESET_OF[provider] ?? provider, base, params.api_key)
  const credential = credentialOf(params.api_key, vendorName, preset)
  if (credential.inFile)
    say(
      `${at}.litellm_params.api_key`,
      'changed',
      `The key stands in the file and is not copied. Store it: tollgate vendors credential ${vendorName}`,
    )
  for (const name of Object.keys(params))
    if (!READ.has(name)) say(`${at}.litellm_params.${name}`, 'left', 'Deployments have no such setting here.')
  if (params.api_version !== undefined) say(`${at}.litellm_params.api_version`, 'left', 'The v1 addresses need none.')
  return {
    ...{ group, model, type, vendorName, preset, cost: costOf(params, isObject(info) ? info : {}, options) },
    vendor: {
      // The preset's entry is checked with the document that it becomes a part of.
      ...(preset?.vendor as CatalogInput['vendors'][string] | undefined),
      baseUrl: address,
      ...(credential.name === undefined ? {} : { credential: credential.name }),
    },
    weight: typeof params.weight === 'number' ? Math.max(1, Math.round(params.weight)) : undefined,
  }
}

function providerOf(model: string, custom: unknown): { provider: string; model: string } {
  if (typeof custom === 'string') return { provider: custom, model }
  const slash = model.indexOf('/')
  if (slash > 0) return { provider: model.slice(0, slash), model: model.slice(slash + 1) }
  // LiteLLM knows a bare name by its table of models.
  return { provider: /^claude/.test(model) ? 'anthropic' : /^gemini/.test(model) ? 'gemini' : 'openai', model }
}

function addressOf(provider: string, base: unknown, preset: Preset | undefined): string | undefined {
  if (typeof base !== 'string') {
    const filled = preset && filledAddress(preset, {})
    return typeof filled === 'string' ? filled : undefined
  }
  if (base.startsWith('os.environ/') || !URL.canParse(base)) return undefined
  const bare = base.replace(/(?<!\/)\/+$/, '')
  if (provider === 'azure') return /\/openai\/v1$/.test(bare) ? bare : `${bare.replace(/\/openai$/, '')}/openai/v1`
  return /^ollama/.test(provider) && !bare.endsWith('/v1') ? `${bare}/v1` : bare
}

/** Deployments at one address with one key are one vendor. */
function vendorNameOf(provider: string, base: unknown, key: unknown): string {
  const host = typeof base === 'string' ? URL.parse(base)?.host : undefined
  const named = typeof key === 'string' && key.startsWith('os.environ/') ? key.slice('os.environ/'.length) : undefined
  const usual = `${provider.toUpperCase().replaceAll(/[^A-Z0-9]+/g, '_')}_API_KEY`
  const parts = [provider, host, named === usual ? undefined : named].filter((part) => part !== undefined)
  return parts
    .join('-')
    .toLowerCase()
    .replaceAll(/[^a-z0-9._-]+/g, '-')
    .slice(0, 100)
}

function credentialOf(
  key: unknown,
  vendorName: string,
  preset: Preset | undefined,
): { name?: string; inFile?: boolean } {
  if (typeof key === 'string' && key.startsWith('os.environ/')) return { name: key.slice('os.environ/'.length) }
  if (typeof key === 'string' && key !== '') {
    const made = `${vendorName.toUpperCase().replaceAll(/[^A-Z0-9]+/g, '_')}_KEY`.slice(0, 64)
    return { name: preset?.vendor.credential ?? made, inFile: true }
  }
  return preset?.vendor.credential === undefined ? {} : { name: preset.vendor.credential }
}

/** 10 and not 10.000000. */
const shortest = (decimal: string) => formatCredits(parseCredits(decimal) ?? 0n)

/** Dollars a token, as LiteLLM says it, into credits a million. */
function costOf(
  params: Record<string, unknown>,
  info: Record<string, unknown>,
  { creditsPerDollar }: ImportOptions,
): ChosenModel['cost'] {
  const rate = (name: string) => {
    const value = Number(params[name] ?? info[name] ?? Number.NaN)
    return Number.isFinite(value) && value >= 0
      ? shortest((value * 1_000_000 * Number(creditsPerDollar)).toFixed(6))
      : undefined
  }
  const [input, output] = [rate('input_cost_per_token'), rate('output_cost_per_token')]
  if (input === undefined && output === undefined) return undefined
  return { unit: 'credits', tiers: [{ ...(input ? { input } : {}), ...(output ? { output } : {}) }] }
}

function withRouter(
  given: CatalogInput,
  whole: Record<string, unknown>,
  groups: ReadonlyMap<string, string>,
  say: Say,
): CatalogInput {
  const document = { ...given, models: { ...given.models } }
  for (const section of ['router_settings', 'litellm_settings', 'general_settings', 'environment_variables'] as const) {
    const settings = isObject(whole[section]) ? whole[section] : {}
    for (const [name, value] of Object.entries(settings)) {
      const at = `${section}.${name}`
      if (name === 'fallbacks') addFallbacks(document, value, { groups, say, at })
      else if (name === 'model_group_alias') addAliases(document, value, { groups, say, at })
      else if (name === 'routing_strategy') setStrategy(document, value, { groups, say, at })
      else say(at, 'left', LEFT[name] ?? 'It has no counterpart here.')
    }
  }
  return document
}

const LEFT: Readonly<Record<string, string>> = {
  master_key: 'The gateway has an operator token of its own.',
  database_url: 'Keys, teams and budgets are taken over with --database.',
  max_budget: 'Set a limit instead: tollgate limits, or spendPerMonth of an account or key.',
  num_retries: 'A route is left for the next one when its vendor fails; one that is alone is tried twice.',
  drop_params: 'What a model refuses is a trait of its family here.',
}

interface Router {
  readonly groups: ReadonlyMap<string, string>
  readonly say: Say
  readonly at: string
}

/** Routes of the others, behind one's own. */
function addFallbacks({ models }: CatalogInput, value: unknown, { groups, say, at }: Router): void {
  const pairs = (Array.isArray(value) ? value : []).flatMap((one) => (isObject(one) ? Object.entries(one) : []))
  for (const [from, to] of pairs) {
    const uid = groups.get(from)
    const model = uid === undefined ? undefined : models[uid]
    if (uid === undefined || !model) {
      say(at, 'left', `${from} is not among the models that were taken.`)
      continue
    }
    const others = new Map<string, RouteInput[]>()
    for (const name of Array.isArray(to) ? to.map(String) : []) {
      const other = models[groups.get(name) ?? '']
      if (!other || other.type !== model.type) say(at, 'left', `${name} cannot stand in for ${from}.`)
      else {
        others.set(
          name,
          other.routes.map((route) => ({ ...route, model: route.model ?? name })),
        )
        say(at, 'changed', `When ${from} fails, the routes of ${name} are asked; the caller pays the price of ${from}.`)
      }
    }
    models[uid] = { ...model, routes: behind(uid, model.routes, [...others.values()]) }
  }
}

/** Each of the others behind those before it. Where they stand there from an earlier import, they are put in place anew. */
function behind(uid: string, routes: readonly RouteInput[], others: readonly RouteInput[][]): RouteInput[] {
  const own = routes.filter((route) => !others.flat().some((other) => isSameRoute(route, other, uid)))
  // Whoever stands in for itself gains nothing.
  if (own.length === 0) return [...routes]
  const last = Math.max(...own.map((route) => route.order ?? 0))
  return [...own, ...others.flatMap((one, place) => one.map((route) => ({ ...route, order: last + 1 + place })))]
}

function addAliases({ models }: CatalogInput, value: unknown, { groups, say, at }: Router): void {
  for (const [alias, to] of isObject(value) ? Object.entries(value) : []) {
    const target = models[groups.get(String(to)) ?? '']
    const uid = uidOf(alias)
    if (!target) say(at, 'left', `${String(to)} is not among the models that were taken.`)
    else {
      const own = groups.get(String(to)) ?? ''
      models[uid] = {
        ...target,
        name: alias,
        routes: target.routes.map((route) => ({ ...route, model: route.model ?? own })),
      }
      say(at, 'changed', `${alias} is a model of its own, with the routes and the price of ${String(to)}.`)
    }
  }
}

function setStrategy({ models }: CatalogInput, value: unknown, { groups, say, at }: Router): void {
  const routing = STRATEGIES[String(value)]
  if (!routing) {
    say(at, 'left', `"${String(value)}" has no counterpart here; calls are shared by weight.`)
    return
  }
  for (const uid of new Set(groups.values())) {
    const model = models[uid]
    if (model) models[uid] = { ...model, routing }
  }
  say(at, 'taken', `Routes of equal order are taken ${routing.policy}.`)
}
