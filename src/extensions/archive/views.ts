import * as z from 'zod'
import { count, time } from '../../kernel/view.ts'

export const archiveState = z.object({
  /** Where the files are written; null: no place is set, and nothing is archived. */
  place: z.string().nullable(),
  /** Whether some process writes or checks a month. */
  running: z.boolean(),
  /** Months such as 2026-01 that are old enough. */
  due: z.array(z.string()),
  /** Why they are not archived yet. */
  waitsFor: z.string().nullable(),
  /** The newest first. */
  months: z.array(
    z.object({
      month: z.string(),
      running: z.boolean(),
      folder: z.string(),
      accounts: count,
      transfers: count,
      bytes: count,
      /** Null: it is being written, or could not be. */
      archivedAt: time.nullable(),
      failure: z.string().nullable(),
      /** When its files were last read and compared. */
      checkedAt: time.nullable(),
      problems: z.array(z.string()),
    }),
  ),
})
export type ArchiveState = z.infer<typeof archiveState>
