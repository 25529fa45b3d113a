import { VIDEO_SIZES } from '../catalog/generation-bodies.ts'
import { formatCredits } from '../kernel/credits.ts'
import type { JobRow, ListedJob } from './job.ts'
import type { ResultStore } from './result.ts'
import type { JobView, ListedJobView, VideoView } from './views.ts'

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

const VIDEO_STATUSES: Readonly<Record<JobRow['status'], VideoView['status']>> = {
  ...({ PENDING: 'queued', CONNECT: 'queued', PROCESSING: 'in_progress' } as const),
  ...({ COMPLETED: 'completed', FAILED: 'failed', CANCELLED: 'failed' } as const),
}

/** As the openai SDK shows a video. It has no word for a cancelled one. */
export function viewVideo(
  job: Pick<JobRow, 'id' | 'status' | 'input' | 'created_at'> & Partial<Pick<JobRow, 'completed_at' | 'error'>>,
): VideoView {
  const asked = JSON.parse(job.input) as Record<string, unknown> // Written by `shownInput`.
  const { model, prompt, resolution, ratio, duration, seconds = duration } = asked
  const status = VIDEO_STATUSES[job.status]
  const size = Object.entries(VIDEO_SIZES).find(([, one]) => one.resolution === resolution && one.ratio === ratio)
  const why = job.status === 'CANCELLED' ? 'The job was cancelled.' : job.error?.message
  return {
    id: `video_${job.id}`,
    object: 'video',
    created_at: secondsOf(job.created_at),
    completed_at: job.completed_at ? secondsOf(job.completed_at) : null,
    expires_at: null,
    status,
    // Vendors do not say how far they are.
    progress: status === 'completed' ? 100 : 0,
    model: String(model),
    prompt: typeof prompt === 'string' ? prompt : null,
    seconds: String(seconds ?? ''),
    size: size?.[0] ?? String(resolution ?? ''),
    remixed_from_video_id: null,
    error:
      status === 'failed' ? { code: job.error?.reason ?? job.error?.name ?? 'cancelled', message: why ?? '' } : null,
  }
}

const secondsOf = (time: Date) => Math.floor(time.getTime() / 1000)
