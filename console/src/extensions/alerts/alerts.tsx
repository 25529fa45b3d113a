// What fired, to whom it was told and how that went; and the rules by which it fires.
import { useState } from 'react'
import { api } from '../../api.ts'
import { DeliveryTable } from '../../pages/deliveries.tsx'
import { refresh, useList } from '../../query.ts'
import { Link, setQuery, useLocation } from '../../router.tsx'
import { useMay } from '../../session.tsx'
import { useAction } from '../../ui/action.ts'
import { Button } from '../../ui/button.tsx'
import { Notice } from '../../ui/dialog.tsx'
import { Segments } from '../../ui/field.tsx'
import { Badge, Facts, Page, ShortId, When } from '../../ui/page.tsx'
import { Empty, Fault } from '../../ui/state.tsx'
import { TableCard } from '../../ui/table.tsx'
import type { Alert } from '../../wire.ts'
import { AlertTitle, placeOf } from './alert-lines.tsx'
import { AlertSettingsPanel } from './alert-rules.tsx'

const EVERY_MS = 10_000

export function AlertsPage({ account, tab = 'list' }: { account: string; tab?: string }) {
  const mayRule = useMay()('alert-settings:read', account)
  return (
    <Page
      title={tab === 'rules' ? 'Alert rules' : 'Alerts'}
      lead="Low balances, spending limits, failing calls and expiring keys."
    >
      {tab === 'rules' && mayRule ? <AlertSettingsPanel account={account} /> : <AlertList account={account} />}
    </Page>
  )
}

const WHOSE = [
  { value: 'gateway', label: 'Gateway' },
  { value: 'all', label: 'With accounts' },
] as const

export function GatewayAlertsPage({ tab = 'list' }: { tab?: string }) {
  const { query } = useLocation()
  const of = query.get('of') === 'all' ? 'all' : 'gateway'
  return (
    <Page
      title={tab === 'rules' ? 'Gateway alert rules' : 'Gateway alerts'}
      lead="Open circuit breakers of vendors, and problems found by checks of the ledger or the audit log. Accounts have rules of their own."
      actions={
        tab === 'list' ? (
          <Segments<'gateway' | 'all'>
            label="Whose"
            value={of}
            options={WHOSE}
            onPick={(value) => setQuery({ of: value === 'all' ? value : undefined })}
          />
        ) : null
      }
    >
      {tab === 'rules' ? <AlertSettingsPanel account={undefined} /> : <AlertList account={undefined} of={of} />}
    </Page>
  )
}

function AlertList({ account, of = 'gateway' }: { account: string | undefined; of?: 'gateway' | 'all' }) {
  const [opened, setOpened] = useState<Alert>()
  const list = useList(
    `alerts/${account ?? of}/list`,
    (cursor, signal) => api.alerts(account, { ...(account ? {} : { of }), cursor }, signal),
    { everyMs: EVERY_MS },
  )
  const newest = list.data?.find(({ account: whose }) => whose === (account ?? null))
  const { busy, error, go } = useAction(async () => {
    await api.readAlerts(account, newest?.id ?? '')
    refresh('alerts/')
  })
  const unread = list.data?.some((alert) => !alert.read && alert.account === (account ?? null))
  return (
    <>
      {error ? <Fault error={error} /> : null}
      {unread ? (
        <div>
          <Button right="alerts:write" account={account} icon="check" busy={busy} onClick={() => void go()}>
            Mark all as read
          </Button>
        </div>
      ) : null}
      <TableCard
        label="Alerts"
        list={list}
        rowKey={(alert) => alert.id}
        empty={
          <Empty icon="bell" title="No alerts yet">
            <p>Each alert is sent once and resets when the problem clears.</p>
          </Empty>
        }
        columns={[
          {
            head: 'Alert',
            main: true,
            cell: (alert) => (
              <>
                <AlertTitle alert={alert} /> {alert.read ? null : <Badge tone="bad">new</Badge>}
                <span className="cell-sub">{alert.message}</span>
              </>
            ),
          },
          { head: 'Time', cell: (alert) => <When at={alert.at} />, tight: true },
          of === 'all' && !account
            ? {
                head: 'Account',
                cell: (alert: Alert) =>
                  alert.account ? (
                    <Link to={`/operator/accounts/${encodeURIComponent(alert.account)}`}>
                      <ShortId id={alert.account} />
                    </Link>
                  ) : (
                    'Gateway'
                  ),
              }
            : false,
          { head: 'Told', cell: (alert) => <Told alert={alert} onOpen={() => setOpened(alert)} /> },
        ]}
      />
      {opened ? <AlertNotice account={account} alert={opened} onClose={() => setOpened(undefined)} /> : null}
    </>
  )
}

/** In sum; each try is behind it. */
function Told({ alert, onOpen }: { alert: Alert; onOpen: () => void }) {
  const { deliveries } = alert
  if (deliveries.length === 0) return <span className="muted">console only</span>
  const done = deliveries.filter(({ status }) => status === 'delivered').length
  const failed = deliveries.some(({ status }) => status === 'given_up')
  return (
    <Button small onClick={onOpen}>
      <Badge tone={failed ? 'bad' : done === deliveries.length ? 'good' : 'busy'}>
        {done} of {deliveries.length}
      </Badge>{' '}
      delivered
    </Button>
  )
}

function AlertNotice(props: { account: string | undefined; alert: Alert; onClose: () => void }) {
  const { account, alert, onClose } = props
  const to = placeOf(alert)
  return (
    <Notice title={alert.title} wide onClose={onClose}>
      <p>{alert.message}</p>
      <Facts
        items={[
          ['Fired', <When key="w" at={alert.at} />],
          ['Rule', alert.rule],
          ['About', to ? <Link to={to}>{alert.subject || 'gateway'}</Link> : alert.subject || 'gateway'],
        ]}
      />
      <DeliveryTable account={account} rows={alert.deliveries} />
    </Notice>
  )
}
