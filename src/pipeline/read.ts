// What a request asks for: its parameters, its product, and whether its key may have it. Each paid endpoint has one
// reader (paid-endpoint.ts), by which calls and quotes are read alike. A request that is rejected here has sent and
// held nothing.

import { mayUse, type Principal, requireEndpoint } from '../admission/api-key.ts'
import { LABEL_HEADERS, LABEL_MEMBERS, type Labels, readLabels, requireLabels } from '../admission/labels.ts'
import type { Route } from '../catalog/document.ts'
import { type EndpointSpec, isDataEndpoint, isToolSpec } from '../catalog/endpoint.ts'
import type { RequestHeaders } from '../catalog/query.ts'
import type { RoutingRule } from '../catalog/routing-rules.ts'
import type { Catalog, Product } from '../catalog/store.ts'
import { Fault, invalid } from '../kernel/fault.ts'
import { type JsonText, withMembers } from '../kernel/json.ts'
import type { World } from '../kernel/world.ts'
import type { KindName } from '../meter/kind.ts'
import type { PageTokens } from '../protocols/data/http-api.ts'
import type { FormFile } from '../protocols/media/form.ts'
import type { ImageRequestBody } from '../protocols/media/openai-images/body.ts'
import type { ImageRequestDeps } from '../protocols/media/openai-images/request.ts'
import type { JobRequest, PaidRequest } from '../protocols/protocol.ts'
import { JSON_HEADER } from '../protocols/text/json-answer.ts'
import {
  allowedRoutes,
  CHOICE_HEADERS,
  CHOICE_MEMBERS,
  FALLBACK,
  isExcluded,
  matchingRules,
  type Preference,
  readPreference,
  requireChoice,
  saysChoice,
  withoutProvider,
} from '../routing/preference.ts'
import { routesFor } from '../routing/route.ts'
import type { ByteLease } from '../upstream/budget.ts'
import type { ByokKeys, OwnKeys, OwnUse } from '../upstream/credentials/byok-keys.ts'
import type { Fallback } from './call.ts'
import { givenIn, withLonger, withQuery } from './guarded-parts.ts'
import type { Guard, Guardrails } from './hooks.ts'
import { readerOf, type Serving } from './paid-endpoint.ts'
import { modelAt, withPreset } from './readers.ts'
import type { CacheRule } from './response-cache.ts'
import { type ShadowRead, shadowOf } from './shadow-read.ts'

/** Without what answers there, it is one of the core's or of data. */
export interface PaidSpec extends EndpointSpec, Partial<Serving> {
  readonly sells: KindName
}

export const isPaid = (spec: EndpointSpec): spec is PaidSpec => spec.sells !== undefined

/** The caller and the endpoint. */
export interface Whose {
  readonly spec: PaidSpec
  readonly catalog: Catalog
  readonly principal: Principal
}

export interface Incoming extends Whose {
  /** Of the path. */
  readonly params: Readonly<Record<string, string>>
  /** As it was sent. */
  readonly query: string
  readonly body: RequestBody
  readonly brought: Brought
  /** Of the request, by lower-case names. Absent: there is none. */
  readonly headers?: RequestHeaders | undefined
  /** Of background work: the labels of the request that started it. */
  readonly ordered?: Labels | undefined
  /** The caller's `x-tollgate-cache` header; absent: not given. */
  readonly cacheHeader?: boolean | undefined
  /** It says nothing of labels, vendors, other models or how JSON is answered (`saysMore`). Absent: it may. */
  readonly isBare?: boolean
  /** Read before the texts of the request were changed. */
  readonly known?: { readonly labels: Labels | undefined }
}

/** What the account has brought itself, as it was when the request came. */
type Brought = { readonly keys?: OwnKeys | undefined }

const NOTHING: Brought = {}

/** Most accounts have brought nothing, and nothing is asked for them. */
export function broughtBy(
  { accountId }: Pick<Principal, 'accountId'>,
  { byokKeys }: Pick<ReadDeps, 'byokKeys'>,
): Brought | Promise<Brought> {
  if (!byokKeys.having.has(accountId)) return NOTHING
  return byokKeys.of(accountId)?.then((keys) => ({ keys })) ?? NOTHING
}

export interface RequestBody {
  readonly json: JsonText
  /** Of an image request: the pictures that stood in it, and the memory that they take. */
  readonly pictures?: ImageRequestBody & { readonly lease: ByteLease }
  /** Of a form: its file. */
  readonly file?: FormFile
}

export interface Read {
  readonly paidRequest: PaidRequest | JobRequest
  readonly product: Product
  /** Those of the product that can carry it. */
  readonly routes: readonly Route[]
  /** Its answers may be cached and returned to other calls. */
  readonly cache?: CacheRule
  /** It may use BYOK keys of the account. */
  readonly own?: OwnUse
  readonly labels?: Labels | undefined
  readonly fallbacks?: readonly Fallback[] | undefined
  readonly guard?: GuardedRead | undefined
  /** The routing preference; absent: there is none. */
  readonly preference?: Preference | undefined
  /** What that decided, in words. */
  readonly decided?: readonly string[] | undefined
  readonly shadow?: ShadowRead | undefined
}

/** A request that guardrails look at. */
export interface GuardedRead {
  readonly guard: Guard
  /** As a vendor may see it. */
  readonly json: JsonText
  /** The same request with other texts. */
  reread(json: JsonText): Read
}

export interface ReadDeps {
  readonly world: World
  /** A request without a model gets the one that the contract names as the default. */
  readonly presets: boolean
  /** Absent: no extension has rules. */
  readonly guardrails?: Guardrails | undefined
  readonly byokKeys: Pick<ByokKeys, 'of' | 'having'>
  readonly pictures: (account: string) => Omit<ImageRequestDeps, 'lease'>
  /** Tokens for further pages, bound to an account and an endpoint. */
  readonly pageTokens: (account: string, endpoint: string) => PageTokens
}

const MORE_HEADERS: ReadonlySet<string> = new Set([...CHOICE_HEADERS, ...LABEL_HEADERS, JSON_HEADER])
const MORE_MEMBERS: ReadonlySet<string> = new Set([...CHOICE_MEMBERS, ...LABEL_MEMBERS, 'plugins'])

/** Whether a call says anything beside what it asks for. Most do not, and are asked no more about it. */
export function saysMore({ headers, body }: Pick<Incoming, 'headers' | 'body'>): boolean {
  for (const name in body.json.value) if (MORE_MEMBERS.has(name)) return true
  for (const name in headers) if (MORE_HEADERS.has(name)) return true
  return false
}

export function read(incoming: Incoming, deps: ReadDeps): Read {
  const { body, spec, principal, headers, catalog } = incoming
  const said = { json: body.json, spec, principal, headers }
  const chooses = !incoming.isBare && saysChoice(said)
  if (chooses) requireChoice(said, catalog.document)
  const rules = catalog.document.routing?.rules
  const ruled = rules && rulesFor(incoming, rules, deps)
  const isPreferring = chooses || principal.routing !== undefined || ruled !== undefined
  const preference = isPreferring ? readPreference({ ...said, ruled }, catalog.document) : undefined
  const left = preference && { ...body, json: withoutProvider(body.json, spec, catalog.document) }
  const plain = isPreferring ? { ...incoming, preference, ruled, chooses, body: left ?? body } : incoming
  const override = spec.sells === 'data' ? undefined : ruled?.find(({ model }) => model)
  const asked = override?.model === undefined ? plain : redirected(plain, override.model, `The rule "${override.name}"`)
  // Most gateways have no rules; then this check is the only cost.
  if (catalog.isGuarded) return readGuarded(asked, deps)
  return ruled ? readModels(asked, deps) : readEach(asked, deps)
}

function rulesFor(incoming: Incoming, rules: readonly RoutingRule[], deps: ReadDeps) {
  const { model } = incoming.spec.sells === 'data' ? {} : withPreset(incoming, deps).value
  return matchingRules(rules, { ...incoming, labels: labelsOf(incoming), model })
}

function readGuarded(incoming: Preferring, deps: ReadDeps): Read {
  const { catalog, principal, spec, body } = incoming
  const { accountId: account, keyId, firstKeyId } = principal
  const json = spec.sells === 'data' ? body.json : withPreset(incoming, deps)
  const filled = { ...incoming, body: { ...body, json } }
  const products = (spec.sells === 'text' && modelsOf(filled, deps)) || withLonger(productOf(filled), catalog)
  const labels = labelsOf(incoming)
  const isModel = spec.sells !== 'data'
  const whose = { account, keys: [keyId, firstKeyId], products, isModel, labels }
  const guard = ruleFinder(deps).find(catalog.document, whose)
  if (!guard) return readModels(incoming, deps)
  // Fail closed: sessions are mostly sound, and the events that create responses do not contain the texts.
  if (spec.sells === 'realtime')
    throw new Fault('access_denied', {
      message: 'Realtime is not available here: guardrails apply, and they cannot check sound. Use the Responses API.',
    })
  const whole = isModel || isToolSpec(spec) ? body.json : withQuery(incoming)
  const reread = (left: JsonText): Read => {
    const asked = readModels({ ...incoming, known: { labels }, ...givenIn(left, whole, incoming) }, deps)
    const { cache } = asked
    const guarded = { ...asked, guard: { guard, json: left, reread } }
    return cache ? { ...guarded, cache: { ...cache, key: `${cache.key} ${guard.cacheKey}` } } : guarded
  }
  return reread(guard.redact(whole))
}

/** Fail closed: what the catalog says is to be checked does not go out unchecked. */
export function ruleFinder({ guardrails }: Pick<ReadDeps, 'guardrails'>): Guardrails {
  if (guardrails) return guardrails
  throw new Fault('unavailable', { message: 'Guardrails apply here, and this gateway is set up without them.' })
}

function readModels(incoming: Preferring, deps: ReadDeps): Read {
  const asked = readEach(incoming, deps)
  const ruled = incoming.spec.sells === 'text' && incoming.ruled?.find(({ shadow }) => shadow)
  if (!ruled) return asked // The usual case.
  const known = { ...incoming, known: { labels: asked.labels } }
  const readFor = (model: string, json: JsonText) =>
    readOne(withModel({ ...known, body: { ...incoming.body, json } }, model), deps)
  return { ...asked, shadow: shadowOf(ruled, { asked, incoming, readFor }, deps) }
}

function readEach(incoming: Preferring, deps: ReadDeps): Read {
  const models = incoming.chooses && incoming.spec.sells === 'text' ? modelsOf(incoming, deps) : undefined
  if (!models) {
    const one = readOne(incoming, deps)
    const longer = 'contextFallback' in one.product ? one.product.contextFallback : undefined
    if (longer === undefined || !isTooLong(one) || !mayUse(incoming.principal, longer)) return one
    // The catalog's check has seen that the next one reads more, so that this ends.
    const why = `The request is too long for "${one.paidRequest.product}", which`
    return readModels(redirected(incoming, longer, why), deps)
  }
  const all = eachAllowed(models, (model) => readOne(withModel(incoming, model), deps))
  // What is too long for one model may fit into the next.
  const fitting = all.filter((one) => !isTooLong(one))
  const [first, ...others] = fitting.length > 0 ? fitting : all
  if (!first) throw new Fault('internal', { internal: { why: 'a list of models is empty' } })
  // An object stored at a vendor exists only there, and a cached answer could come from another model.
  const { cache: _, ...plain } = first
  if (others.length === 0 || plain.paidRequest.continues) return plain
  const fallbacks = others.flatMap(({ paidRequest, product, routes, own }) =>
    'order' in paidRequest ? [] : [{ paidRequest, product, routes, own }],
  )
  return { ...plain, fallbacks }
}

/** A model without a vendor that satisfies the rules is skipped if there is another model. */
function eachAllowed(models: readonly string[], readModel: (model: string) => Read): Read[] {
  const all: Read[] = []
  let last: unknown
  for (const model of models) {
    try {
      all.push(readModel(model))
    } catch (error) {
      if (!isExcluded(error)) throw error
      last ??= error
    }
  }
  if (all.length === 0) throw last
  return all
}

interface Preferring extends Incoming {
  readonly preference?: Preference | undefined
  readonly ruled?: readonly RoutingRule[] | undefined
  /** It may name vendors or other models. */
  readonly chooses?: boolean
  /** What was decided about the model, in words. */
  readonly redirects?: readonly string[] | undefined
}

/** The same request to a model that the catalog names instead. */
function redirected(incoming: Preferring, model: string, why: string): Preferring {
  const redirects = [...(incoming.redirects ?? []), `${why} leads to "${model}".`]
  return { ...withModel(incoming, model), redirects }
}

function readOne(incoming: Preferring, deps: ReadDeps): Read {
  try {
    if (incoming.principal.endpoints !== null) requireEndpoint(incoming.principal, incoming.spec)
    const asking = readerOf(incoming)(incoming, deps)
    const { paidRequest, product, cache } = asking
    const { preference, redirects } = incoming
    // A request that no route can carry is rejected before anything is held.
    const able = asking.routes ?? routesFor(paidRequest, product, incoming.catalog.document)
    const { routes, decided } = preference
      ? preferred(able, { paidRequest, product, preference }, incoming)
      : { routes: able, decided: redirects }
    if (routes.length === 0 && incoming.spec.sells === 'data')
      throw new Fault('upstream_unavailable', { message: 'No vendor serves this endpoint here. You were not charged.' })
    if (routes.length === 0 && (incoming.spec.sells === 'text' || paidRequest.offer === 'masks'))
      throw invalid(
        `No vendor of "${paidRequest.product}" offers ${paidRequest.offer === 'masks' ? 'masks' : 'this'}.`,
        paidRequest.offer === 'masks' ? 'mask' : 'model',
      )
    const labels = labelsOf(incoming)
    const asked: Read = cache
      ? { paidRequest, product, routes, cache: cacheFor(cache, incoming), labels, preference, decided }
      : { paidRequest, product, routes, labels, preference, decided }
    return incoming.brought.keys ? byByokKey(asked, incoming.brought.keys, incoming.catalog) : asked
  } catch (error) {
    if (error instanceof Fault) error.product = productOf(incoming)
    throw error
  }
}

function preferred(
  routes: readonly Route[],
  { paidRequest, product, preference }: Pick<Read, 'paidRequest' | 'product'> & { readonly preference: Preference },
  { redirects, body: { json }, catalog }: Preferring,
) {
  const about = { paidRequest, product, json, name: paidRequest.product }
  const left = allowedRoutes(routes, preference, about, catalog.document)
  return redirects ? { ...left, decided: [...redirects, ...left.decided] } : left
}

/** Only calls with the same routing preference share a cached answer. */
function cacheFor(cache: CacheRule, { preference }: Preferring): CacheRule {
  return preference ? { ...cache, key: `${cache.key} ${preference.text}` } : cache
}

/** Including the first model. */
const MODELS_MAX = 4

/** The models to try in turn, from the body's `models` or the header; undefined: only one is named. */
function modelsOf(incoming: Preferring, deps: ReadDeps): readonly string[] | undefined {
  const { headers, body } = incoming
  const named = headers?.[FALLBACK]
  const listed = body.json.member('models') ? body.json.value.models : undefined
  if (named === undefined && (listed === undefined || listed === null)) return undefined
  if (named !== undefined && listed !== undefined)
    throw invalid(`"${FALLBACK}" and "models" have the same meaning; send only one of them.`, FALLBACK)
  const at = named === undefined ? 'models' : FALLBACK
  const list = named === undefined ? listed : named.split(',').map((name) => name.trim())
  if (!isNames(list)) throw invalid(`"${at}" must be a list of models.`, at)
  const { model } = withPreset(incoming, deps).value
  const all = [...new Set(typeof model === 'string' ? [model, ...list] : list)]
  if (all.length > MODELS_MAX) throw invalid(`"${at}" may name at most ${MODELS_MAX - 1} models beside "model".`, at)
  return all
}

function isNames(list: unknown): list is string[] {
  return Array.isArray(list) && list.length > 0 && list.every((name) => typeof name === 'string' && name !== '')
}

/** The same request to this model, as if it alone had been named. */
function withModel(incoming: Preferring, model: string): Preferring {
  const { json } = incoming.body
  const named = withMembers(json, { model: JSON.stringify(model) }, ['models'])
  return { ...incoming, body: { ...incoming.body, json: named } }
}

function isTooLong({ paidRequest, product }: Read): boolean {
  const { contextTokens = Number.POSITIVE_INFINITY } = 'limits' in product ? product.limits : {}
  // The count is bounded by what the model can read, so that more shows as all of it.
  return (paidRequest.inputTokensLikely ?? 0) >= contextTokens
}

function labelsOf({ headers, body, spec, principal, ordered, known, isBare }: Incoming): Labels | undefined {
  if (known) return known.labels
  const isTool = spec.sells === 'data' && isToolSpec(spec)
  const own = isBare ? undefined : readLabels({ headers, body: isTool ? {} : body.json.value, format: spec.format })
  const labels = ordered ? { ...ordered, ...own } : own
  if (principal.requiredLabels) requireLabels(principal.requiredLabels, labels)
  return principal.place ? { ...labels, ...principal.place } : labels
}

/** The product of a rejected request; empty: it does not exist. */
function productOf({ spec, catalog, body: { json } }: Incoming): string {
  if (isDataEndpoint(spec) || isToolSpec(spec)) return spec.product
  const { model } = json.value
  return typeof model === 'string' && modelAt(catalog, model) ? model : ''
}

/** The call itself is counted, as its fee may be by the call. Answers by a BYOK key are not cached. */
function byByokKey(asked: Read, keys: OwnKeys, catalog: Catalog): Read {
  const { paidRequest, product, routes, labels, preference, decided } = asked
  const own = keys.use(product, catalog, routes)
  if (!own) return asked
  const counted = { ...paidRequest, worst: { call: 1, ...paidRequest.worst } }
  return { paidRequest: counted, product, routes, own, labels, preference, decided }
}
