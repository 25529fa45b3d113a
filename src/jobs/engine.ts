// The job engine of one process: it runs the due steps of video jobs and deliveries.
import type { CatalogStore } from '../catalog/store.ts'
import type { ByokKeys } from '../credentials/byok-keys.ts'
import type { Database } from '../database/database.ts'
import { Fault } from '../kernel/fault.ts'
import type { Log } from '../kernel/log.ts'
import type { Secrets } from '../kernel/secret.ts'
import { every } from '../kernel/timers.ts'
import type { World } from '../kernel/world.ts'
import type { Ledger } from '../ledger/ledger.ts'
import type { Reservation } from '../ledger/operation.ts'
import type { VideoRequest } from '../protocols/media/video-task/request.ts'
import type { RouteSources } from '../routing/route.ts'
import type { Vendors } from '../routing/vendor.ts'
import { createByteBudget } from '../upstream/budget.ts'
import type { Upstream } from '../upstream/call.ts'
import type { GuardedFetch } from '../upstream/guard.ts'
import type { Logins } from '../upstream/login.ts'
import { cancelJob } from './cancel.ts'
import { createDeliveries, type Deliveries, type DeliveryOptions } from './deliveries.ts'
import { createJobEvents, type JobEvents } from './events.ts'
import type { ClaimedJob, JobRow, Jobs, StepEnding } from './job.ts'
import { createJobs } from './job-table.ts'
import { viewVideo } from './job-view.ts'
import type { ResultStore } from './result.ts'
import { newJobId, type StoredCall, storeRequest } from './stored-request.ts'
import { ATTEMPTS_MAX, backoffMs, JOB_TIMING, type JobTiming } from './timing.ts'
import { createVendorTasks } from './vendor-tasks.ts'
import { type StepDeps, stepJob } from './video.ts'
import type { JobFacts } from './views.ts'
import { jobMessage } from './webhook.ts'
import { startWork, type Work } from './work.ts'

export interface EngineOptions extends Pick<DeliveryOptions, 'mailer' | 'audit' | 'meter'> {
  readonly database: Database
  readonly ledger: Ledger
  readonly catalog: CatalogStore
  readonly upstream: Upstream
  readonly logins: Logins
  readonly vendors: Vendors
  readonly routes: RouteSources
  readonly byokKeys: Pick<ByokKeys, 'use'>
  readonly results: ResultStore
  readonly guard: Pick<GuardedFetch, 'check' | 'post'>
  readonly secrets: Secrets
  readonly world: World
  readonly log: Log
  readonly timing?: Partial<JobTiming>
}

/** A prepared job without a row. */
interface OpenedJob {
  /** Inserted by the statement that makes the hold. */
  readonly row: NonNullable<Reservation['job']>
  /** The row exists: run the first step now. */
  begin(): void
  /** There will be no row, because of `error` if given. Removes the stored body. */
  drop(error?: unknown): Promise<void>
}

export interface JobEngine {
  readonly jobs: Jobs
  readonly results: ResultStore
  readonly events: JobEvents
  /** The step runner, also for other kinds of background work. It stops with the engine. */
  readonly work: Work
  readonly deliveries: Deliveries
  readonly timing: JobTiming
  /** Prepares a job. An order too large for the reservation's statement is stored first. */
  open(order: VideoRequest, call: { readonly requestId: string } & StoredCall, signal: AbortSignal): Promise<OpenedJob>
  /** A new job has its row: run its first step now. */
  wake(): void
  /** Throws `conflict` when the job can no longer be cancelled. */
  cancel(job: JobRow): Promise<JobRow>
  facts(): Promise<JobFacts>
  /** Takes no more steps and waits up to `forMs` for the running ones. Other processes continue the rest. */
  stop(forMs: number): Promise<void>
}

const STEPS_AT_ONCE_MAX = 1_000
const ACCOUNT_STEPS_MAX = 500
const TIDY_EVERY_MS = 600_000
/** Bytes of large orders in memory at once. Each order exists some three times while it is read and sent. */
const ORDERS_BYTES_MAX = 64_000_000

export function startJobs(options: EngineOptions): JobEngine {
  const { world, log } = options
  const timing: JobTiming = { ...JOB_TIMING, ...options.timing }
  const jobs = createJobs(options.database, { leaseMs: timing.leaseMs })
  const work = startWork({ database: options.database, world, log, timing })
  const deliveries = createDeliveries({ ...options, work, timing })

  const deps: StepDeps = {
    ...options,
    jobs,
    tasks: createVendorTasks(options),
    timing,
    // No queue: a waiting step would occupy a slot that other steps need.
    orders: createByteBudget({ world, bytesMax: ORDERS_BYTES_MAX, queueMax: 0 }),
    async callBack(jobId) {
      const job = await jobs.findCallback(jobId)
      const message = job && jobMessage(job, options.results)
      if (!message) return
      await deliveries.add(options.database, [message])
      deliveries.wake()
    },
  }

  /** After an unexpected error the step is retried a few times, then the job fails. */
  function afterFailure(job: ClaimedJob, error: unknown): StepEnding {
    const away = error instanceof Fault && error.kind === 'unavailable'
    log.error(
      { job: job.id, attempt: job.attempts, error, ...(error instanceof Fault ? error.details.internal : {}) },
      'job step failed',
    )
    return {
      afterMs: backoffMs(timing, job.attempts),
      // Never back to zero: the next step must see that this one was cut off, perhaps just before the webhook was stored.
      attempts: away ? Math.max(1, job.attempts - 1) : Math.min(job.attempts, ATTEMPTS_MAX),
      misses: job.misses,
    }
  }

  const steps = work.begin({
    table: jobs.work,
    atOnceMax: STEPS_AT_ONCE_MAX,
    shareMax: ACCOUNT_STEPS_MAX,
    run: (job) => stepJob(job, deps),
    failed: afterFailure,
  })
  const events = createJobEvents({ jobs, world, log, everyMs: timing.eventsEveryMs })

  const stopTidying = every(world, TIDY_EVERY_MS, () => jobs.prune(), log)

  return {
    jobs,
    results: options.results,
    events,
    work,
    deliveries,
    timing,
    wake: steps.wake,
    async open(order, { requestId, ...call }, signal) {
      const { callbackUrl } = order
      if (callbackUrl !== undefined) await options.guard.check(callbackUrl, { signal })
      const id = newJobId(world)
      const { text, apart } = storeRequest(order, call, world)
      if (apart !== undefined) await jobs.storeBody(id, apart)
      const input = JSON.stringify(order.input)
      const made = { id, status: 'PENDING', input, created_at: new Date(world.nowMs()) } as const
      const data: Pick<JobRow, 'status'> & { jobId: string } = { jobId: id, status: made.status }
      return {
        row: {
          id,
          input,
          request: text,
          answer: JSON.stringify(order.isOpenai ? viewVideo(made) : { success: true, data, requestId }),
          ...(callbackUrl === undefined ? {} : { callback: callbackUrl }),
        },
        begin: steps.wake,
        async drop(error) {
          // If it is unknown whether the row was made, the body stays. The job deletes it when it ends; otherwise `prune` does.
          if (apart === undefined || (error instanceof Fault && error.kind === 'unavailable')) return
          await jobs.dropBody(id).catch(() => undefined)
        },
      }
    },
    cancel: (job) => cancelJob(job, deps, steps.release),
    facts: () => jobs.facts(),
    async stop(forMs) {
      await work.stop(forMs)
      stopTidying()
      events.stop()
    },
  }
}
