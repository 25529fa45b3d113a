// The types of a job, and every change of it.
import type { Viewer } from '../admission/api-key.ts'
import type { JobStatus } from '../catalog/generation-answers.ts'
import { VIDEO_SIZES } from '../catalog/video-bodies.ts'
import { formatCredits } from '../kernel/credits.ts'
import type { FaultName } from '../kernel/fault.ts'
import type { World } from '../kernel/world.ts'
import type { VideoOrder, VideoRequest } from '../protocols/media/video-task/request.ts'
import type { ResultStore } from './result.ts'
import type { JobFacts, JobView, ListedJobView, VideoView } from './views.ts'
import type { Ending, WorkTable } from './work.ts'

// The job engine's intervals and timeouts in one place, so that tests can run at another pace.

export interface JobTiming {
  /** The interval between two polls of a task, random each time so that jobs made together are not polled together. */
  readonly pollMsMin: number
  readonly pollMsMax: number
  /** How often the tables are queried for due steps; less often while there are none. */
  readonly fetchEveryMs: number
  /** How long a worker keeps a job without renewing its lease. */
  readonly leaseMs: number
  /** The first pause after a failure; it doubles with each. */
  readonly retryMs: number
  /** How long a submission is retried while vendors refuse it. */
  readonly submitForMs: number
  /** How long the vendor is searched for the task of a submission whose outcome is unknown. */
  readonly searchForMs: number
  /** Watching the vendor's task after we gave the job up. */
  readonly watchEveryMs: number
  readonly watchForMs: number
  /** The first pause after a delivery that failed; it doubles with each. */
  readonly webhookRetrySeconds: number
  /** How long a process keeps a delivery without renewing its lease. */
  readonly deliveryLeaseMs: number
  readonly eventsEveryMs: number
}

export const JOB_TIMING: JobTiming = {
  pollMsMin: 5_000,
  pollMsMax: 10_000,
  fetchEveryMs: 1_000,
  leaseMs: 20_000,
  retryMs: 2_000,
  submitForMs: 15 * 60_000,
  searchForMs: 180_000,
  watchEveryMs: 10 * 60_000,
  watchForMs: 6 * 3_600_000,
  webhookRetrySeconds: 5,
  deliveryLeaseMs: 60_000,
  eventsEveryMs: 1_000,
}

/** Steps in a row that may fail before a job is given up. */
export const ATTEMPTS_MAX = 5
/** Polls in a row that do not find the task before it counts as lost. */
export const MISSES_MAX = 5
const RETRY_MS_MAX = 60_000

export function backoffMs(timing: JobTiming, failures: number): number {
  return Math.min(RETRY_MS_MAX, timing.retryMs * 2 ** Math.max(0, Math.min(failures, 10) - 1))
}

export type Verdict = 'COMPLETED' | 'FAILED' | 'CANCELLED'

export interface JobError {
  readonly name: FaultName
  readonly code: number
  /** The HTTP status for the usage row. */
  readonly status: number
  readonly message: string
  readonly reason?: string
}

/** Stored files of one result. */
export interface JobFiles {
  readonly video: string
  readonly lastFrame?: string
}

/** What the vendor reports as delivered. */
export interface Delivered {
  readonly seconds?: number
  readonly resolution?: string
  readonly outputTokens?: number
}

/** What callers may see of a job. */
export interface JobRow {
  readonly id: string
  readonly account_id: string
  readonly key_id: string
  readonly product: string
  readonly hold_id: string
  readonly status: JobStatus
  readonly input: string
  readonly error: JobError | null
  readonly files: readonly JobFiles[] | null
  readonly version: number
  readonly created_at: Date
  readonly started_at: Date | null
  readonly completed_at: Date | null
}

export interface ListedJob extends JobRow {
  /** Null while the hold exists. */
  readonly charged: bigint | null
}

export interface CallbackRow extends JobRow {
  readonly callback_url: string | null
}

/** A job that a worker has leased. */
export interface ClaimedJob extends Omit<CallbackRow, 'input'> {
  readonly catalog_version: number
  readonly request: string
  readonly attempts: number
  readonly misses: number
  readonly submissions: number
  readonly vendor: string | null
  readonly route: number
  /** The vendor credential that made the task; null: the vendor's only one. */
  readonly credential: string | null
  readonly task_id: string | null
  readonly verdict: Verdict | null
  readonly delivered: Delivered | null
  /** By the database's clock. */
  readonly overdue: boolean
  readonly watching: boolean
  readonly age_ms: number
  /** Time since a submission whose outcome is unknown; null when there is none. */
  readonly submit_age_ms: number | null
  readonly submit_started_seconds: number | null
}

export interface Jobs {
  /** The jobs' steps. */
  readonly work: WorkTable<ClaimedJob, StepEnding>
  find(id: string): Promise<JobRow | undefined>
  findCallback(id: string): Promise<CallbackRow | undefined>
  /**
   * Newest first, fewer than `limit` when the rows are large. `before` is the id of the last job of the previous page.
   */
  list(
    account: string,
    /** Without a viewer: all jobs of the account. */
    options: { status?: JobStatus; before?: string; limit: number; viewer?: Viewer },
  ): Promise<{ rows: ListedJob[]; more: boolean }>
  /** The jobs whose status differs from the one seen. When the rows are large, the rest comes with the next call. */
  changed(ids: readonly string[], seen: readonly JobStatus[]): Promise<JobRow[]>
  /**
   * Records that a submission is about to be sent. False when the hold is gone, the job was cancelled, or a submission
   * is in flight.
   */
  beginSubmission(job: Fenced & Held, to: SubmittedTo): Promise<boolean>
  /** The vendor has certainly not accepted it. */
  refusedSubmission(job: Fenced): Promise<boolean>
  /** The vendor has accepted it. The stored order is no longer needed. */
  submitted(job: Fenced, taskId: string, request: string): Promise<boolean>
  /**
   * The same from a worker that lost the job after it sent the submission (counted from 1). False: the task is known,
   * or the job is decided.
   */
  storeTask(
    job: { readonly id: string; readonly submission: number },
    taskId: string,
    request: string,
  ): Promise<boolean>
  isDecided(id: string): Promise<boolean>
  /** The vendor is working on it, or has finished and we are fetching the result. */
  processing(job: Fenced): Promise<void>
  /** Fixes how the job ends. The first decision is final. */
  decide(job: Fenced, decision: Decision): Promise<boolean>
  /** Sets the final status after the settlement. False while the hold exists. */
  conclude(job: Fenced & Held): Promise<boolean>
  noteAnomaly(id: string, anomaly: string): Promise<void>
  body(id: string): Promise<string | undefined>
  /** Stores an order that is too large for the reservation's statement. Call it before the reservation. */
  storeBody(id: string, body: string): Promise<void>
  dropBody(id: string): Promise<void>
  isHeld(job: { readonly account_id: string; readonly hold_id: string }): Promise<boolean>
  /** The number of open jobs whose tasks this vendor credential made. No other credential can see those tasks. */
  openAt(vendor: string, credential: string): Promise<number>
  /** Removes orders whose job was never created. */
  prune(): Promise<void>
  facts(): Promise<JobFacts>
}

interface SubmittedTo {
  readonly vendor: string
  readonly route: number
  readonly credential?: string | undefined
}

interface Fenced {
  readonly id: string
  readonly version: number
}

interface Held {
  readonly account_id: string
  readonly hold_id: string
}

export interface StepEnding extends Ending {
  readonly attempts: number
  readonly misses: number
  /** Ignored when the job has this status already, or a later one. */
  readonly status?: 'CONNECT' | 'PROCESSING'
}

export interface Decision {
  readonly verdict: Verdict
  readonly error?: JobError
  readonly files?: readonly JobFiles[]
  readonly delivered?: Delivered
  /** How long the vendor's task is still watched after the decision. */
  readonly watchMs?: number
}

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

// The request as a job's row stores it: the order until the vendor has accepted it, and permanently the facts that
// decide the price.

export interface StoredRequest {
  readonly seconds: number
  readonly resolution: string
  readonly hasVideos: boolean
  /** The endpoint for the usage row. */
  readonly endpoint: string
  /** The agent that sent the request, if known. */
  readonly client?: string | undefined
  readonly labels?: Readonly<Record<string, string>> | undefined
  /**
   * The hold covers only the fee for the account's own key. `fallback`: the gateway's credential may be used too, at
   * the price.
   */
  readonly byok?: { readonly fallback: boolean }
  /** Which of the catalog's routes it may take, by their numbers. Absent: all. */
  readonly routes?: readonly number[]
  /** Chosen by us when the caller gave none: it identifies the task in a search. */
  readonly seed?: number
  /** Absent: it is stored in its own table, or the vendor has accepted it. */
  readonly order?: VideoOrder
  /** The length of an order stored in its own table, known before it is read. */
  readonly apartChars?: number
}

/** Longer orders go to their own table, so that large pictures do not burden the reservation's statement. */
const INLINE_CHARS_MAX = 8_000

/** What a row stores of the call. */
export interface StoredCall extends Pick<StoredRequest, 'client' | 'labels'> {
  readonly endpoint: string
  readonly own?: { readonly fallback: boolean } | undefined
  /** Absent: all of the catalog's routes. */
  readonly allowedRoutes?: readonly number[] | undefined
}

/** The row's text, and the order to store first in its own table if it is large. */
export function storeRequest(
  request: VideoRequest,
  { endpoint, client, labels, own, allowedRoutes }: StoredCall,
  world: World,
): { text: string; apart?: string } {
  const { order } = request
  const facts: StoredRequest = {
    seconds: order.duration,
    resolution: order.resolution,
    hasVideos: order.content.some((part) => part.type === 'video_url'),
    endpoint,
    client,
    ...(labels ? { labels } : {}),
    ...(own ? { byok: { fallback: own.fallback } } : {}),
    ...(allowedRoutes ? { routes: allowedRoutes } : {}),
    ...(order.seed === undefined ? { seed: world.bytes(4).readUInt32BE() } : {}),
  }
  const apart = JSON.stringify(order)
  if (apart.length <= INLINE_CHARS_MAX) return { text: JSON.stringify({ ...facts, order }) }
  return { text: JSON.stringify({ ...facts, apartChars: apart.length }), apart }
}

export function readStoredRequest(text: string): StoredRequest {
  return JSON.parse(text) as StoredRequest
}

export function withoutOrder({ order: _, ...facts }: StoredRequest): string {
  return JSON.stringify(facts)
}

/** 19 digits with some 62 random bits: too large for a float, and not guessable. */
export function newJobId(world: World): string {
  const least = 1_000_000_000_000_000_000n
  return String(least + (world.bytes(8).readBigUInt64BE() % (9_000_000_000_000_000_000n - least)))
}
