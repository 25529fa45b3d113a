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
