import { type ReactNode, useState } from 'react'
import { api } from '../../api.ts'
import { parseCredits } from '../../credits.ts'
import { formatBytes, formatDuration, formatWhole } from '../../format.ts'
import { refresh, useQuery } from '../../query.ts'
import { useSubmit } from '../../ui/action.ts'
import { Button } from '../../ui/button.tsx'
import { TextField } from '../../ui/field.tsx'
import { Ago, Badge, Card, Facts, Page, Stat, Stats, When } from '../../ui/page.tsx'
import { Fault, Loaded, Skeleton } from '../../ui/state.tsx'
import { Table } from '../../ui/table.tsx'
import { toast } from '../../ui/toast.tsx'
import type { Billing, System } from '../../wire.ts'
import { LimitsCard } from '../limits.tsx'

export function SystemPage() {
  const system = useQuery('system', api.system, { everyMs: 10_000 })
  const limits = useQuery('limits', api.systemLimits)
  const billing = useQuery('billing', api.billing)
  return (
    <Page title="System" lead="This gateway, its database and its queue.">
      <Loaded query={system} skeleton={<Skeleton lines={2} like="tall" />}>
        {(data) => <SystemBody system={data} />}
      </Loaded>
      <Loaded query={billing}>{(data) => <BillingCard key={JSON.stringify(data)} billing={data} />}</Loaded>
      <Loaded query={limits}>
        {(data) => (
          <LimitsCard
            key={JSON.stringify(data)}
            right="limits:write"
            title="System-wide limits"
            lead="For all accounts together. Leave empty for no limit."
            limits={data}
            save={async (input) => {
              await api.changeSystemLimits(input)
              refresh('limits')
            }}
          />
        )}
      </Loaded>
    </Page>
  )
}

/** Shown beside credits everywhere, and on statements. */
function BillingCard({ billing }: { billing: Billing }) {
  const [currency, setCurrency] = useState(billing.worth?.currency ?? '')
  const [rate, setRate] = useState(billing.worth?.rate ?? '')
  const [contact, setContact] = useState(billing.contact ?? '')
  const isWorthWhole = Boolean(currency.trim()) === Boolean(rate.trim())
  const { busy, error, onSubmit } = useSubmit(async () => {
    const code = currency.trim().toUpperCase()
    await api.changeBilling({
      worth: code ? { currency: code, rate: rate.trim() } : null,
      contact: contact.trim() || null,
    })
    refresh('billing', 'session', 'statement/')
    toast('Saved.')
  })
  return (
    <Card
      right="billing:write"
      title="Credit value"
      lead="Shown beside credits in the console and on statements. A statement keeps the worth that was set at the end of its month."
    >
      <form className="stack" onSubmit={onSubmit}>
        <div className="grid-3">
          <TextField
            label="Currency"
            value={currency}
            onText={setCurrency}
            maxLength={3}
            placeholder="EUR"
            hint="ISO code. Leave empty to show only credits."
          />
          <TextField
            label="One credit is worth"
            value={rate}
            onText={setRate}
            inputMode="decimal"
            placeholder="0.01"
            fault={
              rate.trim() && !parseCredits(rate) ? 'An amount such as 0.01, with at most six decimals.' : undefined
            }
          />
          <TextField
            label="Contact for customers"
            value={contact}
            onText={setContact}
            maxLength={100}
            placeholder="billing@example.com"
            hint="Shown on statements and to callers of a suspended account."
          />
        </div>
        {error ? <Fault error={error} /> : null}
        <div>
          <Button look="primary" type="submit" busy={busy} disabled={!isWorthWhole}>
            Save
          </Button>
        </div>
      </form>
    </Card>
  )
}

function SystemBody({ system }: { system: System }) {
  const current = system.migrations.applied === system.migrations.latest
  return (
    <>
      <Stats>
        <Stat label="Version" value={system.version} note={system.runtime} />
        <Stat label="Uptime" value={formatDuration(system.uptimeSeconds)} note="this process" />
        <Stat
          label="Database"
          value={formatBytes(system.store.sizeBytes)}
          note={`${system.store.kind} ${system.store.version}`}
        />
        <Stat label="Catalog" value={system.catalogVersion} note="current version" />
      </Stats>
      <Card title="Database and queue">
        <Facts
          items={[
            [
              'Migrations',
              <span key="m" className="row">
                {system.migrations.applied} of {system.migrations.latest}
                <Badge tone={current ? 'good' : 'warn'}>{current ? 'current' : 'behind'}</Badge>
              </span>,
            ],
            ...system.backfills.map(({ name, rows, of, done }): [string, ReactNode] => [
              `Backfill ${name}`,
              done ? 'done' : `${formatWhole(rows)} of about ${formatWhole(of)} rows`,
            ]),
            ['Jobs queued', formatWhole(system.queue.created)],
            ['Jobs running', formatWhole(system.queue.active)],
            ['Jobs failed', formatWhole(system.queue.failed)],
            ...(system.ledgers ?? []).map(({ name, answers }): [string, ReactNode] => [
              `Ledger ${name}`,
              <Badge key={name} tone={answers ? 'good' : 'warn'}>
                {answers ? 'answers' : 'does not answer'}
              </Badge>,
            ]),
          ]}
        />
      </Card>
      {system.setAside.length > 0 ? (
        <Card title="Stored by another version" lead="This version does not know it and does not use it.">
          <ul>
            {system.setAside.map((part) => (
              <li key={part}>{part}</li>
            ))}
          </ul>
        </Card>
      ) : null}
      <Card
        flush
        title="Processes"
        lead="Processes that share this database. A process that stops responding loses its holds after 20 seconds."
      >
        <Table
          label="Processes"
          rows={system.processes}
          rowKey={(row) => row.id}
          columns={[
            { head: 'Process', main: true, cell: (row) => <code>{row.id}</code> },
            { head: 'Started', cell: (row) => <When at={row.startedAt} /> },
            { head: 'Heartbeat', cell: (row) => <Ago at={row.heartbeatAt} /> },
          ]}
        />
      </Card>
    </>
  )
}
