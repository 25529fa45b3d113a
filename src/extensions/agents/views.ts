// What the answers of the console's API about programs look like.
import * as z from 'zod'

/** A program that asks to act for the person. */
export const consentView = z.object({
  client: z.string(),
  /** The host that vouches for the name; null: nobody does. */
  vouchedBy: z.string().nullable(),
  redirectsTo: z.string(),
})
export type ConsentView = z.infer<typeof consentView>

/** A program that waits for a person to type its code. */
export const deviceView = z.object({
  client: z.string(),
  /** The network address at which it waits; null: not known. */
  askedFrom: z.string().nullable(),
  askedAt: z.string(),
  /** `api`: it may call models and every other endpoint; `mcp`: the tools. */
  scopes: z.array(z.string()),
})
export type DeviceView = z.infer<typeof deviceView>
