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
    help: 'An Idempotency-Key, such as the number of an invoice: repeated with it, nothing happens twice.',
  },
} as const

export const ACCOUNT_COMMANDS: readonly Command[] = [
  {
    name: 'accounts list',
    summary: 'Accounts with their balances, newest first.',
    options: {
      ...PAGE_OPTIONS,
      search: { type: 'string', value: 'text', help: 'Only those whose name holds this text.' },
    },
    run: (call) =>
      listPages<AccountView>(call, '/accounts', {
        filter: { q: text(call, 'search') },
        columns: { ID: 'id', NAME: 'name', BALANCE: 'balance', HELD: 'held', LIMITS: (row) => showLimits(row.limits) },
      }),
  },
  {
    name: 'accounts create',
    summary: 'A new account.',
    args: ['name'],
    options: { credits: { type: 'string', value: 'amount', help: 'Credits to begin with.' }, ...LIMIT_OPTIONS },
    run(call) {
      const body = { name: call.args[0], credits: text(call, 'credits'), limits: limitsOf(call) }
      return told(call.api.call<AccountView>('POST', '/accounts', body), show)
    },
  },
  {
    name: 'accounts show',
    summary: 'One account.',
    args: ['account'],
    run: (call) => told(call.api.call<AccountView>('GET', at`/accounts/${call.args[0]}`), show),
  },
  {
    name: 'accounts webhook-secret',
    summary: 'The secret with which an account’s receivers check that a webhook is genuine.',
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
    summary: 'Gives an account credits.',
    args: ['account', 'amount'],
    options: { note: { type: 'string', value: 'text', help: 'What for; it stays in the ledger.' }, ...ONCE },
    run: (call) => moveCredits(call, ''),
  },
  {
    name: 'credits take',
    summary: 'Takes back credits. More than what is available is refused.',
    args: ['account', 'amount'],
    options: { note: { type: 'string', value: 'text', help: 'Why; it stays in the ledger.' }, ...ONCE },
    run: (call) => moveCredits(call, '-'),
  },
  {
    name: 'credits refill-test',
    summary: 'Fills up the test balance of an account, which its test keys spend.',
    args: ['account'],
    options: {
      available: { type: 'string', value: 'amount', help: 'What is available then; 1000 unless given, 0 empties it.' },
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
