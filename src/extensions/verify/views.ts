// Verifications of the ledger, as operators see them.
import * as z from 'zod'
import { count, time } from '../../kernel/view.ts'

const verification = z.object({
  ok: z.boolean(),
  /** `charges`: calls whose price and cost were recomputed. */
  checked: z.object({ accounts: count, transfers: count, holds: count, usage: count, charges: count, jobs: count }),
  problems: z.array(z.string()),
})
export type Verification = z.infer<typeof verification>

export const verificationRun = verification.extend({
  id: z.string(),
  /** The whole ledger; otherwise only what is new since the last run. */
  full: z.boolean(),
  startedAt: time,
  endedAt: time.nullable(),
  /** How long it took; null while it runs. */
  durationMs: count.nullable(),
  /** Null while it runs, and if it failed. */
  ok: z.boolean().nullable(),
  progress: z.object({ accounts: count, total: count }),
  failure: z.string().nullable(),
})
export type VerificationRun = z.infer<typeof verificationRun>

export const verificationState = z.object({
  running: verificationRun.nullable(),
  last: verificationRun.nullable(),
  /** The next nightly run; null: there is none. */
  nextAt: time.nullable(),
})
export type VerificationState = z.infer<typeof verificationState>
