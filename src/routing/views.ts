// What the answers about routing hold.
import * as z from 'zod'
import { count } from '../kernel/view.ts'

export const vendorTest = z.object({
  ok: z.boolean(),
  status: count.nullable(),
  latencyMs: z.number(),
  message: z.string(),
})
export type VendorTest = z.infer<typeof vendorTest>
