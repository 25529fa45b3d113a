// For finance: margins by model, customer, vendor and month, and the statements of all customers.
import { api, type MarginFilter } from '../../api.ts'
import { formatCredits, parseCredits } from '../../credits.ts'
import { formatWhole, monthName, plural } from '../../format.ts'
import { CsvButton } from '../../pages/csv.tsx'
import { leaveOnEnter } from '../../pages/label-sums.tsx'
import { MonthField, monthsSince } from '../../pages/month-field.tsx'
import { useList, useQuery } from '../../query.ts'
import { Link, setQuery, useLocation } from '../../router.tsx'
import { Button } from '../../ui/button.tsx'
import { Segments, TextField } from '../../ui/field.tsx'
import { Amount, Page, Stat, Stats } from '../../ui/page.tsx'
import { Empty, Loaded, Skeleton } from '../../ui/state.tsx'
import { Named, TableCard } from '../../ui/table.tsx'
import type { MarginGrouping, MarginRow, Margins, UnbilledRow } from '../../wire.ts'

const BY_MODEL = { value: 'product', label: 'Model', head: 'Model or endpoint' } as const
const LABEL = 'label:'
const GROUPINGS: readonly { value: MarginGrouping; label: string; head: string }[] = [
  BY_MODEL,
  { value: 'account', label: 'Customer', head: 'Customer' },
  { value: 'vendor', label: 'Vendor', head: 'Vendor' },
  { value: 'month', label: 'Month', head: 'Month' },
  { value: 'label:user', label: 'Label', head: 'Label' },
]

/** Any label may be asked for. */
function groupingOf(given: string | null): (typeof GROUPINGS)[number] {
  if (!given?.startsWith(LABEL)) return GROUPINGS.find(({ value }) => value === given) ?? BY_MODEL
  const name = given.slice(LABEL.length)
  return { value: `label:${name}`, label: name, head: name }
}

export function MarginPage() {
  const { query } = useLocation()
  const months = monthsSince()
  const last = months[1] ?? ''
  const by = groupingOf(query.get('by'))
  const isLabel = by.value.startsWith(LABEL)
  const from = query.get('from') ?? last
  const to = query.get('to') ?? (from > last ? from : last)
  const filter: MarginFilter = { by: by.value, from, to: to < from ? from : to }
  const key = `margins/${JSON.stringify(filter)}`
  const sums = useQuery(`${key}/sums`, (signal) => api.margins({ ...filter, limit: 1 }, signal))
  const hasUnknown = sums.data !== undefined && unknownOf(sums.data.totals) !== 0n
  const list = useList(key, (cursor, signal) => api.margins({ ...filter, cursor, limit: 50 }, signal))
  return (
    <Page
      title="Margin"
      lead="Charges for calls and what vendors billed for them, by the month in which the calls were charged (UTC)."
    >
      <div className="filters">
        <MonthField label="From" name="from" months={months} month={from} />
        <MonthField label="To" name="to" months={months} month={filter.to ?? to} />
        <Segments<MarginGrouping>
          label="By"
          value={isLabel ? 'label:user' : by.value}
          options={GROUPINGS}
          onPick={(value) => setQuery({ by: value })}
        />
        {isLabel ? <LabelField name={by.label} /> : null}
        <CsvButton
          fetchIt={() => api.marginsCsv(filter)}
          name={`margin-by-${by.label.toLowerCase()}-${from}-${filter.to}.csv`}
        />
      </div>
      <Loaded query={sums} skeleton={<Skeleton lines={1} like="tall" />}>
        {({ totals }) => <Totals of={totals} />}
      </Loaded>
      <TableCard
        label={`Margin by ${by.label.toLowerCase()}`}
        list={list}
        rowKey={(row) => row.group}
        empty={
          <Empty icon="ledger" title="No calls were charged in this time">
            <Button onClick={() => setQuery({ from: months[0], to: months[0] })}>Show this month</Button>
          </Empty>
        }
        columns={[
          { head: by.head, main: true, cell: (row) => <Group row={row} by={by.value} /> },
          { head: 'Calls', right: true, cell: (row) => formatWhole(row.calls) },
          {
            head: 'Charged, cost known',
            right: true,
            cell: (row) => <Known row={row} value={row.chargedWithKnownCost} />,
          },
          { head: 'Cost', right: true, cell: (row) => <Known row={row} value={row.cost} /> },
          { head: 'Margin', right: true, cell: (row) => <Known row={row} value={row.margin} /> },
          {
            head: 'Margin %',
            right: true,
            cell: (row) => (row.marginPercent === null ? '–' : `${row.marginPercent.toFixed(1)} %`),
          },
          hasUnknown && {
            head: 'Charged, cost unknown',
            right: true,
            cell: (row) =>
              unknownOf(row) === 0n ? <span className="muted">–</span> : <Amount value={unknownOf(row)} />,
          },
        ]}
      />
      <UnbilledCard from={from} to={filter.to ?? to} />
    </Page>
  )
}

const WHY: Readonly<Record<UnbilledRow['kind'], string>> = {
  shadow: 'Copy of calls (shadow traffic)',
  hedge_lost: 'Aborted: another vendor was faster',
  first_token_timeout: 'Aborted: first token too late',
  client_closed: 'Aborted: the caller hung up before the first token',
  guardrail: 'Checks by a moderation model',
}

/** By the day, what vendors took and no caller pays. It is part of the cost above. */
function UnbilledCard({ from, to }: { from: string; to: string }) {
  const [year = 0, month = 0] = to.split('-').map(Number)
  const last = new Date(Date.UTC(year, month, 0)).toISOString().slice(0, 10)
  const filter = { from: `${from}-01`, to: last }
  const list = useList(`unbilled/${from}/${to}`, (cursor, signal) =>
    api.unbilled({ ...filter, cursor, limit: 50 }, signal),
  )
  return (
    <TableCard
      label="Costs not billed to customers"
      title="Costs not billed to customers"
      actions={
        <CsvButton fetchIt={() => api.unbilledCsv(filter)} name={`unbilled-${from}-${to}.csv`} label="CSV by day" />
      }
      list={list}
      rowKey={(row) => JSON.stringify([row.day, row.kind, row.vendor, row.product, row.model, row.credential])}
      empty={
        <Empty icon="ledger" title="No unbilled costs">
          <p>Copies of calls, calls aborted before their first token, and moderation checks are listed here by day.</p>
        </Empty>
      }
      columns={[
        { head: 'Day', cell: (row) => row.day },
        { head: 'Vendor', main: true, cell: (row) => <Named name={row.vendor} /> },
        { head: 'Model', cell: (row) => row.product },
        { head: 'For', cell: (row) => WHY[row.kind] },
        { head: 'Calls', right: true, cell: (row) => formatWhole(row.calls) },
        {
          head: 'Cost',
          right: true,
          cell: (row) => (row.cost === null ? <span className="muted">unknown</span> : <Amount value={row.cost} />),
        },
      ]}
    />
  )
}

/** Names of all accounts' tags are not listed, so a name is typed. */
function LabelField({ name }: { name: string }) {
  return (
    <TextField
      key={name}
      label="Label"
      defaultValue={name}
      onKeyDown={leaveOnEnter}
      onBlur={({ target }) => {
        if (target.value.trim()) setQuery({ by: `${LABEL}${target.value.trim()}` })
      }}
    />
  )
}

/** What was charged for calls without a known cost. */
const unknownOf = ({ charged, chargedWithKnownCost }: Pick<MarginRow, 'charged' | 'chargedWithKnownCost'>) =>
  (parseCredits(charged) ?? 0n) - (parseCredits(chargedWithKnownCost) ?? 0n)

/** The first three add up; the last is what they leave out. */
function Totals({ of }: { of: Margins['totals'] }) {
  const unknown = unknownOf(of)
  return (
    <Stats>
      <Stat
        label="Charged, cost known"
        value={<Amount value={of.chargedWithKnownCost} decimals={2} />}
        note={`credits; ${plural(of.calls, 'call')} in all`}
      />
      <Stat
        label="Cost"
        value={<Amount value={of.cost} decimals={2} />}
        note={of.unbilled === '0' ? 'credits' : `credits; ${formatCredits(of.unbilled, 2)} of it unbilled`}
      />
      <Stat
        label="Margin"
        value={<Amount value={of.margin} decimals={2} />}
        note={of.marginPercent === null ? 'no cost is known' : `${of.marginPercent.toFixed(1)} % of what was charged`}
      />
      {unknown === 0n ? null : (
        <Stat
          label="Charged, cost unknown"
          value={<Amount value={unknown} decimals={2} />}
          note={<Link to="/operator/catalog">Set costs in the routes</Link>}
        />
      )}
    </Stats>
  )
}

/** Of calls without a known cost nothing can be said. */
function Known({ row, value }: { row: MarginRow; value: string }) {
  return row.chargedWithKnownCost === '0' && row.cost === '0' ? (
    <span className="muted">–</span>
  ) : (
    <Amount value={value} />
  )
}

function Group({ row, by }: { row: MarginRow; by: MarginGrouping }) {
  if (by === 'account' && row.group === '') return <Named name="No customer (paid by the gateway)" />
  if (by === 'account')
    return <Named name={row.name ?? row.group} to={`/operator/accounts/${encodeURIComponent(row.group)}`} />
  if (by === 'month') return <Named name={monthName(row.group)} />
  if (by.startsWith(LABEL)) return <Named name={row.group || 'Without this label'} />
  return <Named name={row.group || 'No vendor (cached or failed)'} />
}

export function StatementsPage() {
  const { query } = useLocation()
  const months = monthsSince()
  const month = query.get('month') ?? months[1] ?? ''
  const list = useList(`statements/${month}`, (cursor, signal) => api.statements(month, { cursor, limit: 50 }, signal))
  return (
    <Page title="Statements" lead="Every customer’s statement for a month.">
      <div className="filters">
        <MonthField months={months} month={month} />
        <CsvButton label="All as PDF (ZIP)" fetchIt={() => api.statementsZip(month)} name={`statements-${month}.zip`} />
      </div>
      <TableCard
        label={`Statements of ${monthName(month)}`}
        list={list}
        rowKey={(row) => row.account.id}
        empty={
          <Empty icon="statement" title="No customer had an account in this month">
            <Button onClick={() => setQuery({ month: months[0] })}>Show this month</Button>
          </Empty>
        }
        columns={[
          {
            head: 'Customer',
            main: true,
            cell: ({ account }) => (
              <Link
                to={`/operator/accounts/${encodeURIComponent(account.id)}/statement?month=${month}`}
                className="cell-link clamp"
              >
                {account.name}
              </Link>
            ),
          },
          { head: 'Opening', right: true, wideOnly: true, cell: (row) => <Amount value={row.opening} /> },
          { head: 'Top-ups', right: true, cell: (row) => <Amount value={row.topUps} /> },
          { head: 'Usage', right: true, cell: (row) => <Amount value={row.usage} /> },
          { head: 'Corrections', right: true, wideOnly: true, cell: (row) => <Amount value={row.corrections} /> },
          { head: 'Closing', right: true, cell: (row) => <Amount value={row.closing} /> },
        ]}
      />
    </Page>
  )
}
