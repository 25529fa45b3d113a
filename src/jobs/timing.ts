// How often and how long: the figures of the job engine in one place, so that tests can run at another pace.

export interface JobTiming {
  /** Between two looks at a task: drawn anew each time, so that jobs made together do not ask together. */
  readonly pollMsMin: number
  readonly pollMsMax: number
  /** How often the tables are asked for steps that have come due; more rarely while there are none. */
  readonly fetchEveryMs: number
  /** How long a silent worker is believed to be working. */
  readonly leaseMs: number
  /** The first pause after a failure; it doubles with each. */
  readonly retryMs: number
  /** How long a vendor that refuses everything is tried. */
  readonly submitForMs: number
  /** How long a submission of which nothing is known is searched for. */
  readonly searchForMs: number
  /** After an ending that we declared ourselves. */
  readonly watchEveryMs: number
  readonly watchForMs: number
  /** The first pause after a delivery that failed; it doubles with each. */
  readonly webhookRetrySeconds: number
  /** How long a silent process is believed to be sending. */
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
/** Looks in a row that find no such task before it counts as lost. */
export const MISSES_MAX = 5
const RETRY_MS_MAX = 60_000

export function backoffMs(timing: JobTiming, failures: number): number {
  return Math.min(RETRY_MS_MAX, timing.retryMs * 2 ** Math.max(0, Math.min(failures, 10) - 1))
}
