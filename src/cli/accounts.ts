// Accounts, keys and people on the command line.
import type { KeyView, NewKey } from '../admission/views.ts'
import { ACCOUNT_ROLES, OPERATOR_ROLES } from '../identity/roles.ts'
import type { LinkView, MemberView, OperatorView } from '../identity/views.ts'
import type { Page } from '../kernel/view.ts'
import type { AccountView, WebhookSecretView } from '../ledger/views.ts'
import { LIMIT_NAMES, LIMITS, type LimitName, type LimitsInput, type LimitsView } from '../meter/limits.ts'
import {
  at,
  CliError,
  type Command,
  flag,
  type Invocation,
  type Option,
  type Told,
  takes,
  text,
  told,
} from './command.ts'
import { card, list, listPages, PAGE_OPTIONS, query, TEST_OPTION, testOf } from './table.ts'

// Limits on the command line: `--spend-per-day 20`, `--concurrency none`.

/** `spend-per-day` for `spendPerDay`. */
const optionOf = (name: LimitName) => name.replaceAll(/[A-Z]/g, (letter) => `-${letter.toLowerCase()}`)

const LIMIT_OPTIONS: Readonly<Record<string, Option>> = Object.fromEntries(
  LIMIT_NAMES.map((name) => [optionOf(name), takes('n', `${LIMITS[name].option}; "none" removes the limit.`)]),
)

/** Undefined when no limit was named. */
function limitsOf(call: Invocation): LimitsInput | undefined {
  const limits: Record<string, number | string | null> = {}
  for (const name of LIMIT_NAMES) {
    const option = optionOf(name)
    const value = text(call, option)
    if (value === undefined) continue
    if (value === 'none') limits[name] = null
    else if (LIMITS[name].unit === 'credits') limits[name] = value
    else if (/^\d{1,12}$/.test(value)) limits[name] = Number(value)
    else throw new CliError(`--${option} takes a whole number or "none", not "${value}".`, 2)
  }
  return Object.keys(limits).length > 0 ? limits : undefined
}

function showLimits(limits: LimitsView): string {
  return Object.entries(limits)
    .map(([name, value]) => `${name} ${value}`)
    .join(', ')
}

const show = (account: AccountView) => card({ ...account, limits: showLimits(account.limits) })
const showSystem = (limits: LimitsView) => (Object.keys(limits).length > 0 ? card(limits) : 'The system has no limits.')

const ONCE = {
  key: takes(
    'text',
    'An Idempotency-Key, such as the number of an invoice: a repetition with it has no second effect.',
  ),
} as const

const REASON = {
  reason: takes('text', 'Why; callers read it in the answer to rejected calls.'),
} as const

function reasonOf(call: Invocation): { reason: string } {
  const reason = text(call, 'reason')
  if (reason === undefined) throw new CliError('Say why with --reason "…": callers read it.', 2)
  return { reason }
}

export const ACCOUNT_COMMANDS: readonly Command[] = [
  {
    name: 'accounts list',
    summary: 'Accounts with their balances, newest first.',
    options: {
      ...PAGE_OPTIONS,
      search: takes('text', 'Only accounts whose name contains this text.'),
    },
    run: (call) =>
      listPages<AccountView>(call, '/accounts', {
        filter: { q: text(call, 'search') },
        columns: {
          ...{ NAME: 'name', STATUS: 'status', BALANCE: 'balance', HELD: 'held' },
          ...{ LIMITS: (row) => showLimits(row.limits), ID: 'id' },
        },
        empty:
          text(call, 'search') === undefined
            ? 'No accounts yet. Create one with: tollgate accounts create <name> --credits 100'
            : 'No account has this in its name.',
      }),
  },
  {
    name: 'accounts create',
    summary: 'Creates an account.',
    args: ['name'],
    options: { credits: takes('amount', 'Opening balance.'), ...LIMIT_OPTIONS },
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
    options: { name: takes('text', 'A new name.'), ...LIMIT_OPTIONS },
    run(call) {
      const body = { name: text(call, 'name'), limits: limitsOf(call) }
      if (body.name === undefined && body.limits === undefined)
        throw new CliError('Nothing to change was named. See: tollgate accounts change --help', 2)
      return told(call.api.call<AccountView>('PATCH', at`/accounts/${call.args[0]}`, body), show)
    },
  },
  {
    name: 'accounts suspend',
    summary: 'Suspends an account: its calls get 403 with the reason. Its credits stay, and running calls end.',
    args: ['account'],
    options: REASON,
    run: (call) =>
      told(call.api.call<AccountView>('POST', at`/accounts/${call.args[0]}/suspend`, reasonOf(call)), show),
  },
  {
    name: 'accounts close',
    summary: 'Closes an account: its keys end, and its balance is paid out or written off.',
    about:
      'It is suspended first, and running calls end and are charged. While calls still run, nothing is moved and the account stays suspended: close it again later. Statements stay readable.',
    args: ['account'],
    options: {
      ...REASON,
      payout: flag('The balance is paid out: the ledger has a payout, and you pay the customer.'),
      'write-off': flag('The balance is written off.'),
    },
    run(call) {
      const [isPayout, isWriteOff] = [call.values.payout === true, call.values['write-off'] === true]
      if (isPayout === isWriteOff)
        throw new CliError('Say what becomes of the balance: either --payout or --write-off.', 2)
      const body = { ...reasonOf(call), balance: isPayout ? 'payout' : 'writeoff' }
      return told(call.api.call<AccountView>('POST', at`/accounts/${call.args[0]}/close`, body), show)
    },
  },
  {
    name: 'accounts reopen',
    summary: 'Reopens a suspended or closed account. Keys that ended when it was closed stay revoked.',
    args: ['account'],
    run: (call) => told(call.api.call<AccountView>('POST', at`/accounts/${call.args[0]}/reopen`), show),
  },
  {
    name: 'credits add',
    summary: 'Adds credits to an account.',
    args: ['account', 'amount'],
    options: {
      note: takes('text', 'The purpose; stored in the ledger.'),
      correction: flag('A correction instead of a top-up; statements list it apart.'),
      ends: takes('time', 'The credits end then, such as 2027-01-01T00:00:00Z.'),
      products: {
        ...{ type: 'string', value: 'names' },
        help: 'Models and data endpoints that the credits are for, separated by commas; a name may end in *.',
      },
      priority: takes('number', 'Credits of a lower number are spent first; 50 by default.'),
      ...ONCE,
    },
    run: (call) => moveCredits(call, ''),
  },
  {
    name: 'credits take',
    summary: 'Takes back credits, at most what is available.',
    args: ['account', 'amount'],
    options: { note: takes('text', 'The reason; stored in the ledger.'), ...ONCE },
    run: (call) => moveCredits(call, '-'),
  },
  {
    name: 'credits refill-test',
    summary: 'Fills up the test balance of an account, which its test keys spend.',
    args: ['account'],
    options: {
      available: takes('amount', 'The new available amount; 1000 by default, 0 empties it.'),
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
  const correction = call.values.correction === true ? { correction: true } : {}
  const priority = text(call, 'priority')
  const lot = {
    endsAt: text(call, 'ends'),
    products: text(call, 'products')?.split(','),
    ...(priority === undefined ? {} : { priority: Number(priority) }),
  }
  const body = { amount: sign + amount, note: text(call, 'note'), ...correction, ...lot }
  const key = text(call, 'key')
  const headers = key === undefined ? {} : { 'idempotency-key': key }
  return told(call.api.call<AccountView>('POST', at`/accounts/${account}/credits`, body, headers), show)
}

const RESTRICTIONS: Readonly<Record<string, Option>> = {
  models: takes('a,b', 'Only these models, socialapi or siteanalytics; "all" removes the restriction.'),
  endpoints: takes('a,b', 'Only these endpoints, such as chat,embeddings; "all" removes the restriction.'),
  'require-labels': takes(
    'a,b',
    'Labels that every call must carry, such as user,feature; "none" removes the requirement.',
  ),
  team: takes('team', 'The team or project that it belongs to; "none" takes it out.'),
  expires: takes('time', 'Expiry, such as 2027-01-01T00:00:00Z; "never" removes it.'),
  'ip-ranges': takes('a,b', 'Only from these addresses, such as 10.0.0.0/8; "all" removes the restriction.'),
  'response-cache': takes('on|off|model', 'Whether the response cache is used; "model": the default of each model.'),
  vendors: takes('a,b', 'Only these vendors. With --regions, --max-price and --caller-choice it replaces all four.'),
  regions: takes('a,b', 'Only vendors in these regions, such as eu,us-east-1.'),
  'max-price': takes(
    'unit=credits',
    'The highest prices, such as input=300,output=1500; "none" for any of them removes all of them.',
  ),
  'caller-choice': takes('word', 'off: its calls may choose neither vendors nor fallback models.', {
    allowed: ['on', 'off'],
  }),
  ...LIMIT_OPTIONS,
}

const RESPONSE_CACHE: Readonly<Record<string, boolean | null>> = { on: true, off: false, model: null }

/** Only the given options; everything else stays unchanged. */
function restrictionsOf(call: Invocation): Record<string, unknown> {
  const body: Record<string, unknown> = {}
  const parts = (value: string) => (value === 'all' ? null : value.split(',').map((part) => part.trim()))
  const labels = text(call, 'require-labels')
  const team = text(call, 'team')
  if (team !== undefined) body.teamId = team === 'none' ? null : team
  const [models, endpoints, expires, ranges, keeps, limits] = [
    text(call, 'models'),
    text(call, 'endpoints'),
    text(call, 'expires'),
    text(call, 'ip-ranges'),
    text(call, 'response-cache'),
    limitsOf(call),
  ]
  if (models !== undefined) body.models = parts(models)
  if (endpoints !== undefined) body.endpoints = parts(endpoints)
  if (labels !== undefined) body.requiredLabels = labels === 'none' ? null : parts(labels)
  if (expires !== undefined) body.expiresAt = expires === 'never' ? null : expires
  if (ranges !== undefined) body.ipRanges = parts(ranges)
  if (limits !== undefined) body.limits = limits
  if (keeps !== undefined) {
    if (!Object.hasOwn(RESPONSE_CACHE, keeps)) throw new CliError('--response-cache takes on, off or model.', 2)
    body.responseCache = RESPONSE_CACHE[keeps]
  }
  const routing = routingOf(call)
  if (routing !== undefined) body.routing = routing
  return body
}

/** Undefined: stays as it is; null: anywhere. */
function routingOf(call: Invocation): Record<string, unknown> | null | undefined {
  const [vendors, regions, price] = [text(call, 'vendors'), text(call, 'regions'), text(call, 'max-price')]
  const choice = text(call, 'caller-choice')
  const given = [vendors, regions, price, choice].filter((value) => value !== undefined)
  if (given.length === 0) return undefined
  if (given.includes('none')) return null
  const parts = (value: string) => value.split(',').map((part) => part.trim())
  const prices = price && Object.fromEntries(parts(price).map((one) => one.split('=').map((part) => part.trim())))
  return {
    ...(vendors === undefined ? {} : { vendors: parts(vendors) }),
    ...(regions === undefined ? {} : { regions: parts(regions) }),
    ...(prices === undefined ? {} : { maxPrice: prices }),
    ...(choice === 'off' ? { callerChoice: false } : {}),
  }
}

function routingWords({ routing }: KeyView): string {
  const { vendors, regions, maxPrice, callerChoice } = routing ?? {}
  const prices = Object.entries(maxPrice ?? {}).map(([unit, amount]) => `${unit} up to ${amount}`)
  const choice = callerChoice === false ? ['as the gateway chooses'] : []
  return [...(vendors ?? []), ...(regions ?? []), ...prices, ...choice].join(', ') || 'anywhere'
}

function cacheWord({ responseCache }: KeyView): string | undefined {
  return Object.keys(RESPONSE_CACHE).find((word) => RESPONSE_CACHE[word] === responseCache)
}

function showKey(key: KeyView | NewKey): string {
  const { key: value, prefix, last4, ...rest } = { key: undefined, ...key }
  const shown = card({
    ...rest,
    value: `${prefix}…${last4}`,
    models: key.models?.join(', ') ?? 'all',
    endpoints: key.endpoints?.join(', ') ?? 'all',
    requiredLabels: key.requiredLabels?.join(', ') ?? 'none',
    ipRanges: key.ipRanges?.join(', ') ?? 'all',
    responseCache: cacheWord(key),
    routing: routingWords(key),
    limits: showLimits(key.limits),
  })
  return value === undefined ? shown : `${shown}\n\nThe key, shown this once:\n\n  ${value}\n`
}

export const KEY_COMMANDS: readonly Command[] = [
  {
    name: 'keys list',
    summary: 'The keys of an account, newest first.',
    args: ['account'],
    options: PAGE_OPTIONS,
    run: (call) =>
      listPages<KeyView>(call, at`/accounts/${call.args[0]}/keys`, {
        columns: {
          NAME: 'name',
          KEY: (row) => `${row.prefix}…${row.last4}`,
          MODELS: (row) => row.models?.join(',') ?? 'all',
          ENDPOINTS: (row) => row.endpoints?.join(',') ?? 'all',
          EXPIRES: 'expiresAt',
          REVOKED: 'revokedAt',
          'LAST USED': 'lastUsedAt',
          ID: 'id',
        },
        empty: 'No keys yet. Create one with: tollgate keys create <account> <name>',
      }),
  },
  {
    name: 'keys create',
    summary: 'Creates a key. Its value is shown once.',
    args: ['account', 'name'],
    options: {
      test: flag('A test key: simulated vendors, and credits that cost nothing.'),
      ...RESTRICTIONS,
    },
    run(call) {
      const test = call.values.test === true ? { test: true } : {}
      const body = { name: call.args[1], ...test, ...restrictionsOf(call) }
      return told(call.api.call<NewKey>('POST', at`/accounts/${call.args[0]}/keys`, body), showKey)
    },
  },
  {
    name: 'keys change',
    summary: 'Changes the name, restrictions or limits of a key.',
    args: ['key'],
    options: { name: takes('text', 'A new name.'), ...RESTRICTIONS },
    run(call) {
      const name = text(call, 'name')
      const body = { ...(name === undefined ? {} : { name }), ...restrictionsOf(call) }
      if (Object.keys(body).length === 0)
        throw new CliError('Nothing to change was named. See: tollgate keys change --help', 2)
      return told(call.api.call<KeyView>('PATCH', at`/keys/${call.args[0]}`, body), showKey)
    },
  },
  {
    name: 'keys revoke',
    summary: 'Revokes a key: at once in this process, within two seconds in all others.',
    args: ['key'],
    run: (call) => told(call.api.call<KeyView>('DELETE', at`/keys/${call.args[0]}`), showKey),
  },
  {
    name: 'keys rotate',
    summary: 'Replaces a key by a new one. The old one keeps working for a while.',
    args: ['key'],
    about: 'The new key has the settings of the old one, except those given here.',
    options: {
      overlap: takes('seconds', 'How long the old key keeps working; a day by default.'),
      name: takes('text', 'A new name.'),
      ...RESTRICTIONS,
    },
    run(call) {
      const overlap = text(call, 'overlap')
      if (overlap !== undefined && !/^\d{1,9}$/.test(overlap)) throw new CliError('--overlap takes whole seconds.', 2)
      const seconds = overlap === undefined ? {} : { overlapSeconds: Number(overlap) }
      const name = text(call, 'name')
      const body = { ...(name === undefined ? {} : { name }), ...restrictionsOf(call), ...seconds }
      return told(call.api.call<NewKey>('POST', at`/keys/${call.args[0]}/rotate`, body), showKey)
    },
  },
]

const linkOf = ({ link }: LinkView) => link

export const PEOPLE_COMMANDS: readonly Command[] = [
  {
    name: 'members list',
    summary: 'The people of an account.',
    args: ['account'],
    async run(call) {
      const { items } = await call.api.call<Page<MemberView>>('GET', at`/accounts/${call.args[0]}/members`)
      const columns = { EMAIL: 'email', ROLE: 'role', 'LAST SEEN': 'lastSeenAt', ID: 'userId' } as const
      return list(items, columns, 'No members yet. Invite one with: tollgate members invite <account> <email>')
    },
  },
  {
    name: 'members invite',
    summary: 'Creates a link by which somebody joins an account. It is valid for a week.',
    args: ['account', 'email'],
    options: {
      role: takes('word', `One of ${ACCOUNT_ROLES.join(', ')}; member by default.`),
    },
    run(call) {
      const [account, email] = call.args
      const body = { email, role: text(call, 'role') ?? 'member' }
      return told(call.api.call<LinkView>('POST', at`/accounts/${account}/invites`, body), linkOf)
    },
  },
  {
    name: 'members role',
    summary: 'Changes the role of a member, at once.',
    args: ['account', 'user', 'role'],
    run(call) {
      const [account, user, role] = call.args
      return told(call.api.call('PATCH', at`/accounts/${account}/members/${user}`, { role }), () => `Now ${role}.`)
    },
  },
  {
    name: 'members remove',
    summary: 'Ends a membership at once.',
    args: ['account', 'user'],
    run(call) {
      const [account, user] = call.args
      return told(call.api.call('DELETE', at`/accounts/${account}/members/${user}`), () => 'Removed.')
    },
  },
  {
    name: 'operators list',
    summary: 'The people who run the gateway.',
    async run(call) {
      const { items } = await call.api.call<Page<OperatorView>>('GET', '/operators')
      const columns = { EMAIL: 'email', ROLE: 'role', 'LAST SEEN': 'lastSeenAt', ID: 'userId' } as const
      return list(items, columns, 'Nobody yet. For a link that makes the first one: tollgate setup-link')
    },
  },
  {
    name: 'operators invite',
    summary: 'Creates a link by which somebody joins the gateway’s operators. It is valid for a week.',
    args: ['email'],
    options: {
      role: takes('word', `One of ${OPERATOR_ROLES.join(', ')}; operator by default.`),
    },
    run(call) {
      const body = { email: call.args[0], role: text(call, 'role') ?? 'operator' }
      return told(call.api.call<LinkView>('POST', '/operator-invites', body), linkOf)
    },
  },
  {
    name: 'operators role',
    summary: 'Changes the role of a person in the gateway, at once.',
    args: ['userId', 'role'],
    run(call) {
      const [user, role] = call.args
      return told(call.api.call('PATCH', at`/operators/${user}`, { role }), () => `Now ${role}.`)
    },
  },
  {
    name: 'operators remove',
    summary: 'Ends a person’s role in the gateway at once. Their memberships in accounts stay.',
    args: ['userId'],
    run: (call) => told(call.api.call('DELETE', at`/operators/${call.args[0]}`), () => 'Removed.'),
  },
  {
    name: 'setup-link',
    summary: 'Creates a new setup link for the console, while there is no operator.',
    run: (call) => told(call.api.call<LinkView>('POST', '/setup-link'), linkOf),
  },
  {
    name: 'password-link',
    summary: 'Creates a link to reset a forgotten password. It is valid for a day.',
    args: ['email'],
    run: (call) => told(call.api.call<LinkView>('POST', '/password-link', { email: call.args[0] }), linkOf),
  },
]
