// What an operator sees when a rule is tried on a sample.
import * as z from 'zod'
import { count } from '../kernel/view.ts'

export const sampleView = z.object({
  /** As a vendor would see it. The placeholders of calls end in other letters. */
  text: z.string(),
  found: z.array(z.object({ pattern: z.string(), times: count })),
  /** Of the operator's own patterns. */
  problems: z.array(z.object({ pattern: z.string(), message: z.string() })),
})
export type SampleView = z.infer<typeof sampleView>
