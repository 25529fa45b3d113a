import * as z from 'zod'
import { type Accounts, accountUnknown, TEST_CREDITS } from '../../admission/accounts.ts'
import { type Credits, formatCredits } from '../../kernel/credits.ts'
import { testAccountOf } from '../../kernel/test-account.ts'
import { page } from '../../kernel/view.ts'
import { type AccountView, accountView, limitsInput, limitsView, webhookSecretView } from '../../ledger/views.ts'
import type { Statements } from '../../reports/statement.ts'
import { amount, paging, test, text } from '../fields.ts'
import { type Resource, resource, WithHeaders } from '../resource.ts'

const TEST_CREDITS_MAX: Credits = 1_000_000_000_000n

export interface AccountDeps {
  readonly accounts: Accounts
  readonly statements: Statements
  /** With which the account's receivers check that a webhook is ours. */
  readonly webhookSecret: (account: string) => string
}

export function accountResources({ accounts, statements, webhookSecret }: AccountDeps): Resource[] {
  async function show(id: string): Promise<AccountView> {
    const account = await statements.account(id)
    if (!account) throw accountUnknown()
    return account
  }

  return [
    resource('GET /accounts', 'member', {
      query: z.strictObject({ ...paging, q: text(100, 0).optional() }),
      answer: page(accountView),
      run: ({ query, actor }) =>
        statements.accounts({ ...query, ...(actor.operator ? {} : { only: [...actor.roles.keys()] }) }),
    }),
    resource('POST /accounts', 'operator', {
      body: z.strictObject({
        name: text(100),
        credits: amount.refine((value) => value >= 0n, 'must not be negative').optional(),
        note: text(200, 0).optional(),
        limits: limitsInput.nullable().optional(),
      }),
      repeatable: true,
      answer: accountView,
      async run({ body, by, idempotencyKey: key }) {
        if (key === undefined) return show(await accounts.create(body, by))
        const { id, again } = await accounts.createOnce(key, body, by)
        return again ? new WithHeaders(await show(id), { 'idempotent-replayed': 'true' }) : show(id)
      },
    }),
    resource('GET /accounts/{id}', 'member', {
      answer: accountView,
      run: ({ params }) => show(params.id),
    }),
    resource('PATCH /accounts/{id}', 'operator', {
      body: z.strictObject({ name: text(100).optional(), limits: limitsInput.nullable().optional() }),
      answer: accountView,
      async run({ params, body, by }) {
        await accounts.change(params.id, body, by)
        return show(params.id)
      },
    }),
    resource('POST /accounts/{id}/credits', 'operator', {
      body: z.strictObject({
        amount: amount.refine((value) => value !== 0n, 'must not be zero'),
        note: text(200, 0).default(''),
      }),
      repeatable: true,
      answer: accountView,
      async run({ params, body, by, idempotencyKey: key }) {
        const { account, again } = await accounts.credit(params.id, { ...body, key }, by)
        return again ? new WithHeaders(account, { 'idempotent-replayed': 'true' }) : account
      },
    }),
    resource('GET /accounts/{id}/test-balance', 'member', {
      answer: accountView,
      run: ({ params }) => show(testAccountOf(params.id)),
    }),
    resource('PUT /accounts/{id}/test-balance', 'member', {
      body: z.strictObject({
        available: amount
          .refine(
            (value) => value >= 0n && value <= TEST_CREDITS_MAX,
            `must be 0 to ${formatCredits(TEST_CREDITS_MAX)}`,
          )
          .default(TEST_CREDITS),
      }),
      answer: accountView,
      run: ({ params, body, by }) => accounts.refillTest(params.id, body.available, by),
    }),
    resource('GET /accounts/{id}/webhook-secret', 'owner', {
      query: z.strictObject({ test }),
      answer: webhookSecretView,
      run: async ({ params, query }) => {
        const account = query.test === 'true' ? testAccountOf(params.id) : params.id
        return { secret: webhookSecret((await show(account)).id) }
      },
    }),
    ...limitResources(accounts),
  ]
}

/** Those of the whole system. */
function limitResources(accounts: Accounts): Resource[] {
  return [
    resource('GET /limits', 'operator', {
      answer: limitsView,
      run: () => accounts.systemLimits(),
    }),
    resource('PATCH /limits', 'operator', {
      body: limitsInput,
      answer: limitsView,
      run: ({ body, by }) => accounts.changeSystemLimits(body, by),
    }),
  ]
}
