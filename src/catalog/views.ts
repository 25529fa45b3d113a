// The catalog's versions as operators see them.
import * as z from 'zod'
import { count, time } from '../kernel/view.ts'
import { KIND_NAMES, PROTOCOLS } from '../meter/kind.ts'
import { pricing } from '../meter/price.ts'
import { document } from './document.ts'

export const versionView = z.object({ version: count, appliedAt: time, actor: z.string(), note: z.string() })
export type VersionView = z.infer<typeof versionView>

export const currentView = versionView.extend({
  document,
  /** What an operator should know of it: routes that cost more than they are sold for. */
  notes: z.array(z.string()),
})
/** The document as it was given: what an operator edits. */
export type CurrentView = z.input<typeof currentView>

export const checkView = z.object({ problems: z.array(z.string()), changes: z.array(z.string()) })
export type CheckView = z.infer<typeof checkView>

export const appliedView = z.object({
  /** The one before when nothing differs: what is in force already makes no new version. */
  version: count,
  changes: z.array(z.string()),
})
export type Applied = z.infer<typeof appliedView>

const presetVariable = z.object({ name: z.string(), about: z.string() })

export const presetView = z.object({
  name: z.string(),
  title: z.string(),
  about: z.string().nullable(),
  /** With `{name}` for what is still to be filled in. */
  baseUrl: z.string(),
  credential: z.string().nullable(),
  variables: z.array(presetVariable),
  /** How its entry logs in, where there are other ways. */
  login: z.string().nullable(),
  logins: z.array(
    z.object({
      name: z.string(),
      title: z.string(),
      about: z.string(),
      credential: z.string().nullable(),
      variables: z.array(presetVariable),
    }),
  ),
  formats: z.array(z.enum(PROTOCOLS)),
  /** When its list prices were noted, and from where. null: none were. */
  prices: z.object({ noted: z.iso.date(), from: z.string() }).nullable(),
  /** The vendor of the shipped catalog whose routes it takes over. */
  replacesVendor: z.string().nullable(),
  models: z.array(
    z.object({
      model: z.string(),
      /** Under which it would be offered. */
      uid: z.string(),
      type: z.enum(KIND_NAMES),
      capabilities: z.array(z.string()),
      contextTokens: count.nullable(),
      /** The list price at a hundred credits a dollar; null: none was noted. */
      cost: pricing.nullable(),
    }),
  ),
})
export type PresetView = z.input<typeof presetView>

/** What changing or removing a vendor, or applying an earlier version again, would do. */
export const vendorCheckView = checkView.extend({
  /** Models and data endpoints that would no longer be offered, because no other vendor serves them. */
  unservedProducts: z.array(z.string()),
  /** The whole catalog as it would be; one with problems is shown too. */
  document: z.record(z.string(), z.unknown()),
})
export type VendorCheckView = z.infer<typeof vendorCheckView>

/** What connecting a vendor would do. */
export const connectCheckView = checkView.extend({
  notes: z.array(z.string()),
  /** What would be sold below cost, in sentences; applied only with `belowCost`. */
  belowCostNotes: z.array(z.string()),
  document,
})
export type ConnectCheckView = z.input<typeof connectCheckView>

/** What an OpenAPI document has to sell. */
export const importedView = z.object({
  title: z.string(),
  description: z.string(),
  /** null: it names no server, or one that is not public. */
  server: z.string().nullable(),
  /** Where the API wants its credential, as `auth` of a vendor says it. */
  auth: z.unknown(),
  operations: z.array(
    z.object({
      id: z.string(),
      route: z.string(),
      title: z.string(),
      /** Why it cannot be sold, with the line; null: it can. */
      problem: z.string().nullable(),
      notes: z.array(z.string()),
      /** In the form of the catalog; null: it was not asked for, or cannot be sold. */
      entry: z.record(z.string(), z.unknown()).nullable(),
    }),
  ),
})
export type ImportedView = z.infer<typeof importedView>

/** What a product would change. */
export const productCheckView = checkView.extend({
  notes: z.array(z.string()),
  /** By operation and unit: the most that any answer can count, which is what is held for. Those that cannot be proved are problems. */
  bounds: z.record(z.string(), z.record(z.string(), count)),
  /** The whole catalog as it would be; one with problems is shown too. */
  document: z.record(z.string(), z.unknown()),
})
export type ProductCheckView = z.infer<typeof productCheckView>

/** What a table of list prices would change. */
export const priceComparisonView = z.object({
  /** The day on which the table was made. */
  made: z.iso.date(),
  /** Who vouches for it: the key of a release, the operator's own key, or a digest that the operator gave. */
  proof: z.enum(['release', 'key', 'digest']),
  /** What an operator should know before applying anything. */
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
      /** The product's own price; null: it stays. */
      price: pricing.nullable(),
      /** When the list price was noted, and from where. */
      noted: z.string().nullable(),
      from: z.string().nullable(),
      /** The cost in the catalog is no list price. */
      byHand: z.boolean(),
      notes: z.array(z.string()),
      selectable: z.boolean(),
      /** What is applied if nobody chooses. */
      preselected: z.boolean(),
    }),
  ),
})
export type PriceComparisonView = z.input<typeof priceComparisonView>

/** The preset of a product. */
export const productPresetView = z.object({
  name: z.string(),
  title: z.string(),
  /** Where its list prices stand, and when they were noted. */
  from: z.string(),
  noted: z.iso.date(),
  baseUrl: z.string(),
  auth: z.unknown(),
  credential: z.string(),
  /** Whether it was tested with the vendor's real API. */
  tested: z.boolean(),
  operations: z.array(
    z.object({
      id: z.string(),
      title: z.string(),
      route: z.string(),
      /** The list price in dollars, by unit; null: none was found. */
      usd: z.record(z.string(), z.string()).nullable(),
      /** In the form of the catalog. */
      entry: z.record(z.string(), z.unknown()),
    }),
  ),
})
export type ProductPresetView = z.infer<typeof productPresetView>
