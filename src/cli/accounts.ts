import type { AccountView, LimitsView, WebhookSecretView } from '../ledger/views.ts'
import { at, CliError, type Command, type Invocation, type Told, text, told } from './command.ts'
import { LIMIT_OPTIONS, limitsOf, showLimits } from './limit-options.ts'
import { listPages, PAGE_OPTIONS, query, TEST_OPTION, testOf } from './pages.ts'
import { card } from './table.ts'

const show = (account: AccountView) => card({ ...account, limits: showLimits(account.limits) })
const showSystem = (limits: LimitsView) => (Object.keys(limits).length > 0 ? card(limits) : 'The system has no limits.')

const ONCE = {
  key: {
    type: 'string',
    value: 'text',
    help: 'An Idempotency-Key, such as the number of an invoice: a repetition with it has no second effect.',
  },
} as const

export const ACCOUNT_COMMANDS: readonly Command[] = [
  {
    name: 'accounts list',
    summary: 'Accounts with their balances, newest first.',
    options: {
      ...PAGE_OPTIONS,
      search: { type: 'string', value: 'text', help: 'Only accounts whose name contains this text.' },
    },
    run: (call) =>
      listPages<AccountView>(call, '/accounts', {
        filter: { q: text(call, 'search') },
        columns: { ID: 'id', NAME: 'name', BALANCE: 'balance', HELD: 'held', LIMITS: (row) => showLimits(row.limits) },
      }),
  },
  {
    name: 'accounts create',
    summary: 'Creates an account.',
    args: ['name'],
    options: { credits: { type: 'string', value: 'amount', help: 'Opening balance.' }, ...LIMIT_OPTIONS },
    run(call) {
      const body = { name: call.args[0], credits: text(call, 'credits'), limits: limitsOf(call) }
      return told(call.api.call<AccountView>('POST', '/accounts', body), show)
    },
  },
  {
    name: 'accounts show',
    summary: 'Shows one account.',
    args: ['account'],
    run: (call) => told(call.api.call<AccountView>('GET', at`/accounts/${call.args[0]}`), show),
  },
  {
    name: 'accounts webhook-secret',
    summary: 'The secret with which receivers of an account verify webhooks.',
    args: ['account'],
    options: TEST_OPTION,
    run: (call) =>
      told(
        call.api.call<WebhookSecretView>(
          'GET',
          at`/accounts/${call.args[0]}/webhook-secret` + query({ test: testOf(call) }),
        ),
        ({ secret }) => secret,
      ),
  },
  {
    name: 'accounts change',
    summary: 'Renames an account, or changes its limits.',
    args: ['account'],
    options: { name: { type: 'string', value: 'text', help: 'A new name.' }, ...LIMIT_OPTIONS },
    run(call) {
      const body = { name: text(call, 'name'), limits: limitsOf(call) }
      if (body.name === undefined && body.limits === undefined)
        throw new CliError('Nothing to change was named. See: tollgate accounts change --help', 2)
      return told(call.api.call<AccountView>('PATCH', at`/accounts/${call.args[0]}`, body), show)
    },
  },
  {
    name: 'credits add',
    summary: 'Adds credits to an account.',
    args: ['account', 'amount'],
    options: { note: { type: 'string', value: 'text', help: 'The purpose; stored in the ledger.' }, ...ONCE },
    run: (call) => moveCredits(call, ''),
  },
  {
    name: 'credits take',
    summary: 'Takes back credits, at most what is available.',
    args: ['account', 'amount'],
    options: { note: { type: 'string', value: 'text', help: 'The reason; stored in the ledger.' }, ...ONCE },
    run: (call) => moveCredits(call, '-'),
  },
  {
    name: 'credits refill-test',
    summary: 'Fills up the test balance of an account, which its test keys spend.',
    args: ['account'],
    options: {
      available: { type: 'string', value: 'amount', help: 'The new available amount; 1000 by default, 0 empties it.' },
    },
    run(call) {
      const body = { available: text(call, 'available') }
      return told(call.api.call<AccountView>('PUT', at`/accounts/${call.args[0]}/test-balance`, body), show)
    },
  },
  {
    name: 'limits show',
    summary: 'The limits of the whole system.',
    run: (call) => told(call.api.call<LimitsView>('GET', '/limits'), showSystem),
  },
  {
    name: 'limits change',
    summary: 'Changes the limits of the whole system.',
    options: LIMIT_OPTIONS,
    run: (call) => told(call.api.call<LimitsView>('PATCH', '/limits', limitsOf(call) ?? {}), showSystem),
  },
]

function moveCredits(call: Invocation, sign: '' | '-'): Promise<Told> {
  const [account, amount] = call.args
  if (!/^\d+(\.\d+)?$/.test(amount!))
    throw new CliError(`The amount must be a number such as 12.5, not "${amount}".`, 2)
  const body = { amount: sign + amount, note: text(call, 'note') }
  const key = text(call, 'key')
  const headers = key === undefined ? {} : { 'idempotency-key': key }
  return told(call.api.call<AccountView>('POST', at`/accounts/${account}/credits`, body, headers), show)
}
