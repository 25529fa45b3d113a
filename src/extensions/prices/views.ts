// What a table of list prices would change.
import * as z from 'zod'
import { pricing } from '../../meter/price.ts'

/** The changes that a table of list prices would make. */
export const priceComparisonView = z.object({
  /** The day on which the table was made. */
  made: z.iso.date(),
  /** How it was authenticated: by the key of a release, the operator's own key, or a digest that the operator gave. */
  proof: z.enum(['release', 'key', 'digest']),
  /** Warnings about the whole table. */
  warnings: z.array(z.string()),
  rows: z.array(
    z.object({
      /** The vendor in the catalog and the model's name there. */
      id: z.string(),
      kind: z.enum(['changed', 'new', 'gone', 'deprecated', 'unreadable']),
      vendor: z.string(),
      /** The model's name at the vendor, and the product in the catalog. null: it is not offered. */
      model: z.string(),
      uid: z.string().nullable(),
      /** In credits. */
      before: pricing.nullable(),
      after: pricing.nullable(),
      /** The new price of the product; null: unchanged. */
      price: pricing.nullable(),
      /** The date and source of the list price. */
      noted: z.string().nullable(),
      from: z.string().nullable(),
      /** The cost in the catalog was set manually. */
      byHand: z.boolean(),
      notes: z.array(z.string()),
      selectable: z.boolean(),
      /** Applied unless the operator chooses otherwise. */
      preselected: z.boolean(),
    }),
  ),
})
export type PriceComparisonView = z.input<typeof priceComparisonView>
