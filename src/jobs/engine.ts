// The job engine of one process: it runs the due steps of video jobs and deliveries.

import type { JobStatus } from '../catalog/generation-answers.ts'
import type { CatalogStore } from '../catalog/store.ts'
import type { Database } from '../database/database.ts'
import { Fault } from '../kernel/fault.ts'
import type { Log } from '../kernel/log.ts'
import type { Secrets } from '../kernel/secret.ts'
import { every, sleep } from '../kernel/timers.ts'
import type { World } from '../kernel/world.ts'
import type { Ledger } from '../ledger/ledger.ts'
import type { Reservation } from '../ledger/operation.ts'
import type { VideoRequest } from '../protocols/media/video-task/request.ts'
import type { RouteSources } from '../routing/route.ts'
import type { Vendors } from '../routing/vendor.ts'
import { createByteBudget } from '../upstream/budget.ts'
import type { Upstream } from '../upstream/call.ts'
import type { ByokKeys } from '../upstream/credentials/byok-keys.ts'
import type { GuardedFetch } from '../upstream/guard.ts'
import type { Logins } from '../upstream/login.ts'
import { createDeliveries, type Deliveries, type DeliveryOptions } from './deliveries.ts'
import {
  ATTEMPTS_MAX,
  backoffMs,
  type ClaimedJob,
  JOB_TIMING,
  type JobRow,
  type Jobs,
  type JobTiming,
  newJobId,
  type StepEnding,
  type StoredCall,
  storeRequest,
  viewVideo,
} from './job.ts'
import { createJobs } from './job-table.ts'
import type { ResultStore } from './result.ts'
import { createVendorTasks, placeOf } from './vendor-tasks.ts'
import { decide, type StepDeps, stepJob } from './video.ts'
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
  readonly byokKeys: Pick<ByokKeys, 'of'>
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
      // Never back to zero: the next step must see that this one was cut off, perhaps just before the webhook was
      // stored.
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
          // If it is unknown whether the row was made, the body stays. The job deletes it when it ends; otherwise
          // `prune` does.
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

// Cancels a job at the caller's request. It costs nothing before the job is submitted, and while the task is queued at
// a vendor that allows it. A running task cannot be cancelled.

const TRY_AGAIN_MS = 50
const TRIES_MAX = 60

async function cancelJob(
  job: JobRow,
  deps: StepDeps,
  finish: (job: ClaimedJob, ending: StepEnding) => Promise<unknown>,
): Promise<JobRow> {
  const claimed = await take(job, deps)
  if (claimed) {
    try {
      await finish(claimed, await end(claimed, deps))
    } catch (error) {
      // Only a conflict is a refusal. After any other error the job may have ended, so `attempts` stays above zero: the
      // next step then sends the webhook.
      const refused = error instanceof Fault && error.kind === 'conflict'
      const attempts = Math.max(refused ? 0 : 1, claimed.attempts - 1)
      await finish(claimed, { afterMs: 0, attempts, misses: claimed.misses })
      throw error
    }
  }
  const now = await deps.jobs.find(job.id)
  if (now?.status === 'CANCELLED') return now
  throw refusal(now ?? job)
}

/**
 * Polling a task takes moments. A worker that holds the job longer is submitting it or fetching the video, so we stop
 * waiting.
 */
async function take(job: JobRow, deps: StepDeps): Promise<ClaimedJob | undefined> {
  for (let tries = 0; tries < TRIES_MAX; tries++) {
    const now = tries === 0 ? job : await deps.jobs.find(job.id)
    if (!now || (now.status !== 'PENDING' && now.status !== 'CONNECT')) return undefined
    const claimed = await deps.jobs.work.claim(job.id)
    if (claimed) return claimed
    await sleep(deps.world, TRY_AGAIN_MS)
  }
  return undefined
}

async function end(job: ClaimedJob, deps: StepDeps): Promise<StepEnding> {
  if (job.verdict !== null || (job.status !== 'PENDING' && job.status !== 'CONNECT')) throw refusal(job)
  // A submission without an answer may or may not have made a task, so there is nothing certain to cancel.
  if (job.task_id === null && job.submit_age_ms !== null) throw refusal(job)
  if (job.task_id !== null && !(await deps.tasks.cancel(job.task_id, await placeOf(job, deps)))) throw refusal(job)
  return decide(job, { verdict: 'CANCELLED' }, deps)
}

function refusal(job: Pick<JobRow, 'status'>): Fault {
  switch (job.status) {
    case 'COMPLETED':
    case 'FAILED':
      return new Fault('conflict', { message: `This job is ${job.status} already and cannot be cancelled.` })
    case 'PROCESSING':
      return new Fault('conflict', { message: 'This job is being worked on and cannot be cancelled any more.' })
    default:
      return new Fault('conflict', {
        message: 'This job is just being handed to the vendor; try to cancel it again in a moment.',
        retryAfterSeconds: 2,
      })
  }
}

// Status changes for listeners. One query a second serves all listeners of a process, so it does not matter which
// process works on a job.

type JobEvents = ReturnType<typeof createJobEvents>

interface Listener {
  readonly id: string
  seen: JobStatus
  readonly onChange: (job: JobRow) => void
}

function createJobEvents(options: { jobs: Jobs; world: World; log: Log; everyMs: number }) {
  const { jobs, world, log, everyMs } = options
  const listeners = new Set<Listener>()
  let cancel: (() => void) | undefined
  let asking = false

  async function ask(): Promise<void> {
    const asked = [...listeners]
    // Many listeners may follow the same job: the query names it once for each status that they last saw.
    const once = [...new Map(asked.map((one) => [`${one.id} ${one.seen}`, one])).values()]
    const rows = await jobs.changed(
      once.map(({ id }) => id),
      once.map(({ seen }) => seen),
    )
    const byId = new Map(rows.map((row) => [row.id, row]))
    for (const listener of asked) {
      const row = byId.get(listener.id)
      if (!row || row.status === listener.seen) continue
      listener.seen = row.status
      if (listeners.has(listener)) listener.onChange(row)
    }
  }

  function schedule(): void {
    if (cancel || asking || listeners.size === 0) return
    cancel = world.after(everyMs, () => {
      cancel = undefined
      asking = true
      ask()
        .catch((error: unknown) => log.warn({ error }, 'events of jobs could not be read; it will be tried again'))
        .finally(() => {
          asking = false
          schedule()
        })
    })
  }

  return {
    /** Calls `onChange` with each new status. The returned function ends the subscription. */
    listen(job: JobRow, onChange: (job: JobRow) => void): () => void {
      const listener: Listener = { id: job.id, seen: job.status, onChange }
      listeners.add(listener)
      schedule()
      return () => listeners.delete(listener)
    },
    stop(): void {
      listeners.clear()
      cancel?.()
    },
  }
}
