// List prices kept fresh: compares the costs in the catalog with a signed table, and applies the rows that an operator
// chooses.
import { defineExtension } from '../../extension.ts'
import { type PriceDeps, priceResources } from './resources.ts'

export const prices = defineExtension<PriceDeps>({ name: 'prices', resources: (all: PriceDeps) => priceResources(all) })
