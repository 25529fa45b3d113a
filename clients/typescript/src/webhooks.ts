// Whether a webhook is genuine: Standard Webhooks, HMAC-SHA256 over id, time and the raw body.
import { TollgateError } from './errors.ts'
import type { Job } from './generated.ts'
import { webCrypto } from './random.ts'

/** It is not what the gateway sent, or it is too old. */
export class WebhookError extends TollgateError {}

export interface WebhookEvent {
  readonly type: 'job.completed' | 'job.failed' | 'job.cancelled'
  readonly timestamp: string
  readonly data: Job
}

type GivenHeaders = Headers | Readonly<Record<string, string | readonly string[] | undefined>>

const AGE_SECONDS_MAX = 300

/**
 * The event of a webhook, if its signature is right and not older than five minutes. `body` is the raw text, before any
 * parsing; `secret` is the `whsec_…` of the account.
 */
export async function verifyWebhook(body: string, headers: GivenHeaders, secret: string): Promise<WebhookEvent> {
  const at = (name: string) => {
    if (typeof headers.get === 'function') return (headers as Headers).get(name) ?? ''
    const value = (headers as Record<string, string | readonly string[] | undefined>)[name]
    return typeof value === 'string' ? value : (value?.[0] ?? '')
  }
  const seconds = at('webhook-timestamp')
  if (!(Math.abs(Date.now() / 1000 - Number(seconds)) <= AGE_SECONDS_MAX))
    throw new WebhookError('The webhook is too old, or its time is missing.')
  const { subtle } = await webCrypto()
  const bytes = Uint8Array.from(atob(secret.replace(/^whsec_/, '')), (letter) => letter.charCodeAt(0))
  const key = await subtle.importKey('raw', bytes, { name: 'HMAC', hash: 'SHA-256' }, false, ['verify'])
  const signed = new TextEncoder().encode(`${at('webhook-id')}.${seconds}.${body}`)
  for (const part of at('webhook-signature').split(' ')) {
    const [version, text = ''] = part.split(',')
    if (version !== 'v1' || !/^[A-Za-z0-9+/=]+$/.test(text)) continue
    const signature = Uint8Array.from(atob(text), (letter) => letter.charCodeAt(0))
    if (await subtle.verify('HMAC', key, signature, signed)) return JSON.parse(body) as WebhookEvent
  }
  throw new WebhookError('The signature of the webhook is not right.')
}
