// What connecting a vendor answers.
import * as z from 'zod'
import { documentSchema } from '../../catalog/document.ts'
import { checkView } from '../../catalog/views.ts'
import { count } from '../../kernel/view.ts'
import { KIND_NAMES, PROTOCOLS } from '../../meter/kind.ts'
import { pricing } from '../../meter/price.ts'

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
