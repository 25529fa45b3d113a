// The list of models, in the shapes of the ecosystems that read it: one superset on /v1, and that of each format with a
// surface of its own. Built once per catalog version and restriction, so that an answer is a lookup.
import { mayCall, mayUse, type Principal } from '../admission/api-key.ts'
import type { Model } from '../catalog/document.ts'
import type { Surface } from '../catalog/endpoint.ts'
import { endpointsOf } from '../catalog/index.ts'
import type { Catalog } from '../catalog/store.ts'
import { unknownModel } from '../catalog/unknown-model.ts'
import { formatCredits } from '../kernel/credits.ts'
import { FORMATS, SURFACES } from '../protocols/text/formats.ts'

/** When the first catalog was written; models have no date of their own. */
const CREATED_SECONDS = 1_789_000_000

/** Those that are no superset have entries of their own, for the models that they offer. */
interface Listing {
  readonly entries: ReadonlyMap<string, string>
  readonly lists: Readonly<Partial<Record<Surface, string>>>
  /** The superset, below what each answer begins with. */
  readonly native: string
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
    list(principal: Principal, requestId: string, surface: Surface): string {
      const { lists, native } = listingFor(principal)
      return lists[surface] ?? `{"success":true,"requestId":"${requestId}",${native}`
    },
    retrieve(principal: Principal, requestId: string, uid: string, surface: Surface): string {
      const isOwn = SURFACES[surface] !== undefined
      const entry = listingFor(principal).entries.get(`${isOwn ? surface : 'native'} ${uid}`)
      if (entry === undefined) throw unknownModel(uid, current().document.models, usableBy(principal, current()))
      // The SDKs read the members at the top, native callers those in `data`.
      return isOwn ? entry : `{"success":true,"requestId":"${requestId}","data":${entry},${entry.slice(1)}`
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
  }
  const lists: Partial<Record<Surface, string>> = {}
  for (const { name: format, surface } of Object.values(FORMATS)) {
    const spec = endpointsOf(catalog).find((one) => one.format === format)
    if (!surface) continue
    const offered = spec && mayCall(restriction, spec) ? models.filter(([, one]) => surface.models.offers(one)) : []
    const own = offered.map(([uid, model]) => {
      const entry = JSON.stringify(surface.models.entry(uid, model, CREATED_SECONDS))
      entries.set(`${surface.name} ${uid}`, entry)
      return entry
    })
    lists[surface.name] = surface.models.list(own, pageOf(offered))
  }
  const native = models.map(([uid]) => entries.get(`native ${uid}`))
  return { entries, lists, native: `"object":"list",${pageOf(models)},"data":[${native.join(',')}]}` }
}

/** All on one page. */
function pageOf(models: ReadonlyArray<readonly [uid: string, model: Model]>): string {
  const [first, last] = [models[0], models.at(-1)].map((one) => JSON.stringify(one?.[0] ?? null))
  return `"has_more":false,"first_id":${first},"last_id":${last}`
}
