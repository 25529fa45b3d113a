// A job as callers see it: in answers, events and webhooks alike.
import { formatCredits } from '../kernel/credits.ts'
import type { JobRow, ListedJob } from './job.ts'
import type { ResultStore } from './result.ts'

export interface JobView {
  readonly id: string
  readonly status: string
  readonly inputParams: unknown
  readonly outputResult: ReadonlyArray<{ readonly url: readonly string[]; readonly lastFrameUrl?: string }> | null
  readonly createdAt: string
  readonly startedAt: string | null
  readonly completedAt: string | null
  /** Beyond the contract, and only when it failed. */
  readonly error?: { readonly code: number; readonly message: string; readonly reason?: string }
}

/** Addresses are signed anew each time, so that they are good for their whole life from now. */
export function viewJob(job: JobRow, results: Pick<ResultStore, 'url'>): JobView {
  const { error } = job
  return {
    id: job.id,
    status: job.status,
    inputParams: JSON.parse(job.input) as unknown,
    outputResult:
      job.status === 'COMPLETED' && job.files
        ? job.files.map(({ video, lastFrame }) => ({
            url: [results.url(video)],
            ...(lastFrame === undefined ? {} : { lastFrameUrl: results.url(lastFrame) }),
          }))
        : null,
    createdAt: job.created_at.toISOString(),
    startedAt: job.started_at?.toISOString() ?? null,
    completedAt: job.completed_at?.toISOString() ?? null,
    ...(job.status === 'FAILED' && error
      ? {
          error: {
            code: error.code,
            message: error.message,
            ...(error.reason === undefined ? {} : { reason: error.reason }),
          },
        }
      : {}),
  }
}

/** With what an owner wants to know besides: what it was, and what it cost. */
export function viewListedJob(job: ListedJob, results: Pick<ResultStore, 'url'>) {
  const charged = job.charged === null ? null : formatCredits(job.charged)
  return { ...viewJob(job, results), product: job.product, charged }
}
