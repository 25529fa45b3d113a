import { api } from '../../api.ts'
import { formatBytes, formatDuration, formatWhole } from '../../format.ts'
import { refresh, useQuery } from '../../query.ts'
import { Ago, Badge, Card, Facts, Page, Stat, Stats, When } from '../../ui/page.tsx'
import { Loaded, Skeleton } from '../../ui/state.tsx'
import { Table } from '../../ui/table.tsx'
import type { System } from '../../wire.ts'
import { LimitsCard } from '../limits.tsx'

export function SystemPage() {
  const system = useQuery('system', api.system, { everyMs: 10_000 })
  const limits = useQuery('limits', api.systemLimits)
  return (
    <Page title="System" lead="This gateway, its database and its queue.">
      <Loaded query={system} skeleton={<Skeleton lines={2} tall />}>
        {(data) => <SystemBody system={data} />}
      </Loaded>
      <Loaded query={limits}>
        {(data) => (
          <LimitsCard
            key={JSON.stringify(data)}
            title="System-wide limits"
            lead="For all accounts together. Empty: no limit."
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
            ['Jobs queued', formatWhole(system.queue.created)],
            ['Jobs running', formatWhole(system.queue.active)],
            ['Jobs failed', formatWhole(system.queue.failed)],
          ]}
        />
      </Card>
      <Card
        flush
        title="Processes"
        lead="Processes that share this database. One that falls silent loses its holds after 20 seconds."
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
