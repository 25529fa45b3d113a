// All movements of credits of an account.
import { api, type LedgerFilter } from '../api.ts'
import { type List, useList, useQuery } from '../query.ts'
import { Link, setQuery, useLocation } from '../router.tsx'
import { SelectField } from '../ui/field.tsx'
import { Amount, Badge, Balance, Name, Page, ShortId, type Tone, When } from '../ui/page.tsx'
import { Empty, Loaded, Skeleton } from '../ui/state.tsx'
import { TableCard } from '../ui/table.tsx'
import type { LedgerRow } from '../wire.ts'
import { dayStart } from '../zone.ts'
import { CsvButton, csvName } from './csv.tsx'
import { RangeFields } from './range-fields.tsx'

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

export const KINDS: Record<LedgerRow['kind'], { label: string; tone: Tone }> = {
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
        <CsvButton fetchIt={() => api.ledgerCsv(account, filter)} name={() => csvName('movements', account, filter)} />
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
