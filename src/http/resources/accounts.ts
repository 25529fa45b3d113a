import * as z from 'zod'
import { type Accounts, accountUnknown } from '../../admission/accounts.ts'
import { page } from '../../kernel/view.ts'
import type { Statements } from '../../ledger/statement.ts'
import { type AccountView, accountView, limitsInput, limitsView, webhookSecretView } from '../../ledger/views.ts'
import { amount, byId, paging, text } from '../fields.ts'
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
    resource({
      method: 'GET',
      path: '/accounts',
      access: 'member',
      query: z.strictObject({ ...paging, q: text(100, 0).optional() }),
      answer: page(accountView),
      run: ({ query, actor }) =>
        statements.accounts({ ...query, ...(actor.operator ? {} : { only: [...actor.roles.keys()] }) }),
    }),
    resource({
      method: 'POST',
      path: '/accounts',
      access: 'operator',
      body: z.strictObject({
        name: text(100),
        credits: amount.refine((value) => value >= 0n, 'must not be negative').optional(),
        limits: limitsInput.nullable().optional(),
      }),
      answer: accountView,
      run: async ({ body, by }) => show(await accounts.create(body, by)),
    }),
    resource({
      method: 'GET',
      path: '/accounts/{id}',
      access: 'member',
      params: byId,
      account: ({ id }) => id,
      answer: accountView,
      run: ({ params }) => show(params.id),
    }),
    resource({
      method: 'PATCH',
      path: '/accounts/{id}',
      access: 'operator',
      params: byId,
      body: z.strictObject({ name: text(100).optional(), limits: limitsInput.nullable().optional() }),
      answer: accountView,
      async run({ params, body, by }) {
        await accounts.change(params.id, body, by)
        return show(params.id)
      },
    }),
    resource({
      method: 'POST',
      path: '/accounts/{id}/credits',
      access: 'operator',
      params: byId,
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
    resource({
      method: 'GET',
      path: '/accounts/{id}/webhook-secret',
      access: 'owner',
      params: byId,
      account: ({ id }) => id,
      answer: webhookSecretView,
      run: async ({ params }) => ({ secret: webhookSecret((await show(params.id)).id) }),
    }),
    ...limitResources(accounts),
  ]
}

/** Those of the whole system. */
function limitResources(accounts: Accounts): Resource[] {
  return [
    resource({
      method: 'GET',
      path: '/limits',
      access: 'operator',
      answer: limitsView,
      run: () => accounts.systemLimits(),
    }),
    resource({
      method: 'PATCH',
      path: '/limits',
      access: 'operator',
      body: limitsInput,
      answer: limitsView,
      run: ({ body, by }) => accounts.changeSystemLimits(body, by),
    }),
  ]
}
