import * as z from 'zod'
import { type Accounts, accountUnknown } from '../../admission/accounts.ts'
import { page } from '../../kernel/view.ts'
import type { Statements } from '../../ledger/statement.ts'
import { type AccountView, accountView, limitsInput, limitsView, webhookSecretView } from '../../ledger/views.ts'
import { amount, paging, text } from '../fields.ts'
import { type Resource, resource, WithHeaders } from '../resource.ts'

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
        limits: limitsInput.nullable().optional(),
      }),
      answer: accountView,
      run: async ({ body, by }) => show(await accounts.create(body, by)),
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
    resource('GET /accounts/{id}/webhook-secret', 'owner', {
      answer: webhookSecretView,
      run: async ({ params }) => ({ secret: webhookSecret((await show(params.id)).id) }),
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
