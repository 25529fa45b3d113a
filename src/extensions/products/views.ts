// Products as operators import, check and choose them.
import * as z from 'zod'
import { checkView } from '../../catalog/views.ts'
import { count } from '../../kernel/view.ts'

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
  /**
   * By operation and unit: the maximum count of any answer, which the hold covers. If no maximum can be proved, that is
   * a problem.
   */
  bounds: z.record(z.string(), z.record(z.string(), count)),
  /** The resulting catalog, even if it has problems. */
  document: z.record(z.string(), z.unknown()),
})
export type ProductCheckView = z.infer<typeof productCheckView>

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
