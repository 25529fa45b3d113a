// Payments on the command line: list, refunds, quarantine, reconciliation and settings.

import type { Page } from '../kernel/view.ts'
import type { BalanceView } from '../ledger/views.ts'
import { balanceSentence } from '../reports/statement-lines.ts'
import {
  type AccountPlanView,
  type ChosenPlanView,
  type CodeBatchView,
  type Difference,
  type NewCodeBatch,
  PAYMENT_STATES,
  type PaymentSettingsView,
  type PaymentView,
  type PlanOffer,
  type ReconciliationView,
  type RedeemedView,
} from '../sales/views.ts'
import { at, CliError, type Command, flag, type Invocation, takes, text, told } from './command.ts'
import { type Columns, card, listPages, PAGE_OPTIONS, query, TEST_OPTION, table, testOf } from './table.ts'

const COLUMNS: Columns<PaymentView> = {
  ...({ PAYMENT: 'id', AT: 'createdAt', ACCOUNT: 'account', KIND: 'kind', STATE: 'state', AMOUNT: 'amount' } as const),
  ...({ CURRENCY: 'currency', REFUNDED: 'refunded', CREDITS: 'credits', WHY: 'reason' } as const),
}
const DIFFERENCES: Columns<Difference> = {
  ...({ PAYMENT: 'payment', ACCOUNT: 'account', 'AT THE PROVIDER': 'providerId', PROBLEM: 'problem' } as const),
  CORRECTED: ({ corrected }) => (corrected ? 'yes' : 'no'),
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

/** Secrets are not options, because other users can read command lines. */
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
      account: takes('account', 'Of one account.', { refersTo: 'account' }),
      state: takes('word', `${PAYMENT_STATES.join(', ')}.`, { allowed: PAYMENT_STATES }),
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
    about: 'If the gateway cannot refund at the payment provider, refund it there first; this command records it.',
    args: ['payment'],
    options: {
      amount: takes('amount', 'A part, such as 5.00; without it, all that is left.'),
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
    summary: 'Dismisses a quarantined payment without granting credits.',
    args: ['payment'],
    run: (call) => told(call.api.call<PaymentView>('POST', at`/payments/${call.args[0]}/dismiss`), show),
  },
  {
    name: 'payments reconcile',
    summary: 'Compares payments with Stripe’s own list now, and names every difference.',
    about: 'It runs every night too. Exits with 1 if a difference is left.',
    options: {
      from: takes('time', 'Since then; by default since the last time, and three days before it.'),
      to: takes('time', 'Until then; by default now.'),
    },
    async run(call) {
      const range = { from: text(call, 'from'), to: text(call, 'to') }
      const run = await call.api.call<ReconciliationView>('POST', '/reconciliations', range)
      const failed = run.failure !== null || run.differences.some(({ corrected }) => !corrected)
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
    summary: 'Shows or changes the payment settings.',
    about: 'Secrets are read from environment variables, stored encrypted, and never shown again.',
    options: {
      provider: takes('word', 'off, stripe or webhook.', { allowed: ['off', 'stripe', 'webhook'] }),
      tax: takes('word', 'Whether Stripe computes the tax, as a part of the price or on top of it.', {
        allowed: ['off', 'inclusive', 'exclusive'],
      }),
      'checkout-url': takes(
        'address',
        'Where customers of another payment provider pay, with {payment}, {amount}, …; "none" removes it.',
      ),
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

// Balances with their lots, plans and codes, on the command line.

function showBalance(balance: BalanceView): string {
  const lots = balance.lots.map(({ endsAt, products, ...lot }) => ({
    ...lot,
    ends: endsAt?.slice(0, 10) ?? 'never',
    for: products?.join(', ') ?? 'all products',
  }))
  return [
    balanceSentence(balance),
    ...(lots.length > 0 ? [table(lots, { SOURCE: 'source', LEFT: 'remaining', ENDS: 'ends', FOR: 'for' })] : []),
  ].join('\n\n')
}

function showPlan({ plan, plans }: AccountPlanView): string {
  const next =
    plan && (plan.next === null ? 'It ends then.' : plan.next === plan.id ? '' : `It becomes "${plan.next}" then.`)
  const now = plan
    ? `${plan.name}${plan.trial ? ' (trial)' : ''}, until ${plan.endsAt.slice(0, 10)}.${plan.due ? ` The month is not paid yet. ${plan.problem ?? ''}` : ''} ${next}`.trim()
    : 'No plan.'
  return [now, ...(plans.length > 0 ? [showPlans(plans)] : [])].join('\n\n')
}

const showChosen = ({ checkout, ...view }: ChosenPlanView) =>
  [...(checkout ? [`The plan begins when it is paid: ${checkout.url}`] : []), showPlan(view)].join('\n\n')

const showPlans = (plans: readonly PlanOffer[]) =>
  table(
    plans.map((plan) => ({ ...plan, price: `${plan.price} ${plan.currency}`, accounts: plan.accounts ?? '' })),
    { PLAN: 'id', NAME: 'name', PRICE: 'price', CREDITS: 'credits', ACCOUNTS: 'accounts' },
  )
const BATCH_COLUMNS = {
  BATCH: 'id',
  NAME: 'name',
  CREDITS: 'credits',
  CODES: 'codes',
  USES: 'usesMax',
  USED: 'used',
  ENDS: 'endsAt',
} as const

export const PLAN_COMMANDS: readonly Command[] = [
  {
    name: 'balance show',
    summary: 'Shows the balance of an account, and which credits expire or are for some products only.',
    args: ['account'],
    options: TEST_OPTION,
    run: (call) =>
      told(
        call.api.call<BalanceView>('GET', at`/accounts/${call.args[0]}/balance` + query({ test: testOf(call) })),
        showBalance,
      ),
  },
  {
    name: 'plans list',
    summary: 'The plans of the catalog, and how many accounts are on each.',
    run: (call) => told(call.api.call<{ plans: PlanOffer[] }>('GET', '/plans'), ({ plans }) => showPlans(plans)),
  },
  {
    name: 'plans show',
    summary: 'The plan of an account, and what it can choose.',
    args: ['account'],
    run: (call) => told(call.api.call<AccountPlanView>('GET', at`/accounts/${call.args[0]}/plan`), showPlan),
  },
  {
    name: 'plans choose',
    summary: 'Starts or changes the plan of an account: an upgrade now, a downgrade at the end of the period.',
    about: 'The price is charged to the saved card. Without a saved card, the address of the payment page is printed.',
    args: ['account', 'plan'],
    options: { checkout: flag('Do not charge the saved card; print the page instead.') },
    run: (call) => {
      const body = { plan: call.args[1], ...(call.values.checkout === true ? { checkout: true } : {}) }
      return told(call.api.call<ChosenPlanView>('PUT', at`/accounts/${call.args[0]}/plan`, body), showChosen)
    },
  },
  {
    name: 'plans cancel',
    summary: 'Ends the plan of an account at the end of its period.',
    args: ['account'],
    run: (call) =>
      told(call.api.call<AccountPlanView>('PUT', at`/accounts/${call.args[0]}/plan`, { plan: null }), showPlan),
  },
  {
    name: 'codes list',
    summary: 'Batches of codes, the newest first.',
    run: (call) =>
      told(call.api.call<Page<CodeBatchView>>('GET', '/code-batches?limit=100'), ({ items }) =>
        table(items, BATCH_COLUMNS),
      ),
  },
  {
    name: 'codes create',
    summary: 'Makes codes that grant credits. They are shown once.',
    args: ['name', 'credits'],
    options: {
      codes: takes('number', 'How many codes; 1 by default.'),
      uses: takes('number', 'How often each can be redeemed; 1 by default.'),
      ends: takes('time', 'Codes cannot be redeemed after this, such as 2027-01-01T00:00:00Z.'),
      days: takes('number', 'The credits end so many days after they were granted.'),
      products: takes('names', 'Models and data endpoints that the credits are for, separated by commas.'),
    },
    run(call) {
      const number = (name: string) => {
        const value = text(call, name)
        return value === undefined ? undefined : Number(value)
      }
      const body = {
        ...{ name: call.args[0], credits: call.args[1], codes: number('codes'), usesMax: number('uses') },
        ...{ endsAt: text(call, 'ends'), creditDays: number('days'), products: text(call, 'products')?.split(',') },
      }
      return told(call.api.call<NewCodeBatch>('POST', '/code-batches', body), ({ list }) => list.join('\n'))
    },
  },
  {
    name: 'codes end',
    summary: 'Ends a batch of codes. Credits that they granted stay.',
    args: ['batch'],
    run: (call) =>
      told(call.api.call<CodeBatchView>('POST', at`/code-batches/${call.args[0]}/end`), (batch) =>
        table([batch], BATCH_COLUMNS),
      ),
  },
  {
    name: 'codes redeem',
    summary: 'Redeems a code for an account.',
    args: ['account', 'code'],
    run: (call) =>
      told(
        call.api.call<RedeemedView>('POST', at`/accounts/${call.args[0]}/codes`, { code: call.args[1] }),
        ({ credits, endsAt }) =>
          `${credits} credits were added${endsAt ? `; they end on ${endsAt.slice(0, 10)}` : ''}.`,
      ),
  },
]
