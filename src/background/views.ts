// Batches and their lines as people see them: in the console, on the command line and in the operator API.
import * as z from 'zod'
import { BATCH_STATUSES } from '../catalog/batches.ts'
import { count, credits, time } from '../kernel/view.ts'

export const batchView = z.object({
  id: z.string(),
  status: z.enum(BATCH_STATUSES),
  endpoint: z.string(),
  /** Of the key that asked for it; `console`: somebody at the console. */
  key: z.string(),
  /** Without a name: the file is gone. */
  input: z.object({ id: z.string(), name: z.string().nullable() }),
  /** Files of the answers and of the errors, while they are kept. */
  outputFile: z.string().nullable(),
  errorFile: z.string().nullable(),
  counts: z.object({ total: count, completed: count, failed: count }),
  /** What its calls have cost so far. */
  charged: credits,
  createdAt: time,
  startedAt: time.nullable(),
  endedAt: time.nullable(),
  expiresAt: time,
})
export type BatchView = z.infer<typeof batchView>

const lineError = z.object({
  code: z.string(),
  /** Null: it is about the whole file. */
  line: count.nullable(),
  message: z.string(),
  param: z.string().nullable(),
})

/** With what was wrong with its file, if anything was: then it was never begun. */
export const batchDetail = batchView.extend({ errors: z.array(lineError) })
export type BatchDetail = z.infer<typeof batchDetail>

export const batchLine = z.object({
  line: count,
  customId: z.string(),
  ok: z.boolean(),
  /** Of its answer; null: it was not begun. */
  status: count.nullable(),
  /** Why it failed. */
  message: z.string().nullable(),
  /** The request id of its call, where there is a row of usage. */
  call: z.string().nullable(),
})
export type BatchLineView = z.infer<typeof batchLine>

export const fileCheck = z.object({ total: count, errors: z.array(lineError) })
export type FileCheck = z.infer<typeof fileCheck>
