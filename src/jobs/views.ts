// A job as callers see it in answers, events and webhooks.
import * as z from 'zod'
import { JOB_STATUSES } from '../catalog/generation-answers.ts'
import { count, credits, time } from '../kernel/view.ts'

export const jobView = z.object({
  id: z.string(),
  status: z.enum(JOB_STATUSES),
  inputParams: z.record(z.string(), z.unknown()),
  outputResult: z.array(z.object({ url: z.array(z.string()), lastFrameUrl: z.string().exactOptional() })).nullable(),
  createdAt: time,
  startedAt: time.nullable(),
  completedAt: time.nullable(),
  /** An addition to the contract, only for failed jobs. */
  error: z.object({ code: z.number(), message: z.string(), reason: z.string().exactOptional() }).exactOptional(),
})
export type JobView = z.infer<typeof jobView>

/** A job in the shape of the openai SDK. */
export interface VideoView {
  readonly id: string
  readonly object: 'video'
  /** In seconds, as all its times. */
  readonly created_at: number
  readonly completed_at: number | null
  readonly expires_at: number | null
  readonly status: 'queued' | 'in_progress' | 'completed' | 'failed'
  readonly progress: number
  readonly model: string
  readonly prompt: string | null
  readonly seconds: string
  readonly size: string
  readonly remixed_from_video_id: null
  readonly error: { readonly code: string; readonly message: string } | null
}

/** Also shows the product and the charge to the job's owner. */
export const listedJob = jobView.extend({ product: z.string(), charged: credits.nullable() })
export type ListedJobView = z.infer<typeof listedJob>

/** Open jobs, over all processes. */
export const jobFacts = z.object({
  byStatus: z.record(z.string(), count),
  /** `active`: leased by a worker. `created`: waiting for the next step. `failed`: waiting for a retry. */
  active: count,
  created: count,
  failed: count,
})
export type JobFacts = z.infer<typeof jobFacts>
