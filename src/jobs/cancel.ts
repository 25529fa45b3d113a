// Cancels a job at the caller's request. It costs nothing before the job is submitted, and while the task is queued at a vendor that allows it.
// A running task cannot be cancelled.
import { Fault } from '../kernel/fault.ts'
import { sleep } from '../kernel/timers.ts'
import type { ClaimedJob, JobRow, StepEnding } from './job.ts'
import { placeOf } from './task-place.ts'
import { decide, type StepDeps } from './video.ts'

const TRY_AGAIN_MS = 50
const TRIES_MAX = 60

export async function cancelJob(
  job: JobRow,
  deps: StepDeps,
  finish: (job: ClaimedJob, ending: StepEnding) => Promise<unknown>,
): Promise<JobRow> {
  const claimed = await take(job, deps)
  if (claimed) {
    try {
      await finish(claimed, await end(claimed, deps))
    } catch (error) {
      // Only a conflict is a refusal. After any other error the job may have ended, so `attempts` stays above zero: the next step then sends the webhook.
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

/** Polling a task takes moments. A worker that holds the job longer is submitting it or fetching the video, so we stop waiting. */
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
