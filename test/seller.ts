// A gateway that sells, by a scripted Stripe and by a provider that only sends signed webhooks; and processes of it
// that take its payments, to be killed.
import { type ChildProcess, fork } from 'node:child_process'
import { createHmac, randomUUID } from 'node:crypto'
import { join } from 'node:path'
import type { World } from '../src/kernel/world.ts'
import { freshDatabase } from './database.ts'
import { assert, before, none, started, startGateway, type TestGateway } from './gateway.ts'
import { STRIPE_KEY, STRIPE_SECRET, startStripe } from './stripe-server.ts'

const WEBHOOK_KEY = Buffer.alloc(32, 7)
export const WEBHOOK_SECRET = `whsec_${WEBHOOK_KEY.toString('base64')}`
export const PAYMENT_SECRETS = {
  stripe: STRIPE_KEY,
  'stripe-webhook': STRIPE_SECRET,
  'payment-webhook': WEBHOOK_SECRET,
}

interface Selling {
  readonly env?: () => Record<string, string>
  readonly world?: World
  /** What the verification finds after the tests: nothing but this. */
  readonly expected?: RegExp
}

export function seller(sales: object, { env = () => ({}), world, expected = /^$/ }: Selling = {}) {
  const stripe = started(startStripe)
  const fresh = started(freshDatabase)
  const start = (more: Parameters<typeof startGateway>[0] = {}) =>
    startGateway({
      env: { TOLLGATE_STRIPE_URL: stripe.url, ...env() },
      database: fresh,
      beside: ['sales'],
      ...(world ? { world } : {}),
      ...more,
    })
  const gateway = started(
    () => start({ catalog: (document) => void Object.assign(document, { sales }) }),
    async (it) => {
      try {
        await it.settled()
        none(await it.problems(true), (line) => !expected.test(line))
      } finally {
        await it.close()
      }
    },
  )
  before(async () => {
    const settings = { provider: 'stripe', secrets: PAYMENT_SECRETS }
    const set = await gateway.operator('PATCH', '/payment-settings', settings)
    assert.equal(set.status, 200, JSON.stringify(set.data))
  })
  return { stripe, fresh, gateway, start, child: (every?: number) => paymentProcess(fresh, stripe.url, every) }
}

/** Kills itself after so many answers. */
function paymentProcess({ connection }: { connection: object }, stripeUrl: string, killEvery?: number): ChildProcess {
  const given = { connection, stripeUrl, killEvery: killEvery ?? Number.MAX_SAFE_INTEGER }
  return fork(join(import.meta.dirname, 'payment-process.ts'), {
    env: { ...process.env, PAYMENT_PROCESS: JSON.stringify(given) },
  })
}

export interface Signing {
  readonly id?: string
  readonly atMs?: number
  readonly key?: Buffer
  readonly timestamp?: string
}

/** An event as any other provider signs it. */
export async function tell({ url }: Pick<TestGateway, 'url'>, data: object, signing: Signing = {}) {
  const { id = `evt_${randomUUID()}`, atMs = Date.now(), key = WEBHOOK_KEY } = signing
  const body = JSON.stringify({
    type: 'payment.updated',
    timestamp: signing.timestamp ?? new Date().toISOString(),
    data,
  })
  const seconds = String(Math.floor(atMs / 1000))
  const signature = createHmac('sha256', key).update(`${id}.${seconds}.${body}`).digest('base64')
  const headers = { 'webhook-id': id, 'webhook-timestamp': seconds, 'webhook-signature': `v1,${signature}` }
  const response = await fetch(`${url}/webhooks/payments`, { method: 'POST', headers, body })
  return { status: response.status, text: await response.text() }
}
