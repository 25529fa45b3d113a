// The bell: how much of what fired nobody has seen yet, and the newest of it.
import { useState } from 'react'
import { api } from './api.ts'
import { AlertLines } from './extensions/alerts/alert-lines.tsx'
import { refresh, useQuery } from './query.ts'
import { Link } from './router.tsx'
import { useMay, useSession } from './session.tsx'
import { Dialog, DialogBody } from './ui/dialog.tsx'
import { Icon } from './ui/icon.tsx'
import type { AlertPage } from './wire.ts'

const EVERY_MS = 30_000
const NEWEST = 5
/** The server counts no further. */
const COUNTED_MAX = 100

const GATEWAY = 'alerts/gateway/newest'

/**
 * Operators hear of the gateway; everybody of the account on screen. Whoever only visits an account leaves its alerts
 * unread.
 */
function useNews(account: string | undefined) {
  const { accounts } = useSession()
  const may = useMay()
  const own = accounts.find(({ id }) => id === account)
  const shown = own?.id ?? (account && may('alerts:read') ? account : undefined)
  const gateway = useQuery(
    may('alerts:read') ? GATEWAY : undefined,
    (signal) => api.alerts(undefined, { limit: NEWEST, of: 'gateway' }, signal),
    { everyMs: EVERY_MS },
  )
  const mine = useQuery(
    shown ? `alerts/${shown}/newest` : undefined,
    (signal) => api.alerts(shown, { limit: NEWEST }, signal),
    { everyMs: EVERY_MS },
  )
  return [
    { id: undefined, title: 'Gateway', to: '/operator/alerts', page: gateway.data, isOwn: true },
    {
      id: shown,
      title: own?.name ?? 'The account on screen',
      to: `/a/${encodeURIComponent(shown ?? '')}/alerts`,
      page: mine.data,
      isOwn: own !== undefined,
    },
  ].filter((one): one is typeof one & { page: AlertPage } => one.page !== undefined)
}

export function Bell({ account }: { account: string | undefined }) {
  const [open, setOpen] = useState(false)
  const may = useMay()
  const news = useNews(account)
  const unread = news.reduce((sum, { page }) => sum + page.unread, 0)
  const shown = unread >= COUNTED_MAX ? `${COUNTED_MAX - 1}+` : String(unread)
  const label = unread ? `Alerts, ${shown} unread` : 'Alerts'
  const close = async () => {
    setOpen(false)
    const seen = news.flatMap(({ id, page, isOwn }) =>
      isOwn && page.unread && page.items[0] && may('alerts:write', id) ? [[id, page.items[0].id] as const] : [],
    )
    await Promise.allSettled(seen.map(([id, until]) => api.readAlerts(id, until)))
    if (seen.length) refresh('alerts/')
  }
  if (news.length === 0) return null
  return (
    <>
      <button
        type="button"
        className="icon-button bell"
        aria-label={label}
        title={label}
        aria-haspopup="dialog"
        onClick={() => setOpen(true)}
      >
        <Icon name="bell" />
        {unread ? (
          <span className="bell-count" aria-hidden="true">
            {shown}
          </span>
        ) : null}
      </button>
      {open ? (
        <Dialog title="Alerts" onClose={() => void close()}>
          <DialogBody>
            {news.map(({ title, to, page }) => (
              <section key={to} className="stack" aria-label={title}>
                {news.length > 1 ? <h3>{title}</h3> : null}
                {page.items.length ? <AlertLines alerts={page.items} /> : <p className="muted">No alerts.</p>}
                <p>
                  <Link to={to} onClick={() => void close()}>
                    All alerts, rules and receivers
                  </Link>
                </p>
              </section>
            ))}
          </DialogBody>
        </Dialog>
      ) : null}
    </>
  )
}
