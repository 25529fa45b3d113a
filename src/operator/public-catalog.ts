// What the console shows of the catalog to everyone: models and data endpoints that are enabled, with prices and with
// what a form needs to know of their parameters.
import { type DataEndpointSpec, isDataEndpoint } from '../catalog/endpoint.ts'
import { ENDPOINTS } from '../catalog/index.ts'
import type { Catalog } from '../catalog/store.ts'
import { formatCredits } from '../kernel/credits.ts'
import type { PublicCatalog } from './views.ts'

export function createPublicCatalog(current: () => Catalog): () => PublicCatalog {
  let built: { version: number; catalog: PublicCatalog } | undefined
  return () => {
    const now = current()
    if (built?.version !== now.version) built = { version: now.version, catalog: build(now) }
    return built.catalog
  }
}

function build({ document, input }: Catalog): PublicCatalog {
  const models = Object.entries(document.models)
    .filter(([, model]) => model.enabled)
    .map(([uid, model]) => ({
      uid,
      name: model.name,
      version: model.version,
      type: model.type,
      family: model.family,
      pricing: input.models[uid]?.pricing ?? null,
      batchFactor: model.batchFactor === undefined ? null : formatCredits(model.batchFactor),
      clientFormats: model.clientFormats,
      capabilities: model.capabilities,
      limits: model.limits,
    }))
  const endpoints = ENDPOINTS.filter(isDataEndpoint).flatMap((spec) => {
    const product = document.endpoints[spec.product] ?? document.models[spec.product]
    if (!product?.enabled) return []
    const pricing = (input.endpoints[spec.product] ?? input.models[spec.product])?.pricing ?? null
    return [{ ...endpointView(spec), pricing }]
  })
  return { models, endpoints }
}

function endpointView(spec: DataEndpointSpec): Omit<PublicCatalog['endpoints'][number], 'pricing'> {
  return {
    id: spec.id,
    product: spec.product,
    method: spec.method,
    path: spec.path,
    title: spec.title,
    description: spec.description,
    params: Object.entries(spec.params).map(([name, field]) => ({ name, ...field })),
  }
}
