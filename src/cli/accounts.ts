import type { AccountView, LimitsView, WebhookSecretView } from '../ledger/views.ts'
import { CliError, type Command, type Invocation, text } from './command.ts'
import { LIMIT_OPTIONS, limitsOf, showLimits } from './limit-options.ts'
import { listPages, PAGE_OPTIONS } from './pages.ts'
import { card, table } from './table.ts'

const path = (id: string, rest = '') => `/accounts/${encodeURIComponent(id)}${rest}`

function show(call: Invocation, account: AccountView): void {
  if (call.json) call.say(JSON.stringify(account))
  else call.say(card({ ...account, limits: showLimits(account.limits) }))
}

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
    async run(call) {
      const rows = await listPages<AccountView>(call, '/accounts', { q: text(call, 'search') })
      if (call.json) return call.say(JSON.stringify(rows))
      call.say(
        table(
          ['ID', 'NAME', 'BALANCE', 'HELD', 'LIMITS'],
          rows.map((row) => [row.id, row.name, row.balance, row.held, showLimits(row.limits)]),
        ),
      )
    },
  },
  {
    name: 'accounts create',
    summary: 'A new account.',
    args: ['name'],
    options: { credits: { type: 'string', value: 'amount', help: 'Credits to begin with.' }, ...LIMIT_OPTIONS },
    async run(call) {
      const body = { name: call.args[0], credits: text(call, 'credits'), limits: limitsOf(call) }
      show(call, await call.api.call<AccountView>('POST', '/accounts', body))
    },
  },
  {
    name: 'accounts show',
    summary: 'One account.',
    args: ['account'],
    async run(call) {
      show(call, await call.api.call<AccountView>('GET', path(call.args[0]!)))
    },
  },
  {
    name: 'accounts webhook-secret',
    summary: 'The secret with which an account’s receivers check that a webhook is genuine.',
    args: ['account'],
    async run(call) {
      const { secret } = await call.api.call<WebhookSecretView>('GET', path(call.args[0]!, '/webhook-secret'))
      call.say(call.json ? JSON.stringify({ secret }) : secret)
    },
  },
  {
    name: 'accounts change',
    summary: 'Renames an account, or changes its limits.',
    args: ['account'],
    options: { name: { type: 'string', value: 'text', help: 'A new name.' }, ...LIMIT_OPTIONS },
    async run(call) {
      const body = { name: text(call, 'name'), limits: limitsOf(call) }
      if (body.name === undefined && body.limits === undefined)
        throw new CliError('Nothing to change was named. See: tollgate accounts change --help', 2)
      show(call, await call.api.call<AccountView>('PATCH', path(call.args[0]!), body))
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
    summary: 'Takes back credits: what is available, and no more.',
    args: ['account', 'amount'],
    options: { note: { type: 'string', value: 'text', help: 'Why; it stays in the ledger.' }, ...ONCE },
    run: (call) => moveCredits(call, '-'),
  },
  {
    name: 'limits show',
    summary: 'The limits of the whole system.',
    async run(call) {
      showSystem(call, await call.api.call<LimitsView>('GET', '/limits'))
    },
  },
  {
    name: 'limits change',
    summary: 'Changes the limits of the whole system.',
    options: LIMIT_OPTIONS,
    async run(call) {
      showSystem(call, await call.api.call<LimitsView>('PATCH', '/limits', limitsOf(call) ?? {}))
    },
  },
]

async function moveCredits(call: Invocation, sign: '' | '-'): Promise<void> {
  const [account, amount] = call.args
  if (!/^\d+(\.\d+)?$/.test(amount!))
    throw new CliError(`The amount must be a number such as 12.5, not "${amount}".`, 2)
  const body = { amount: sign + amount, note: text(call, 'note') }
  const key = text(call, 'key')
  const headers = key === undefined ? {} : { 'idempotency-key': key }
  show(call, await call.api.call<AccountView>('POST', path(account!, '/credits'), body, headers))
}

function showSystem(call: Invocation, limits: LimitsView): void {
  if (call.json) call.say(JSON.stringify(limits))
  else call.say(Object.keys(limits).length > 0 ? card(limits) : 'The system has no limits.')
}
