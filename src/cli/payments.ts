// Payments on the command line: which there are, refunds, what is quarantined, reconciliation, and how payments are taken.
import {
  type Difference,
  PAYMENT_STATES,
  type PaymentSettingsView,
  type PaymentView,
  type ReconciliationView,
} from '../sales/views.ts'
import { at, CliError, type Command, type Invocation, text, told } from './command.ts'
import { type Columns, card, listPages, PAGE_OPTIONS, table } from './table.ts'

const COLUMNS: Columns<PaymentView> = {
  ...({ PAYMENT: 'id', AT: 'createdAt', ACCOUNT: 'account', KIND: 'kind', STATE: 'state', AMOUNT: 'amount' } as const),
  ...({ CURRENCY: 'currency', REFUNDED: 'refunded', CREDITS: 'credits', WHY: 'reason' } as const),
}
const DIFFERENCES: Columns<Difference> = {
  ...({ PAYMENT: 'payment', ACCOUNT: 'account', 'AT THE PROVIDER': 'providerId', PROBLEM: 'problem' } as const),
  MENDED: ({ mended }) => (mended ? 'yes' : 'no'),
}
const RUNS: Columns<ReconciliationView> = {
  ...({ STARTED: 'startedAt', FROM: 'from', UNTIL: 'until', CHECKED: 'checked' } as const),
  DIFFERENCES: ({ differences }) => differences.length,
  FAILURE: 'failure',
}
const SECRETS = ['stripe', 'stripe-webhook', 'payment-webhook'] as const

const show = (payment: PaymentView) => card({ ...payment })
const showSettings = ({ secrets, webhookUrls, ...settings }: PaymentSettingsView) =>
  card({
    ...settings,
    secrets: SECRETS.filter((name) => secrets[name]).join(', ') || 'none',
    ...{ stripeEvents: webhookUrls.stripe, otherEvents: webhookUrls.webhook },
  })

function showRun({ checked, differences, failure }: ReconciliationView): string {
  if (failure !== null) return `It failed: ${failure}`
  if (differences.length === 0) return `${checked} payments compared. None differs.`
  return [`${checked} payments compared. ${differences.length} differ:`, table(differences, DIFFERENCES)].join('\n\n')
}

/** A secret never stands on the command line, where others could read it. */
function secretsOf(call: Invocation): Record<string, string | null> {
  const found: Record<string, string | null> = {}
  for (const name of SECRETS) {
    const variable = text(call, `${name}-env`)
    if (variable === undefined) continue
    const value = variable === 'none' ? null : call.settings.environment?.(variable)
    if (value === undefined || value === '') throw new CliError(`The environment variable ${variable} is not set.`, 2)
    found[name] = value
  }
  return found
}

export const PAYMENT_COMMANDS: readonly Command[] = [
  {
    name: 'payments list',
    summary: 'Payments of all accounts, newest first.',
    options: {
      account: { type: 'string', value: 'account', refersTo: 'account', help: 'Of one account.' },
      state: { type: 'string', value: 'word', allowed: PAYMENT_STATES, help: `${PAYMENT_STATES.join(', ')}.` },
      ...PAGE_OPTIONS,
    },
    run: (call) =>
      listPages<PaymentView>(call, '/payments', {
        filter: { account: text(call, 'account'), state: text(call, 'state') },
        columns: COLUMNS,
        empty: 'There are no such payments.',
      }),
  },
  {
    name: 'payments show',
    summary: 'Everything about a payment.',
    args: ['payment'],
    run: (call) => told(call.api.call<PaymentView>('GET', at`/payments/${call.args[0]}`), show),
  },
  {
    name: 'payments refund',
    summary: 'Refunds a payment, or a part of it, and takes back its credits.',
    about: 'A payment provider that cannot be asked has refunded it already: this records it.',
    args: ['payment'],
    options: {
      amount: { type: 'string', value: 'amount', help: 'A part, such as 5.00; without it, all that is left.' },
    },
    run: (call) =>
      told(
        call.api.call<PaymentView>('POST', at`/payments/${call.args[0]}/refund`, { amount: text(call, 'amount') }),
        show,
      ),
  },
  {
    name: 'payments accept',
    summary: 'Grants credits for a quarantined payment after all.',
    args: ['payment', 'account', 'credits'],
    run(call) {
      const [payment, account, credits] = call.args
      return told(call.api.call<PaymentView>('POST', at`/payments/${payment}/accept`, { account, credits }), show)
    },
  },
  {
    name: 'payments dismiss',
    summary: 'Leaves a quarantined payment without credits.',
    args: ['payment'],
    run: (call) => told(call.api.call<PaymentView>('POST', at`/payments/${call.args[0]}/dismiss`), show),
  },
  {
    name: 'payments reconcile',
    summary: 'Compares payments with Stripe’s own list now, and names every difference.',
    about: 'It runs every night too. Exits with 1 if a difference is left.',
    options: {
      from: {
        type: 'string',
        value: 'time',
        help: 'Since then; by default since the last time, and three days before it.',
      },
      to: { type: 'string', value: 'time', help: 'Until then; by default now.' },
    },
    async run(call) {
      const range = { from: text(call, 'from'), to: text(call, 'to') }
      const run = await call.api.call<ReconciliationView>('POST', '/reconciliations', range)
      const failed = run.failure !== null || run.differences.some(({ mended }) => !mended)
      return { answer: run, words: showRun(run), failed }
    },
  },
  {
    name: 'payments reconciliations',
    summary: 'Earlier comparisons with Stripe’s list, newest first.',
    options: PAGE_OPTIONS,
    run: (call) =>
      listPages<ReconciliationView>(call, '/reconciliations', {
        ...{ filter: {}, columns: RUNS, empty: 'Payments were not compared yet.' },
      }),
  },
  {
    name: 'payments settings',
    summary: 'Shows how payments are taken, or changes it.',
    about: 'Secrets are read from environment variables, sealed, and never shown again.',
    options: {
      provider: {
        type: 'string',
        value: 'word',
        allowed: ['off', 'stripe', 'webhook'],
        help: 'off, stripe or webhook.',
      },
      tax: {
        type: 'string',
        value: 'word',
        allowed: ['off', 'inclusive', 'exclusive'],
        help: 'Whether Stripe works out the tax, in the price or on top of it.',
      },
      'checkout-url': {
        type: 'string',
        value: 'address',
        help: 'Where customers of another payment provider pay, with {payment}, {amount}, …; "none" removes it.',
      },
      ...Object.fromEntries(
        SECRETS.map((name) => [
          `${name}-env`,
          {
            type: 'string' as const,
            value: 'NAME',
            help: `The variable that has the secret "${name}"; "none" removes it.`,
          },
        ]),
      ),
    },
    run(call) {
      const url = text(call, 'checkout-url')
      const secrets = secretsOf(call)
      const change = {
        ...{ provider: text(call, 'provider'), tax: text(call, 'tax') },
        ...(url === undefined ? {} : { checkoutUrl: url === 'none' ? null : url }),
        ...(Object.keys(secrets).length === 0 ? {} : { secrets }),
      }
      const isChange = Object.values(change).some((value) => value !== undefined)
      const asked = isChange
        ? call.api.call<PaymentSettingsView>('PATCH', '/payment-settings', change)
        : call.api.call<PaymentSettingsView>('GET', '/payment-settings')
      return told(asked, showSettings)
    },
  },
]
