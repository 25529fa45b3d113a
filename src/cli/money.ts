import type { AuditCheck, AuditView } from '../database/audit-view.ts'
import type { LedgerView, UsageDetail, UsageView, Verification } from '../ledger/views.ts'
import type { Command, Invocation, Option } from './command.ts'
import { text } from './command.ts'
import { listPages, PAGE_OPTIONS, query } from './pages.ts'
import { card, table } from './table.ts'

const RANGE: Readonly<Record<string, Option>> = {
  from: { type: 'string', value: 'time', help: 'From this day or time on, such as 2026-11-01.' },
  to: { type: 'string', value: 'time', help: 'Up to this day (included) or time.' },
}
const CSV: Readonly<Record<string, Option>> = {
  csv: { type: 'boolean', help: 'Everything that matches, as CSV on standard output.' },
}

const of = (call: Invocation, what: string) => `/accounts/${encodeURIComponent(call.args[0]!)}/${what}`

export const MONEY_COMMANDS: readonly Command[] = [
  {
    name: 'usage list',
    summary: 'What an account used, call by call, newest first.',
    args: ['account'],
    options: {
      ...PAGE_OPTIONS,
      ...RANGE,
      product: { type: 'string', value: 'uid', help: 'Only this model or endpoint.' },
      key: { type: 'string', value: 'id', help: 'Only calls with this key.' },
      outcome: { type: 'string', value: 'word', help: 'settled, released or expired.' },
      ...CSV,
    },
    async run(call) {
      const names = ['from', 'to', 'product', 'key', 'outcome']
      const filter = Object.fromEntries(names.map((name) => [name, text(call, name)]))
      if (call.values.csv)
        return call.api.download(of(call, 'usage') + query(filter), 'text/csv', (piece) => call.say(piece))
      const rows = await listPages<UsageView>(call, of(call, 'usage'), filter)
      if (call.json) return call.say(JSON.stringify(rows))
      call.say(
        table(
          ['REQUEST', 'AT', 'PRODUCT', 'KEY', 'STATUS', 'OUTCOME', 'CHARGED', 'MS'],
          rows.map((row) => [
            row.id,
            row.at,
            row.product,
            row.keyName,
            row.status,
            row.outcome,
            row.charged,
            row.durationMs,
          ]),
        ),
      )
    },
  },
  {
    name: 'usage show',
    summary: 'One call, and how its charge was computed.',
    args: ['request'],
    async run(call) {
      const detail = await call.api.call<UsageDetail>('GET', `/usage/${encodeURIComponent(call.args[0]!)}`)
      if (call.json) return call.say(JSON.stringify(detail))
      const { lines, units: _, ...rest } = detail
      call.say(card(rest))
      if (lines.length > 0)
        call.say(
          `\n${table(
            ['UNIT', 'QUANTITY', 'RATE', 'PER', 'AMOUNT'],
            lines.map((line) => [line.unit, line.quantity, line.rate, line.per, line.amount]),
          )}\n\nThe charge is the sum of the amounts, rounded up to a millionth of a credit.`,
        )
    },
  },
  {
    name: 'ledger show',
    summary: 'What moved on an account, newest first.',
    args: ['account'],
    options: {
      ...PAGE_OPTIONS,
      ...RANGE,
      kind: { type: 'string', value: 'word', help: 'grant, takeback, settled, released or expired.' },
      ...CSV,
    },
    async run(call) {
      const filter = Object.fromEntries(['from', 'to', 'kind'].map((name) => [name, text(call, name)]))
      if (call.values.csv)
        return call.api.download(of(call, 'ledger') + query(filter), 'text/csv', (piece) => call.say(piece))
      const rows = await listPages<LedgerView>(call, of(call, 'ledger'), filter)
      if (call.json) return call.say(JSON.stringify(rows))
      call.say(
        table(
          ['AT', 'KIND', 'AMOUNT', 'LOSS', 'BALANCE', 'PRODUCT', 'NOTE', 'ID'],
          rows.map((row) => [row.at, row.kind, row.amount, row.loss, row.balanceAfter, row.product, row.note, row.id]),
        ),
      )
    },
  },
  {
    name: 'ledger verify',
    summary: 'Replays the whole ledger: balances, holds, entries, usage, and every charge from its rates.',
    about: 'Exits with 1 when something does not add up. May run while the gateway is under load.',
    async run(call) {
      const result = await call.api.call<Verification>('GET', '/ledger/verify')
      if (call.json) call.say(JSON.stringify(result))
      else {
        const counts = Object.entries(result.checked).map(([what, count]) => `${count} ${what}`)
        call.say(`Checked ${counts.join(', ')}.`)
        call.say(result.ok ? 'Everything adds up.' : result.problems.map((problem) => `  ${problem}`).join('\n'))
      }
      return result.ok ? 0 : 1
    },
  },
  {
    name: 'audit list',
    summary: 'What was changed, by whom and from where, newest first.',
    options: PAGE_OPTIONS,
    async run(call) {
      const rows = await listPages<AuditView>(call, '/audit')
      if (call.json) return call.say(JSON.stringify(rows))
      call.say(
        table(
          ['AT', 'BY', 'ACTION', 'OBJECT', 'FROM'],
          rows.map((row) => [row.at, row.actor, row.action, row.object, row.ip]),
        ),
      )
    },
  },
  {
    name: 'audit verify',
    summary: 'Walks the chain of audit rows: a changed or removed row shows.',
    about: 'Exits with 1 when the chain is broken.',
    async run(call) {
      const result = await call.api.call<AuditCheck>('GET', '/audit/verify')
      if (call.json) call.say(JSON.stringify(result))
      else call.say(result.ok ? `The chain of ${result.checked} rows is whole.` : result.problems.join('\n'))
      return result.ok ? 0 : 1
    },
  },
]
