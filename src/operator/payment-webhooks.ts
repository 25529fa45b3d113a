// What payment providers send. A stranger's bytes: few of them, in time, and nothing of them is read before their signature is proved.
import type { FastifyInstance } from 'fastify'
import type { Payments } from '../sales/payments.ts'
import type { ProviderName } from '../sales/provider.ts'

const BODY_BYTES_MAX = 262_144
const PATHS: Readonly<Record<string, ProviderName>> = { '/webhooks/stripe': 'stripe', '/webhooks/payments': 'webhook' }
const NOTHING = Buffer.alloc(0)

export function mountPaymentWebhooks(app: FastifyInstance, payments: Pick<Payments, 'receive'>): void {
  for (const [url, provider] of Object.entries(PATHS))
    app.route({
      ...{ method: 'POST', url, bodyLimit: BODY_BYTES_MAX },
      onRequest: async (_request, reply) => app.bodyDeadline(reply.raw),
      handler: async ({ body, headers }) => {
        const single = Object.fromEntries(
          Object.entries(headers).map(([name, value]) => [name, Array.isArray(value) ? value.join(' ') : value]),
        )
        await payments.receive(provider, Buffer.isBuffer(body) ? body : NOTHING, single)
        return { received: true }
      },
    })
}
