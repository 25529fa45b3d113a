import * as z from 'zod'
import type { CatalogStore } from '../../catalog/store.ts'
import { type Audit, auditCheck, auditView } from '../../database/audit.ts'
import type { Backfills } from '../../database/backfill.ts'
import { type Database, sql } from '../../database/database.ts'
import type { Migrations } from '../../database/migrate.ts'
import type { JobFacts } from '../../jobs/views.ts'
import { page } from '../../kernel/view.ts'
import type { World } from '../../kernel/world.ts'
import type { Reports } from '../../telemetry/reports.ts'
import { paging, type Resource, range, resource, text } from '../resource.ts'
import { livePage, systemView } from '../views.ts'

export interface OperationsDeps {
  readonly database: Database
  readonly catalog: CatalogStore
  readonly audit: Audit
  readonly world: World
  /** Of all processes. */
  readonly reports: Reports
  readonly system: {
    readonly version: string
    readonly storeKind: string
    readonly storeVersion: string
    readonly migrations: Migrations
    readonly backfills: Pick<Backfills, 'progress'>
    readonly setAside: () => readonly string[]
    readonly queue: () => Promise<JobFacts>
  }
}

const SIZE = sql('system_size')`select pg_database_size(current_database()) as bytes`
// A process that has been silent for a minute is gone.
const PROCESSES = sql('system_processes')`
  select id, started_at, heartbeat_at from gateway_instance where heartbeat_at > now() - interval '1 minute' order by id limit 500`

export function operationsResources(deps: OperationsDeps): Resource[] {
  const { database, catalog, audit, world, system } = deps
  const startedMs = world.elapsedMs()
  return [
    resource('GET /audit', 'audit:read', {
      title: 'List the audit log',
      query: z.strictObject({
        ...paging,
        actor: text(200).optional().describe('Who did it: an email address or the name of a token’s holder'),
        action: text(100).optional().describe('An action such as key.revoke, or only its noun: key'),
        object: text(200).optional().describe('What it was done to'),
        token: text(100).optional().describe('By which token'),
        ...range,
      }),
      answer: page(auditView),
      run: ({ query }) => audit.list(query),
    }),
    resource('GET /audit/verify', 'audit:read', {
      title: 'Verify the audit log',
      answer: auditCheck,
      run: () => audit.verify(),
    }),
    resource('GET /requests/live', 'live-calls:read', {
      title: 'Show running calls',
      answer: livePage,
      async run() {
        const { calls: items, running, processes } = await deps.reports.read()
        return { items, next: null, running, processes }
      },
    }),
    resource('GET /system', 'system:read', {
      title: 'Show the state of the gateway',
      answer: systemView,
      async run() {
        const [size, processes, queue, backfills] = await Promise.all([
          database.query<{ bytes: bigint }>(SIZE),
          database.query<{ id: string; started_at: Date; heartbeat_at: Date }>(PROCESSES),
          system.queue(),
          system.backfills.progress(),
        ])
        return {
          version: system.version,
          runtime: `Node ${process.versions.node}`,
          store: { kind: system.storeKind, version: system.storeVersion, sizeBytes: Number(size[0]?.bytes ?? 0n) },
          migrations: system.migrations,
          backfills,
          setAside: [...system.setAside()],
          processes: processes.map((row) => ({
            id: row.id,
            startedAt: row.started_at.toISOString(),
            heartbeatAt: row.heartbeat_at.toISOString(),
          })),
          queue,
          catalogVersion: catalog.current.version,
          uptimeSeconds: Math.round((world.elapsedMs() - startedMs) / 1000),
        }
      },
    }),
  ]
}
