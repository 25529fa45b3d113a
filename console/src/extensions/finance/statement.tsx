import { summaryLines, usageLines } from '../../../../src/extensions/finance/statements/statement-lines.ts'
import { api } from '../../api.ts'
import { formatUtcDay, formatWhole, monthName } from '../../format.ts'
import { CsvButton } from '../../pages/csv.tsx'
import { MonthField, monthsSince } from '../../pages/month-field.tsx'
import { KINDS } from '../../pages/movements.tsx'
import { useTagNames } from '../../pages/sums.tsx'
import { useQuery } from '../../query.ts'
import { setQuery, useLocation } from '../../router.tsx'
import { SelectField } from '../../ui/field.tsx'
import { Amount, Badge, Card, Name, Page } from '../../ui/page.tsx'
import { Empty, Loaded, Skeleton } from '../../ui/state.tsx'
import { Table } from '../../ui/table.tsx'
import type { MonthlyStatement } from '../../wire.ts'

export function StatementPage({ account }: { account: string }) {
  return (
    <Page title="Statement" lead="All movements of credits in a month (UTC), exact to the last decimal.">
      <StatementPanel account={account} />
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
