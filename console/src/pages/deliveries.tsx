// What was sent to receivers outside (webhooks, Slack, mails), what became of it, and what is still to come.
import { useState } from 'react'
import { api } from '../api.ts'
import { useList, useQuery } from '../query.ts'
import { Link, setQuery, useLocation } from '../router.tsx'
import { Button } from '../ui/button.tsx'
import { Code } from '../ui/code.tsx'
import { Notice } from '../ui/dialog.tsx'
import { SelectField } from '../ui/field.tsx'
import { FilterBar } from '../ui/filter-bar.tsx'
import { Badge, Note, Page, ShortId, type Tone, When } from '../ui/page.tsx'
import { Empty, Loaded } from '../ui/state.tsx'
import { Table, TableCard, type TableColumn } from '../ui/table.tsx'
import type { Delivery } from '../wire.ts'
import { AccountPick } from './pickers.tsx'

const EVERY_MS = 5_000

const STATUSES: Record<Delivery['status'], { label: string; tone: Tone }> = {
  waiting: { label: 'Waiting', tone: 'busy' },
  sending: { label: 'Being sent', tone: 'busy' },
  delivered: { label: 'Delivered', tone: 'good' },
  given_up: { label: 'Given up', tone: 'bad' },
}
export const KINDS: Record<Delivery['kind'], string> = { webhook: 'Webhook', slack: 'Slack', email: 'Email' }

export function DeliveryBadge({ delivery: { status, attempts } }: { delivery: Delivery }) {
  const { label, tone } = STATUSES[status]
  return <Badge tone={status === 'waiting' && attempts > 0 ? 'warn' : tone}>{label}</Badge>
}

/** Of an account, or of the whole gateway. */
export const deliveriesOf = (account: string | undefined) =>
  account ? `/a/${encodeURIComponent(account)}/deliveries` : '/operator/deliveries'

export function DeliveriesPage({ account }: { account: string }) {
  const [secret, setSecret] = useState(false)
  return (
    <Page
      title="Deliveries"
      lead="Webhooks, messages and mails that the gateway sent for this account: every attempt, and what the receiver answered."
      actions={
        <Button right="webhook-secret:read" account={account} icon="key" onClick={() => setSecret(true)}>
          Webhook secret
        </Button>
      }
    >
      <DeliveryList account={account} />
      {secret ? <WebhookSecret account={account} onClose={() => setSecret(false)} /> : null}
    </Page>
  )
}

/** For whoever receives the account's webhooks; only owners and admins are told. */
function WebhookSecret({ account, onClose }: { account: string; onClose: () => void }) {
  const query = useQuery(`webhook-secret/${account}`, (signal) => api.webhookSecret(account, signal))
  return (
    <Notice title="Webhook secret" onClose={onClose}>
      <Note tone="warn">
        All webhooks are signed with it. Anyone who knows it can send webhooks that look like ours.
      </Note>
      <Loaded query={query}>{({ secret }) => <Code label="Webhook secret" text={secret} wrap />}</Loaded>
    </Notice>
  )
}

export function GatewayDeliveriesPage() {
  return (
    <Page
      title="Gateway deliveries"
      lead="Webhooks, messages and mails of the gateway and of all accounts: every attempt, and what the receiver answered."
    >
      <DeliveryList account={undefined} />
    </Page>
  )
}

function DeliveryList({ account }: { account: string | undefined }) {
  const { query } = useLocation()
  const filter = {
    status: query.get('status') || undefined,
    kind: query.get('kind') || undefined,
    ...(account ? {} : { account: query.get('account')?.trim() || undefined }),
  }
  const filtered = Object.values(filter).some(Boolean)
  const list = useList(
    `deliveries/${account ?? ''}/${JSON.stringify(filter)}`,
    (cursor, signal) => api.deliveries(account, { ...filter, cursor, limit: 50 }, signal),
    { everyMs: EVERY_MS },
  )
  const labels = Object.fromEntries(Object.entries(STATUSES).map(([name, { label }]) => [name, label]))
  const choice = (name: 'status' | 'kind', label: string, options: Readonly<Record<string, string>>) => (
    <SelectField
      label={label}
      value={filter[name] ?? ''}
      onText={(text) => setQuery({ [name]: text })}
      options={[['', 'All'], ...Object.entries(options)]}
    />
  )
  const to = (delivery: Delivery) => `${deliveriesOf(account)}/${encodeURIComponent(delivery.id)}`
  return (
    <>
      <FilterBar
        filters={[
          { name: 'status', label: 'Status', value: filter.status, field: choice('status', 'Status', labels) },
          { name: 'kind', label: 'Kind', value: filter.kind, field: choice('kind', 'Kind', KINDS) },
        ]}
        filtered={filtered}
        onDrop={(name) => setQuery({ [name]: undefined })}
        onClear={() => setQuery({ status: undefined, kind: undefined, account: undefined })}
      >
        {account ? null : (
          <AccountPick
            label="Account"
            single
            placeholder="All accounts"
            value={query.get('account') ?? ''}
            onText={(account) => setQuery({ account: account || undefined })}
          />
        )}
      </FilterBar>
      <TableCard
        label="Deliveries"
        list={list}
        rowKey={(delivery) => delivery.id}
        to={to}
        empty={
          <Empty icon="send" title={filtered ? 'No deliveries match' : 'Nothing has been sent yet'}>
            <p>Jobs with a callback address and alerts with receivers cause deliveries. They are kept for 30 days.</p>
          </Empty>
        }
        columns={[
          ...columns(account),
          account ? false : { head: 'Account', cell: ({ account: whose }) => <Whose account={whose} />, tight: true },
          { head: 'Next attempt', cell: ({ nextAttemptAt }) => <Maybe at={nextAttemptAt} />, tight: true },
        ]}
      />
    </>
  )
}

export function Whose({ account }: { account: string | null }) {
  if (account === null) return 'Gateway'
  return (
    <Link to={`/operator/accounts/${encodeURIComponent(account.replace(/_test$/, ''))}`}>
      <ShortId id={account} />
    </Link>
  )
}

export function Maybe({ at }: { at: string | null }) {
  return at === null ? <span className="muted">–</span> : <When at={at} />
}

function columns(account: string | undefined): TableColumn<Delivery>[] {
  return [
    {
      head: 'Delivery',
      main: true,
      cell: (delivery) => (
        <>
          <Link to={`${deliveriesOf(account)}/${encodeURIComponent(delivery.id)}`} className="cell-link clamp">
            {delivery.event}
          </Link>
          <span className="cell-sub">
            {KINDS[delivery.kind]} to {delivery.to}
          </span>
        </>
      ),
    },
    { head: 'Status', cell: (delivery) => <DeliveryBadge delivery={delivery} />, tight: true },
    { head: 'Attempts', right: true, cell: ({ attempts }) => attempts },
    { head: 'Last attempt', cell: ({ lastAttemptAt }) => <Maybe at={lastAttemptAt} />, tight: true },
    { head: 'Answer', cell: ({ error, statusCode }) => error ?? statusCode ?? <span className="muted">–</span> },
  ]
}

/** Those of one alert, or of a few. */
export function DeliveryTable({ account, rows }: { account: string | undefined; rows: readonly Delivery[] }) {
  return <Table label="Deliveries" rows={rows} rowKey={({ id }) => id} columns={columns(account)} />
}
