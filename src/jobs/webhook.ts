// Webhooks signed as Standard Webhooks specifies: the secret, the signature, and the message about a finished job.
import { createHmac } from 'node:crypto'
import { type Secrets, sign } from '../kernel/secret.ts'
import { isTestAccount } from '../kernel/test-account.ts'
import type { World } from '../kernel/world.ts'
import type { Message } from './delivery.ts'
import { type CallbackRow, viewJob } from './job.ts'
import type { ResultStore } from './result.ts'

/** `whsec_` and 32 bytes, the same for every webhook of an account. */
export function webhookSecret(secrets: Secrets, account: string): string {
  return `whsec_${keyOf(secrets, account).toString('base64')}`
}

function keyOf(secrets: Secrets, account: string): Buffer {
  return sign(secrets.key('webhook'), account)
}

/** Signed with the account's secret. The operator's own webhooks use the secret of the empty account. */
export function signedHeaders(
  { secrets, world }: { readonly secrets: Secrets; readonly world: World },
  { account, id, body }: Pick<Message, 'account' | 'id' | 'body'>,
): Record<string, string> {
  const timestampSeconds = Math.floor(world.nowMs() / 1000)
  const signature = createHmac('sha256', keyOf(secrets, account))
    .update(`${id}.${timestampSeconds}.${body}`)
    .digest('base64')
  return {
    'content-type': 'application/json',
    'webhook-id': id,
    'webhook-timestamp': String(timestampSeconds),
    'webhook-signature': `v1,${signature}`,
  }
}

/** The message about a finished job; undefined without a callback URL. */
export function jobMessage(job: CallbackRow, results: Pick<ResultStore, 'url'>): Message | undefined {
  if (job.callback_url === null || job.completed_at === null) return undefined
  const event = `job.${job.status.toLowerCase()}`
  const body = JSON.stringify({
    type: event,
    timestamp: job.completed_at.toISOString(),
    livemode: !isTestAccount(job.account_id),
    data: viewJob(job, results),
  })
  return {
    id: `msg_${job.id}`,
    account: job.account_id,
    kind: 'webhook',
    event,
    subject: job.id,
    body,
    to: job.callback_url,
  }
}
