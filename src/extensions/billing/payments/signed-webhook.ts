// Any other provider: it reports payments by webhooks, signed according to Standard Webhooks. Customers pay at the
// provider's own address.
import { createHmac } from 'node:crypto'
import * as z from 'zod'
import { Fault } from '../../../kernel/fault.ts'
import { readJson } from '../../../kernel/json.ts'
import { sameBytes } from '../../../kernel/secret.ts'
import type { World } from '../../../kernel/world.ts'
import { formatMoney, parseMoney } from '../money.ts'
import type { PaymentFacts, Provider } from './provider.ts'

const TOLERANCE_MS = 300_000
const name = z.string().regex(/^[\w.:-]{1,100}$/)
const money = z.string().max(20)

/** The whole state of the payment, each time. */
const message = z.object({
  type: z.string().max(100),
  timestamp: z.iso.datetime({ offset: true }),
  data: z.object({
    /** At the provider. */
    id: name,
    /** Ours, which the address of the checkout named. */
    payment: name.optional(),
    account: name.optional(),
    offer: name.optional(),
    currency: z.string().regex(/^[A-Z]{3}$/),
    amount: money,
    status: z.enum(['pending', 'paid', 'failed']),
    refunded: money.default('0'),
    disputed: money.optional(),
    dispute: z.enum(['none', 'open', 'lost', 'won']).default('none'),
    reason: z.string().max(200).optional(),
  }),
})

interface SignedWebhookOptions {
  readonly world: World
  readonly secret: () => string | undefined
  /** With {payment}, {account}, {offer}, {amount}, {currency} and {return}. */
  readonly checkoutUrl: () => Promise<string | null>
}

export function createSignedWebhook({ world, secret, checkoutUrl }: SignedWebhookOptions): Provider {
  return {
    name: 'webhook',
    step: () => 1n,
    async receive(body, headers) {
      const key = secret()
      if (!key) throw new Fault('not_found')
      const id = headers['webhook-id'] ?? ''
      const seconds = Number(headers['webhook-timestamp'])
      if (!isSigned({ key, id, seconds, body }, headers['webhook-signature'] ?? ''))
        throw new Fault('key_unknown', { message: 'The signature of this event is not valid.' })
      if (Math.abs(world.nowMs() - seconds * 1000) > TOLERANCE_MS)
        throw new Fault('key_unknown', { message: 'This event was signed too long ago.' })
      const read = message.safeParse(readJson(body).value)
      if (!read.success) {
        const [issue] = read.error.issues
        throw new Fault('request_invalid', { message: `${issue?.path.join('.') || 'body'}: ${issue?.message ?? ''}` })
      }
      return { id, type: read.data.type, facts: factsOf(read.data, world.nowMs()) }
    },
    async checkout({ payment, account, offer, currency, priceMinor }, { returnUrl }) {
      const template = await checkoutUrl()
      if (template === null)
        throw new Fault('conflict', {
          message: 'Nothing can be bought here yet: the address of the checkout is not set.',
        })
      const values: Readonly<Record<string, string>> = {
        payment,
        account,
        currency,
        offer: offer ?? '',
        return: returnUrl,
        amount: formatMoney(priceMinor, currency),
      }
      return { url: template.replaceAll(/\{(\w+)\}/g, (whole, one) => encodeURIComponent(values[one] ?? whole)) }
    },
  }
}

/** Verifies the signature of the raw bytes. There are several signatures while a secret is being replaced. */
function isSigned(
  { key, id, seconds, body }: { key: string; id: string; seconds: number; body: Buffer },
  signatures: string,
): boolean {
  if (!/^[\w.-]{1,100}$/.test(id) || !Number.isSafeInteger(seconds)) return false
  const bytes = key.startsWith('whsec_') ? Buffer.from(key.slice(6), 'base64') : Buffer.from(key)
  const expected = createHmac('sha256', bytes).update(`${id}.${seconds}.`).update(body).digest()
  const given = signatures.split(' ', 10).flatMap((one) => (one.startsWith('v1,') ? [one.slice(3)] : []))
  return given.some((one) => sameBytes(Buffer.from(one, 'base64'), expected))
}

function factsOf({ timestamp, data }: z.output<typeof message>, nowMs: number): PaymentFacts {
  const { id, payment, account, offer, currency, status, dispute, reason } = data
  const asOfMs = Date.parse(timestamp)
  if (asOfMs > nowMs + TOLERANCE_MS) throw new Fault('request_invalid', { message: 'timestamp: lies in the future.' })
  const minor = (field: string, text: string): bigint => {
    const amount = parseMoney(text, currency)
    if (amount === undefined)
      throw new Fault('request_invalid', { message: `data.${field}: is not an amount of ${currency}.` })
    return amount
  }
  const amountMinor = minor('amount', data.amount)
  return {
    provider: 'webhook',
    providerId: id,
    payment,
    account,
    offer,
    currency,
    status,
    dispute,
    reason,
    asOfMs,
    amountMinor,
    taxMinor: 0n,
    refundedMinor: minor('refunded', data.refunded),
    disputedMinor:
      data.disputed === undefined ? (dispute === 'none' ? 0n : amountMinor) : minor('disputed', data.disputed),
  }
}
