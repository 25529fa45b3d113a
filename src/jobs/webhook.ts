// Tells a caller's own address that a job has ended, signed as Standard Webhooks has it. The same message keeps the same id
// over all tries, so that a receiver can tell a repetition.
import { createHmac } from 'node:crypto'
import type { Log } from '../kernel/log.ts'
import { type Secrets, sign } from '../kernel/secret.ts'
import { isTestAccount } from '../kernel/test-account.ts'
import type { World } from '../kernel/world.ts'
import type { GuardedFetch } from '../upstream/guard.ts'
import type { Jobs } from './job.ts'
import { viewJob } from './job-view.ts'
import type { ResultStore } from './result.ts'

/** `whsec_` and 32 bytes, the same for every webhook of an account. */
export function webhookSecret(secrets: Secrets, account: string): string {
  return `whsec_${keyOf(secrets, account).toString('base64')}`
}

function keyOf(secrets: Secrets, account: string): Buffer {
  return sign(secrets.key('webhook'), account)
}

function webhookHeaders(key: Buffer, id: string, timestampSeconds: number, body: string): Record<string, string> {
  const signature = createHmac('sha256', key).update(`${id}.${timestampSeconds}.${body}`).digest('base64')
  return {
    'content-type': 'application/json',
    'webhook-id': id,
    'webhook-timestamp': String(timestampSeconds),
    'webhook-signature': `v1,${signature}`,
  }
}

export interface WebhookDeps {
  readonly jobs: Jobs
  readonly results: ResultStore
  readonly secrets: Secrets
  readonly guard: Pick<GuardedFetch, 'check' | 'post'>
  readonly world: World
  readonly log: Log
}

/** For whoever has the secret of this account; the operator's own is that of no account. */
export function signedHeaders(
  { secrets, world }: Pick<WebhookDeps, 'secrets' | 'world'>,
  { account, id, body }: { readonly account: string; readonly id: string; readonly body: string },
): Record<string, string> {
  return webhookHeaders(keyOf(secrets, account), id, Math.floor(world.nowMs() / 1000), body)
}

/** One try. False: it is worth another. `last`: there will be none. */
export async function sendWebhook(
  jobId: string,
  last: boolean,
  deps: WebhookDeps,
  signal: AbortSignal,
): Promise<boolean> {
  const { jobs, log } = deps
  const job = await jobs.findCallback(jobId)
  if (!job || job.called_back_at !== null || job.callback_url === null || job.completed_at === null) return true
  const body = JSON.stringify({
    type: `job.${job.status.toLowerCase()}`,
    timestamp: job.completed_at.toISOString(),
    livemode: !isTestAccount(job.account_id),
    data: viewJob(job, deps.results),
  })
  const headers = signedHeaders(deps, { account: job.account_id, id: `msg_${job.id}`, body })
  let why: unknown
  try {
    const { status } = await deps.guard.post(job.callback_url, body, headers, { account: job.account_id, signal })
    if (status >= 200 && status < 300) {
      await jobs.calledBack(job.id)
      return true
    }
    why = { status }
    // The receiver's own word that it wants no more.
    if (status === 410) last = true
  } catch (error) {
    if (signal.aborted) return false
    why = (error as { details?: { internal?: unknown } }).details?.internal ?? String(error)
  }
  log.warn({ job: job.id, why, last }, 'webhook was not accepted')
  if (!last) return false
  await jobs.calledBack(job.id)
  return true
}
