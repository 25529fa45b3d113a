// How payments are taken: the provider, whether Stripe works out tax, and where else customers pay. Secrets are stored credentials.
import type * as z from 'zod'
import type { Credentials } from '../credentials/credentials.ts'
import type { Audit, By } from '../database/audit.ts'
import { type Database, type Queryable, statement } from '../database/database.ts'
import { type PaymentSettingsInput, type PaymentSettingsView, paymentSettingsView } from './views.ts'

const stored = paymentSettingsView.pick({ provider: true, tax: true, checkoutUrl: true })
type Stored = z.infer<typeof stored>

export interface PaymentSettings {
  get(on?: Queryable): Promise<Stored>
  /** Whether a provider's key is there, whoever is bought from now. */
  isOn(provider: 'stripe'): Promise<boolean>
  view(publicUrl: string): Promise<PaymentSettingsView>
  change(input: PaymentSettingsInput, by: By): Promise<void>
}

const OFF: Stored = { provider: 'off', tax: 'off', checkoutUrl: null }
const SECRETS = ['stripe', 'stripe-webhook', 'payment-webhook'] as const
const READ = statement('payment_settings', `select value from setting where name = 'payments'`)
const PUT = statement(
  'payment_settings_put',
  `insert into setting (name, value) values ('payments', $1) on conflict (name) do update set value = excluded.value`,
)

export function createPaymentSettings(options: {
  database: Database
  audit: Audit
  credentials: Credentials
}): PaymentSettings {
  const { database, audit, credentials } = options

  async function get(on: Queryable = database): Promise<Stored> {
    const [row] = await on.query<{ value: string }>(READ)
    const read = row && stored.safeParse(JSON.parse(row.value))
    return read?.success ? read.data : OFF
  }

  return {
    get,
    isOn: async (provider) => credentials.get(provider) !== undefined,
    async view(publicUrl) {
      const has = (name: string) => credentials.get(name) !== undefined
      const key = credentials.get('stripe')
      return {
        ...(await get()),
        secrets: {
          ...{
            stripe: has('stripe'),
            'stripe-webhook': has('stripe-webhook'),
            'payment-webhook': has('payment-webhook'),
          },
        },
        mode: key === undefined ? null : key.includes('_live_') ? 'live' : 'test',
        webhookUrls: { stripe: `${publicUrl}/webhooks/stripe`, webhook: `${publicUrl}/webhooks/payments` },
      }
    },
    async change({ secrets, ...fields }, by) {
      for (const name of SECRETS) {
        const value = secrets?.[name]
        if (value === null) await credentials.remove(name, by)
        else if (value !== undefined) await credentials.store(name, value, by)
      }
      const given = Object.fromEntries(Object.entries(fields).filter(([, value]) => value !== undefined))
      if (Object.keys(given).length === 0) return
      const was = stored.parse(await get())
      const now = stored.parse({ ...was, ...given })
      await database.transaction(async (tx) => {
        await tx.query(PUT, [JSON.stringify(now)])
        await audit.write(tx, by, { action: 'payment.settings', object: 'payments', before: was, after: now })
      })
    },
  }
}
