// How requests are read, by what they ask for: the request, and the product if its key may have it.
import { createHash } from 'node:crypto'
import { mayUse } from '../admission/api-key.ts'
import { type Bridge, bridgeOf } from '../catalog/bridge.ts'
import type { Model } from '../catalog/document.ts'
import type { DataEndpointSpec, EndpointSpec } from '../catalog/endpoint.ts'
import { endpointsOf } from '../catalog/index.ts'
import { cacheKey } from '../catalog/query.ts'
import { type Catalog, type DataProduct, findDataProduct } from '../catalog/store.ts'
import { dataTraits, readTextTraits } from '../catalog/traits.ts'
import { unknownModel } from '../catalog/unknown-model.ts'
import { isByTokens } from '../jobs/settle.ts'
import { Fault, invalid } from '../kernel/fault.ts'
import { edited, isObject, type JsonText } from '../kernel/json.ts'
import { countedUnits } from '../meter/charge.ts'
import type { KindName, Unit } from '../meter/kind.ts'
import { readDataRequest } from '../protocols/data/http-api.ts'
import { readSocialRequest } from '../protocols/data/social-v2.ts'
import { readImageRequest } from '../protocols/media/openai-images/request.ts'
import { ANY_MODEL, asJob, readVideoRequest } from '../protocols/media/video-task/request.ts'
import type { JobRequest, PaidRequest } from '../protocols/protocol.ts'
import { FORMATS } from '../protocols/text/formats.ts'
import { JSON_HEADER, type JsonWish, readJsonWish, withJsonChecked } from '../protocols/text/json-answer.ts'
import { readCompactRequest } from '../protocols/text/openai-responses/compact.ts'
import { type ModelFacts, readModelName, readTextRequest } from '../protocols/text/text.ts'
import { profileOf } from './profile.ts'
import type { Incoming, PaidSpec, Read, ReadDeps, Whose } from './read.ts'
import type { CacheRule } from './response-cache.ts'

/** `routes`: those that can carry it, where that is known; else they are searched for. */
export type Reader = (
  incoming: Incoming,
  deps: ReadDeps,
) => Pick<Read, 'paidRequest' | 'product' | 'cache'> & { readonly routes?: Read['routes'] | undefined }

/** For the checks that do not depend on the model, when there is no such model. */
const NO_MODEL: ModelFacts = {
  uid: '',
  traits: readTextTraits(),
  limits: { outputTokensReserve: 1, outputTokensFloor: 1 },
}
const NO_DATA_TRAITS = dataTraits.parse({})

export function readText(incoming: Incoming, deps: ReadDeps): ReturnType<Reader> {
  const filled = deps.presets ? withPreset(incoming, deps) : incoming.body.json
  const header = incoming.headers?.[JSON_HEADER]
  const isSilent = incoming.isBare || (header === undefined && !filled.member('plugins'))
  const { json, wish } = isSilent ? { json: filled } : readJsonWish(filled, header)
  const uid = readModelName(json)
  const profile = profileOf('text', uid, incoming)
  const facts = profile?.facts ?? factsAt(uid, incoming)
  const clientFormat = incoming.spec.format! // Every endpoint of text has one.
  const isCompact = incoming.spec.id === 'responses/compact'
  const paidRequest = isCompact ? readCompactRequest(json, facts) : readTextRequest(clientFormat, json, facts)
  const product = profile?.model ?? permit('text', uid, incoming)
  if (isCompact) return { paidRequest, product }
  const routes = paidRequest.needs === undefined ? profile?.routes : undefined
  const cache = profile?.mayCache ? cacheRuleOf(incoming, json, product, { ...paidRequest, wish }) : undefined
  if (!cache && !wish) return { paidRequest, product, routes }
  return {
    paidRequest: wish ? withJsonChecked({ ...paidRequest, clientFormat }, json.value, wish) : paidRequest,
    product,
    routes,
    ...(cache ? { cache } : {}),
  }
}

/** Of a model that this key may not use here: its request is checked before it is told so. */
function factsAt(uid: string, { catalog }: Incoming): ModelFacts {
  const model = modelAt(catalog, uid)
  const { traits, limits, pricing } = model?.enabled && model.type === 'text' ? model : NO_MODEL
  return { uid, traits, limits, pricing }
}

/**
 * For keys that are switched on, of models whose entry says nothing: at the price of the call, and for no other
 * account.
 */
const OF_KEYS = { ttlSeconds: 3600, shared: false, pricing: undefined }

/**
 * Whether the answer may come from the cache. Not if sampling makes answers differ, or if the request continues a
 * stored response.
 */
function cacheRuleOf(
  { spec, catalog, principal, cacheHeader }: Incoming,
  { text, value }: JsonText,
  { cache }: Model,
  { continues, wish }: PaidRequest & { readonly wish?: JsonWish | undefined },
): CacheRule | undefined {
  const inside = spec.format && FORMATS[spec.format].settings?.(value)
  const config = isObject(inside) ? inside : value
  if (continues || cacheHeader === false || !(cacheHeader || config.temperature === 0)) return undefined
  const { shared, ttlSeconds, pricing } = cache ?? OF_KEYS
  const whose = catalog.simulated || !shared ? principal.accountId : ''
  const key = createHash('sha256')
    .update(`${spec.format} ${whose} ${wish ? `${JSON.stringify(wish)} ` : ''}${text}`)
    .digest('base64')
  return { key: `text ${key}`, ttlSeconds, pricing }
}

export function byModel(
  kind: KindName,
  readAsk: (json: JsonText, uid: string, model?: Model) => Read['paidRequest'],
): Reader {
  return (incoming, deps) => {
    const json = withPreset(incoming, deps)
    const uid = readModelName(json)
    return { paidRequest: readAsk(json, uid, modelAt(incoming.catalog, uid)), product: permit(kind, uid, incoming) }
  }
}

export function readImage(incoming: Incoming, deps: ReadDeps): ReturnType<Reader> {
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

export const readVideo = byModel('video', readVideoAsk)

/** As the openai SDK sends it. */
export const readCreation: Reader = (incoming, deps) => {
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

export function readData(incoming: Incoming, deps: ReadDeps): ReturnType<Reader> {
  const { world, pageTokens } = deps
  const { catalog, principal, params, query, headers } = incoming
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
          { query, params, headers, json },
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
 * Whether this key may use the model here. Called after the body was checked, so that mistakes in the body are reported
 * first. On some endpoints the contract answers 404 for a model that this caller may not use.
 */
function permit(kind: KindName, uid: string, whose: Whose): Model {
  const known = profileOf(kind, uid, whose)
  if (known) return known.model
  const { spec, catalog, principal } = whose
  const model = modelAt(catalog, uid)
  const unknown = () =>
    unknownModel(
      uid,
      catalog.document.models,
      (name, { type, clientFormats }) =>
        type === kind && (!spec.format || clientFormats.includes(spec.format)) && mayUse(principal, name),
    )
  if (!model?.enabled || (spec.hidesModels && model.type !== kind)) throw unknown()
  if (model.type !== kind)
    throw invalid(`"${uid}" is not a model of the type ${kind}; GET /v1/models lists the types.`, 'model')
  if (spec.format && !model.clientFormats.includes(spec.format)) {
    // That of a format which is switched off has none.
    const paths = model.clientFormats.flatMap(
      (clientFormat) => endpointsOf(catalog).find(({ format }) => format === clientFormat)?.path ?? [],
    )
    throw invalid(`"${uid}" is not offered here${paths.length > 0 ? `; use ${paths.join(' or ')}` : ''}.`, 'model')
  }
  throw spec.hidesModels ? unknown() : new Fault('model_restricted')
}

/** For a free endpoint that names a model: rejects the same models as the paid endpoint. */
export function permitAt({ modelOf }: EndpointSpec, uid: string, whose: Omit<Whose, 'spec'>): void {
  const spec = endpointsOf(whose.catalog).find((one): one is PaidSpec => one.id === modelOf && one.sells !== undefined)
  if (!spec)
    throw new Fault('internal', { internal: { why: 'no paid endpoint has the models of a free one', modelOf } })
  permit(spec.sells, uid, { ...whose, spec })
}

export function modelAt({ document }: Catalog, uid: string): Model | undefined {
  return Object.hasOwn(document.models, uid) ? document.models[uid] : undefined
}

/**
 * The contract calls the model required and also gives it a default. The default is used only if the operator turns it
 * on.
 */
export function withPreset({ spec, body: { json } }: Incoming, { presets }: ReadDeps): JsonText {
  if (!presets || spec.presetModel === undefined || json.member('model')) return json
  return edited(json, { add: { model: JSON.stringify(spec.presetModel) } })
}
