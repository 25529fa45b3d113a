// The catalog's versions as operators see them.
import * as z from 'zod'
import { count, time } from '../kernel/view.ts'
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

/** The preview of changing or removing a vendor, or of a rollback. */
export const vendorCheckView = checkView.extend({
  /** Models and data endpoints that would no longer be offered, because no other vendor serves them. */
  unservedProducts: z.array(z.string()),
  /** The resulting catalog, even if it has problems. */
  document: z.record(z.string(), z.unknown()),
})
export type VendorCheckView = z.infer<typeof vendorCheckView>
