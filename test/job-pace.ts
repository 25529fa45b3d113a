import type { JobTiming } from '../src/jobs/job.ts'

/** A job's life in a moment, but in the same order. */
export const FAST: Partial<JobTiming> = {
  pollMsMin: 30,
  pollMsMax: 60,
  fetchEveryMs: 50,
  leaseMs: 3_000,
  retryMs: 20,
  submitForMs: 30_000,
  searchForMs: 300,
  watchEveryMs: 100,
  watchForMs: 3_000,
  webhookRetrySeconds: 0.2,
  deliveryLeaseMs: 8_000,
  eventsEveryMs: 20,
}
