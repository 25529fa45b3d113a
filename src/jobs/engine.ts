// The job engine of one process: takes due steps from the queue, works on them, keeps their leases, and finds the jobs that
// nobody works on any more. Any number of processes may run one on the same database.
import type pg from 'pg'
import type { CatalogStore } from '../catalog/store.ts'
import type { OwnKeys, OwnUse } from '../credentials/own-keys.ts'
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
import { cancelJob } from './cancel.ts'
import { createDeliveries, type Deliveries, type DeliveryOptions } from './deliveries.ts'
import { createJobEvents, type JobEvents } from './events.ts'
import type { ClaimedJob, JobRow, Jobs, StepEnding } from './job.ts'
import { createJobs } from './job-table.ts'
import { openQueue, type Queue, type QueueItem } from './queue.ts'
import type { ResultStore } from './result.ts'
import { newJobId, storeRequest } from './stored-request.ts'
import { ATTEMPTS_MAX, backoffMs, JOB_TIMING, type JobTiming } from './timing.ts'
import { createVendorTasks } from './vendor-tasks.ts'
import { type StepDeps, stepJob } from './video.ts'
import type { JobFacts } from './views.ts'
import { jobMessage } from './webhook.ts'

export interface EngineOptions extends Pick<DeliveryOptions, 'mailer' | 'audit' | 'meter'> {
  readonly database: Database
  /** The queue has a few connections of its own. */
  readonly connection: pg.PoolConfig
  /** Instead of the one on that connection: for a simulation, in which time does not pass by itself. */
  readonly queue?: Queue
  readonly ledger: Ledger
  readonly catalog: CatalogStore
  readonly upstream: Upstream
  readonly vendors: Vendors
  readonly routes: RouteSources
  readonly ownKeys: Pick<OwnKeys, 'use'>
  readonly results: ResultStore
  readonly guard: Pick<GuardedFetch, 'check' | 'post'>
  readonly secrets: Secrets
  readonly world: World
  readonly log: Log
  readonly timing?: Partial<JobTiming>
}

/** A job that has no row yet. */
interface OpenedJob {
  /** Made by the statement that makes its hold. */
  readonly row: NonNullable<Reservation['job']>
  /** It has its row: its first step is due now. */
  begin(): void
  /** It gets none, because of this fault if there was one. */
  drop(error?: unknown): Promise<void>
}

export interface JobEngine {
  readonly jobs: Jobs
  readonly results: ResultStore
  readonly events: JobEvents
  /** For what else is to be done later, and at which pace; closed when the engine stops. */
  readonly queue: Queue
  readonly deliveries: Deliveries
  readonly timing: JobTiming
  /** Prepares a job: what is too large to travel with the reservation is stored first. */
  open(
    order: VideoRequest,
    call: { requestId: string; endpoint: string; client?: string | undefined; own?: OwnUse | undefined },
    signal: AbortSignal,
  ): Promise<OpenedJob>
  /** A job has its row: its first step is due now. */
  created(jobId: string): void
  /** Throws `conflict` where it cannot be cancelled any more. */
  cancel(job: JobRow): Promise<JobRow>
  facts(): Promise<JobFacts>
  /** Takes nothing more; lets the running steps end, or hands them over after `forMs`. */
  stop(forMs: number): Promise<void>
}

const STEPS_AT_ONCE_MAX = 1_000
const TIDY_EVERY_MS = 600_000
/** Of pictures on their way to vendors; each is there some three times while it is read and sent. */
const ORDERS_BYTES_MAX = 64_000_000

export async function startJobs(options: EngineOptions): Promise<JobEngine> {
  const { world, log } = options
  const timing: JobTiming = { ...JOB_TIMING, ...options.timing }
  const jobs = createJobs(options.database, { leaseMs: timing.leaseMs })
  const queue = options.queue ?? (await openQueue({ connection: options.connection, world, log }))
  const deliveries = createDeliveries({ ...options, queue, timing })
  /** Jobs in this process's hands, with the version under which it holds them. */
  const held = new Map<string, number>()

  const deps: StepDeps = {
    ...options,
    jobs,
    tasks: createVendorTasks(options),
    timing,
    // Nobody waits in line: a step that waits keeps others from being taken.
    orders: createByteBudget({ world, bytesMax: ORDERS_BYTES_MAX, queueMax: 0 }),
    async callBack(jobId) {
      const job = await jobs.findCallback(jobId)
      const message = job && jobMessage(job, options.results)
      if (message) deliveries.due(await deliveries.add(options.database, [message]))
    },
  }

  async function work(item: QueueItem): Promise<void> {
    let job: ClaimedJob | undefined
    try {
      job = await jobs.claim(item.key)
      // Nothing to do, or in the hands of another, who will queue the next step.
      if (!job) return
      held.set(job.id, job.version)
      const ending = await stepJob(job, deps).catch((error: unknown) => afterFailure(job as ClaimedJob, error))
      await finish(job, ending)
    } catch (error) {
      // The row says when it is due, and the sweep will find it.
      log.warn({ job: item.key, error }, 'job step was left to the sweep')
    } finally {
      if (job) held.delete(job.id)
    }
  }

  /** The row first: it says when the next step is due, and the sweep finds it should the queue never hear of it. */
  async function finish(job: ClaimedJob, ending: StepEnding): Promise<void> {
    const mine = await jobs.putDown(job, ending)
    if (mine && ending.afterMs !== undefined) await queue.push('job-step', job.id, ending.afterMs)
  }

  /** What nobody foresaw. It is tried a few times, and then the job is given up. */
  function afterFailure(job: ClaimedJob, error: unknown): StepEnding {
    const away = error instanceof Fault && error.kind === 'unavailable'
    log.error(
      { job: job.id, attempt: job.attempts, error, ...(error instanceof Fault ? error.details.internal : {}) },
      'job step failed',
    )
    return {
      afterMs: backoffMs(timing, job.attempts),
      // Never back to none: the next step must see that this one was cut off, perhaps just before its caller was told.
      attempts: away ? Math.max(1, job.attempts - 1) : Math.min(job.attempts, ATTEMPTS_MAX),
      misses: job.misses,
    }
  }

  const steps = queue.consume('job-step', { atOnceMax: STEPS_AT_ONCE_MAX, everyMs: timing.fetchEveryMs, run: work })
  const events = createJobEvents({ jobs, world, log, everyMs: timing.eventsEveryMs })

  async function sweep(): Promise<void> {
    const neglected = await jobs.neglected(timing.neglectedMs)
    if (neglected.length === 0) return
    log.info({ jobs: neglected.length }, 'jobs without a step were queued again')
    await Promise.all(neglected.map((id) => queue.push('job-step', id, 0)))
    steps.wake()
  }
  const timers = [
    every(world, timing.sweepEveryMs, sweep, log),
    every(world, timing.leaseMs / 3, () => jobs.renew([...held.keys()], [...held.values()]), log),
    every(world, TIDY_EVERY_MS, () => jobs.tidy(), log),
  ]

  function created(jobId: string): void {
    queue
      .push('job-step', jobId, 0)
      .then(() => steps.wake())
      .catch((error: unknown) => log.warn({ job: jobId, error }, 'new job was left to the sweep'))
  }

  return {
    jobs,
    results: options.results,
    events,
    queue,
    deliveries,
    timing,
    created,
    async open(order, { requestId, ...call }, signal) {
      const { callbackUrl } = order
      if (callbackUrl !== undefined) await options.guard.check(callbackUrl, { signal })
      const id = newJobId(world)
      const { text, apart } = storeRequest(order, call, world)
      if (apart !== undefined) await jobs.keepBody(id, apart)
      const data: Pick<JobRow, 'status'> & { jobId: string } = { jobId: id, status: 'PENDING' }
      return {
        row: {
          id,
          input: JSON.stringify(order.input),
          request: text,
          answer: JSON.stringify({ success: true, data, requestId }),
          ...(callbackUrl === undefined ? {} : { callback: callbackUrl }),
        },
        begin: () => created(id),
        async drop(error) {
          // When it is not known whether the row was made, the body stays; a job that is given up takes it along.
          if (apart === undefined || (error instanceof Fault && error.kind === 'unavailable')) return
          await jobs.dropBody(id).catch(() => undefined)
        },
      }
    },
    cancel: (job) => cancelJob(job, deps, finish),
    facts: () => jobs.facts(),
    async stop(forMs) {
      await new Promise<void>((resolve) => {
        const cancel = world.after(forMs, resolve)
        void Promise.all([steps.stop(), deliveries.stop()]).then(() => {
          cancel()
          resolve()
        })
      })
      for (const stop of timers) stop()
      events.stop()
      await queue.close()
    },
  }
}
