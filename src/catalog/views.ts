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
