import type { AuditCheck, AuditView } from '../database/audit.ts'
import { formatCredits, parseCredits } from '../kernel/credits.ts'
import { sleep } from '../kernel/timers.ts'
import type { Page } from '../kernel/view.ts'
import type {
  ClientSum,
  LedgerView,
  Movement,
  UsageDetail,
  UsageView,
  VerificationRun,
  VerificationState,
} from '../ledger/views.ts'
import { unitRow } from '../meter/kind.ts'
import { type LabelSum, labelSort } from '../reports/views.ts'
import { at, CliError, type Command, flag, type Invocation, type Option, type Told, takes, text } from './command.ts'
import { accountNames } from './names.ts'
import {
  card,
  type Filter,
  type Listing,
  list,
  listPages,
  PAGE_OPTIONS,
  query,
  TEST_OPTION,
  table,
  testOf,
} from './table.ts'

const RANGE: Readonly<Record<string, Option>> = {
  from: takes('time', 'From this day or time on, such as 2026-11-01.'),
  to: takes('time', 'Up to this day (included) or time.'),
}
const CSV: Readonly<Record<string, Option>> = {
  csv: flag('Exports all matching rows as CSV to standard output.'),
}

/** The rows of an account that match; all of them for --csv. */
async function rowsOf<Row extends object>(
  call: Invocation,
  path: string,
  chosen: Filter,
  listing: Omit<Listing<Row>, 'filter'>,
): Promise<Told | undefined> {
  const filter = { ...chosen, test: testOf(call) }
  if (!call.values.csv) return listPages<Row>(call, path, { filter, ...listing })
  await call.api.download(path + query(filter), 'text/csv', call.say)
  return undefined
}

const LOOK_EVERY_MS = 500

/** Starts a run, or waits for the current one, and shows its progress. */
async function verified(call: Invocation, full: boolean): Promise<VerificationRun> {
  for (;;) {
    const begun = await call.api.call<VerificationRun>('POST', '/ledger/verify', { full })
    let shown = ''
    for (;;) {
      const { running, last } = await call.api.call<VerificationState>('GET', '/ledger/verify')
      if (running?.id !== begun.id) {
        if (!last) throw new CliError('The verification was interrupted.')
        // The run that was in progress was not a full one: start another.
        if (full && !last.full) break
        return last
      }
      const { accounts, total } = running.progress
      const line = total > 0 ? `${accounts} of ${total} accounts, ${running.checked.transfers} transfers …\n` : ''
      if (line !== shown) call.note(line)
      shown = line
      await sleep(call.world, LOOK_EVERY_MS)
    }
  }
}

/** The words for outcomes on screen, and the API's values, which are the ledger's words. */
const OUTCOMES: Readonly<Record<string, UsageView['outcome']>> = {
  charged: 'settled',
  failed: 'released',
  expired: 'expired',
  rejected: 'rejected',
}
const outcomeWord = ({ outcome, fault }: Pick<UsageView, 'outcome' | 'fault'>) =>
  outcome === 'released' && fault === 'guardrail_blocked'
    ? 'blocked'
    : (Object.keys(OUTCOMES).find((word) => OUTCOMES[word] === outcome) ?? outcome)

/** The same for movements of credits. */
const MOVEMENTS: Readonly<Record<string, Movement>> = {
  added: 'grant',
  correction: 'correction',
  'taken-back': 'takeback',
  'paid-out': 'payout',
  'written-off': 'writeoff',
  bought: 'purchase',
  refunded: 'refund',
  charged: 'settled',
  released: 'released',
  expired: 'expired',
}

const total = (amounts: readonly string[]) =>
  formatCredits(amounts.reduce((sum, amount) => sum + (parseCredits(amount) ?? 0n), 0n))

function usageSum(rows: readonly UsageView[]): string {
  const calls = rows.reduce((sum, row) => sum + row.calls, 0)
  return `${calls} ${calls === 1 ? 'call' : 'calls'}, ${total(rows.map(({ charged }) => charged))} credits.`
}

const seconds = (ms: number) => (ms < 1_000 ? `${ms} ms` : `${(ms / 1_000).toFixed(1)} s`)

/** "3 minutes ago" */
function ago(at: string, nowMs: number): string {
  const passed = Math.max(0, nowMs - Date.parse(at)) / 1_000
  const [size, unit] =
    passed < 60
      ? ([1, 'second'] as const)
      : passed < 3_600
        ? ([60, 'minute'] as const)
        : passed < 172_800
          ? ([3_600, 'hour'] as const)
          : ([86_400, 'day'] as const)
  const count = Math.floor(passed / size)
  return `${count} ${unit}${count === 1 ? '' : 's'} ago`
}

/** An empty cell. */
const BLANK = ' '

/** The charge, line by line, with their sum. */
function arithmetic({ lines, charged }: UsageDetail): string[] {
  if (lines.length === 0) return []
  const rows = [
    ...lines.map(({ unit, quantity, rate, per, amount }) => ({
      ...{ unit: quantity === 1 ? unitRow(unit).one : unitRow(unit).many, quantity, rate, amount },
      per: per === 1 ? 'each' : `per ${per.toLocaleString('en')}`,
    })),
    { unit: 'total', quantity: BLANK, rate: BLANK, amount: charged, per: BLANK },
  ]
  const columns = { UNIT: 'unit', QUANTITY: 'quantity', CREDITS: 'rate', ' ': 'per', AMOUNT: 'amount' } as const
  return [table(rows, columns), 'The total is rounded up to a millionth of a credit.']
}

function showCall(answer: UsageDetail, account: string, nowMs: number): string {
  const { id, at: when, product, endpoint, keyName, keyId, status, durationMs, firstByteMs, message } = answer
  const began = firstByteMs === null ? '' : `, first byte after ${seconds(firstByteMs)}`
  const attempts = answer.attemptLog?.attempts.length ?? 0
  const facts: Record<string, unknown> = {
    ...{ call: id, time: `${when.slice(0, 19).replace('T', ' ')} UTC, ${ago(when, nowMs)}` },
    ...{ account, key: keyName ?? keyId, model: product, endpoint },
    outcome: `${outcomeWord(answer)}, status ${status}`,
    ...(message === null ? {} : { cause: message }),
    credits: `${answer.charged} charged, ${answer.held} reserved before the call`,
    ...(answer.cost === undefined || answer.cost === null ? {} : { cost: `${answer.cost} credits to the vendor` }),
    ...(answer.vendor ? { vendor: answer.vendor } : {}),
    ...(answer.credential ? { credential: answer.credential } : {}),
    duration: `${seconds(durationMs)}${began}${answer.stream ? ', streamed' : ''}`,
    ...(attempts > 1 ? { attempts } : {}),
    ...(answer.client === '' ? {} : { agent: answer.client }),
    ...(answer.job === null ? {} : { job: answer.job }),
    ...(answer.content ? { content: `logged; read it with: tollgate content read ${id}` } : {}),
    ...(answer.trace === undefined ? {} : { trace: answer.trace }),
  }
  return [card(facts), ...arithmetic(answer)].join('\n\n')
}

const AUDIT_FILTERS: Readonly<Record<string, Option>> = {
  actor: takes('name', 'Who did it: an e-mail address or the name of a token’s holder.'),
  action: takes('action', 'An action such as key.revoke, or only its noun: key.'),
  object: takes('id', 'What it was done to.'),
  token: takes('name', 'By which token.'),
  ...RANGE,
}

export const MONEY_COMMANDS: readonly Command[] = [
  {
    name: 'usage list',
    summary: 'Lists the calls of an account, newest first.',
    args: ['account'],
    options: {
      ...PAGE_OPTIONS,
      ...RANGE,
      from: takes(
        'time',
        'From this day or time on, such as 2026-11-01. With filters, a range has at most 92 days; without --from it has these.',
      ),
      product: takes('uid', 'Only this model or endpoint.'),
      key: takes('key', 'Only calls with this key.', { refersTo: 'key' }),
      outcome: takes('outcome', `One of ${Object.keys(OUTCOMES).join(', ')}.`, { allowed: Object.keys(OUTCOMES) }),
      client: takes('name', 'Only calls of this agent: see usage clients.'),
      status: takes('status', 'Only this HTTP status, such as 429, or 5xx.'),
      endpoint: takes('name', 'Only this endpoint.'),
      labels: takes('a=b,…', 'Only calls with these labels, such as feature=chat,user=alice.'),
      vendor: takes('name', 'Only calls that this vendor answered, or was tried last for.'),
      'min-ms': takes('milliseconds', 'Only calls that took at least as long.'),
      search: takes('text', 'Only calls with this in their error message, or this request id.'),
      sort: takes('order', 'Newest, slowest or most expensive first: time, duration or charged.', {
        allowed: ['time', 'duration', 'charged'],
      }),
      ...TEST_OPTION,
      ...CSV,
    },
    run(call) {
      const filter = {
        ...{ status: text(call, 'status'), endpoint: text(call, 'endpoint'), vendor: text(call, 'vendor') },
        ...{ minMs: text(call, 'min-ms'), q: text(call, 'search'), sort: text(call, 'sort') },
        ...{ from: text(call, 'from'), to: text(call, 'to'), product: text(call, 'product'), key: text(call, 'key') },
        ...{
          outcome: OUTCOMES[text(call, 'outcome') ?? ''],
          client: text(call, 'client'),
          labels: text(call, 'labels'),
        },
      }
      return rowsOf<UsageView>(call, at`/accounts/${call.args[0]}/usage`, filter, {
        columns: {
          TIME: 'at',
          MODEL: 'product',
          KEY: 'keyName',
          STATUS: 'status',
          OUTCOME: outcomeWord,
          CREDITS: 'charged',
          MS: 'durationMs',
          CALL: 'id',
        },
        empty: 'No calls match. An account’s first call: tollgate call chat "Hi" --api-key <key>',
        sum: usageSum,
      })
    },
  },
  {
    name: 'usage labels',
    summary: 'Spending by end user, session or value of a tag, highest first.',
    args: ['account', 'label'],
    about: 'The label is user, session or the name of a tag. Without --from: the last 30 days.',
    options: {
      ...PAGE_OPTIONS,
      ...RANGE,
      labels: takes('a=b,…', 'Only calls with these labels too.'),
      sort: takes('order', 'Highest spending, most calls or newest first: charged, calls or last.', {
        allowed: labelSort.options,
      }),
      ...TEST_OPTION,
      ...CSV,
    },
    run(call) {
      const filter = {
        ...{ label: call.args[1], labels: text(call, 'labels'), sort: text(call, 'sort') },
        ...{ from: text(call, 'from'), to: text(call, 'to') },
      }
      return rowsOf<LabelSum>(call, at`/accounts/${call.args[0]}/usage/labels`, filter, {
        columns: {
          VALUE: 'value',
          CALLS: 'calls',
          INPUT: 'inputTokens',
          OUTPUT: 'outputTokens',
          CREDITS: 'charged',
          MODELS: ({ products }) => products.join(' '),
          FIRST: 'firstAt',
          LAST: 'lastAt',
        },
        empty: 'No calls carry this label in this time.',
        sum: (rows) => `${rows.length} values, ${total(rows.map(({ charged }) => charged))} credits.`,
      })
    },
  },
  {
    name: 'usage clients',
    summary: 'Spending by agent session or name, highest first.',
    args: ['account'],
    options: { ...RANGE, ...TEST_OPTION },
    async run(call) {
      const filter = { from: text(call, 'from'), to: text(call, 'to'), test: testOf(call) }
      const path = at`/accounts/${call.args[0]}/usage-by-client` + query(filter)
      const { items } = await call.api.call<Page<ClientSum>>('GET', path)
      const columns = {
        AGENT: 'client',
        CALLS: 'requests',
        CREDITS: 'charged',
        FIRST: 'firstAt',
        LAST: 'lastAt',
      } as const
      return list(items, columns, 'No calls of agents yet. Set one up with: tollgate agent-setup <program>')
    },
  },
  {
    name: 'usage show',
    summary: 'Shows one call and how its charge was computed.',
    args: ['call'],
    async run(call) {
      const answer = await call.api.call<UsageDetail>('GET', at`/usage/${call.args[0]}`)
      const names = await accountNames(call.api, [answer.account])
      const account = names.get(answer.account) ?? answer.account
      return { answer, words: showCall(answer, account, call.world.nowMs()) }
    },
  },
  {
    name: 'ledger show',
    summary: 'All credit movements of an account, newest first, with the balance after each.',
    args: ['account'],
    options: {
      ...PAGE_OPTIONS,
      ...RANGE,
      kind: takes('kind', `One of ${Object.keys(MOVEMENTS).join(', ')}.`, { allowed: Object.keys(MOVEMENTS) }),
      zero: flag('Rows that moved no credits instead: released holds, calls without a charge.'),
      ...TEST_OPTION,
      ...CSV,
    },
    run(call) {
      const filter = {
        ...{ from: text(call, 'from'), to: text(call, 'to'), kind: MOVEMENTS[text(call, 'kind') ?? ''] },
        zero: call.values.zero === true ? 'true' : undefined,
      }
      return rowsOf<LedgerView>(call, at`/accounts/${call.args[0]}/ledger`, filter, {
        columns: {
          TIME: 'at',
          KIND: ({ kind }) => Object.keys(MOVEMENTS).find((word) => MOVEMENTS[word] === kind) ?? kind,
          CREDITS: 'moved',
          LOSS: 'loss',
          BALANCE: 'balanceAfter',
          MODEL: 'product',
          NOTE: 'note',
          ID: 'id',
        },
        empty: 'No movements match. Add credits with: tollgate credits add <account> 100',
      })
    },
  },
  {
    name: 'ledger verify',
    summary: 'Verifies the ledger: balances, holds, limits, usage, jobs, grants, and every charge from its rates.',
    about:
      'Continues where the last run ended, and shows its progress. Exits with 1 when something does not add up. May run while the gateway is under load.',
    options: { full: flag('Reads everything from the beginning.') },
    async run(call) {
      const answer = await verified(call, call.values.full === true)
      const counts = Object.entries(answer.checked).map(([what, count]) => `${count} ${what}`)
      const found = answer.ok ? ['Everything adds up.'] : answer.problems.map((problem) => `  ${problem}`)
      if (answer.failure !== null) found.push(`It could not come to an end: ${answer.failure}`)
      const took = ((answer.durationMs ?? 0) / 1000).toFixed(1)
      const checked = `Checked ${counts.join(', ')}. Recomputed the price and cost of ${answer.checked.charges} calls. Took ${took} s.`
      return { answer, words: [checked, ...found].join('\n'), failed: !answer.ok }
    },
  },
  {
    name: 'audit list',
    summary: 'Lists changes, newest first: who, from where, by which token, and what it was before.',
    options: { ...PAGE_OPTIONS, ...AUDIT_FILTERS },
    run: (call) =>
      listPages<AuditView>(call, '/audit', {
        filter: Object.fromEntries(Object.keys(AUDIT_FILTERS).map((name) => [name, text(call, name)])),
        columns: { TIME: 'at', CHANGE: 'sentence' },
        empty: 'No such changes.',
      }),
  },
  {
    name: 'audit verify',
    summary: 'Verifies the hash chain of audit rows, which shows changed or removed rows.',
    about: 'Exits with 1 if the chain is broken.',
    async run(call) {
      const answer = await call.api.call<AuditCheck>('GET', '/audit/verify')
      const words = answer.ok ? `The chain of ${answer.checked} rows is whole.` : answer.problems.join('\n')
      return { answer, words, failed: !answer.ok }
    },
  },
]
