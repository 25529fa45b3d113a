// Alerts, each with what it is about: a link to where something can be done.
import { labelFilter } from '../../period.ts'
import { Link } from '../../router.tsx'
import { Badge, When } from '../../ui/page.tsx'
import type { Alert } from '../../wire.ts'

/** `user=alice`: a value may have the sign too, a name does not. */
function labelOf(subject: string): [name: string, value: string] {
  const sign = subject.indexOf('=')
  return [subject.slice(0, sign), subject.slice(sign + 1)]
}

/** Where to look; undefined: there is nothing more to see. */
export function placeOf({ rule, account, subject }: Alert): string | undefined {
  const base = `/a/${encodeURIComponent(account ?? '')}`
  const places: Record<Alert['rule'], string | undefined> = {
    balance: `${base}/billing`,
    limit: `${base}/keys`,
    label: `${base}/usage?${new URLSearchParams({ period: '24h', labels: labelFilter(...labelOf(subject)) })}`,
    failures: `${base}/usage?outcome=failed`,
    key: `${base}/keys`,
    job: `${base}/jobs/${encodeURIComponent(subject)}`,
    // Of what it does, its name comes first.
    vendor: `/operator/vendors/${encodeURIComponent(subject.split(' ')[0] ?? '')}`,
    verification: '/operator/ledger',
    payment: '/operator/payments',
    topup: `${base}/purses`,
    export: `/operator/finance/exports/${encodeURIComponent(subject)}`,
    stored: '/operator/system',
    gateway: '/operator/system',
    test: undefined,
  }
  return places[rule]
}

export function AlertTitle({ alert }: { alert: Alert }) {
  const to = placeOf(alert)
  return to ? <Link to={to}>{alert.title}</Link> : <b>{alert.title}</b>
}

export function AlertLines({ alerts }: { alerts: readonly Alert[] }) {
  return (
    <ul className="alert-list">
      {alerts.map((alert) => (
        <li key={alert.id} className={alert.read ? undefined : 'alert-new'}>
          <span>
            <AlertTitle alert={alert} /> {alert.read ? null : <Badge tone="bad">new</Badge>}
          </span>
          <span className="small">{alert.message}</span>
          <span className="small muted">
            <When at={alert.at} />
          </span>
        </li>
      ))}
    </ul>
  )
}
