import { useState } from 'react'
import { api } from '../api.ts'
import { formatCredits, parseCredits } from '../credits.ts'
import { useList, useQuery } from '../query.ts'
import { Link } from '../router.tsx'
import { Button } from '../ui/button.tsx'
import { Amount, Badge, Card, Name, Page, ShortId, Stat, Stats, type Tone, When } from '../ui/page.tsx'
import { Empty, Loaded, LoadMore, Skeleton } from '../ui/state.tsx'
import { Table } from '../ui/table.tsx'
import type { LedgerRow } from '../wire.ts'
import { saveCsv } from './csv.ts'

export function StatementPage({ account }: { account: string }) {
  const [saving, setSaving] = useState(false)
  const money = useQuery(`account/${account}`, (signal) => api.account(account, signal))
  return (
    <Page
      title="Statement"
      lead="Every transaction on this account’s credits, newest first."
      actions={
        <Button
          icon="download"
          busy={saving}
          onClick={async () => {
            setSaving(true)
            await saveCsv(() => api.csv(account, 'ledger'), `statement-${account}.csv`)
            setSaving(false)
          }}
        >
          CSV
        </Button>
      }
    >
      <Loaded query={money} skeleton={<Skeleton lines={1} tall />}>
        {(data) => (
          <Stats>
            <Stat label="Balance" value={<Amount value={data.balance} decimals={2} />} note="credits" />
            <Stat label="Held" value={<Amount value={data.held} decimals={2} />} note="for calls in flight" />
            <Stat label="Available" value={<Amount value={data.available} decimals={2} />} note="to spend now" />
          </Stats>
        )}
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
    <Card flush>
      <Loaded query={list}>
        {(rows) =>
          rows.length === 0 ? (
            <Empty icon="statement" title="No transactions yet">
              <p>Credits that are added and charges for calls appear here.</p>
            </Empty>
          ) : (
            <Table
              label="Statement"
              rows={rows}
              rowKey={(row) => row.id}
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
      </Loaded>
      <LoadMore list={list} />
    </Card>
  )
}

/** Charges and what was taken back leave the account, whichever sign the row carries. */
function Signed({ row }: { row: LedgerRow }) {
  const size = formatCredits(row.amount).replace('−', '')
  if (parseCredits(row.amount) === 0n || row.kind === 'released' || row.kind === 'expired')
    return <span className="muted">0</span>
  return row.kind === 'grant' ? <span className="gain">+{size}</span> : <span>−{size}</span>
}
