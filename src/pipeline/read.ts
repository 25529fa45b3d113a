// What a request asks for: its parameters, its product, and whether its key may have it. One reader for each kind of product,
// by which the paid endpoints and the quote read alike. Nothing is sent and nothing is held for what is refused here.

import { createHash } from 'node:crypto'
import { mayUse, type Principal, requireEndpoint } from '../admission/api-key.ts'
import { type Labels, readLabels, requireLabels } from '../admission/labels.ts'
import { type Bridge, bridgeOf } from '../catalog/bridge.ts'
import type { Model, Route } from '../catalog/document.ts'
import { type DataEndpointSpec, type EndpointSpec, isDataEndpoint } from '../catalog/endpoint.ts'
import { ENDPOINTS } from '../catalog/index.ts'
import { cacheKey } from '../catalog/query.ts'
import type { RoutingRule } from '../catalog/routing-rules.ts'
import { type Catalog, type DataProduct, findDataProduct, type Product } from '../catalog/store.ts'
import { isToolSpec, type ToolSpec } from '../catalog/tool-servers.ts'
import { dataTraits, readTextTraits } from '../catalog/traits.ts'
import { unknownModel } from '../catalog/unknown-model.ts'
import type { ByokKeys, OwnUse } from '../credentials/byok-keys.ts'
import type { Guard, Guardrails } from '../guardrails/chain.ts'
import { isByTokens } from '../jobs/settle.ts'
import { Fault, invalid } from '../kernel/fault.ts'
import { type JsonText, readJson, splice } from '../kernel/json.ts'
import type { World } from '../kernel/world.ts'
import { countedUnits } from '../meter/charge.ts'
import type { KindName, Unit } from '../meter/kind.ts'
import { isObject } from '../protocols/check.ts'
import { type PageTokens, readDataRequest } from '../protocols/data/http-api.ts'
import { readToolRequest } from '../protocols/data/mcp-tool.ts'
import { readSocialRequest } from '../protocols/data/social-v2.ts'
import { readOcrRequest } from '../protocols/media/mistral-ocr.ts'
import { type AudioFile, readSpeechRequest, readTranscriptionRequest } from '../protocols/media/openai-audio.ts'
import type { ImageRequestBody } from '../protocols/media/openai-images/body.ts'
import { type ImageRequestDeps, readImageRequest } from '../protocols/media/openai-images/request.ts'
import { type RealtimeLink, readRealtimeRequest } from '../protocols/media/openai-realtime/response.ts'
import { ANY_MODEL, asJob, readVideoRequest } from '../protocols/media/video-task/request.ts'
import type { JobRequest, PaidRequest } from '../protocols/protocol.ts'
import { readGeminiEmbeddingsRequest } from '../protocols/text/gemini/embed.ts'
import { JSON_HEADER, type JsonWish, readJsonWish, withJsonChecked } from '../protocols/text/json-answer.ts'
import { readEmbeddingsRequest } from '../protocols/text/openai-embeddings.ts'
import { readCompactRequest } from '../protocols/text/openai-responses/stored.ts'
import { readModerationsRequest, readRerankRequest } from '../protocols/text/rerank-and-moderation.ts'
import { type ModelFacts, readModelName, readTextRequest } from '../protocols/text/text.ts'
import {
  allowedRoutes,
  isExcluded,
  matchingRules,
  type Preference,
  ROUTING_HEADERS,
  readPreference,
  withoutProvider,
} from '../routing/preference.ts'
import { routesFor } from '../routing/route.ts'
import type { ToolServers } from '../routing/tool-servers.ts'
import type { ByteLease } from '../upstream/budget.ts'
import type { OnProgress } from '../upstream/tool-client.ts'
import type { Fallback } from './call.ts'
import { givenIn, withLonger, withQuery } from './guarded-parts.ts'
import type { CacheRule } from './response-cache.ts'
import { type ShadowRead, shadowOf } from './shadow-read.ts'

export interface PaidSpec extends EndpointSpec {
  readonly sells: KindName
}

/** The caller and the endpoint. */
interface Whose {
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
  /** Of the request, by lower-case names. Absent: there is none. */
  readonly header?: ((name: string) => string | undefined) | undefined
  /** Of a tool whose caller asked how far it is. */
  readonly onProgress?: OnProgress | undefined
  /** Of background work: what the request that ordered it was labelled with. */
  readonly ordered?: Labels | undefined
  /** The caller's `x-tollgate-cache` header; absent: not given. */
  readonly cacheHeader?: boolean | undefined
  /** Read before the texts of the request were changed. */
  readonly known?: { readonly labels: Labels | undefined }
}

export interface RequestBody {
  readonly json: JsonText
  /** Of an image request: the pictures that stood in it, and the memory that they take. */
  readonly pictures?: ImageRequestBody & { readonly lease: ByteLease }
  /** Of a form: its file. */
  readonly file?: AudioFile
  /** Of a response in a Realtime session: the way to its vendor. */
  readonly realtime?: RealtimeLink
}

export interface Read {
  readonly paidRequest: PaidRequest | JobRequest
  readonly product: Product
  /** Those of the product that can carry it. */
  readonly routes: readonly Route[]
  /** Its answers may be kept and given to others. */
  readonly cache?: CacheRule
  /** It may go by keys of the account's own. */
  readonly own?: OwnUse
  readonly labels?: Labels | undefined
  readonly fallbacks?: readonly Fallback[] | undefined
  readonly guard?: GuardedRead | undefined
  /** What is said about where it goes; absent: nothing. */
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
  readonly guardrails: Guardrails
  readonly byokKeys: Pick<ByokKeys, 'has' | 'use'>
  /** Absent: no tool of a foreign server is sold. */
  readonly toolServers?: Pick<ToolServers, 'client' | 'heldBack' | 'tokenFor'>
  readonly pictures: (account: string) => Omit<ImageRequestDeps, 'lease'>
  /** Tokens for further pages, bound to an account and an endpoint. */
  readonly pageTokens: (account: string, endpoint: string) => PageTokens
}

type Reader = (incoming: Incoming, deps: ReadDeps) => Pick<Read, 'paidRequest' | 'product' | 'cache'>

const READERS: Record<KindName, Reader> = {
  text: readText,
  embedding: readEmbedding,
  rerank: readRerank,
  moderation: byModel('moderation', readModerationsRequest),
  ocr: byModel('ocr', readOcrRequest),
  transcription: readTranscription,
  speech: byModel('speech', readSpeechRequest),
  realtime: readRealtime,
  image: readImage,
  video: readVideo,
  data: readData,
}

export function read(incoming: Incoming, deps: ReadDeps): Read {
  const { body, spec, principal, header, catalog } = incoming
  const rules = catalog.document.routing?.rules
  const ruled = rules && rulesFor(incoming, rules, deps)
  const preference = readPreference({ json: body.json, spec, principal, header, ruled }, catalog.document)
  const plain = preference
    ? { ...incoming, preference, ruled, body: { ...body, json: withoutProvider(body.json, spec) } }
    : incoming
  const override = spec.sells === 'data' ? undefined : ruled?.find(({ model }) => model)
  const asked = override?.model === undefined ? plain : redirected(plain, override.model, `The rule "${override.name}"`)
  // Off for nearly all gateways; then this check is its whole cost.
  return catalog.document.guardrails ? readGuarded(asked, deps) : readModels(asked, deps)
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
  const guard = deps.guardrails.find(catalog.document, whose)
  if (!guard) return readModels(incoming, deps)
  // Fail closed: most of what is said in a session is sound, and its texts are not in the events that make its responses.
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
  const models = incoming.spec.sells === 'text' ? modelsOf(incoming, deps) : undefined
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
  // What a vendor keeps is with that vendor alone, and a kept answer could be that of another model.
  const { cache: _, ...plain } = first
  if (others.length === 0 || plain.paidRequest.continues) return plain
  const fallbacks = others.flatMap(({ paidRequest, product, routes, own }) =>
    'order' in paidRequest ? [] : [{ paidRequest, product, routes, own }],
  )
  return { ...plain, fallbacks }
}

/** A model for which rules leave no vendor is passed over, while there is another. */
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
    requireEndpoint(incoming.principal, incoming.spec)
    const { paidRequest, product, cache } = READERS[incoming.spec.sells](incoming, deps)
    // What no route can carry is refused before anything is held.
    const able = routesFor(paidRequest, product, incoming.catalog.document)
    const { routes, decided } = preferred(able, { paidRequest, product }, incoming)
    if (routes.length === 0 && incoming.spec.sells === 'data')
      throw new Fault('upstream_unavailable', { message: 'No vendor serves this endpoint here. You were not charged.' })
    if (routes.length === 0 && (incoming.spec.sells === 'text' || paidRequest.offer === 'masks'))
      throw invalid(
        `No vendor of "${paidRequest.product}" offers ${paidRequest.offer === 'masks' ? 'masks' : 'this'}.`,
        paidRequest.offer === 'masks' ? 'mask' : 'model',
      )
    const labels = labelsOf(incoming)
    const { preference } = incoming
    const asked: Read = cache
      ? { paidRequest, product, routes, cache: cacheFor(cache, incoming), labels, preference, decided }
      : { paidRequest, product, routes, labels, preference, decided }
    return deps.byokKeys.has(incoming.principal.accountId) ? byByokKey(asked, incoming, deps) : asked
  } catch (error) {
    if (error instanceof Fault) error.product = productOf(incoming)
    throw error
  }
}

function preferred(
  routes: readonly Route[],
  { paidRequest, product }: Pick<Read, 'paidRequest' | 'product'>,
  { preference, redirects, body: { json }, catalog }: Preferring,
) {
  if (!preference) return { routes, decided: redirects }
  const about = { paidRequest, product, json, name: paidRequest.product }
  const left = allowedRoutes(routes, preference, about, catalog.document)
  return redirects ? { ...left, decided: [...redirects, ...left.decided] } : left
}

/** Only calls that say the same about their vendors share an answer. */
function cacheFor(cache: CacheRule, { preference }: Preferring): CacheRule {
  return preference ? { ...cache, key: `${cache.key} ${preference.text}` } : cache
}

/** Also the one that is asked first. */
const MODELS_MAX = 4
const FALLBACK = 'x-tollgate-fallback'

/** The headers about models and vendors, which are part of what is asked. */
export function saidBeside(header: (name: string) => string | undefined): string[] {
  return [FALLBACK, ...ROUTING_HEADERS].flatMap((name) => {
    const value = header(name)
    return value === undefined ? [] : [`${name}: ${value}`]
  })
}

/** The models to try in turn, from the body's `models` or the header; undefined: only one is named. */
function modelsOf(incoming: Preferring, deps: ReadDeps): readonly string[] | undefined {
  const { header, body } = incoming
  const named = header?.(FALLBACK)
  const listed = body.json.member('models') ? body.json.value.models : undefined
  if (named === undefined && (listed === undefined || listed === null)) return undefined
  if (named !== undefined && listed !== undefined)
    throw invalid(`"${FALLBACK}" and "models" mean the same; give one.`, FALLBACK)
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
  const edit = { model: JSON.stringify(model) }
  const text = splice(json, { ...(json.member('model') ? { replace: edit } : { add: edit }), remove: ['models'] })
  return { ...incoming, body: { ...incoming.body, json: readJson(Buffer.from(text)) } }
}

function isTooLong({ paidRequest, product }: Read): boolean {
  const { contextTokens = Number.POSITIVE_INFINITY } = 'limits' in product ? product.limits : {}
  // The count is bounded by what the model can read, so that more shows as all of it.
  return (paidRequest.inputTokensLikely ?? 0) >= contextTokens
}

function labelsOf({ header, body, spec, principal, ordered, known }: Incoming): Labels | undefined {
  if (known) return known.labels
  const own = readLabels({ header, body: isToolSpec(spec) ? {} : body.json.value, format: spec.format })
  const labels = ordered ? { ...ordered, ...own } : own
  if (principal.requiredLabels) requireLabels(principal.requiredLabels, labels)
  return principal.place ? { ...labels, ...principal.place } : labels
}

/** What a refused request was about; empty: nothing that there is. */
function productOf({ spec, catalog, body: { json } }: Incoming): string {
  if (isDataEndpoint(spec) || isToolSpec(spec)) return spec.product
  const { model } = json.value
  return typeof model === 'string' && modelAt(catalog, model) ? model : ''
}

/** The call itself is counted, as its fee may be by the call. Answers by a BYOK key are not cached. */
function byByokKey(asked: Read, { principal, catalog }: Incoming, { byokKeys }: ReadDeps): Read {
  const { paidRequest, product, routes, labels, preference, decided } = asked
  const own = byokKeys.use(principal.accountId, product, catalog, routes)
  if (!own) return asked
  const counted = { ...paidRequest, worst: { call: 1, ...paidRequest.worst } }
  return { paidRequest: counted, product, routes, own, labels, preference, decided }
}

/** For the checks that do not depend on the model, when there is no such model. */
const NO_MODEL: ModelFacts = {
  uid: '',
  traits: readTextTraits(),
  limits: { outputTokensReserve: 1, outputTokensFloor: 1 },
}
const NO_DATA_TRAITS = dataTraits.parse({})

function readText(incoming: Incoming, deps: ReadDeps): ReturnType<Reader> {
  const { json, wish } = readJsonWish(withPreset(incoming, deps), incoming.header?.(JSON_HEADER))
  const uid = readModelName(json)
  const model = modelAt(incoming.catalog, uid)
  const { traits, limits, pricing } = model?.enabled && model.type === 'text' ? model : NO_MODEL
  const facts = { uid, traits, limits, pricing }
  const clientFormat = incoming.spec.format! // Every endpoint of text has one.
  const isCompact = incoming.spec.id === 'responses/compact'
  const paidRequest = isCompact ? readCompactRequest(json, facts) : readTextRequest(clientFormat, json, facts)
  const product = permit('text', uid, incoming)
  if (isCompact) return { paidRequest, product }
  return {
    paidRequest: wish ? withJsonChecked({ ...paidRequest, clientFormat }, json.value, wish) : paidRequest,
    product,
    ...cacheRuleOf(incoming, json, product, { ...paidRequest, wish }),
  }
}

/** For keys that are switched on, of models whose entry says nothing: at the price of the call, and for no other account. */
const OF_KEYS = { ttlSeconds: 3600, shared: false, pricing: undefined }

/** Whether an answer may be one that was kept: what sampling makes different each time, or goes on from elsewhere, is not. */
function cacheRuleOf(
  { spec, catalog, principal, cacheHeader }: Incoming,
  { text, value }: JsonText,
  { cache }: Model,
  { continues, wish }: PaidRequest & { readonly wish?: JsonWish | undefined },
): Pick<Read, 'cache'> {
  const { responseCache = cache !== undefined && !cache.keysOnly } = principal
  const inside = value.generationConfig ?? value.generation_config
  const config = isObject(inside) ? inside : value
  if (!responseCache || continues || cacheHeader === false || !(cacheHeader || config.temperature === 0)) return {}
  const { shared, ttlSeconds, pricing } = cache ?? OF_KEYS
  const whose = catalog.simulated || !shared ? principal.accountId : ''
  const key = createHash('sha256')
    .update(`${spec.format} ${whose} ${wish ? `${JSON.stringify(wish)} ` : ''}${text}`)
    .digest('base64')
  return { cache: { key: `text ${key}`, ttlSeconds, pricing } }
}

/** For models that are asked with JSON alone: what is asked is the business of their protocol. */
function byModel(kind: KindName, readAsk: (json: JsonText, uid: string, model?: Model) => Read['paidRequest']): Reader {
  return (incoming, deps) => {
    const json = withPreset(incoming, deps)
    const uid = readModelName(json)
    return { paidRequest: readAsk(json, uid, modelAt(incoming.catalog, uid)), product: permit(kind, uid, incoming) }
  }
}

function readEmbedding(incoming: Incoming, deps: ReadDeps): ReturnType<Reader> {
  const { id, surface } = incoming.spec
  const shape = id === 'gemini/embed_batch' ? 'batch' : 'one'
  return byModel('embedding', (json, uid, model) =>
    surface === 'gemini'
      ? readGeminiEmbeddingsRequest(json, uid, model, shape)
      : readEmbeddingsRequest(json, uid, model),
  )(incoming, deps)
}

function readRerank(incoming: Incoming, deps: ReadDeps): ReturnType<Reader> {
  const shape = incoming.spec.id === 'rerank/v2' ? 'cohere' : 'vendor'
  return byModel('rerank', (json, uid, model) => readRerankRequest(json, uid, model, shape))(incoming, deps)
}

function readImage(incoming: Incoming, deps: ReadDeps): ReturnType<Reader> {
  const json = withPreset(incoming, deps)
  const uid = readModelName(json)
  const pictures = { ...incoming.body.pictures!, json }
  const { lease } = pictures
  const paidRequest = readImageRequest(
    pictures,
    { uid, pricing: modelAt(incoming.catalog, uid)?.pricing },
    { ...deps.pictures(incoming.principal.accountId), lease },
  )
  return { paidRequest, product: permit('image', uid, incoming) }
}

function readTranscription(incoming: Incoming): ReturnType<Reader> {
  const { json, file } = incoming.body
  const uid = readModelName(json)
  const model = modelAt(incoming.catalog, uid)
  const known = model?.enabled && model.type === 'transcription' ? model : undefined
  const work = incoming.spec.id === 'translations' ? 'translations' : 'transcriptions'
  return {
    paidRequest: readTranscriptionRequest({ json, file, work }, uid, known),
    product: permit('transcription', uid, incoming),
  }
}

function readRealtime(incoming: Incoming, deps: ReadDeps): ReturnType<Reader> {
  const { realtime } = incoming.body
  return byModel('realtime', (json, uid, model) => readRealtimeRequest(json, uid, model, realtime))(incoming, deps)
}

function readVideo(incoming: Incoming, deps: ReadDeps): ReturnType<Reader> {
  if (incoming.spec.id !== 'video/create') return byModel('video', readVideoAsk)(incoming, deps)
  const body = { ...incoming.body, json: asJob(incoming.body.json) }
  return byModel('video', (json, uid, model) => {
    const asked = readVideoAsk(json, uid, model)
    return { ...asked, order: { ...asked.order, isOpenai: true } }
  })({ ...incoming, body }, deps)
}

function readVideoAsk(json: JsonText, uid: string, model?: Model): JobRequest {
  const known = model?.enabled && model.type === 'video' ? model : undefined
  const video = readVideoRequest(json, known?.traits ?? ANY_MODEL, known !== undefined && isByTokens(known.pricing))
  return { product: uid, stream: false, price: video.price, worst: video.worst, order: video }
}

/** A tool that its server has changed is not sold until the operator has agreed to the change. */
function readTool(spec: ToolSpec, incoming: Incoming, { toolServers }: ReadDeps): ReturnType<Reader> {
  const { catalog, principal, body } = incoming
  const product = findDataProduct(catalog, spec.product)
  if (!mayUse(principal, spec.restriction))
    throw new Fault('access_denied', { message: `This key may not use ${spec.restriction}.` })
  if (!product?.enabled || !toolServers || toolServers.heldBack(spec))
    throw new Fault('not_found', { message: 'This tool is not offered now.' })
  const perRow = product.pricing.tiers.some((tier) => tier.row !== undefined)
  const person = principal.place?.[':member'] ?? null
  const token = catalog.simulated
    ? undefined
    : toolServers.tokenFor({ account: principal.accountId, person, isOwn: principal.isOwn }, spec.server)
  // A sign-in is a person's, and so is what a server keeps for it.
  const session = token ? `${principal.accountId} ${person ?? ''}` : principal.accountId
  const { onProgress } = incoming
  const facts = { session, token, onProgress, perRow, simulated: catalog.simulated, client: toolServers.client }
  return { paidRequest: readToolRequest(spec, body.json.value, facts), product }
}

function readData(incoming: Incoming, deps: ReadDeps): ReturnType<Reader> {
  if (isToolSpec(incoming.spec)) return readTool(incoming.spec, incoming, deps)
  const { world, pageTokens } = deps
  const { catalog, principal, params, query, header } = incoming
  const spec = incoming.spec as DataEndpointSpec
  const product = findDataProduct(catalog, spec.product)
  const priced = product ? countedUnits(product.pricing) : new Set<Unit>()
  const { json } = incoming.body
  const tokens = spec.operation?.pageToken && pageTokens(principal.accountId, spec.id)
  const paidRequest =
    spec.protocol === 'social-v2'
      ? readSocialRequest(spec, params, query, { traits: product?.traits ?? NO_DATA_TRAITS, perRow: priced.has('row') })
      : readDataRequest(
          spec,
          { query, params, header, json },
          { nowMs: world.nowMs(), priced, bridges: bridgesOf(product, spec, catalog), ...(tokens ? { tokens } : {}) },
        )
  if (!product?.enabled) throw new Fault('not_found', { message: 'This endpoint is not enabled.' })
  if (!mayUse(principal, spec.restriction))
    throw new Fault('access_denied', { message: `This key may not use ${spec.restriction}.` })
  const cache = 'cache' in product ? product.cache : undefined
  // Answers of simulated vendors are not cached for paying callers.
  const shelf = catalog.simulated ? 'test ' : ''
  const question = spec.body ? ` ${json.text}` : ''
  return {
    paidRequest,
    product,
    ...(cache ? { cache: { key: shelf + cacheKey(spec, paidRequest.query) + question, ...cache } } : {}),
  }
}

/** Of the vendors that need one. */
function bridgesOf(product: DataProduct | undefined, { product: uid }: DataEndpointSpec, { document }: Catalog) {
  const found = new Map<string, Bridge>()
  for (const { vendor, enabled } of product?.routes ?? []) {
    const { bridge } = document.vendors[vendor] ?? {}
    const made = enabled && bridge ? bridgeOf(bridge, uid) : undefined
    if (made) found.set(vendor, made)
  }
  return found
}

/**
 * Whether this key may use the model here. Called when the body has been found right: whatever is wrong with that is said
 * first. On some endpoints a model that is not for this caller does not exist, as the contract has it.
 */
function permit(kind: KindName, uid: string, { spec, catalog, principal }: Whose): Model {
  const model = modelAt(catalog, uid)
  const unknown = () =>
    unknownModel(
      uid,
      catalog.document.models,
      (name, { type, clientFormats }) =>
        type === kind && (!spec.format || clientFormats.includes(spec.format)) && mayUse(principal, name),
    )
  if (!model?.enabled || (spec.hidesModels && model.type !== kind)) throw unknown()
  if (model.type !== kind) throw invalid(`"${uid}" is no ${kind} model; GET /v1/models lists the types.`, 'model')
  if (spec.format && !model.clientFormats.includes(spec.format)) {
    const paths = model.clientFormats.map(
      (clientFormat) => ENDPOINTS.find(({ format }) => format === clientFormat)!.path,
    )
    throw invalid(`"${uid}" is not offered here; use ${paths.join(' or ')}.`, 'model')
  }
  if (!mayUse(principal, uid)) throw spec.hidesModels ? unknown() : new Fault('model_restricted')
  return model
}

/** Of a free endpoint that is asked about a model: refused as by the paid endpoint whose model it is. */
export function permitAt({ modelOf }: EndpointSpec, uid: string, whose: Omit<Whose, 'spec'>): void {
  const spec = ENDPOINTS.find((one): one is PaidSpec => one.id === modelOf && one.sells !== undefined)
  if (!spec)
    throw new Fault('internal', { internal: { why: 'no paid endpoint has the models of a free one', modelOf } })
  permit(spec.sells, uid, { ...whose, spec })
}

function modelAt({ document }: Catalog, uid: string): Model | undefined {
  return Object.hasOwn(document.models, uid) ? document.models[uid] : undefined
}

/** The contract's table names a default beside "required": it is filled in only where the operator says so. */
function withPreset({ spec, body: { json } }: Incoming, { presets }: ReadDeps): JsonText {
  if (!presets || spec.presetModel === undefined || json.member('model')) return json
  return readJson(Buffer.from(splice(json, { add: { model: JSON.stringify(spec.presetModel) } })))
}
