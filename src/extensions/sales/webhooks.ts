// Webhooks of payment providers. Size and time are bounded, and nothing in them is used before the signature is
// verified.
import type { WebServer } from '../../api/server/server.ts'
import { json } from '../../api/server/web.ts'
import type { ProviderName } from '../billing/payments/provider.ts'
import { type Payments, TEST_PAYMENTS, TEST_WEBHOOK } from './payments.ts'

const BODY_BYTES_MAX = 262_144
const FORM_BYTES_MAX = 1_024
const PATHS: Readonly<Record<string, ProviderName>> = {
  '/webhooks/stripe': 'stripe',
  '/webhooks/payments': 'webhook',
  [TEST_WEBHOOK]: 'simulated',
}

export function mountPaymentWebhooks(app: WebServer, payments: Pick<Payments, 'receive' | 'testPage'>): void {
  for (const [path, provider] of Object.entries(PATHS))
    app.add('POST', path, async (request) => {
      app.bodyDeadline(request.response)
      const body = await request.body(BODY_BYTES_MAX)
      const single = Object.fromEntries(
        Object.entries(request.headers).map(([name, value]) => [name, Array.isArray(value) ? value.join(' ') : value]),
      )
      await payments.receive(provider, body, single)
      return json({ received: true })
    })
  for (const method of ['GET', 'POST'] as const)
    app.add(method, `${TEST_PAYMENTS}/{id}`, async ({ params: { id = '' }, body }) =>
      payments.testPage({ method, id, body: await body(FORM_BYTES_MAX) }),
    )
}
