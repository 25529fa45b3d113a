// Alerts on the command line: alerts, rules and receivers. Without an account, those of the gateway.
import type { AlertPage, AlertRules, AlertSettings, AlertView } from '../alerts/views.ts'
import { DELIVERY_KINDS, DELIVERY_STATUSES, type DeliveryDetail, type DeliveryView } from '../jobs/views.ts'
import { at, CliError, type Command, flag, type Invocation, type Option, takes, text, told } from './command.ts'
import { accountNames } from './names.ts'
import { type Columns, card, list, listPages, PAGE_OPTIONS, table } from './table.ts'

type Read = (value: string) => number | string | boolean | number[] | Record<string, string> | undefined

const number: Read = (value) => (/^\d{1,9}(\.\d+)?$/.test(value) ? Number(value) : undefined)
const toggle: Read = (value) => (value === 'on' ? true : value === 'off' ? false : undefined)
const shares: Read = (value) => (/^\d{1,3}(,\d{1,3})*$/.test(value) ? value.split(',').map(Number) : undefined)

/** `user=5,feature=100` */
const amounts: Read = (value) => {
  const pairs = value.split(',').map((pair) => pair.split('='))
  return pairs.every((pair) => pair.length === 2 && pair.every(Boolean)) ? Object.fromEntries(pairs) : undefined
}

interface RuleOption {
  readonly option: string
  readonly value: string
  readonly help: string
  readonly read: Read
  /** The value that switches the rule off; undefined: it cannot be switched off. */
  readonly off?: null | false | readonly [] | Readonly<Record<string, never>>
}

const RULES: Readonly<Record<keyof AlertRules, RuleOption>> = {
  balanceBelow: {
    ...{ option: 'balance-below', value: 'credits', read: (value) => value, off: null },
    help: 'Fewer credits than this are available.',
  },
  balanceDays: {
    ...{ option: 'balance-days', value: 'days', read: number, off: null },
    help: 'At last week’s rate the balance is used up within so many days.',
  },
  limitShares: {
    ...{ option: 'limit-shares', value: 'list', read: shares, off: [] },
    help: 'Percentages of a spending limit, such as 50,80,100.',
  },
  failurePercent: {
    ...{ option: 'failure-percent', value: 'n', read: number, off: null },
    help: 'At least so many percent of calls fail in two hours.',
  },
  failureCalls: {
    ...{ option: 'failure-calls', value: 'n', read: number },
    help: 'Minimum number of calls for that.',
  },
  keyDays: {
    ...{ option: 'key-days', value: 'days', read: number, off: null },
    help: 'A key expires within so many days.',
  },
  labelSpend: {
    ...{ option: 'label-spend', value: 'label=credits,…', read: amounts, off: {} },
    help: 'A value of a label spends so many credits in 24 hours, such as user=5.',
  },
  jobFailed: { ...{ option: 'job-failed', value: 'on', read: toggle, off: false }, help: 'A job failed.' },
  vendorOpen: {
    ...{ option: 'vendor-open', value: 'on', read: toggle, off: false },
    help: 'The circuit breaker of a vendor is open (gateway only).',
  },
  vendorOverrun: {
    ...{ option: 'vendor-overrun', value: 'on', read: toggle, off: false },
    help: 'A vendor bills more output than its cap (gateway only).',
  },
  verification: {
    ...{ option: 'verification', value: 'on', read: toggle, off: false },
    help: 'A check of the ledger or the audit log found problems (gateway only).',
  },
  exportPaused: {
    ...{ option: 'export-paused', value: 'on', read: toggle, off: false },
    help: 'A receiver of usage rejected what was sent (gateway only).',
  },
  payments: {
    ...{ option: 'payments', value: 'on', read: toggle, off: false },
    help: 'A payment is quarantined, or payments differ from the payment provider’s list (gateway only).',
  },
}

const RULE_OPTIONS: Readonly<Record<string, Option>> = Object.fromEntries(
  Object.values(RULES).map(({ option, value, help, off }) => [
    option,
    takes(value, off === undefined ? help : `${help} "off" switches the rule off.`),
  ]),
)
const ACCOUNT: Readonly<Record<string, Option>> = {
  account: takes('account', 'Alerts of this account instead of the gateway.', { refersTo: 'account' }),
}

const placeOf = (account: string | undefined, rest: string) =>
  account === undefined ? `/${rest}` : at`/accounts/${account}/` + rest
const settingsOf = (call: Invocation, account: string | undefined) =>
  call.api.call<AlertSettings>('GET', placeOf(account, 'alert-settings'))
/** The gateway checks the values of rules. */
const put = (call: Invocation, account: string | undefined, settings: Record<keyof AlertSettings, unknown>) =>
  call.api.call<AlertSettings>('PUT', placeOf(account, 'alert-settings'), settings)

/** The given rules with their new values. */
function namedRules(call: Invocation): Partial<Record<keyof AlertRules, unknown>> {
  const changed: Partial<Record<keyof AlertRules, unknown>> = {}
  // The compiler checks that these are exactly the rules.
  for (const [name, { option, read, off }] of Object.entries(RULES) as [keyof AlertRules, RuleOption][]) {
    const value = text(call, option)
    if (value === undefined) continue
    const meant = value === 'off' && off !== undefined ? off : read(value)
    if (meant === undefined)
      throw new CliError(`--${option} cannot be "${value}". See: tollgate alerts rules --help`, 2)
    changed[name] = meant
  }
  return changed
}

function inWords({ rules, receivers }: AlertSettings): string {
  const shown = Object.entries(rules).map(([name, value]) => {
    if (value === null || value === false || (typeof value === 'object' && Object.keys(value).length === 0))
      return [name, 'off']
    if (typeof value === 'object' && !Array.isArray(value))
      return [
        name,
        Object.entries(value)
          .map((pair) => pair.join('='))
          .join(', '),
      ]
    return [name, value === true ? 'on' : Array.isArray(value) ? `${value.join(', ')} %` : value]
  })
  const told =
    receivers.length === 0 ? 'Nobody is told; alerts are in the console.' : table(receivers, RECEIVER_COLUMNS)
  return `${card(Object.fromEntries(shown))}\n\n${told}`
}

const RECEIVER_COLUMNS = { KIND: 'kind', TO: 'to' } as const
const deliveredOf = ({ deliveries }: AlertView) =>
  deliveries
    .map(({ kind, to, status, attempts, error }) => `${kind} ${to}: ${error ?? status} (${attempts})`)
    .join('; ')

export const ALERT_COMMANDS: readonly Command[] = [
  {
    name: 'alerts list',
    summary: 'Lists alerts with their deliveries, newest first.',
    args: ['[account]'],
    about: 'Without an account: those of the gateway and of all accounts.',
    options: { unread: flag('Only unread alerts.') },
    async run(call) {
      const { items } = await call.api.call<AlertPage>('GET', placeOf(call.args[0], 'alerts'))
      const shown = call.values.unread ? items.filter(({ read }) => !read) : items
      const names = await accountNames(
        call.api,
        shown.map(({ account }) => account),
      )
      const columns: Columns<AlertView> = {
        TIME: 'at',
        ACCOUNT: ({ account }) => names.get(account) ?? 'the gateway',
        RULE: 'rule',
        LEVEL: 'level',
        TITLE: 'title',
        SENT: deliveredOf,
      }
      return list(shown, columns, call.values.unread ? 'No unread alerts.' : 'No alerts yet.')
    },
  },
  {
    name: 'alerts rules',
    summary: 'Shows rules and receivers; with options, changes rules.',
    args: ['[account]'],
    options: RULE_OPTIONS,
    async run(call) {
      const [account] = call.args
      const changed = namedRules(call)
      const settings = await settingsOf(call, account)
      if (Object.keys(changed).length === 0) return told(settings, inWords)
      return told(put(call, account, { ...settings, rules: { ...settings.rules, ...changed } }), inWords)
    },
  },
  {
    name: 'alerts add',
    summary: 'Adds a receiver: webhook, Slack or mail.',
    args: ['kind', 'address'],
    about: `The kind is ${DELIVERY_KINDS.join(', ')}.`,
    options: ACCOUNT,
    async run(call) {
      const account = text(call, 'account')
      const [given, to = ''] = call.args
      const kind = DELIVERY_KINDS.find((one) => one === given)
      if (!kind) throw new CliError(`The kind is one of ${DELIVERY_KINDS.join(', ')}, not "${given}".`, 2)
      const settings = await settingsOf(call, account)
      const others = settings.receivers.filter((one) => one.kind !== kind || one.to !== to)
      return told(put(call, account, { ...settings, receivers: [...others, { kind, to }] }), inWords)
    },
  },
  {
    name: 'alerts remove',
    summary: 'Removes a receiver.',
    args: ['address'],
    options: ACCOUNT,
    async run(call) {
      const account = text(call, 'account')
      const settings = await settingsOf(call, account)
      const receivers = settings.receivers.filter(({ to }) => to !== call.args[0])
      if (receivers.length === settings.receivers.length)
        throw new CliError(
          `Nobody is told at "${call.args[0]}". See: tollgate alerts rules${account ? ` ${account}` : ''}`,
        )
      return told(put(call, account, { ...settings, receivers }), inWords)
    },
  },
  {
    name: 'alerts test',
    summary: 'Sends a test alert to all receivers, at most once a minute.',
    args: ['[account]'],
    run: (call) =>
      told(call.api.call<AlertView>('POST', placeOf(call.args[0], 'alerts/test')), ({ deliveries }) =>
        deliveries.length === 0
          ? 'Nobody is told: there are no receivers. The console shows it.'
          : `On its way to ${deliveries.map(({ kind }) => kind).join(', ')}. How it went: tollgate alerts list${call.args[0] ? ` ${call.args[0]}` : ''}`,
      ),
  },
]

// Deliveries to receivers, and their results.

function show({ history, body, ...delivery }: DeliveryDetail): string {
  const tries =
    history.length === 0
      ? 'It has not been sent yet.'
      : table(history, {
          ATTEMPT: 'number',
          TIME: 'at',
          MS: 'durationMs',
          STATUS: 'statusCode',
          ERROR: 'error',
          RESPONSE: 'response',
        })
  return `${card(delivery)}\n\n${tries}\n\n${body ?? 'What is sent was not kept.'}`
}

export const DELIVERY_COMMANDS: readonly Command[] = [
  {
    name: 'deliveries list',
    summary: 'Lists webhooks, messages and mails with their status, newest first.',
    args: ['[account]'],
    about: 'Without an account: those of the gateway and of all accounts.',
    options: {
      ...PAGE_OPTIONS,
      status: takes('status', `One of ${DELIVERY_STATUSES.join(', ')}.`, { allowed: DELIVERY_STATUSES }),
      kind: takes('kind', `One of ${DELIVERY_KINDS.join(', ')}.`, { allowed: DELIVERY_KINDS }),
    },
    run: (call) =>
      listPages<DeliveryView>(call, '/deliveries', {
        filter: { account: call.args[0], status: text(call, 'status'), kind: text(call, 'kind') },
        async columns(rows) {
          const names = await accountNames(
            call.api,
            rows.map(({ account }) => account),
          )
          return {
            DELIVERY: 'id',
            TIME: 'at',
            ACCOUNT: ({ account }) => names.get(account) ?? 'the gateway',
            EVENT: 'event',
            KIND: 'kind',
            TO: 'to',
            STATUS: 'status',
            ATTEMPTS: 'attempts',
            ANSWER: ({ statusCode, error }) => error ?? statusCode,
            NEXT: 'nextAttemptAt',
          }
        },
        empty: 'No deliveries yet. Receivers are added with: tollgate alerts add <kind> <address>',
      }),
  },
  {
    name: 'deliveries show',
    summary: 'Shows one delivery: every attempt, the receiver’s answers, and the message.',
    args: ['delivery'],
    run: (call) => told(call.api.call<DeliveryDetail>('GET', at`/deliveries/${call.args[0]}`), show),
  },
  {
    name: 'deliveries repeat',
    summary: 'Sends a delivery again now, with the same id.',
    args: ['delivery'],
    about: 'Not possible while it is being sent. Receivers can recognize the repetition by its webhook-id.',
    run: (call) =>
      told(
        call.api.call<DeliveryView>('POST', at`/deliveries/${call.args[0]}/repeat`),
        ({ id }) => `On its way. How it goes: tollgate deliveries show ${id}`,
      ),
  },
]
