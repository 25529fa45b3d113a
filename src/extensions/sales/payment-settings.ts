// Settings of payments: the provider, whether Stripe computes tax, and the checkout address of another provider.
// Secrets are stored credentials.
import type { z } from 'zod'
import type { Audit, By } from '../../database/audit.ts'
import type { Database, Queryable } from '../../database/database.ts'
import { defineSetting } from '../../database/setting.ts'
import { Fault } from '../../kernel/fault.ts'
import type { Credentials } from '../../upstream/credentials/credentials.ts'
import { modeOf } from '../billing/payments/secrets.ts'
import { type PaymentSettingsInput, type PaymentSettingsView, paymentSettingsView } from './views.ts'

const stored = paymentSettingsView.pick({ provider: true, tax: true, checkoutUrl: true })
type Stored = z.infer<typeof stored>

const OFF: Stored = { provider: 'off', tax: 'off', checkoutUrl: null }
const SECRETS = ['stripe', 'stripe-webhook', 'payment-webhook'] as const
const SETTINGS = defineSetting({
  name: 'payments',
  schema: stored.catch(OFF),
  defaults: OFF,
  action: 'payment.settings',
  object: 'payments',
})

export function createPaymentSettings(options: {
  database: Database
  audit: Audit
  credentials: Credentials
  canSimulate: () => boolean
}) {
  const { database, audit, credentials, canSimulate } = options

  const get = (on: Queryable = database) => SETTINGS.read(on)

  return {
    get,
    /** Whether a provider's key is stored, also if another provider is chosen now. */
    isOn: async (provider: 'stripe'): Promise<boolean> => credentials.get(provider) !== undefined,
    async view(publicUrl: string): Promise<PaymentSettingsView> {
      const has = (name: string) => credentials.get(name) !== undefined
      const key = credentials.get('stripe')
      return {
        ...(await get()),
        canSimulate: canSimulate(),
        secrets: {
          stripe: has('stripe'),
          'stripe-webhook': has('stripe-webhook'),
          'payment-webhook': has('payment-webhook'),
        },
        mode: key === undefined ? null : modeOf(key),
        webhookUrls: { stripe: `${publicUrl}/webhooks/stripe`, webhook: `${publicUrl}/webhooks/payments` },
      }
    },
    async change({ secrets, ...fields }: PaymentSettingsInput, by: By): Promise<void> {
      if (fields.provider === 'simulated' && !canSimulate())
        throw new Fault('conflict', { message: 'Test payments are offered only while every vendor is simulated.' })
      for (const name of SECRETS) {
        const value = secrets?.[name]
        if (value === null) await credentials.remove(name, by)
        else if (value !== undefined) await credentials.store(name, value, by)
      }
      const given = Object.fromEntries(Object.entries(fields).filter(([, value]) => value !== undefined))
      if (Object.keys(given).length === 0) return
      await SETTINGS.change({ database, audit }, by, (was) => stored.parse({ ...was, ...given }))
    },
  }
}
