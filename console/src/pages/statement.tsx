import { api } from '../api.ts'
import { formatCredits, parseCredits } from '../credits.ts'
import { useList, useQuery } from '../query.ts'
import { Link } from '../router.tsx'
import { Amount, Badge, Balance, Name, Page, ShortId, type Tone, When } from '../ui/page.tsx'
import { Empty, Loaded, Skeleton } from '../ui/state.tsx'
import { TableCard } from '../ui/table.tsx'
import type { LedgerRow } from '../wire.ts'
import { CsvButton } from './csv.tsx'

export function StatementPage({ account }: { account: string }) {
  const money = useQuery(`account/${account}`, (signal) => api.account(account, signal))
  return (
    <Page
      title="Statement"
      lead="Every transaction on this account’s credits, newest first."
      actions={<CsvButton fetchIt={() => api.csv(account, 'ledger')} name={`statement-${account}.csv`} />}
    >
      <Loaded query={money} skeleton={<Skeleton lines={1} tall />}>
        {(data) => <Balance of={data} />}
      </Loaded>
      <LedgerPanel account={account} />
    </Page>
  )
}

const KINDS: Record<LedgerRow['kind'], { label: string; tone: Tone }> = {
  grant: { label: 'Credits added', tone: 'good' },
  takeback: { label: 'Credits removed', tone: 'warn' },
  settled: { label: 'Charge', tone: 'calm' },
  released: { label: 'Hold released', tone: 'calm' },
  expired: { label: 'Hold expired', tone: 'warn' },
}

export function LedgerPanel({ account }: { account: string }) {
  const list = useList(`ledger/${account}`, (cursor, signal) => api.ledger(account, { cursor, limit: 50 }, signal))
  return (
    <TableCard
      label="Statement"
      list={list}
      rowKey={(row) => row.id}
      empty={
        <Empty icon="statement" title="No transactions yet">
          <p>Credits that are added and charges for calls appear here.</p>
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
        { head: 'Amount', right: true, cell: (row) => <Signed row={row} /> },
        {
          head: 'Balance',
          right: true,
          cell: (row) => (row.balanceAfter === undefined ? '–' : <Amount value={row.balanceAfter} />),
        },
      ]}
    />
  )
}

/** Charges and what was taken back leave the account, whichever sign the row carries. */
function Signed({ row }: { row: LedgerRow }) {
  const size = formatCredits(row.amount).replace('−', '')
  if (parseCredits(row.amount) === 0n || row.kind === 'released' || row.kind === 'expired')
    return <span className="muted">0</span>
  return row.kind === 'grant' ? <span className="gain">+{size}</span> : <span>−{size}</span>
}
