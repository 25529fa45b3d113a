// One step of one job: submit → look → fetch the result → decide → settle → conclude. A step may be cut off anywhere
// and repeated by any process: the stored row says where to continue, and nothing that costs money is done twice.

import type { CatalogStore } from '../catalog/store.ts'
import { Fault, type FaultName } from '../kernel/fault.ts'
import type { Log } from '../kernel/log.ts'
import { NEVER } from '../kernel/timers.ts'
import type { World } from '../kernel/world.ts'
import type { Ledger } from '../ledger/ledger.ts'
import type { VideoOrder } from '../protocols/media/video-task/request.ts'
import type { Task, TaskMark } from '../protocols/media/video-task/task.ts'
import type { Candidate, RouteSources } from '../routing/route.ts'
import type { Vendors } from '../routing/vendor.ts'
import type { ByteBudget } from '../upstream/budget.ts'
import type { ByokKeys } from '../upstream/credentials/byok-keys.ts'
import {
  ATTEMPTS_MAX,
  backoffMs,
  type ClaimedJob,
  type Decision,
  type JobError,
  type JobFiles,
  type Jobs,
  type JobTiming,
  MISSES_MAX,
  readStoredRequest,
  type StepEnding,
  withoutOrder,
} from './job.ts'
import type { ResultStore } from './result.ts'
import { type Decided, jobResolution } from './settle.ts'
import { chooseRoute, placeOf, type Refused, type TaskPlace, type VendorTasks } from './vendor-tasks.ts'

export interface StepDeps {
  readonly jobs: Jobs
  readonly tasks: VendorTasks
  readonly ledger: Ledger
  readonly catalog: CatalogStore
  readonly vendors: Vendors
  readonly routes: RouteSources
  readonly byokKeys: Pick<ByokKeys, 'of'>
  readonly results: ResultStore
  readonly world: World
  readonly log: Log
  readonly timing: JobTiming
  /** Limits the bytes of large orders in memory. A step that does not fit is retried later. */
  readonly orders: Pick<ByteBudget, 'acquire'>
  /** The job has ended: store the webhook for its callback URL. */
  readonly callBack: (jobId: string) => Promise<void>
}

export async function stepJob(job: ClaimedJob, deps: StepDeps): Promise<StepEnding> {
  if (isTerminal(job.status)) return afterwards(job, deps)
  if (job.verdict !== null) return settle(job as Decided, deps)
  if (job.attempts > ATTEMPTS_MAX) return fail(job, failure('internal'), deps)
  if (job.overdue) return giveUpLate(job, deps)
  if (job.task_id !== null) return look(job, job.task_id, deps)
  if (job.submit_age_ms !== null) return search(job, job.submit_age_ms, deps)
  return submit(job, deps)
}

const isTerminal = (status: string) => status === 'COMPLETED' || status === 'FAILED' || status === 'CANCELLED'

// ---- Submission: at most once.

async function submit(job: ClaimedJob, deps: StepDeps): Promise<StepEnding> {
  const { jobs, timing } = deps
  // Each job is submitted at least once, however long the gateway was down.
  const late = job.age_ms > timing.submitForMs
  if (late && job.submissions > 0) return fail(job, failure('upstream_unavailable'), deps)
  const candidate = await chooseRoute(job, deps)
  if (!candidate) return late ? fail(job, failure('upstream_unavailable'), deps) : again(backoffMs(timing, 2))
  const request = readStoredRequest(job.request)
  if (request.order) return hand(job, request.order, candidate, deps)
  const room = await deps.orders.acquire(job.account_id, request.apartChars ?? 0, NEVER).catch(() => undefined)
  if (!room) return again(timing.retryMs)
  try {
    const order = JSON.parse((await jobs.body(job.id)) ?? 'null') as VideoOrder | null
    if (!order) throw new Fault('internal', { internal: { why: 'the order is gone', job: job.id } })
    return await hand(job, order, candidate, deps)
  } finally {
    room.release()
  }
}

async function hand(job: ClaimedJob, order: VideoOrder, candidate: Candidate, deps: StepDeps): Promise<StepEnding> {
  const { jobs, timing } = deps
  const request = readStoredRequest(job.request)
  const mark = { token: job.id, ...(request.seed === undefined ? {} : { seed: request.seed }) }
  // Stored before anything is sent: after a crash the next worker knows that there may be a task.
  const { vendorName: vendor, number: route, credential } = candidate
  const begin = () => jobs.beginSubmission(job, { vendor, route, credential })
  const submission = await deps.tasks.submit(order, { ...candidate, account: job.account_id }, mark, begin)
  const about = { job: job.id, vendor, credential, submission: job.submissions + 1 }
  switch (submission.outcome) {
    case 'accepted':
      return accepted({ ...job, submissions: job.submissions + 1 }, submission.taskId, candidate, deps)
    case 'refused':
      deps.log.warn(
        {
          ...about,
          fault: (submission.fault ?? submission.forNow)?.kind,
          why: submission.ours,
          alert: submission.ours ? true : undefined,
        },
        'video submission refused',
      )
      await jobs.refusedSubmission(job)
      // The account allows a fallback to the gateway's credential when its own key fails.
      if (submission.byok && request.byok?.fallback) return again(timing.retryMs, 'CONNECT')
      if (submission.fault) return fail(job, errorOf(submission.fault), deps)
      return refusedForNow(job, submission, deps)
    case 'stopped':
      return (await jobs.isHeld(job)) ? again(timing.retryMs) : fail(job, failure('unavailable'), deps)
    case 'unknown':
      deps.log.warn({ ...about, ...submission.why }, 'video submission without a clear answer')
      return again(timing.retryMs, 'CONNECT')
  }
}

/** Retries while there is time. Then the job fails with the error of its last submission. */
async function refusedForNow(job: ClaimedJob, refused: Refused, deps: StepDeps): Promise<StepEnding> {
  const { timing } = deps
  const { credentialDisabled, forNow = new Fault('upstream_unavailable'), waitMs } = refused
  // If the credential was disabled, another one is tried soon.
  const afterMs = credentialDisabled ? timing.retryMs : (waitMs ?? backoffMs(timing, job.submissions + 1))
  if (job.age_ms + afterMs > timing.submitForMs) return fail(job, errorOf(forNow), deps)
  return again(afterMs, 'CONNECT')
}

async function accepted(job: ClaimedJob, taskId: string, place: TaskPlace, deps: StepDeps): Promise<StepEnding> {
  const kept = withoutOrder(readStoredRequest(job.request))
  if (await deps.jobs.submitted(job, taskId, kept)) return again(pollMs(deps), 'CONNECT')
  // Another worker took the job after the lease expired. It may find the task by its mark, but not every vendor returns
  // the mark. If that worker has ended the job, the task is an anomaly: the vendor works on it for nothing.
  if (await deps.jobs.storeTask({ id: job.id, submission: job.submissions }, taskId, kept))
    deps.log.info({ job: job.id, task: taskId }, 'video task was stored for the worker that took the job over')
  else if (await deps.jobs.isDecided(job.id))
    await noteLate({ job: job.id, task: taskId, what: 'was accepted' }, place, deps)
  return again(pollMs(deps))
}

async function noteLate(
  { job, task, what }: { job: string; task: string; what: string },
  place: TaskPlace,
  deps: StepDeps,
): Promise<void> {
  const anomaly = `task ${task} ${what} after the job had ended`
  deps.log.error({ job, task, anomaly: true }, anomaly)
  await deps.jobs.noteAnomaly(job, anomaly)
  await deps.tasks.cancel(task, place).catch(() => false)
}

/** It is unknown whether the vendor accepted the job. The task is searched for; the job is never submitted again. */
async function search(job: ClaimedJob, ageMs: number, deps: StepDeps): Promise<StepEnding> {
  const { timing } = deps
  const place = await placeOf(job, deps)
  const task = await deps.tasks.search(markOf(job, place), place).catch(unlessOurs)
  if (task instanceof Fault) return again(pollMs(deps), 'CONNECT')
  if (task) {
    deps.log.info({ job: job.id, task: task.id }, 'video task found again')
    return accepted(job, task.id, place, deps)
  }
  if (ageMs < timing.searchForMs) return again(pollMs(deps), 'CONNECT')
  return fail(job, failure('upstream_failed'), deps, timing.watchForMs)
}

function markOf(job: ClaimedJob, place: TaskPlace): TaskMark {
  const { seed } = readStoredRequest(job.request)
  return {
    token: job.id,
    model: place.target.model,
    sinceSeconds: Math.floor(job.submit_started_seconds ?? job.created_at.getTime() / 1000),
    ...(seed === undefined ? {} : { seed }),
  }
}

// ---- Polling the vendor's task.

async function look(job: ClaimedJob, taskId: string, deps: StepDeps): Promise<StepEnding> {
  const task = await deps.tasks.look(taskId, await placeOf(job, deps)).catch(unlessOurs)
  // A failed poll says nothing about the task: the hold stays, and the task is polled again.
  if (task instanceof Fault) return { ...again(2 * pollMs(deps)), misses: job.misses }
  if (task === undefined) {
    const misses = job.misses + 1
    if (misses < MISSES_MAX) return { ...again(pollMs(deps)), misses }
    return fail(
      job,
      failure('upstream_failed', 'The vendor has lost this job. You were not charged.'),
      deps,
      deps.timing.watchForMs,
    )
  }
  switch (task.status) {
    case 'queued':
      return again(pollMs(deps), 'CONNECT')
    case 'running':
      return again(pollMs(deps), 'PROCESSING')
    case 'succeeded':
      return fetchResult(job, task, deps)
    case 'failed':
    case 'expired': {
      const { kind = 'upstream_failed', message, reason } = task.failure ?? {}
      return fail(job, failure(kind, message, reason), deps)
    }
    case 'cancelled':
      return decide(job, { verdict: 'CANCELLED' }, deps)
    case undefined:
      deps.log.warn({ job: job.id, status: task.word }, 'video task has an unknown status')
      return again(pollMs(deps))
  }
}

async function fetchResult(job: ClaimedJob, task: Task, deps: StepDeps): Promise<StepEnding> {
  await deps.jobs.processing(job)
  const place = await placeOf(job, deps)
  const copy = (url: string, type: 'video' | 'image') => deps.results.copy(url, { type, trusted: place.target.baseUrl })
  let files: JobFiles
  try {
    if (!task.videoUrl) throw new Fault('upstream_garbled', { internal: { why: 'a finished task without a video' } })
    files = { video: await copy(task.videoUrl, 'video') }
    if (task.lastFrameUrl) files = { ...files, lastFrame: await copy(task.lastFrameUrl, 'image') }
  } catch (error) {
    if (!(error instanceof Fault) || error.blame !== 'vendor') throw error
    deps.log.warn({ job: job.id, attempt: job.attempts, ...error.details.internal }, 'video could not be fetched')
    if (job.attempts >= ATTEMPTS_MAX)
      return fail(
        job,
        failure('upstream_failed', 'The finished video could not be fetched from the vendor. You were not charged.'),
        deps,
      )
    return { ...again(backoffMs(deps.timing, job.attempts)), attempts: job.attempts }
  }
  const delivered = {
    ...(task.seconds === undefined ? {} : { seconds: task.seconds }),
    ...(task.resolution === undefined ? {} : { resolution: task.resolution }),
    ...(task.outputTokens === undefined ? {} : { outputTokens: task.outputTokens }),
  }
  return decide(job, { verdict: 'COMPLETED', files: [files], delivered }, deps)
}

// ---- Endings.

/**
 * Past the deadline. If the vendor has just finished, the result is used. Otherwise the task is cancelled and watched
 * for a while.
 */
async function giveUpLate(job: ClaimedJob, deps: StepDeps): Promise<StepEnding> {
  if (job.task_id !== null) {
    const place = await placeOf(job, deps)
    const task = await deps.tasks.look(job.task_id, place).catch(unlessOurs)
    if (task && !(task instanceof Fault) && task.status === 'succeeded') {
      const fetched = await fetchResult(job, task, deps).catch(() => undefined)
      if (fetched) return fetched
    }
    await deps.tasks.cancel(job.task_id, place).catch(() => false)
  }
  const watchMs = job.task_id !== null || job.submit_age_ms !== null ? deps.timing.watchForMs : undefined
  const error = failure('upstream_timeout', 'The vendor did not finish in time. You were not charged.')
  return fail(job, error, deps, watchMs)
}

function fail(job: ClaimedJob, error: JobError, deps: StepDeps, watchMs?: number): Promise<StepEnding> {
  return decide(job, { verdict: 'FAILED', error, ...(watchMs === undefined ? {} : { watchMs }) }, deps)
}

/** Writes the verdict. From then on the job's end is fixed, and only the settlement is left. */
export async function decide(job: ClaimedJob, decision: Decision, deps: StepDeps): Promise<StepEnding> {
  if (!(await deps.jobs.decide(job, decision))) return again(deps.timing.retryMs)
  const { verdict, error = null, files = null, delivered = null, watchMs } = decision
  return settle({ ...job, verdict, error, files, delivered, watching: watchMs !== undefined }, deps)
}

/** Settles first, then sets the status: a caller who sees a finished job has been charged or has the credits back. */
async function settle(job: Decided, deps: StepDeps): Promise<StepEnding> {
  const catalog = await deps.catalog.at(job.catalog_version)
  const resolved = await deps.ledger.resolve(jobResolution(job, catalog))
  if (resolved.loss > 0n)
    deps.log.warn({ job: job.id, loss: resolved.loss.toString() }, 'charge above the available balance')
  if (!(await deps.jobs.conclude(job))) return again(deps.timing.retryMs)
  deps.log.info({ job: job.id, account: job.account_id, product: job.product, status: job.verdict }, 'job ended')
  return afterwards({ ...job, status: job.verdict, attempts: ATTEMPTS_MAX }, deps)
}

/** After the end of a job: sends the webhook, and keeps watching a task that we gave up. */
async function afterwards(job: ClaimedJob, deps: StepDeps): Promise<StepEnding> {
  // The first time, and again after a step that was cut off. The delivery's id is fixed, so there is never a second
  // delivery.
  if (job.attempts > 1 && job.callback_url !== null) await deps.callBack(job.id)
  if (!job.watching || job.verdict === 'COMPLETED') return DONE
  if (job.attempts > 1) return again(deps.timing.watchEveryMs)
  return (await watchedEnough(job, deps)) ? DONE : again(deps.timing.watchEveryMs)
}

/** Whether the vendor has ended the task that we gave up. We bear the cost of a success that comes now. */
async function watchedEnough(job: ClaimedJob, deps: StepDeps): Promise<boolean> {
  const place = await placeOf(job, deps)
  const task = await (job.task_id !== null
    ? deps.tasks.look(job.task_id, place)
    : deps.tasks.search(markOf(job, place), place)
  ).catch(unlessOurs)
  if (task instanceof Fault) return false
  if (task === undefined) return job.task_id !== null
  const working = task.status === 'queued' || task.status === 'running' || task.status === undefined
  const late = { job: job.id, task: task.id }
  if (task.status === 'succeeded') await noteLate({ ...late, what: 'succeeded' }, place, deps)
  else if (working && job.task_id === null) await noteLate({ ...late, what: 'was found' }, place, deps)
  else return !working
  return true
}

const DONE: StepEnding = { afterMs: undefined, attempts: 0, misses: 0 }

// ---- Helpers.

function again(afterMs: number, status?: 'CONNECT' | 'PROCESSING'): StepEnding {
  return { afterMs, attempts: 0, misses: 0, ...(status ? { status } : {}) }
}

function pollMs({ world, timing }: StepDeps): number {
  const { pollMsMin, pollMsMax } = timing
  return pollMsMin + Math.floor(((pollMsMax - pollMsMin) * world.bytes(2).readUInt16BE()) / 65_536)
}

function failure(kind: FaultName, message?: string, reason?: string): JobError {
  return errorOf(new Fault(kind, message === undefined ? {} : { message }), reason)
}

function errorOf(fault: Fault, reason?: string): JobError {
  const { kind: name, code, status, message } = fault
  return { name, code, status, message, ...(reason === undefined ? {} : { reason }) }
}

/** Returns a fault of the vendor and throws any other error. */
function unlessOurs(error: unknown): Fault {
  if (error instanceof Fault && error.blame === 'vendor') return error
  throw error
}
