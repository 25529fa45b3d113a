// Balances with their lots, plans and codes, on the command line.
import type { Page } from '../kernel/view.ts'
import type { BalanceView } from '../ledger/views.ts'
import { balanceSentence } from '../reports/statement-lines.ts'
import type {
  AccountPlanView,
  ChosenPlanView,
  CodeBatchView,
  NewCodeBatch,
  PlanOffer,
  RedeemedView,
} from '../sales/views.ts'
import { at, type Command, text, told } from './command.ts'
import { query, TEST_OPTION, table, testOf } from './table.ts'

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
    summary: 'The balance of an account, and which part of it ends when or is for some products only.',
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
    summary:
      'Starts a plan for an account, or changes it: to a dearer one now, to a cheaper one at the end of its period.',
    about: 'A price is charged to the saved card. Without one, the page is printed on which it is paid.',
    args: ['account', 'plan'],
    options: { checkout: { type: 'boolean', help: 'Do not charge the saved card; print the page instead.' } },
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
      codes: { type: 'string', value: 'number', help: 'How many codes; 1 by default.' },
      uses: { type: 'string', value: 'number', help: 'How often each can be redeemed; 1 by default.' },
      ends: {
        type: 'string',
        value: 'time',
        help: 'Codes cannot be redeemed after this, such as 2027-01-01T00:00:00Z.',
      },
      days: { type: 'string', value: 'number', help: 'The credits end so many days after they were granted.' },
      products: {
        type: 'string',
        value: 'names',
        help: 'Models and data endpoints that the credits are for, separated by commas.',
      },
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
    summary: 'Ends a batch of codes. What they granted stays.',
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
