import { formatCredits } from '../kernel/credits.ts'
import type { JobRow, ListedJob } from './job.ts'
import type { ResultStore } from './result.ts'
import type { JobView, ListedJobView } from './views.ts'

/** URLs are signed at each call, so that they are valid for their whole lifetime from now. */
export function viewJob(job: JobRow, results: Pick<ResultStore, 'url'>): JobView {
  const { error } = job
  return {
    id: job.id,
    status: job.status,
    inputParams: JSON.parse(job.input) as JobView['inputParams'],
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

export function viewListedJob(job: ListedJob, results: Pick<ResultStore, 'url'>): ListedJobView {
  const charged = job.charged === null ? null : formatCredits(job.charged)
  return { ...viewJob(job, results), product: job.product, charged }
}
