import type { AuditCheck, AuditView } from '../database/audit.ts'
import { sleep } from '../kernel/timers.ts'
import type { Page } from '../kernel/view.ts'
import type {
  ClientSum,
  LedgerView,
  UsageDetail,
  UsageView,
  VerificationRun,
  VerificationState,
} from '../ledger/views.ts'
import { at, CliError, type Command, type Invocation, type Option, type Told, text } from './command.ts'
import { type Columns, card, listPages, PAGE_OPTIONS, query, TEST_OPTION, table, testOf } from './table.ts'

const RANGE: Readonly<Record<string, Option>> = {
  from: { type: 'string', value: 'time', help: 'From this day or time on, such as 2026-11-01.' },
  to: { type: 'string', value: 'time', help: 'Up to this day (included) or time.' },
}
const CSV: Readonly<Record<string, Option>> = {
  csv: { type: 'boolean', help: 'Exports all matching rows as CSV to standard output.' },
}

/** The rows of an account, by the options of this name; all that match for --csv. */
async function rowsOf<Row extends object>(
  call: Invocation,
  path: string,
  options: readonly string[],
  columns: Columns<Row>,
): Promise<Told | undefined> {
  const chosen = options.map((name) => [name, call.values[name] === true ? 'true' : text(call, name)])
  const filter = { ...Object.fromEntries(chosen), test: testOf(call) }
  if (!call.values.csv) return listPages<Row>(call, path, { filter, columns })
  await call.api.download(path + query(filter), 'text/csv', call.say)
  return undefined
}

const LOOK_EVERY_MS = 500

/** Begins a run, or waits for the one that is under way, and shows how far it is. */
async function verified(call: Invocation, full: boolean): Promise<VerificationRun> {
  for (;;) {
    const begun = await call.api.call<VerificationRun>('POST', '/ledger/verify', { full })
    let shown = ''
    for (;;) {
      const { running, last } = await call.api.call<VerificationState>('GET', '/ledger/verify')
      if (running?.id !== begun.id) {
        if (!last) throw new CliError('The verification was interrupted.')
        // The one that was under way did not read everything.
        if (full && !last.full) break
        return last
      }
      const { accounts, of } = running.progress
      const line = of > 0 ? `${accounts} of ${of} accounts, ${running.checked.transfers} transfers …\n` : ''
      if (line !== shown) call.note(line)
      shown = line
      await sleep(call.world, LOOK_EVERY_MS)
    }
  }
}

export const MONEY_COMMANDS: readonly Command[] = [
  {
    name: 'usage list',
    summary: 'Lists the calls of an account, newest first.',
    args: ['account'],
    options: {
      ...PAGE_OPTIONS,
      ...RANGE,
      product: { type: 'string', value: 'uid', help: 'Only this model or endpoint.' },
      key: { type: 'string', value: 'id', help: 'Only calls with this key.' },
      outcome: { type: 'string', value: 'word', help: 'settled, released or expired.' },
      client: { type: 'string', value: 'name', help: 'Only calls of this agent: see usage clients.' },
      ...TEST_OPTION,
      ...CSV,
    },
    run: (call) =>
      rowsOf<UsageView>(
        call,
        at`/accounts/${call.args[0]}/usage`,
        ['from', 'to', 'product', 'key', 'outcome', 'client'],
        {
          REQUEST: 'id',
          AT: 'at',
          PRODUCT: 'product',
          KEY: 'keyName',
          STATUS: 'status',
          OUTCOME: 'outcome',
          CHARGED: 'charged',
          MS: 'durationMs',
        },
      ),
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
        CLIENT: 'client',
        CALLS: 'requests',
        CHARGED: 'charged',
        FIRST: 'firstAt',
        LAST: 'lastAt',
      } as const
      return { answer: items, words: table(items, columns) }
    },
  },
  {
    name: 'usage show',
    summary: 'Shows one call and how its charge was computed.',
    args: ['request'],
    async run(call) {
      const answer = await call.api.call<UsageDetail>('GET', at`/usage/${call.args[0]}`)
      const { lines, units: _, ...rest } = answer
      const columns = { UNIT: 'unit', QUANTITY: 'quantity', RATE: 'rate', PER: 'per', AMOUNT: 'amount' } as const
      const sum = 'The charge is the sum of the amounts, rounded up to a millionth of a credit.'
      return { answer, words: [card(rest), ...(lines.length > 0 ? [table(lines, columns), sum] : [])].join('\n\n') }
    },
  },
  {
    name: 'ledger show',
    summary: 'All credit movements of an account, newest first, with the balance after each.',
    args: ['account'],
    options: {
      ...PAGE_OPTIONS,
      ...RANGE,
      kind: { type: 'string', value: 'word', help: 'grant, takeback, settled, released or expired.' },
      zero: { type: 'boolean', help: 'Rows that moved no credits instead: released holds, calls without a charge.' },
      ...TEST_OPTION,
      ...CSV,
    },
    run: (call) =>
      rowsOf<LedgerView>(call, at`/accounts/${call.args[0]}/ledger`, ['from', 'to', 'kind', 'zero'], {
        AT: 'at',
        KIND: 'kind',
        MOVED: 'moved',
        LOSS: 'loss',
        BALANCE: 'balanceAfter',
        PRODUCT: 'product',
        NOTE: 'note',
        ID: 'id',
      }),
  },
  {
    name: 'ledger verify',
    summary: 'Verifies the ledger: balances, holds, limits, usage, jobs, grants, and every charge from its rates.',
    about:
      'Goes on from where the last run came to, and says how far it is. Exits with 1 when something does not add up. May run while the gateway is under load.',
    options: { full: { type: 'boolean', help: 'Reads everything from the beginning.' } },
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
    summary: 'Lists changes with who made them and from where, newest first.',
    options: PAGE_OPTIONS,
    run: (call) =>
      listPages<AuditView>(call, '/audit', {
        columns: { AT: 'at', BY: 'actor', ACTION: 'action', OBJECT: 'object', FROM: 'ip' },
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
