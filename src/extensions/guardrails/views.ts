// The result of trying a redaction rule on a sample text.
import * as z from 'zod'
import { count } from '../../kernel/view.ts'

export const sampleView = z.object({
  /** The text as a vendor would get it. Placeholders in calls end in other letters. */
  text: z.string(),
  found: z.array(z.object({ pattern: z.string(), times: count })),
  /** Problems of the operator's patterns. */
  problems: z.array(z.object({ pattern: z.string(), message: z.string() })),
})
export type SampleView = z.infer<typeof sampleView>
