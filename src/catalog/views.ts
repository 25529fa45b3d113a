// The catalog's versions as operators see them.
import * as z from 'zod'
import { count, time } from '../kernel/view.ts'
import { KIND_NAMES, PROTOCOLS } from '../meter/kind.ts'
import { pricing } from '../meter/price.ts'
import { documentSchema } from './document.ts'

export const versionView = z.object({ version: count, appliedAt: time, actor: z.string(), note: z.string() })
export type VersionView = z.infer<typeof versionView>

/** One version, as it was given. */
export const versionDocumentView = z.object({ version: count, document: z.record(z.string(), z.unknown()) })
export type VersionDocumentView = z.infer<typeof versionDocumentView>

export const currentView = versionView.extend({
  get document() {
    return documentSchema()
  },
  /** Routes that are sold below cost, in sentences. */
  notes: z.array(z.string()),
})
/** The document as it was given, for editing. */
export type CurrentView = z.input<typeof currentView>

export const checkView = z.object({ problems: z.array(z.string()), changes: z.array(z.string()) })
export type CheckView = z.infer<typeof checkView>

export const appliedView = z.object({
  /** The current version if nothing differs, because then no new version is made. */
  version: count,
  changes: z.array(z.string()),
})
export type Applied = z.infer<typeof appliedView>

const presetVariable = z.object({ name: z.string(), about: z.string() })

export const presetView = z.object({
  name: z.string(),
  title: z.string(),
  about: z.string().nullable(),
  /** With `{name}` for each variable. */
  baseUrl: z.string(),
  credential: z.string().nullable(),
  variables: z.array(presetVariable),
  /** The name of the default login, if there are others. */
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
  /** The date and source of its list prices. null: there are none. */
  prices: z.object({ noted: z.iso.date(), from: z.string() }).nullable(),
  /** The vendor of the shipped catalog whose routes it replaces. */
  replacesVendor: z.string().nullable(),
  models: z.array(
    z.object({
      model: z.string(),
      /** The id under which it would be offered. */
      uid: z.string(),
      /** The shipped name of the same model, under which it may be offered too. null: there is none. */
      alias: z.string().nullable(),
      type: z.enum(KIND_NAMES),
      capabilities: z.array(z.string()),
      contextTokens: count.nullable(),
      /** The list price at 100 credits per dollar; null: none is known. */
      cost: pricing.nullable(),
    }),
  ),
})
export type PresetView = z.input<typeof presetView>

/** The preview of changing or removing a vendor, or of a rollback. */
export const vendorCheckView = checkView.extend({
  /** Models and data endpoints that would no longer be offered, because no other vendor serves them. */
  unservedProducts: z.array(z.string()),
  /** The resulting catalog, even if it has problems. */
  document: z.record(z.string(), z.unknown()),
})
export type VendorCheckView = z.infer<typeof vendorCheckView>

/** The preview of connecting a vendor. */
export const connectCheckView = checkView.extend({
  notes: z.array(z.string()),
  /** What would be sold below cost, in sentences; applied only with `belowCost`. */
  belowCostNotes: z.array(z.string()),
  get document() {
    return documentSchema()
  },
})
export type ConnectCheckView = z.input<typeof connectCheckView>

/** The operations of an OpenAPI document. */
export const importedView = z.object({
  title: z.string(),
  description: z.string(),
  /** null: it names no server, or one that is not public. */
  server: z.string().nullable(),
  /** Why the server that it names is not used; null: it is, or it names none. */
  serverProblem: z.string().nullable(),
  /** How the credential is sent, in the form of a vendor's `auth`. */
  auth: z.unknown(),
  operations: z.array(
    z.object({
      id: z.string(),
      route: z.string(),
      title: z.string(),
      /** Why it cannot be sold, with the line; null: it can. */
      problem: z.string().nullable(),
      notes: z.array(z.string()),
      /** In the form of the catalog; null: not requested, or it cannot be sold. */
      entry: z.record(z.string(), z.unknown()).nullable(),
    }),
  ),
})
export type ImportedView = z.infer<typeof importedView>

/** The preview of adding a product. */
export const productCheckView = checkView.extend({
  notes: z.array(z.string()),
  /** By operation and unit: the maximum count of any answer, which the hold covers. If no maximum can be proved, that is a problem. */
  bounds: z.record(z.string(), z.record(z.string(), count)),
  /** The resulting catalog, even if it has problems. */
  document: z.record(z.string(), z.unknown()),
})
export type ProductCheckView = z.infer<typeof productCheckView>

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

/** The preset of a product. */
export const productPresetView = z.object({
  name: z.string(),
  title: z.string(),
  /** The source and date of its list prices. */
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
