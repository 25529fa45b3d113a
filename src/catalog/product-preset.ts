// Products that are known beforehand: operations, address, place of the credential, and list prices with their date and source. They are made from public
// documentation and have not been tried against the vendor.
import { readFile } from 'node:fs/promises'
import { join } from 'node:path'
import * as z from 'zod'

const entry = z.record(z.string(), z.unknown())

const preset = z.strictObject({
  name: z.string(),
  title: z.string(),
  from: z.string(),
  noted: z.iso.date(),
  vendor: z.strictObject({ baseUrl: z.string(), auth: z.unknown(), credential: z.string() }),
  operations: z.record(z.string(), entry),
  /** List prices in US dollars, by operation and unit. Those that are not here could not be found. */
  usd: z.record(z.string(), z.record(z.string(), z.string())).default({}),
})

type ProductPreset = z.output<typeof preset>

let known: Promise<readonly ProductPreset[]> | undefined

export function readProductPresets(): Promise<readonly ProductPreset[]> {
  known ??= readFile(join(import.meta.dirname, 'product-presets.json'), 'utf8').then((text) =>
    z.array(preset).parse(JSON.parse(text)),
  )
  return known
}
