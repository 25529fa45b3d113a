// Calls at the price that their model has in batches.
import type { EndpointSpec } from '../catalog/endpoint.ts'
import type { Product } from '../catalog/store.ts'
import { kindRow } from '../meter/kind.ts'
import { scaled } from '../meter/price.ts'
import type { PaidSpec, Read } from './read.ts'

export const isBatchable = (spec: EndpointSpec): spec is PaidSpec =>
  spec.sells !== undefined && kindRow(spec.sells).batchable === true && !spec.path.includes('{') && !spec.several

/** The same request at its model's batch price. */
export function inBatch<T extends Read>(asked: T): T {
  const { product, fallbacks } = asked
  if (!fallbacks) return { ...asked, product: cheaper(product) }
  return {
    ...asked,
    product: cheaper(product),
    fallbacks: fallbacks.map((one) => ({ ...one, product: cheaper(one.product) })),
  }
}

function cheaper(product: Product): Product {
  const batchFactor = 'batchFactor' in product ? product.batchFactor : undefined
  return batchFactor === undefined ? product : { ...product, pricing: scaled(product.pricing, batchFactor) }
}
