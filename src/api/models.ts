// The list of models, in the shapes of the ecosystems that read it: one superset on /v1, Messages' own on /beta,
// Google's on /gemini. Built once per catalog version and restriction, so that an answer is a lookup.
import { mayCall, mayUse, type Principal } from '../admission/api-key.ts'
import type { Model } from '../catalog/document.ts'
import { PAID } from '../catalog/generation.ts'
import { endpointsOf } from '../catalog/index.ts'
import type { Catalog } from '../catalog/store.ts'
import { unknownModel } from '../catalog/unknown-model.ts'
import { formatCredits } from '../kernel/credits.ts'

/** When the first catalog was written; models have no date of their own. */
const CREATED_SECONDS = 1_789_000_000

/** Those that are no superset have entries of their own, for the models that they offer. */
export type ListShape = 'native' | 'messages' | 'gemini'

interface Listing {
  readonly entries: ReadonlyMap<string, string>
  readonly native: string
  readonly messages: string
  readonly gemini: string
}

export function createModelLists(current: () => Catalog) {
  let version = -1
  let listings = new Map<string, Listing>()

  function listingFor(principal: Principal): Listing {
    const catalog = current()
    if (catalog.version !== version) {
      version = catalog.version
      listings = new Map()
    }
    const name = [principal.models, principal.endpoints].map((of) => of && [...of].sort().join(' ')).join('|')
    let listing = listings.get(name)
    if (!listing) {
      listing = build(catalog, principal)
      if (listings.size > 1000) listings.clear()
      listings.set(name, listing)
    }
    return listing
  }

  return {
    list(principal: Principal, requestId: string, shape: ListShape): string {
      const listing = listingFor(principal)
      return shape === 'native' ? `{"success":true,"requestId":"${requestId}",${listing.native}` : listing[shape]
    },
    retrieve(principal: Principal, requestId: string, uid: string, shape: ListShape): string {
      const entry = listingFor(principal).entries.get(`${shape} ${uid}`)
      if (entry === undefined) throw unknownModel(uid, current().document.models, usableBy(principal, current()))
      // The SDKs read the members at the top, native callers those in `data`.
      return shape === 'native' ? `{"success":true,"requestId":"${requestId}","data":${entry},${entry.slice(1)}` : entry
    },
  }
}

type Restriction = Pick<Principal, 'models' | 'endpoints'>

/** Whether it may use a model, by some endpoint that sells it. */
function usableBy(restriction: Restriction, catalog: Catalog): (uid: string, model: Model) => boolean {
  const endpoints = [...endpointsOf(catalog), ...catalog.sockets].filter((spec) => mayCall(restriction, spec))
  const isSold = ({ type, clientFormats }: Model) =>
    endpoints.some(({ sells, format }) => sells === type && (!format || clientFormats.includes(format)))
  return (uid, model) => mayUse(restriction, uid) && isSold(model)
}

function build(catalog: Catalog, restriction: Restriction): Listing {
  const isFor = usableBy(restriction, catalog)
  const models = Object.entries(catalog.document.models).filter(([uid, model]) => model.enabled && isFor(uid, model))
  const entries = new Map<string, string>()
  for (const [uid, model] of models) {
    entries.set(
      `native ${uid}`,
      JSON.stringify({
        uid,
        name: model.name,
        version: model.version,
        type: model.type,
        pricing: catalog.input.models[uid]?.pricing ?? null,
        ...(model.batchFactor === undefined ? {} : { batch_price_factor: formatCredits(model.batchFactor) }),
        id: uid,
        object: 'model',
        created: CREATED_SECONDS,
        owned_by: model.family,
      }),
    )
    if (model.clientFormats.includes('anthropic-messages') && mayCall(restriction, PAID.messages))
      entries.set(
        `messages ${uid}`,
        JSON.stringify({
          type: 'model',
          id: uid,
          display_name: model.name,
          created_at: new Date(CREATED_SECONDS * 1000).toISOString(),
        }),
      )
    if ((model.clientFormats.includes('gemini') || model.type === 'embedding') && mayCall(restriction, PAID.gemini))
      entries.set(`gemini ${uid}`, JSON.stringify(googleEntry(uid, model)))
  }
  const pick = (shape: ListShape) =>
    models.map(([uid]) => entries.get(`${shape} ${uid}`)).filter((entry) => entry !== undefined)
  const ids = models.map(([uid]) => uid)
  const betaIds = ids.filter((uid) => entries.has(`messages ${uid}`))
  const page = (of: string[]) =>
    `"has_more":false,"first_id":${JSON.stringify(of[0] ?? null)},"last_id":${JSON.stringify(of.at(-1) ?? null)}`
  return {
    entries,
    native: `"object":"list",${page(ids)},"data":[${pick('native').join(',')}]}`,
    messages: `{"data":[${pick('messages').join(',')}],${page(betaIds)}}`,
    gemini: `{"models":[${pick('gemini').join(',')}]}`,
  }
}

/** The actions of Google's protocol that an embedding model, and one of text, has. */
const METHODS = {
  embedding: ['embedContent', 'batchEmbedContents'],
  text: ['generateContent', 'streamGenerateContent', 'countTokens'],
}

function googleEntry(uid: string, { name, version, limits, type }: Model): object {
  const { contextTokens, outputTokensMax } = limits
  return {
    name: `models/${uid}`,
    baseModelId: uid,
    version: version ?? '1',
    displayName: name,
    ...(contextTokens === undefined ? {} : { inputTokenLimit: contextTokens }),
    ...(outputTokensMax === undefined ? {} : { outputTokenLimit: outputTokensMax }),
    supportedGenerationMethods: type === 'embedding' ? METHODS.embedding : METHODS.text,
  }
}
