// What the console shows of the catalogue to everyone: models and data endpoints that are enabled, with prices and with
// what a form needs to know of their parameters.
import type { Model } from '../catalog/document.ts'
import { type DataEndpointSpec, isDataEndpoint } from '../catalog/endpoint.ts'
import { ENDPOINTS } from '../catalog/index.ts'
import type { Catalog } from '../catalog/store.ts'
import type { PublicCatalog } from './views.ts'

const DOOR_ENDPOINTS = {
  'openai-chat': 'chat',
  'openai-responses': 'responses',
  'anthropic-messages': 'messages',
} as const

const pathOf = (id: string) => ENDPOINTS.find((spec) => spec.id === id)?.path ?? null

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
      doors: model.doors,
      capabilities: model.capabilities,
      limits: model.limits,
      path: modelPath(model),
    }))
  const endpoints = ENDPOINTS.filter(isDataEndpoint).flatMap((spec) => {
    const product = document.endpoints[spec.product] ?? document.models[spec.product]
    if (!product?.enabled) return []
    const pricing = (input.endpoints[spec.product] ?? input.models[spec.product])?.pricing ?? null
    return [{ ...endpointView(spec), pricing }]
  })
  return { models, endpoints }
}

function modelPath(model: Model): string | null {
  if (model.type === 'image') return pathOf('images')
  if (model.type === 'video') return pathOf('video')
  const door = model.doors[0]
  return door ? pathOf(DOOR_ENDPOINTS[door]) : null
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
