// Batches and their lines as the console, the command line and the operator API show them.
import * as z from 'zod'
import { count, credits, time } from '../../kernel/view.ts'
import { BATCH_STATUSES } from './batch-endpoints.ts'

export const batchView = z.object({
  id: z.string(),
  status: z.enum(BATCH_STATUSES),
  endpoint: z.string(),
  /** The id of the key that created it; `console`: created in the console. */
  key: z.string(),
  /** `name` is null when the file is gone. */
  input: z.object({ id: z.string(), name: z.string().nullable() }),
  /** The ids of the output and error files, until they expire. */
  outputFile: z.string().nullable(),
  errorFile: z.string().nullable(),
  counts: z.object({ total: count, completed: count, failed: count }),
  /** The charges of its calls so far. */
  charged: credits,
  createdAt: time,
  startedAt: time.nullable(),
  endedAt: time.nullable(),
  expiresAt: time,
})
export type BatchView = z.infer<typeof batchView>

const lineError = z.object({
  code: z.string(),
  /** Null: the error concerns the whole file. */
  line: count.nullable(),
  message: z.string(),
  param: z.string().nullable(),
})

/** Also the errors of its file. A batch with such errors was never started. */
export const batchDetail = batchView.extend({ errors: z.array(lineError) })
export type BatchDetail = z.infer<typeof batchDetail>

export const batchLine = z.object({
  line: count,
  customId: z.string(),
  ok: z.boolean(),
  /** The status of the answer; null: the line was not begun. */
  status: count.nullable(),
  /** Why the line failed. */
  message: z.string().nullable(),
  /** The request id of its call, if there is a usage row. */
  call: z.string().nullable(),
})
export type BatchLineView = z.infer<typeof batchLine>

export const fileCheck = z.object({ total: count, errors: z.array(lineError) })
export type FileCheck = z.infer<typeof fileCheck>
