// What the values of a label came to: the dearest end users, and what each session of an agent cost.
import type { KeyboardEvent } from 'react'
import { api, type CallFilter } from '../api.ts'
import { runPath } from '../extensions/agents/run.tsx'
import { formatCompact, formatWhole, plural } from '../format.ts'
import { callsPath, labelFilter } from '../period.ts'
import { useList, useQuery } from '../query.ts'
import { Link, setQuery, useLocation } from '../router.tsx'
import { useMay } from '../session.tsx'
import { SelectField, TextField } from '../ui/field.tsx'
import { Amount, Name, When } from '../ui/page.tsx'
import { Empty } from '../ui/state.tsx'
import { TableCard, type TableColumn } from '../ui/table.tsx'
import type { LabelSum } from '../wire.ts'
import { CsvButton, csvName } from './csv.tsx'
import { useTagNames } from './sums.tsx'

const BUILT_IN = [
  ['user', 'End user'],
  ['session', 'Session'],
] as const
const LABEL_NAME = /^[A-Za-z][\w.:/-]{0,63}$/

/** Undefined account: of all accounts, each value apart. */
export function LabelSumsCard({ account, filter }: { account: string | undefined; filter: CallFilter }) {
  const { query } = useLocation()
  const seesCost = useMay()('vendors:read')
  const label = query.get('label') ?? 'user'
  const sort = query.get('values') ?? 'charged'
  const asked = { ...filter, label, sort }
  const key = `label-sums/${account}/${JSON.stringify(asked)}`
  const list = useList(key, (cursor, signal) => api.labelSums(account, { ...asked, cursor, limit: 50 }, signal))
  const totals = useQuery(`${key}/totals`, (signal) => api.labelSums(account, { ...asked, limit: 1 }, signal))
  /** The calls of one value lie between its first and its last. */
  const to = (row: LabelSum) => {
    const { account: whose, labels } = filter
    const those = [labelFilter(label, row.value), ...(labels ? [labels] : [])].join(',')
    const range = { from: row.firstAt, to: new Date(Date.parse(row.lastAt) + 1).toISOString() }
    const rest = {
      ...Object.fromEntries(query),
      view: undefined,
      label: undefined,
      values: undefined,
      period: undefined,
    }
    return callsPath(account, { ...rest, account: row.account ?? whose, labels: those, ...range })
  }
  return (
    <>
      <div className="filters">
        <LabelChoice account={account} label={label} />
        <SelectField
          label="Order"
          value={sort}
          onText={(text) => setQuery({ values: text })}
          options={[
            ['charged', 'Most credits'],
            ['calls', 'Most calls'],
            ['last', 'Newest'],
          ]}
        />
        <CsvButton fetchIt={() => api.labelSumsCsv(account, asked)} name={() => csvName(label, account, filter)} />
        {totals.data ? (
          <p className="filters-note">
            {plural(totals.data.totals.values, 'value')}, {plural(totals.data.totals.calls, 'call')},{' '}
            <Amount value={totals.data.totals.charged} /> credits
          </p>
        ) : null}
      </div>
      <TableCard
        label={`Spent by ${label}`}
        list={list}
        rowKey={(row) => `${row.account ?? ''} ${row.value}`}
        to={to}
        empty={
          <Empty icon="usage" title="No calls carry this label">
            <p>
              Calls carry it when they send it: <a href="/docs/guides/labels-and-budgets#labels">Labels</a> has how.
            </p>
          </Empty>
        }
        columns={labelColumns(label, to, account).filter(
          ({ head }) => (head !== 'Account' || account === undefined) && (head !== 'Cost' || seesCost),
        )}
      />
    </>
  )
}

/** What is typed counts when its field is left. */
export const leaveOnEnter = (event: KeyboardEvent<HTMLInputElement>) => {
  if (event.key === 'Enter') event.currentTarget.blur()
}

/** Tags of all accounts together are not listed: their name is typed. */
function LabelChoice({ account, label }: { account: string | undefined; label: string }) {
  const names = useTagNames(account)
  const known = BUILT_IN.some(([name]) => name === label) || names.includes(label)
  if (account === undefined)
    return (
      <TextField
        key={label}
        label="Label"
        defaultValue={label}
        onKeyDown={leaveOnEnter}
        onBlur={({ target }) => {
          if (LABEL_NAME.test(target.value.trim())) setQuery({ label: target.value.trim() })
        }}
      />
    )
  return (
    <SelectField
      label="Label"
      value={label}
      onText={(text) => setQuery({ label: text })}
      options={[...BUILT_IN, ...(known ? [] : [label]), ...names]}
    />
  )
}

function labelColumns(
  label: string,
  to: (row: LabelSum) => string,
  account: string | undefined,
): TableColumn<LabelSum>[] {
  const runOf = ({ value, account: whose = account }: LabelSum) =>
    whose === undefined ? null : <Link to={runPath(whose, value)}>Run</Link>
  return [
    {
      head: BUILT_IN.find(([name]) => name === label)?.[1] ?? label,
      main: true,
      cell: (row) => (
        <>
          <Link to={to(row)} className="cell-link">
            <Name text={row.value} />
          </Link>
          {row.clients.length > 0 ? <span className="cell-sub">{row.clients.join(', ')}</span> : null}
        </>
      ),
    },
    ...(label === 'session' ? [{ head: 'Run', cell: runOf }] : []),
    { head: 'Account', cell: (row) => row.accountName },
    { head: 'Calls', right: true, cell: (row) => formatWhole(row.calls) },
    { head: 'Failed', right: true, wideOnly: true, cell: (row) => formatWhole(row.errors) },
    {
      head: 'Tokens in / out',
      right: true,
      cell: (row) => `${formatCompact(row.inputTokens)} / ${formatCompact(row.outputTokens)}`,
    },
    { head: 'Models', wideOnly: true, cell: (row) => <Name text={row.products.join(', ')} /> },
    { head: 'First call', wideOnly: true, tight: true, cell: (row) => <When at={row.firstAt} /> },
    { head: 'Last call', tight: true, cell: (row) => <When at={row.lastAt} /> },
    {
      head: 'Cost',
      right: true,
      wideOnly: true,
      cell: (row) => (row.cost ? <Amount value={row.cost} decimals={4} /> : '–'),
    },
    { head: 'Credits', right: true, cell: (row) => <Amount value={row.charged} decimals={4} /> },
  ]
}
