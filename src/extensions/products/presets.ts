// Presets of products: operations, address, place of the credential, and list prices with their date and source. They
// are made from public documentation and were not tested with the vendors' real APIs.
import { readFile } from 'node:fs/promises'
import { join } from 'node:path'
import * as z from 'zod'

const entry = z.record(z.string(), z.unknown())

const productPreset = z.strictObject({
  name: z.string(),
  title: z.string(),
  from: z.string(),
  noted: z.iso.date(),
  vendor: z.strictObject({ baseUrl: z.string(), auth: z.unknown(), credential: z.string() }),
  operations: z.record(z.string(), entry),
  /** List prices in US dollars, by operation and unit. Missing ones were not found. */
  usd: z.record(z.string(), z.record(z.string(), z.string())).default({}),
})

type ProductPreset = z.output<typeof productPreset>

let knownProducts: Promise<readonly ProductPreset[]> | undefined

export function readProductPresets(): Promise<readonly ProductPreset[]> {
  knownProducts ??= readFile(join(import.meta.dirname, 'product-presets.json'), 'utf8').then((text) =>
    z.array(productPreset).parse(JSON.parse(text)),
  )
  return knownProducts
}
