// Payments that move no money, to try selling: the sandbox has the page to pay on, and reports by signed webhooks as
// real providers do. The gateway hands the page on, so that it opens where the console opens.

import type { CoreParts } from '../../../extension.ts'
import { Fault } from '../../../kernel/fault.ts'
import { readJson } from '../../../kernel/json.ts'
import { NEVER } from '../../../kernel/timers.ts'
import type { HttpCall, Upstream } from '../../../upstream/call.ts'
import { formatMoney } from '../money.ts'
import type { Provider } from './provider.ts'
import { createSignedWebhook } from './signed-webhook.ts'

const PAGE_BYTES_MAX = 65_536
const DEADLINES = { connectMs: 2_000, firstByteMs: 20_000, idleMs: 10_000, totalMs: 30_000 }

export interface SimulatedOptions extends Pick<CoreParts, 'world' | 'sandboxUrl'> {
  /** Signs the webhooks. */
  readonly secret: () => string
  readonly upstream: Pick<Upstream, 'send'>
  /** Where the page of a checkout opens, by its id. */
  readonly pageUrl: (id: string) => string
  /** Where this machine reaches the gateway's webhook. */
  readonly webhookUrl: () => string
}

interface SimulatedPayments extends Provider {
  /** What the sandbox's page of a checkout answers to a browser. */
  page(request: { method: 'GET' | 'POST'; id: string; body: Buffer }): Promise<CheckoutPage>
}

interface CheckoutPage {
  readonly status: number
  readonly headers: Readonly<Record<string, string>>
  readonly body: Buffer
}

export function createSimulatedPayments(options: SimulatedOptions): SimulatedPayments {
  const { world, secret, upstream, sandboxUrl } = options
  const signed = createSignedWebhook({ world, secret, checkoutUrl: async () => null })

  async function ask(path: string, call: Pick<HttpCall, 'method' | 'headers' | 'body'>) {
    const sandbox = sandboxUrl()
    if (sandbox === undefined) throw new Fault('unavailable', { message: 'The simulated payments are not running.' })
    const reply = await upstream.send(
      { ...call, url: `${sandbox}/payments/checkouts${path}` },
      { deadlines: DEADLINES, signal: NEVER },
    )
    return { status: reply.status, headers: reply.headers, body: await reply.read(PAGE_BYTES_MAX) }
  }

  return {
    name: 'simulated',
    step: () => 1n,
    async receive(body, headers) {
      const event = await signed.receive(body, headers)
      return { ...event, facts: event.facts && { ...event.facts, provider: 'simulated' } }
    },
    async checkout({ payment, account, offer, name, currency, priceMinor }, { returnUrl }) {
      const webhook = { url: options.webhookUrl(), secret: secret() }
      const amount = formatMoney(priceMinor, currency)
      const { status, body } = await ask('', {
        method: 'POST',
        headers: { 'content-type': 'application/json' },
        body: JSON.stringify({ payment, account, offer, name, amount, currency, returnUrl, webhook }),
      })
      const { value } = readJson(body)
      const id = Object(value).id
      if (status !== 200 || typeof id !== 'string') throw new Fault('unavailable')
      return { url: options.pageUrl(id) }
    },
    async page({ method, id, body }) {
      const form = { 'content-type': 'application/x-www-form-urlencoded' }
      const asked = method === 'GET' ? { method, headers: {} } : { method, headers: form, body }
      const page = await ask(`/${encodeURIComponent(id)}`, asked)
      const { location, 'content-type': type = 'text/plain' } = page.headers
      return {
        status: page.status,
        headers: location
          ? { location }
          : {
              'content-type': type,
              'cache-control': 'no-store',
              'content-security-policy': "default-src 'none'; style-src 'unsafe-inline'; frame-ancestors 'none'",
            },
        body: page.body,
      }
    },
  }
}
