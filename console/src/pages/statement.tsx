import { summaryLines, usageLines } from '../../../src/reports/statement-lines.ts'
import { api, type LedgerFilter } from '../api.ts'
import { formatUtcDay, formatWhole, monthName } from '../format.ts'
import { type List, useList, useQuery } from '../query.ts'
import { Link, setQuery, useLocation } from '../router.tsx'
import { SelectField } from '../ui/field.tsx'
import { Amount, Badge, Balance, Card, Name, Page, ShortId, type Tone, When } from '../ui/page.tsx'
import { Empty, Loaded, Skeleton } from '../ui/state.tsx'
import { Table, TableCard } from '../ui/table.tsx'
import type { LedgerRow, MonthlyStatement } from '../wire.ts'
import { dayStart } from '../zone.ts'
import { CsvButton } from './csv.tsx'
import { MonthField, monthsSince } from './month-field.tsx'
import { RangeFields } from './range-fields.tsx'
import { useTagNames } from './sums.tsx'

export function StatementPage({ account }: { account: string }) {
  return (
    <Page title="Statement" lead="All movements of credits in a month (UTC), exact to the last decimal.">
      <StatementPanel account={account} />
    </Page>
  )
}

export function MovementsPage({ account }: { account: string }) {
  const money = useQuery(`account/${account}`, (signal) => api.account(account, signal))
  return (
    <Page title="All movements" lead="All credit movements, newest first, each with the balance after it.">
      <Loaded query={money} skeleton={<Skeleton lines={1} like="tall" />}>
        {(data) => <Balance of={data} />}
      </Loaded>
      <LedgerPanel account={account} />
    </Page>
  )
}

export function StatementPanel({ account }: { account: string }) {
  const { query } = useLocation()
  const about = useQuery(`account/${account}`, (signal) => api.account(account, signal))
  const months = monthsSince(about.data?.createdAt)
  const month = query.get('month') ?? months[0] ?? ''
  const label = query.get('label') ?? undefined
  const names = useTagNames(account)
  const statement = useQuery(month ? `statement/${account}/${month}/${label}` : undefined, (signal) =>
    api.statement(account, month, label, signal),
  )
  const name = `statement-${about.data?.name ?? account}-${month}`
  return (
    <>
      <div className="filters">
        <MonthField months={months} month={month} />
        <SelectField
          label="Usage by"
          value={label ?? ''}
          onText={(text) => setQuery({ label: text })}
          options={[
            ['', 'Model and key'],
            ['user', 'End user'],
            ['session', 'Session'],
            ...names,
            ...(label && !['user', 'session', ...names].includes(label) ? [label] : []),
          ]}
        />
        <CsvButton
          label="PDF"
          fetchIt={() => api.statementFile(account, month, label, 'application/pdf')}
          name={`${name}.pdf`}
        />
        <CsvButton fetchIt={() => api.statementFile(account, month, label, 'text/csv')} name={`${name}.csv`} />
      </div>
      <Loaded query={statement} skeleton={<Skeleton lines={4} like="tall" />}>
        {(data) => <MonthlyStatementView statement={data} />}
      </Loaded>
    </>
  )
}

function MonthlyStatementView({ statement }: { statement: MonthlyStatement }) {
  const { worth, final, movements, label } = statement
  const used = usageLines(statement)
  return (
    <>
      <Card
        flush
        title={monthName(statement.month)}
        lead={
          [
            final ? '' : 'The month is not over: this statement is preliminary.',
            worth ? `One credit is worth ${worth.rate} ${worth.currency}.` : '',
          ]
            .filter(Boolean)
            .join(' ') || undefined
        }
      >
        <Table
          label="Summary"
          rows={summaryLines(statement)}
          rowKey={([line]) => line}
          columns={[
            { head: 'Line', main: true, cell: ([line]) => (/balance$/.test(line) ? <b>{line}</b> : line) },
            { head: 'Credits', right: true, cell: ([, amount]) => <Amount value={amount} exact worth={worth} /> },
          ]}
        />
      </Card>
      <Card flush title="Usage" lead={label ? `By ${label.name}.` : 'By model or endpoint and key.'}>
        {used.length === 0 ? (
          <Empty icon="usage" title="No call was charged in this month" />
        ) : (
          <Table
            label={label ? `Usage by ${label.name}` : 'Usage by model and key'}
            rows={used.map((line, place) => ({ ...line, place }))}
            rowKey={(row) => String(row.place)}
            columns={[
              { head: label?.name ?? 'Model or endpoint', main: true, cell: (row) => row.what },
              label === undefined && { head: 'Key', cell: (row) => row.key },
              { head: 'Calls', right: true, cell: (row) => (row.calls === null ? '–' : formatWhole(row.calls)) },
              { head: 'Credits', right: true, cell: (row) => <Amount value={row.charged} exact worth={worth} /> },
            ]}
          />
        )}
      </Card>
      {movements.length === 0 ? null : (
        <Card flush title="Top-ups and corrections">
          <Table
            label="Top-ups and corrections"
            rows={movements}
            rowKey={(row) => `${row.at} ${row.kind} ${row.moved}`}
            columns={[
              {
                head: 'Kind',
                main: true,
                cell: (row) => <Badge tone={KINDS[row.kind].tone}>{KINDS[row.kind].label}</Badge>,
              },
              { head: 'Date (UTC)', tight: true, cell: (row) => formatUtcDay(row.at) },
              { head: 'Note', cell: (row) => <Name text={row.note ?? ''} /> },
              { head: 'Credits', right: true, cell: (row) => <Amount value={row.moved} exact sign worth={worth} /> },
            ]}
          />
        </Card>
      )}
    </>
  )
}

const KINDS: Record<LedgerRow['kind'], { label: string; tone: Tone }> = {
  grant: { label: 'Credits added', tone: 'good' },
  correction: { label: 'Correction', tone: 'good' },
  takeback: { label: 'Credits removed', tone: 'warn' },
  payout: { label: 'Paid out', tone: 'warn' },
  writeoff: { label: 'Written off', tone: 'warn' },
  purchase: { label: 'Purchase', tone: 'good' },
  refund: { label: 'Refund', tone: 'warn' },
  plan: { label: 'Plan credits', tone: 'good' },
  code: { label: 'Code redeemed', tone: 'good' },
  expiry: { label: 'Credits expired', tone: 'warn' },
  settled: { label: 'Charge', tone: 'calm' },
  released: { label: 'Hold released', tone: 'calm' },
  expired: { label: 'Hold expired', tone: 'warn' },
}

const ZERO = 'zero'
/** What a reader may choose; holds never move anything, and are among those that moved nothing. */
const CHOICES = [
  ['', 'All movements'],
  ...(
    [
      'settled',
      'purchase',
      'refund',
      'plan',
      'code',
      'grant',
      'correction',
      'takeback',
      'payout',
      'writeoff',
      'expiry',
    ] as const
  ).map((kind) => [kind, KINDS[kind].label] as const),
  [ZERO, 'Moved nothing'],
] as const
const FILTERS = ['from', 'to', 'kind'] as const

function LedgerPanel({ account }: { account: string }) {
  const { query } = useLocation()
  const [from, to, kind] = FILTERS.map((name) => query.get(name) ?? undefined)
  const filter: LedgerFilter = {
    from: dayStart(from, 0),
    to: dayStart(to, 1),
    ...(kind === ZERO ? { zero: 'true' } : { kind }),
  }
  const list = useList(`ledger/${account}/${JSON.stringify(filter)}`, (cursor, signal) =>
    api.ledger(account, { ...filter, cursor, limit: 50 }, signal),
  )
  const filtered = Boolean(from || to || kind)
  return (
    <>
      <div className="filters">
        <RangeFields from={from} to={to} />
        <SelectField
          label="Transactions"
          value={kind ?? ''}
          onText={(text) => setQuery({ kind: text })}
          options={CHOICES}
        />
        <CsvButton fetchIt={() => api.ledgerCsv(account, filter)} name={`movements-${account}.csv`} />
      </div>
      <LedgerTable account={account} list={list} filtered={filtered} />
    </>
  )
}

function LedgerTable({ account, list, filtered }: { account: string; list: List<LedgerRow>; filtered: boolean }) {
  return (
    <TableCard
      label="All movements"
      list={list}
      rowKey={(row) => row.id}
      empty={
        <Empty icon="statement" title={filtered ? 'No transactions match' : 'No transactions yet'}>
          <p>
            {filtered
              ? 'Try a longer period or all kinds.'
              : 'Credits that are added and charges for calls appear here.'}
          </p>
        </Empty>
      }
      columns={[
        {
          head: 'Transaction',
          main: true,
          cell: (row) => (
            <>
              <Badge tone={KINDS[row.kind]?.tone ?? 'calm'}>{KINDS[row.kind]?.label ?? row.kind}</Badge>
              {row.note || row.product ? (
                <span className="cell-sub">
                  <Name text={row.note || row.product || ''} />
                </span>
              ) : null}
            </>
          ),
        },
        { head: 'Time', cell: (row) => <When at={row.at} />, tight: true },
        {
          head: 'Reference',
          cell: (row) =>
            row.requestId ? (
              <Link to={`/a/${encodeURIComponent(account)}/usage/${encodeURIComponent(row.requestId)}`}>
                <ShortId id={row.requestId} />
              </Link>
            ) : (
              <span className="muted">{row.actor ?? '–'}</span>
            ),
        },
        { head: 'Amount', right: true, cell: (row) => <Amount value={row.moved} exact sign /> },
        {
          head: 'Balance',
          right: true,
          cell: (row) => (row.balanceAfter === null ? '–' : <Amount value={row.balanceAfter} exact />),
        },
      ]}
    />
  )
}
